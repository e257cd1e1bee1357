//! Spans by trace id: kept in the order of publishing, read by cursors.
//!
//! A subscription is a place in what is kept, not a queue of its own. So replay and live are one thing, a slow
//! subscriber costs nothing, and the bounds of what is kept are the bounds of everything.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use model::{Fault, Faulty, Timestamp, TraceId};
use thiserror::Error;
use tokio::sync::Notify;

/// What a batch costs beside its bytes: its handle, in a list that may have room for twice as many, and the
/// allocator's part of the block that the bytes are in.
const BATCH_COST: usize = 128;

/// What a trace costs beside its batches: its places in two collections that may have room for twice as many, a
/// list with room for a few batches, and what its subscribers wait on.
const TRACE_COST: usize = 512;

/// How much a bus keeps, and for how long.
///
/// A batch counts with its bytes and what keeping it costs, so that many small ones stay within the bounds too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes of all traces.
    pub bytes_max: usize,
    /// Bytes of one trace.
    pub trace_bytes_max: usize,
    /// How long a trace is kept that nobody subscribes to, counted from what was last added to it.
    pub age_max: Duration,
}

/// The bus refused to keep something, and kept all that it had.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Full {
    /// All traces together are at the bound.
    #[error("the bus keeps no more than {bytes_max} bytes of spans: send them again later")]
    Bus {
        /// The bound.
        bytes_max: usize,
    },
    /// This trace is at the bound.
    #[error("the bus keeps no more than {bytes_max} bytes of trace `{trace}`")]
    Trace {
        /// The trace.
        trace: TraceId,
        /// The bound.
        bytes_max: usize,
    },
}

impl Faulty for Full {
    fn fault(&self) -> Fault {
        match self {
            Self::Bus { .. } => Fault::Overloaded,
            // Waiting does not make a trace smaller.
            Self::Trace { .. } => Fault::Invalid,
        }
    }
}

/// One reader of one trace.
#[derive(Debug)]
pub struct Subscription {
    spans: Spans,
    trace: TraceId,
    /// Batches already given out.
    seen: usize,
    /// Shared with the trace that was subscribed to: a trace of the same id with another one came after a
    /// `forget`, and is not this subscription's.
    news: Arc<Notify>,
}

#[derive(Clone, Debug)]
pub(crate) struct Spans {
    limits: Limits,
    kept: Arc<Mutex<Kept>>,
}

#[derive(Debug, Default)]
struct Kept {
    traces: HashMap<TraceId, Held>,
    /// The traces to which something was published, by when it last was.
    ages: BTreeSet<(Timestamp, TraceId)>,
    bytes: usize,
}

/// What is held of one trace.
#[derive(Debug, Default)]
struct Held {
    batches: Vec<Bytes>,
    /// What the batches cost, and with the first one the trace itself.
    bytes: usize,
    refused: u64,
    last: Timestamp,
    /// Each subscription shares it, so that its count tells whether there is any.
    news: Arc<Notify>,
}

enum Next {
    Batch(Bytes),
    NotYet,
    Forgotten,
}

impl Subscription {
    /// The next batch; waits for one where all are read. Nothing after the trace was forgotten.
    pub async fn next(&mut self) -> Option<Bytes> {
        loop {
            // Made before the look, so that what is published after the look wakes it.
            let notified = self.news.notified();
            match self.look() {
                Next::Batch(bytes) => {
                    self.seen += 1;
                    return Some(bytes);
                }
                Next::Forgotten => return None,
                Next::NotYet => notified.await,
            }
        }
    }

    fn look(&self) -> Next {
        match self.spans.lock().of(self) {
            None => Next::Forgotten,
            Some(held) => {
                held.batches.get(self.seen).map_or(Next::NotYet, |bytes| Next::Batch(bytes.clone()))
            }
        }
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let mut kept = self.spans.lock();
        // A trace to which nothing was published has no age, so its last subscriber takes it along.
        let untouched = kept
            .of(self)
            .is_some_and(|held| held.bytes == 0 && held.refused == 0 && held.subscribers() == 1);
        if untouched {
            kept.forget(self.trace);
        }
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 512 << 20,
            trace_bytes_max: 64 << 20,
            // Several times the lease of a worker: who goes on with the run of one that died asks sooner.
            age_max: Duration::from_secs(60),
        }
    }
}

