//! Spans by trace id: stored in the order of publishing, read by cursors.
//!
//! A subscription is a cursor into the stored batches, not a queue of its own. So replay and live delivery are the same code, a
//! slow subscriber costs nothing, and the bounds of the stored batches bound all memory.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use journal::Stretch;
use model::{Project, Timestamp, TraceId};
use tokio::sync::Notify;

use crate::{
    Doubt, Era, Next,
    nats::read_projects,
    refusals::BatchDigest,
    traces::{BatchSize, PendingBatches, StoredBatch, TraceTable},
};

/// The upper bounds of a bus, and the age limit.
///
/// A batch counts with its bytes and its overhead, so that many small batches stay within the bounds too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all traces.
    pub bytes_max: usize,
    /// Bytes of the traces of one project that have or had a subscriber.
    pub project_bytes_max: usize,
    /// Bytes of one trace.
    pub trace_bytes_max: usize,
    /// Spans of one trace.
    pub trace_spans_max: u64,
    /// How long a trace without a subscriber is kept, counted from its last batch.
    pub age_max: Duration,
}

/// A subscription: one reader of one trace.
#[derive(Debug)]
pub struct Subscription {
    spans: Spans,
    pub(crate) trace: TraceId,
    /// The number of batches read.
    seen: usize,
    /// The notifier of the trace at the time of subscribing. A trace with the same id and another notifier was opened after a
    /// `forget`, and does not belong to this subscription.
    pub(crate) news: Arc<Notify>,
}

/// The state that subscribers and the writer share.
#[derive(Clone, Debug)]
pub(crate) struct Spans {
    pub(crate) limits: Limits,
    kept: Arc<Mutex<TraceTable>>,
}

enum Look {
    Batch(Bytes),
    NotYet,
    Forgotten,
}

impl Next for Subscription {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Created before the look, so that a batch published after the look wakes it.
            let notified = self.news.notified();
            match self.look() {
                Look::Batch(bytes) => {
                    self.seen += 1;
                    return Some(bytes);
                }
                Look::Forgotten => return None,
                Look::NotYet => notified.await,
            }
        }
    }
}

impl Subscription {
    fn look(&self) -> Look {
        match self.spans.lock().of(self) {
            None => Look::Forgotten,
            Some(held) => held
                .batches
                .get(self.seen)
                .map_or(Look::NotYet, |stored| Look::Batch(stored.bytes.clone())),
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut kept = self.spans.lock();
        // A trace without a published batch has no age, so its last subscriber removes it.
        let untouched = kept.of(self).is_some_and(|held| {
            held.bytes == 0 && held.lost == 0 && held.refused() == 0 && held.subscribers() == 1
        });
        if untouched {
            kept.forget(self.trace);
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            project_bytes_max: 256 << 20,
            trace_bytes_max: 64 << 20,
            trace_spans_max: 1_000_000,
            // Several times the lease of a worker: the worker that continues the run of a dead worker subscribes sooner.
            age_max: Duration::from_secs(60),
        }
    }
}

impl Spans {
    pub(crate) fn new(limits: Limits, kept: TraceTable) -> Self {
        Self { limits, kept: Arc::new(Mutex::new(kept)) }
    }

    pub(crate) fn subscribe(&self, trace: TraceId, project: &Project) -> Subscription {
        let news = Arc::clone(&self.lock().own(trace, project).news);
        Subscription { spans: self.clone(), trace, seen: 0, news }
    }

    /// Marks that the bus has listened for the trace from its beginning, in this era of its storage.
    pub(crate) fn expect(&self, trace: TraceId, era: u64) {
        // Without a subscriber there is no entry to store it in.
        if let Some(held) = self.lock().traces.get_mut(&trace) {
            held.expected = Some(era);
        }
    }

    /// Returns how many batches of the trace there are, or why there may be more.
    pub(crate) fn batches(&self, trace: TraceId, era: &Era) -> Result<u64, Doubt> {
        let kept = self.lock();
        let Some(held) = kept.traces.get(&trace) else { return Err(Doubt::NotListened) };
        match held.expected {
            _ if held.lost > 0 => Err(Doubt::Lost(held.lost)),
            None => Err(Doubt::NotListened),
            Some(began) if began != era.number => {
                Err(era.doubt.clone().unwrap_or(Doubt::StreamReplaced))
            }
            Some(_) if held.refused() > 0 => Err(Doubt::Refused(held.refused())),
            Some(_) => Ok(held.batches.len() as u64),
        }
    }

