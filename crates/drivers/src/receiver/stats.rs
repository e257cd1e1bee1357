//! What a receiver has met, for whoever asks why a trace is missing.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use model::Project;
use tokio::time::Instant;

use super::{Counts, Sender};

/// How many refusals are remembered.
const REFUSALS_MAX: usize = 64;
/// Bytes of what is told of a refusal; paths and headers are as long as their sender likes.
const REFUSAL_BYTES_MAX: usize = 512;
/// How many rings there are: one for each kind of sender, so that none pushes out what another sent. Where there are more
/// kinds, the one that was silent longest loses its ring.
const RINGS_MAX: usize = 64;
/// Bytes of all rings together, as a multiple of one. Beyond that the largest ring loses its oldest exports.
const RINGS_FULL_MAX: usize = 4;
/// What an export in the ring costs beside its bytes.
const FOREIGN_BYTES: usize = 128;

/// Exports of fewer bytes are copied into the ring, larger ones stay where they are.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// In so much time no more is put into the ring than fits into it.
const SECOND: Duration = Duration::from_secs(1);

/// What a receiver has met since it started.
#[derive(Clone, Debug, Default)]
pub struct ReceiverSnapshot {
    /// What it has received.
    pub counts: Counts,
    /// Connections that it accepted.
    pub connections: u64,
    /// Requests that it read, whatever became of them.
    pub requests: u64,
    /// The last requests that it refused, the newest at the end.
    pub refusals: Vec<Refusal>,
    /// The last exports of foreign spans, the newest at the end, as far as they fit into the ring. Of a flood, what
    /// came first in each second.
    pub foreign: Vec<Foreign>,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// When.
    pub at: Instant,
    /// What was wrong with it, as its sender was told.
    pub what: String,
}

/// An export in which nobody was interested, or not in all of it.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// When it came.
    pub at: Instant,
    /// The request, as protobuf.
    pub bytes: Bytes,
}

/// [`ReceiverSnapshot`] as it grows.
#[derive(Debug)]
pub(super) struct ReceiverCounters {
    pub(super) kept: AtomicU64,
    pub(super) foreign: AtomicU64,
    pub(super) invalid: AtomicU64,
    pub(super) logs: AtomicU64,
    pub(super) metrics: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) connections: AtomicU64,
    pub(super) requests: AtomicU64,
    ring_bytes_max: usize,
    refusals: Mutex<VecDeque<(Option<Sender>, Refusal)>>,
    rings: Mutex<HashMap<Sender, Ring>>,
}

#[derive(Debug, Default)]
struct Ring {
    exports: VecDeque<Foreign>,
    bytes: usize,
    /// Spans of such senders that the sink refused, and spans whose ids are malformed.
    refused: u64,
    invalid: u64,
    /// When the present second began, and the bytes kept in it. Under a flood every export would push out the one of a
    /// moment ago, and none would be read from the memory that is still in the cache.
    second: Option<Instant>,
    second_bytes: usize,
}

impl Ring {
    /// Forgets the oldest export, and says whether there was one.
    fn forget_oldest(&mut self) -> bool {
        let oldest = self.exports.pop_front();
        self.bytes -= oldest.as_ref().map_or(0, |oldest| oldest.bytes.len() + FOREIGN_BYTES);
        oldest.is_some()
    }
}

impl ReceiverCounters {
    pub(super) fn new(ring_bytes_max: usize) -> Self {
        let zero = AtomicU64::default;
        Self {
            kept: zero(),
            foreign: zero(),
            invalid: zero(),
            logs: zero(),
            metrics: zero(),
            refused: zero(),
            connections: zero(),
            requests: zero(),
            ring_bytes_max,
            refusals: Mutex::default(),
            rings: Mutex::default(),
        }
    }

    /// Keeps a refusal; one of a sender that is not known is anybody's.
    pub(super) fn refusal(&self, what: &str, sender: Option<&Sender>) {
        let mut end = what.len().min(REFUSAL_BYTES_MAX);
        while !what.is_char_boundary(end) {
            end -= 1;
        }
        let refusal = Refusal { at: Instant::now(), what: what[..end].to_owned() };
        let mut refusals = locked(&self.refusals);
        if refusals.len() == REFUSALS_MAX {
            refusals.pop_front();
        }
        refusals.push_back((sender.cloned(), refusal));
    }