impl Spans {
    pub(crate) fn new(limits: Limits) -> Self {
        Self { limits, kept: Arc::default() }
    }

    pub(crate) fn publish(&self, now: Timestamp, trace: TraceId, bytes: Bytes) -> Result<(), Full> {
        let mut kept = self.lock();
        kept.expire(now, self.limits.age_max);
        // Nothing would cost its place and tell nobody anything.
        if bytes.is_empty() {
            return Ok(());
        }
        let cost = kept.cost(trace, &bytes);
        let room = kept.room(&self.limits, trace, cost);
        match room {
            Ok(()) => kept.add(now, trace, bytes, cost),
            Err(_) => kept.refuse(now, trace),
        }
        room
    }

    pub(crate) fn subscribe(&self, trace: TraceId) -> Subscription {
        let news = Arc::clone(&self.lock().traces.entry(trace).or_default().news);
        Subscription { spans: self.clone(), trace, seen: 0, news }
    }

    pub(crate) fn lose(&self, now: Timestamp, trace: TraceId) {
        self.lock().refuse(now, trace);
    }

    pub(crate) fn refused(&self, trace: TraceId) -> u64 {
        self.lock().traces.get(&trace).map_or(0, |held| held.refused)
    }

    pub(crate) fn forget(&self, trace: TraceId) {
        self.lock().forget(trace);
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // Nothing panics between two changes that belong together, so what a panic left is whole.
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn of(&self, subscription: &Subscription) -> Option<&Held> {
        let held = self.traces.get(&subscription.trace)?;
        Arc::ptr_eq(&held.news, &subscription.news).then_some(held)
    }

    fn of_trace(&self, trace: TraceId) -> usize {
        self.traces.get(&trace).map_or(0, |held| held.bytes)
    }

    /// What it costs to keep `bytes`. The first of a trace pay for the trace: one that is only subscribed to is
    /// its subscribers' to bound.
    fn cost(&self, trace: TraceId, bytes: &Bytes) -> usize {
        let entry = if self.of_trace(trace) == 0 { TRACE_COST } else { 0 };
        bytes.len().saturating_add(BATCH_COST + entry)
    }

    fn room(&self, limits: &Limits, trace: TraceId, cost: usize) -> Result<(), Full> {
        if self.of_trace(trace).saturating_add(cost) > limits.trace_bytes_max {
            return Err(Full::Trace { trace, bytes_max: limits.trace_bytes_max });
        }
        if self.bytes.saturating_add(cost) > limits.bytes_max {
            return Err(Full::Bus { bytes_max: limits.bytes_max });
        }
        Ok(())
    }

    fn add(&mut self, now: Timestamp, trace: TraceId, bytes: Bytes, cost: usize) {
        let held = self.traces.entry(trace).or_default();
        self.bytes += cost;
        held.bytes += cost;
        held.batches.push(bytes);
        held.news.notify_waiters();
        let before = mem::replace(&mut held.last, now);
        self.age(trace, before, now);
    }

    /// Remembers the refusal where there is something to remember it with. A trace of which nothing is known
    /// gets no entry, else a full bus could be filled further.
    fn refuse(&mut self, now: Timestamp, trace: TraceId) {
        if let Some(held) = self.traces.get_mut(&trace) {
            held.refused += 1;
            let before = mem::replace(&mut held.last, now);
            self.age(trace, before, now);
        }
    }

    fn age(&mut self, trace: TraceId, before: Timestamp, now: Timestamp) {
        self.ages.remove(&(before, trace));
        self.ages.insert((now, trace));
    }

    fn expire(&mut self, now: Timestamp, age_max: Duration) {
        let old: Vec<TraceId> = self
            .ages
            .iter()
            .take_while(|(last, _)| now.since(*last) > age_max)
            .filter(|(_, trace)| self.traces.get(trace).is_none_or(|held| held.subscribers() == 0))
            .map(|(_, trace)| *trace)
            .collect();
        for trace in old {
            self.forget(trace);
        }
    }

    fn forget(&mut self, trace: TraceId) {
        if let Some(held) = self.traces.remove(&trace) {
            self.ages.remove(&(held.last, trace));
            self.bytes -= held.bytes;
            held.news.notify_waiters();
        }
    }
}

impl Held {
    fn subscribers(&self) -> usize {
        Arc::strong_count(&self.news) - 1
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
    use model::{Fault, Faulty, Timestamp, TraceId};
    use tokio::sync::Notify;

    use super::{BATCH_COST, Full, Held, Limits, Spans, Subscription, TRACE_COST};

    /// More than these tests publish, where they do not fill the bus.
    const LIMITS: Limits =
        Limits { bytes_max: 1 << 14, trace_bytes_max: 1 << 12, age_max: Duration::from_secs(60) };

    /// Room for two traces of one batch each: one of 6 bytes, and 10 together.
    const TIGHT: Limits = Limits {
        bytes_max: cost(2, 2, 10),
        trace_bytes_max: cost(1, 1, 6),
        age_max: Duration::from_secs(60),
    };

    const fn cost(traces: usize, batches: usize, bytes: usize) -> usize {
        traces * TRACE_COST + batches * BATCH_COST + bytes
    }

    fn trace(byte: u8) -> TraceId {
        TraceId::from_bytes([byte; 16]).expect("not all zero")
    }

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_nanos(secs * 1_000_000_000)
    }