    /// Stores a batch that another process published, if there is room, and its sender may write to the project of the trace.
    pub(crate) fn store(&self, now: Timestamp, trace: TraceId, spans: u32, batch: &[u8]) {
        let mut kept = self.lock();
        kept.expire(now, self.limits.age_max);
        let project = kept.traces.get(&trace).and_then(|held| held.project.as_ref());
        match read_projects(batch, project) {
            Some((true, bytes)) => {
                let size = BatchSize { trace, spans, bytes: bytes.len() };
                match kept.make_room(&self.limits, &mut PendingBatches::default(), size) {
                    Ok(()) => {
                        let (number, bytes) = (0, Bytes::copy_from_slice(bytes));
                        let stretch = Stretch::default();
                        kept.add(now, trace, StoredBatch { number, spans, bytes, stretch });
                    }
                    Err(_) => {
                        kept.over_spans += u64::from(spans);
                        kept.lose(now, trace);
                    }
                }
            }
            Some((false, _)) => kept.foreign_spans += u64::from(spans),
            None => kept.lose(now, trace),
        }
        // There is no journal that would have to release them.
        kept.released.clear();
    }

    /// Forgets a trace that is in no journal.
    pub(crate) fn forget(&self, trace: TraceId) {
        let mut kept = self.lock();
        kept.forget(trace);
        kept.released.clear();
    }

    pub(crate) fn lose(&self, now: Timestamp, trace: TraceId) {
        self.lock().lose(now, trace);
    }

    /// Records that a batch was refused, which its sender may send again.
    pub(crate) fn refuse(&self, now: Timestamp, trace: TraceId, batch: BatchDigest) {
        self.lock().refuse(now, trace, batch);
    }