    /// Counts spans of a sender that the sink refused.
    pub(super) fn refused_spans(&self, spans: u64, sender: &Sender) {
        add(&self.refused, spans);
        ring_of(&mut locked(&self.rings), sender).refused += spans;
    }

    /// Counts spans of a sender whose ids are malformed.
    pub(super) fn invalid_spans(&self, spans: u64, sender: &Sender) {
        add(&self.invalid, spans);
        ring_of(&mut locked(&self.rings), sender).invalid += spans;
    }

    /// Keeps an export that carries foreign spans, and forgets the oldest ones of such senders for it.
    pub(super) fn keep_foreign(&self, export: &Bytes, sender: &Sender) {
        let cost = export.len() + FOREIGN_BYTES;
        if cost > self.ring_bytes_max {
            return;
        }
        let at = Instant::now();
        let mut rings = locked(&self.rings);
        let ring = ring_of(&mut rings, sender);
        if ring.second.is_none_or(|second| at.duration_since(second) >= SECOND) {
            ring.second = Some(at);
            ring.second_bytes = 0;
        }
        ring.second_bytes += cost;
        if ring.second_bytes > self.ring_bytes_max {
            return;
        }
        // A small one may be a piece of a buffer that is much larger than itself, and would keep all of that.
        let bytes = match export.len() {
            0..COPIED_BYTES_MAX => Bytes::copy_from_slice(export),
            _ => export.clone(),
        };
        ring.exports.push_back(Foreign { at, bytes });
        ring.bytes += cost;
        while ring.bytes > self.ring_bytes_max && ring.forget_oldest() {}
        let rings_bytes_max = RINGS_FULL_MAX * self.ring_bytes_max;
        while rings.values().map(|ring| ring.bytes).sum::<usize>() > rings_bytes_max {
            let largest = rings.values_mut().max_by_key(|ring| ring.bytes);
            if !largest.is_some_and(Ring::forget_oldest) {
                break;
            }
        }
    }

    pub(super) fn counts(&self) -> Counts {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            kept: read(&self.kept),
            foreign: read(&self.foreign),
            invalid: read(&self.invalid),
            logs: read(&self.logs),
            metrics: read(&self.metrics),
            refused: read(&self.refused),
        }
    }

    /// What was met, or what of it came from senders that reach a project.
    pub(super) fn seen(&self, project: Option<&Project>) -> ReceiverSnapshot {
        let reaches = |sender: &Sender| project.is_none_or(|project| sender.reaches(project));
        let refusals = locked(&self.refusals)
            .iter()
            .filter(|(sender, _)| sender.as_ref().is_none_or(reaches))
            .map(|(_, refusal)| refusal.clone())
            .collect();
        let (mut foreign, mut refused, mut invalid) = (Vec::new(), 0, 0);
        for (_, ring) in locked(&self.rings).iter().filter(|(sender, _)| reaches(sender)) {
            foreign.extend(ring.exports.iter().cloned());
            refused += ring.refused;
            invalid += ring.invalid;
        }
        foreign.sort_by_key(|export| export.at);
        let counts = match project {
            None => self.counts(),
            Some(_) => Counts { refused, invalid, ..self.counts() },
        };
        ReceiverSnapshot {
            counts,
            connections: self.connections.load(Ordering::Relaxed),
            requests: self.requests.load(Ordering::Relaxed),
            refusals,
            foreign,
        }
    }
}

/// The ring of such senders.
fn ring_of<'r>(rings: &'r mut HashMap<Sender, Ring>, sender: &Sender) -> &'r mut Ring {
    if rings.len() >= RINGS_MAX && !rings.contains_key(sender) {
        let last = |ring: &Ring| ring.exports.back().map(|export| export.at);
        let silent =
            rings.iter().min_by_key(|(_, ring)| last(ring)).map(|(sender, _)| sender.clone());
        silent.and_then(|sender| rings.remove(&sender));
    }
    rings.entry(sender.clone()).or_default()
}