    fn publish(spans: &Spans, secs: u64, id: u8, bytes: &'static str) -> Result<(), Full> {
        spans.publish(at(secs), trace(id), Bytes::from_static(bytes.as_bytes()))
    }

    /// What `next` gives at once.
    fn poll(subscription: &mut Subscription) -> Poll<Option<Bytes>> {
        pin!(subscription.next()).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn ready(bytes: &'static str) -> Poll<Option<Bytes>> {
        Poll::Ready(Some(Bytes::from_static(bytes.as_bytes())))
    }

    #[test]
    fn everything_kept_is_replayed_and_then_comes_the_new() {
        let spans = Spans::new(LIMITS);
        publish(&spans, 0, 1, "a").expect("room");
        publish(&spans, 0, 2, "x").expect("room");
        publish(&spans, 0, 1, "b").expect("room");
        let mut early = spans.subscribe(trace(1));
        assert_eq!(poll(&mut early), ready("a"));
        assert_eq!(poll(&mut early), ready("b"));
        assert_eq!(poll(&mut early), Poll::Pending);
        publish(&spans, 0, 1, "c").expect("room");
        assert_eq!(poll(&mut early), ready("c"));

        let mut late = spans.subscribe(trace(1));
        for batch in ["a", "b", "c"] {
            assert_eq!(poll(&mut late), ready(batch), "a second subscriber has its own place");
        }
    }

    #[tokio::test]
    async fn a_waiting_subscriber_is_woken_by_news_and_by_the_end() {
        let spans = Spans::new(LIMITS);
        let mut waiting = spans.subscribe(trace(1));
        let (got, ()) = tokio::join!(waiting.next(), async {
            publish(&spans, 0, 1, "a").expect("room");
        });
        assert_eq!(got, Some(Bytes::from_static(b"a")));
        let (got, ()) = tokio::join!(waiting.next(), async { spans.forget(trace(1)) });
        assert_eq!(got, None);
    }

    #[test]
    fn a_full_bus_refuses_the_new_and_keeps_the_old() {
        let spans = Spans::new(TIGHT);
        let mut subscription = spans.subscribe(trace(1));
        publish(&spans, 0, 1, "123456").expect("exactly the bound of a trace");
        let full = publish(&spans, 0, 1, "7").expect_err("over it");
        assert_eq!(full, Full::Trace { trace: trace(1), bytes_max: TIGHT.trace_bytes_max });
        assert_eq!(full.fault(), Fault::Invalid);
        publish(&spans, 0, 2, "1234").expect("exactly the bound of the bus");
        let full = publish(&spans, 0, 3, "5").expect_err("over it");
        assert_eq!(full, Full::Bus { bytes_max: TIGHT.bytes_max });
        assert_eq!(full.fault(), Fault::Overloaded);

        assert_eq!(poll(&mut subscription), ready("123456"));
        assert_eq!(poll(&mut subscription), Poll::Pending);
        assert_eq!(spans.refused(trace(1)), 1);
        spans.forget(trace(1));
        publish(&spans, 0, 3, "5").expect("the forgotten made room");
    }

    #[test]
    fn many_small_batches_stay_within_the_bounds() {
        let limits = Limits { bytes_max: 1 << 20, trace_bytes_max: 1 << 16, ..LIMITS };
        let accepted = |of: fn(u32) -> u32| {
            let spans = Spans::new(limits);
            (1..=1 << 20)
                .take_while(|number| {
                    let mut id = [1; 16];
                    id[..4].copy_from_slice(&of(*number).to_be_bytes());
                    let id = TraceId::from_bytes(id).expect("not all zero");
                    spans.publish(at(0), id, Bytes::from_static(b"x")).is_ok()
                })
                .count()
        };
        let of_one_trace = accepted(|_| 0);
        assert_eq!(of_one_trace, (limits.trace_bytes_max - TRACE_COST) / (BATCH_COST + 1));
        let of_many_traces = accepted(|number| number);
        assert_eq!(of_many_traces, limits.bytes_max / cost(1, 1, 1));
    }

    #[test]
    fn the_costs_cover_what_is_held() {
        // Two words are what an allocation, or the counts of an `Arc`, take.
        let words = 2 * size_of::<usize>();
        assert!(2 * size_of::<Bytes>() + 2 * words <= BATCH_COST);
        let places = size_of::<(TraceId, Held)>() + size_of::<(Timestamp, TraceId)>();
        let list = 4 * size_of::<Bytes>() + words;
        let news = size_of::<Notify>() + 2 * words;
        assert!(2 * places + list + news <= TRACE_COST);
    }

    #[test]
    fn a_refusal_is_told_to_who_subscribes_later() {
        let spans = Spans::new(TIGHT);
        let first = spans.subscribe(trace(1));
        publish(&spans, 0, 1, "1234567").expect_err("over the bound at once");
        drop(first);
        assert_eq!(spans.refused(trace(1)), 1);
        publish(&spans, 61, 2, "x").expect("room");
        assert_eq!(spans.refused(trace(1)), 0, "even that is forgotten in time");
    }

    #[test]
    fn a_trace_without_subscriber_is_forgotten_when_it_is_old() {
        let spans = Spans::new(LIMITS);
        for id in [1, 2, 3] {
            publish(&spans, 0, id, "a").expect("room");
        }
        let mut subscribed = spans.subscribe(trace(2));
        publish(&spans, 30, 3, "b").expect("room");
        publish(&spans, 60, 4, "x").expect("room");
        assert_eq!(spans.lock().bytes, cost(4, 5, 5), "as old as allowed is not too old");
        publish(&spans, 61, 4, "").expect("nothing is never refused");
        assert_eq!(spans.lock().bytes, cost(3, 4, 4));
        assert_eq!(poll(&mut spans.subscribe(trace(1))), Poll::Pending, "forgotten");
        assert_eq!(poll(&mut spans.subscribe(trace(3))), ready("a"), "added to meanwhile");
        assert_eq!(poll(&mut subscribed), ready("a"), "subscribed to");
        drop(subscribed);
        publish(&spans, 62, 4, "").expect("nothing is never refused");
        assert_eq!(spans.lock().bytes, cost(2, 3, 3), "and not subscribed to any more");
    }

    #[test]
    fn what_comes_after_a_forget_is_another_trace() {
        let spans = Spans::new(LIMITS);
        let mut before = spans.subscribe(trace(1));
        publish(&spans, 0, 1, "a").expect("room");
        spans.forget(trace(1));
        publish(&spans, 0, 1, "b").expect("room");
        assert_eq!(poll(&mut before), Poll::Ready(None), "forget ends a subscription for good");
        drop(before);
        assert_eq!(poll(&mut spans.subscribe(trace(1))), ready("b"));
    }

    #[test]
    fn nothing_is_left_of_a_trace_that_nobody_published_to() {
        let spans = Spans::new(LIMITS);
        let (one, other) = (spans.subscribe(trace(1)), spans.subscribe(trace(1)));
        drop(one);
        assert_eq!(spans.lock().traces.len(), 1, "the other still waits");
        drop(other);
        assert_eq!(spans.lock().traces.len(), 0);
        publish(&spans, 0, 1, "").expect("nothing is never refused");
        assert_eq!(spans.lock().traces.len(), 0, "and takes no place");
    }
}