    /// Records a loss, if it may concern the project of the trace; none stands for all.
    pub(crate) fn lose_for(&self, now: Timestamp, trace: TraceId, projects: Option<&[Project]>) {
        let mut kept = self.lock();
        let project = kept.traces.get(&trace).and_then(|held| held.project.as_ref());
        if project.is_none_or(|project| projects.is_none_or(|projects| projects.contains(project)))
        {
            kept.lose(now, trace);
        }
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, TraceTable> {
        // No panic can occur between two changes that belong together, so the state after a panic is consistent.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::pin,
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use bytes::Bytes;
    use journal::Stretch;
    use model::{Project, Timestamp, TraceId};
    use tokio::sync::Notify;

    use super::{Limits, Spans, Subscription};
    use crate::{
        Doubt, Era, Next,
        traces::{
            BATCH_COST, BatchSize, NoRoom, PendingBatches, StoredBatch, TRACE_COST, TraceBatches,
            TraceTable,
        },
    };

    /// Bounds that these tests do not reach, unless they fill the bus.
    const LIMITS: Limits = Limits {
        bytes_max: 1 << 14,
        project_bytes_max: 1 << 14,
        trace_bytes_max: 1 << 13,
        trace_spans_max: 1 << 20,
        age_max: Duration::from_secs(60),
    };

    /// Room for two traces with one batch each: one of 6 bytes, and 10 bytes together.
    const TIGHT: Limits =
        Limits { bytes_max: cost(2, 2, 10), trace_bytes_max: cost(1, 1, 6), ..LIMITS };

    /// Room for four traces with one batch of one byte each, two of them of one project.
    const SHARED: Limits =
        Limits { bytes_max: cost(4, 4, 4), project_bytes_max: cost(2, 2, 2), ..LIMITS };

    const fn cost(traces: usize, batches: usize, bytes: usize) -> usize {
        traces * TRACE_COST + batches * BATCH_COST + bytes
    }

    fn spans(limits: Limits) -> Spans {
        Spans::new(limits, TraceTable::default())
    }

    fn trace(byte: u8) -> TraceId {
        TraceId::from_bytes([byte; 16]).expect("not all zero")
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_nanos(secs * 1_000_000_000)
    }

    /// Publishes as the writer does, without the journal.
    fn put(
        spans: &Spans,
        now: Timestamp,
        trace: TraceId,
        text: &'static str,
    ) -> Result<(), NoRoom> {
        let bytes = Bytes::from_static(text.as_bytes());
        let mut kept = spans.lock();
        kept.expire(now, spans.limits.age_max);
        if bytes.is_empty() {
            return Ok(());
        }
        let size = BatchSize { trace, spans: 1, bytes: bytes.len() };
        let room = kept.make_room(&spans.limits, &mut PendingBatches::default(), size);
        match room {
            Ok(()) => {
                let stored =
                    StoredBatch { number: 0, spans: 1, bytes, stretch: Stretch::default() };
                kept.add(now, trace, stored);
            }
            Err(_) => kept.lose(now, trace),
        }
        room
    }

    fn publish(spans: &Spans, secs: u64, id: u8, text: &'static str) -> Result<(), NoRoom> {
        put(spans, at(secs), trace(id), text)
    }

    fn subscribe(spans: &Spans, trace: TraceId) -> Subscription {
        spans.subscribe(trace, &Project::default())
    }

    /// Returns the immediate result of `next`.
    fn poll(subscription: &mut Subscription) -> Poll<Option<Bytes>> {
        pin!(subscription.next()).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn ready(bytes: &'static str) -> Poll<Option<Bytes>> {
        Poll::Ready(Some(Bytes::from_static(bytes.as_bytes())))
    }

    #[test]
    fn a_full_bus_refuses_the_new_and_keeps_the_old() {
        let spans = spans(TIGHT);
        let mut subscription = subscribe(&spans, trace(1));
        publish(&spans, 0, 1, "123456").expect("exactly the bound of a trace");
        assert_eq!(publish(&spans, 0, 1, "7"), Err(NoRoom::Trace));
        let _other = subscribe(&spans, trace(2));
        publish(&spans, 0, 2, "1234").expect("exactly the bound of the bus");
        assert_eq!(publish(&spans, 0, 3, "5"), Err(NoRoom::Bus));

        assert_eq!(poll(&mut subscription), ready("123456"));
        assert_eq!(poll(&mut subscription), Poll::Pending);
        assert_eq!(spans.batches(trace(1), &Era::default()), Err(Doubt::Lost(1)));
        spans.lock().forget(trace(1));
        publish(&spans, 0, 3, "5").expect("the forgotten made room");
    }

    #[test]
    fn what_is_coming_counts_too() {
        let spans = spans(Limits { trace_spans_max: 4, ..TIGHT });
        let kept = spans.lock();
        let batch = |id: u8, count: u32, text: &'static str| BatchSize {
            trace: trace(id),
            spans: count,
            bytes: text.len(),
        };
        let mut coming = PendingBatches::default();
        let mut room = |batch| kept.room(&spans.limits, &mut coming, batch);
        assert_eq!(room(batch(1, 5, "1")), Err(NoRoom::Trace), "too many spans");
        assert_eq!(room(batch(1, 4, "123456")), Ok(()));
        assert_eq!(room(batch(1, 0, "7")), Err(NoRoom::Trace));
        assert_eq!(room(batch(2, 1, "12345")), Err(NoRoom::Bus));
        assert_eq!(room(batch(2, 1, "1234")), Ok(()));
    }

    #[test]
    fn what_nobody_waits_for_gives_way_the_oldest_first() {
        let spans = spans(SHARED);
        let mut waiting = subscribe(&spans, trace(2));
        for (secs, id) in [(3, 1), (0, 2), (1, 3), (2, 4)] {
            publish(&spans, secs, id, "x").expect("room");
        }
        publish(&spans, 4, 5, "x")
            .expect("the oldest that nobody waits for made room, and some to spare");
        let left = |id| spans.lock().traces.contains_key(&trace(id));
        assert_eq!([1, 2, 3, 4, 5].map(left), [true, true, false, false, true]);
        assert_eq!(spans.lock().displaced_spans, 2);
        assert_eq!(poll(&mut waiting), ready("x"));
    }

    #[test]
    fn a_project_has_its_share_and_leaves_that_of_others() {
        let spans = spans(SHARED);
        let [alpha, beta]: [Project; 2] =
            ["alpha", "beta"].map(|name| name.parse().expect("a name"));
        let _waiting: Vec<_> = [(1, &alpha), (2, &alpha), (3, &alpha), (4, &beta), (5, &beta)]
            .map(|(id, project)| spans.subscribe(trace(id), project))
            .into();
        publish(&spans, 0, 1, "x").expect("room");
        publish(&spans, 0, 2, "x").expect("exactly its share");
        assert_eq!(publish(&spans, 0, 3, "x"), Err(NoRoom::Project));
        publish(&spans, 0, 4, "x").expect("room");
        publish(&spans, 0, 5, "x").expect("exactly the bound of the bus");
        assert_eq!(spans.batches(trace(3), &Era::default()), Err(Doubt::Lost(1)), "it is told");
        spans.lock().forget(trace(1));
        publish(&spans, 0, 3, "x").expect("the forgotten made room");
    }

    #[test]
    fn what_came_before_its_subscriber_counts_for_the_project() {
        let spans = spans(SHARED);
        for id in [1, 2] {
            publish(&spans, 0, id, "x").expect("room");
        }
        let _waiting = [1, 2, 3].map(|id| subscribe(&spans, trace(id)));
        assert_eq!(publish(&spans, 0, 3, "x"), Err(NoRoom::Project));
    }

    #[test]
    fn many_small_batches_stay_within_the_bounds() {
        let limits = Limits { bytes_max: 1 << 20, trace_bytes_max: 1 << 16, ..LIMITS };
        let accepted = |spans: &Spans, of: fn(u32) -> u32| {
            let is_kept = |number: &u32| {
                let mut id = [1; 16];
                id[..4].copy_from_slice(&of(*number).to_be_bytes());
                let id = TraceId::from_bytes(id).expect("not all zero");
                put(spans, at(0), id, "x").is_ok()
            };
            (1..=5_000).take_while(is_kept).count()
        };
        let of_one_trace = accepted(&spans(limits), |_| 0);
        assert_eq!(of_one_trace, (limits.trace_bytes_max - TRACE_COST) / (BATCH_COST + 1));
        let many = spans(limits);
        assert_eq!(accepted(&many, |number| number), 5_000, "older ones give way");
        let kept = many.lock();
        assert!(kept.bytes <= limits.bytes_max);
        assert_eq!(kept.traces.len() as u64 + kept.displaced_spans, 5_000);
    }

    #[test]
    fn the_costs_cover_what_is_held() {
        // An allocation, or the counters of an `Arc`, take two words.
        let words = 2 * size_of::<usize>();
        assert!(2 * size_of::<StoredBatch>() + 2 * words <= BATCH_COST);
        let places = size_of::<(TraceId, TraceBatches)>() + size_of::<(Timestamp, TraceId)>();
        let list = 4 * size_of::<StoredBatch>() - BATCH_COST + words;
        let news = size_of::<Notify>() + 2 * words;
        assert!(2 * places + list + news <= TRACE_COST);
    }

    #[test]
    fn a_refusal_is_told_to_who_subscribes_later() {
        let spans = spans(TIGHT);
        let first = subscribe(&spans, trace(1));
        publish(&spans, 0, 1, "1234567").expect_err("over the bound at once");
        drop(first);
        assert_eq!(spans.batches(trace(1), &Era::default()), Err(Doubt::Lost(1)));
        publish(&spans, 61, 2, "x").expect("room");
        assert_eq!(
            spans.batches(trace(1), &Era::default()),
            Err(Doubt::NotListened),
            "even that is forgotten in time"
        );
    }

    #[test]
    fn a_trace_without_subscriber_is_forgotten_when_it_is_old() {
        let spans = spans(LIMITS);
        for id in [1, 2, 3] {
            publish(&spans, 0, id, "a").expect("room");
        }
        let mut subscribed = subscribe(&spans, trace(2));
        publish(&spans, 30, 3, "b").expect("room");
        publish(&spans, 60, 4, "x").expect("room");
        assert_eq!(spans.lock().bytes, cost(4, 5, 5), "as old as allowed is not too old");
        publish(&spans, 61, 4, "").expect("nothing is never refused");
        assert_eq!(spans.lock().bytes, cost(3, 4, 4));
        assert_eq!(poll(&mut subscribe(&spans, trace(1))), Poll::Pending, "forgotten");
        assert_eq!(poll(&mut subscribe(&spans, trace(3))), ready("a"), "added to meanwhile");
        assert_eq!(poll(&mut subscribed), ready("a"), "subscribed to");
        drop(subscribed);
        publish(&spans, 62, 4, "").expect("nothing is never refused");
        assert_eq!(spans.lock().bytes, cost(2, 3, 3), "and not subscribed to any more");
    }

    #[test]
    fn nothing_is_left_of_a_trace_that_nobody_published_to() {
        let spans = spans(LIMITS);
        let (one, other) = (subscribe(&spans, trace(1)), subscribe(&spans, trace(1)));
        drop(one);
        assert_eq!(spans.lock().traces.len(), 1, "the other still waits");
        drop(other);
        assert_eq!(spans.lock().traces.len(), 0);
        publish(&spans, 0, 1, "").expect("nothing is never refused");
        assert_eq!(spans.lock().traces.len(), 0, "and takes no place");
    }
}