pub(super) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing in here is left half changed by a panic elsewhere.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use model::Project;

    use super::{
        FOREIGN_BYTES, REFUSALS_MAX, RINGS_FULL_MAX, RINGS_MAX, ReceiverCounters, SECOND, Sender,
    };

    #[tokio::test(start_paused = true)]
    async fn the_ring_keeps_the_newest_that_fit() {
        let watch = ReceiverCounters::new(3 * (FOREIGN_BYTES + 10));
        let kept = || -> Vec<u8> {
            watch.seen(None).foreign.iter().map(|export| export.bytes[0]).collect()
        };
        for byte in 0..9 {
            watch.keep_foreign(&Bytes::from(vec![byte; 10]), &Sender::of_all());
            tokio::time::advance(SECOND / 2).await;
        }
        watch.keep_foreign(&Bytes::from(vec![9; 10_000]), &Sender::of_all());
        assert_eq!(kept(), [6, 7, 8]);
        tokio::time::advance(SECOND).await;
        watch.keep_foreign(&Bytes::from(vec![10; 20 + 2 * FOREIGN_BYTES]), &Sender::of_all());
        assert_eq!(kept(), [10]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_flood_is_kept_in_parts() {
        let watch = ReceiverCounters::new(3 * (FOREIGN_BYTES + 10));
        for byte in 0..20 {
            watch.keep_foreign(&Bytes::from(vec![byte; 10]), &Sender::of_all());
            tokio::time::advance(SECOND / 10).await;
        }
        let kept: Vec<_> = watch.seen(None).foreign.iter().map(|export| export.bytes[0]).collect();
        assert_eq!(kept, [10, 11, 12]);
    }

    #[tokio::test(start_paused = true)]
    async fn what_one_sends_is_neither_shown_to_others_nor_pushes_theirs_out() {
        let watch = ReceiverCounters::new(3 * (FOREIGN_BYTES + 10));
        let name = |name: &str| name.parse::<Project>().expect("a name");
        let [alpha, beta] = ["alpha", "beta"].map(name);
        watch.keep_foreign(&Bytes::from(vec![1; 10]), &Sender::of([beta.clone()]));
        watch.refusal("of beta", Some(&Sender::of([beta.clone()])));
        watch.refusal("of a stranger", None);
        watch.refused_spans(7, &Sender::of([beta.clone()]));
        watch.invalid_spans(5, &Sender::of([alpha.clone()]));
        let lost = |project| {
            let counts = watch.seen(project).counts;
            (counts.refused, counts.invalid)
        };
        assert_eq!([lost(Some(&alpha)), lost(Some(&beta)), lost(None)], [(0, 5), (7, 0), (7, 5)]);
        for _ in 0..100 {
            watch.keep_foreign(&Bytes::from(vec![2; 10]), &Sender::of([alpha.clone()]));
            tokio::time::advance(SECOND).await;
        }
        let seen = |project| {
            let seen = watch.seen(Some(project));
            let foreign: Vec<_> = seen.foreign.iter().map(|export| export.bytes[0]).collect();
            (foreign, seen.refusals.len())
        };
        assert_eq!(seen(&alpha), (vec![2, 2, 2], 1));
        assert_eq!(seen(&beta), (vec![1], 2));
        for number in 0..2 * RINGS_MAX {
            let sender = Sender::of([name(&format!("p{number}"))]);
            watch.keep_foreign(&Bytes::from(vec![3; 10]), &sender);
        }
        let left = watch.seen(None).foreign.len();
        assert_eq!(left, RINGS_FULL_MAX * 3, "all rings together are as large as so many");
    }

    #[test]
    fn the_newest_refusals_are_kept_and_shortened() {
        let watch = ReceiverCounters::new(0);
        for number in 0..REFUSALS_MAX + 5 {
            watch.refusal(&format!("{number} {}", "ä".repeat(1000)), None);
        }
        let refusals = watch.seen(None).refusals;
        assert_eq!(refusals.len(), REFUSALS_MAX);
        assert!(refusals[0].what.starts_with("5 ä"), "{}", refusals[0].what);
        assert!(refusals.iter().all(|refusal| refusal.what.len() <= 512));
    }
}
