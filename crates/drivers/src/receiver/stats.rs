//! The observations of a receiver, to diagnose why a trace is missing.

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

/// The maximum number of stored refusals.
const REFUSALS_MAX: usize = 64;
/// The maximum bytes of a stored refusal; a sender can make paths and headers as long as it likes.
const REFUSAL_BYTES_MAX: usize = 512;
/// The maximum number of rings: one for all senders of the same projects, so that no sender evicts the exports of another. If
/// there are more, the ring without an export for the longest time is removed.
const RINGS_MAX: usize = 64;
/// The maximum bytes of all rings together, as a multiple of one ring. Beyond it the largest ring loses its oldest exports.
const RINGS_FULL_MAX: usize = 4;
/// The overhead of an export in the ring, in bytes.
const FOREIGN_BYTES: usize = 128;

/// Exports of fewer bytes are copied into the ring; larger ones share their buffer.
const COPIED_BYTES_MAX: usize = 16 * 1024;

/// The period in which a ring accepts no more bytes than it can hold.
const SECOND: Duration = Duration::from_secs(1);

/// The observations of a receiver since it started.
#[derive(Clone, Debug, Default)]
pub struct ReceiverSnapshot {
    /// The counts of received items.
    pub counts: Counts,
    /// The number of accepted connections.
    pub connections: u64,
    /// The number of requests that it read, whatever their result.
    pub requests: u64,
    /// The last refused requests, the newest at the end.
    pub refusals: Vec<Refusal>,
    /// The last exports of foreign spans, the newest at the end, as far as they fit into the ring. Under a flood, the first
    /// ones of each second.
    pub foreign: Vec<Foreign>,
    /// If these are the observations of several servers, how many of them answered.
    pub servers: Option<AnsweredServers>,
}

/// The servers whose receivers were queried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnsweredServers {
    /// Those that answered.
    pub answered: usize,
    /// All that receive spans.
    pub servers: usize,
}

/// A request that was refused.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// The time of the refusal.
    pub at: Instant,
    /// The error, as reported to the sender.
    pub what: String,
}

/// An export that contains foreign spans.
#[derive(Clone, Debug)]
pub struct Foreign {
    /// The arrival time.
    pub at: Instant,
    /// The request, as protobuf.
    pub bytes: Bytes,
}

/// The mutable counters behind a [`ReceiverSnapshot`].
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
    /// Spans of these senders that the sink refused, and spans with malformed ids.
    refused: u64,
    invalid: u64,
    /// When the current second began, and the bytes stored in it. Under a flood every export would otherwise evict the previous
    /// one, and none would be read from memory that is still in the cache.
    second: Option<Instant>,
    second_bytes: usize,
}

impl Ring {
    /// Evicts the oldest export, and returns whether there was one.
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

    /// Stores a refusal; one of an unknown sender counts for every project.
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

    /// Counts spans of a sender with malformed ids.
    pub(super) fn invalid_spans(&self, spans: u64, sender: &Sender) {
        add(&self.invalid, spans);
        ring_of(&mut locked(&self.rings), sender).invalid += spans;
    }

    /// Stores an export with foreign spans, and evicts the oldest exports of the same ring.
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
        // A small export may be a slice of a much larger buffer, and would keep all of it alive.
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

    /// Returns all observations, or those of senders that reach a project.
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
            servers: None,
        }
    }
}

/// Returns the ring of these senders.
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
    // A panic elsewhere leaves no inconsistent state here.
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
