//! What is remembered of a span between its start and its end, for exporters that do not get everything.
//!
//! Three things cannot be told from a finished span alone: that its trace was sampled by a caller, which of the spans above it
//! an exporter gets, and that a span below it failed. The first two are inherited from the parent at the start, the third is
//! left by the child at its end. Nothing is remembered while every exporter gets every span, which is the default, and nothing
//! of spans that have nothing to inherit.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use opentelemetry::SpanId;

use crate::plan::Level;

/// So that producers seldom meet.
const SHARDS: usize = 16;
/// A program that never ends its spans must not fill the memory with what is remembered of them.
const MARKS_MAX: usize = 1 << 20;
/// Spans of which it is remembered that one below them failed. Where more of them never end, the oldest go by their level alone.
const FAILURES_MAX: usize = 1 << 14;

/// What is remembered of one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// A caller sampled its trace: nobody thins it.
    pub(crate) followed: bool,
    /// Its level, where some exporter does not get it for that.
    pub(crate) withheld: Option<Level>,
    /// The spans above it, where some exporter does not get one of them.
    pub(crate) above: Option<Above>,
}

/// The parent of a span: its id, which may be invalid, and whether it is in another process.
pub(crate) type Parent = (SpanId, bool);

/// For an exporter of each level, the nearest span above that it gets by its level.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Above([Parent; Level::COUNT]);

/// The marks of all spans under way.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    shards: [Mutex<HashMap<SpanId, Mark>>; SHARDS],
    count: AtomicUsize,
    failures: Mutex<Failures>,
    failures_count: AtomicUsize,
}

/// Spans below which one failed.
#[derive(Debug, Default)]
struct Failures {
    spans: HashSet<SpanId>,
    /// The oldest first; those that have ended are still in it.
    order: VecDeque<SpanId>,
}

impl Above {
    /// Every exporter gets this one.
    pub(crate) fn all(parent: Parent) -> Self {
        Self([parent; Level::COUNT])
    }

    /// The same with a nearer span of this level.
    pub(crate) fn with(self, nearer: SpanId, level: Level) -> Self {
        let is_sent = |at: usize| at <= level as usize;
        Self(std::array::from_fn(|at| if is_sent(at) { (nearer, false) } else { self.0[at] }))
    }

    /// What an exporter of this level gets.
    pub(crate) fn of(self, level: Level) -> Parent {
        self.0[level as usize]
    }
}

impl Marks {
    pub(crate) fn get(&self, span: SpanId) -> Mark {
        if self.count.load(Ordering::Acquire) == 0 {
            return Mark::default();
        }
        lock(self.shard(span)).get(&span).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, span: SpanId, mark: Mark) {
        if mark == Mark::default() || self.count.load(Ordering::Acquire) >= MARKS_MAX {
            return;
        }
        if lock(self.shard(span)).insert(span, mark).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn take(&self, span: SpanId) -> Mark {
        if self.count.load(Ordering::Acquire) == 0 {
            return Mark::default();
        }
        let taken = lock(self.shard(span)).remove(&span);
        if taken.is_some() {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        taken.unwrap_or_default()
    }

    /// Remembers that a span below this one failed.
    pub(crate) fn fail(&self, span: SpanId) {
        let mut failures = lock(&self.failures);
        if failures.spans.insert(span) {
            failures.order.push_back(span);
        }
        while failures.order.len() > FAILURES_MAX {
            let oldest = failures.order.pop_front().unwrap_or(SpanId::INVALID);
            failures.spans.remove(&oldest);
        }
        self.failures_count.store(failures.spans.len(), Ordering::Release);
    }

    /// Whether a span below this one failed so far.
    pub(crate) fn has_failure(&self, span: SpanId) -> bool {
        self.failures_count.load(Ordering::Acquire) > 0
            && lock(&self.failures).spans.contains(&span)
    }

    /// Whether a span below this one failed; asked once, at its end.
    pub(crate) fn take_failure(&self, span: SpanId) -> bool {
        if self.failures_count.load(Ordering::Acquire) == 0 {
            return false;
        }
        let mut failures = lock(&self.failures);
        let is_failed = failures.spans.remove(&span);
        if failures.spans.is_empty() {
            failures.order.clear();
        }
        self.failures_count.store(failures.spans.len(), Ordering::Release);
        is_failed
    }

    fn shard(&self, span: SpanId) -> &Mutex<HashMap<SpanId, Mark>> {
        &self.shards[usize::from(span.to_bytes()[7]) % SHARDS]
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use opentelemetry::SpanId;

    use super::{Above, FAILURES_MAX, Mark, Marks};
    use crate::plan::Level;

    #[test]
    fn a_mark_is_there_until_it_is_taken() {
        let marks = Marks::default();
        let (a, b) = (SpanId::from(1), SpanId::from(2));
        let mark = Mark { followed: true, ..Mark::default() };
        marks.set(a, mark);
        marks.set(b, Mark::default());
        assert_eq!((marks.get(a), marks.get(b)), (mark, Mark::default()));
        assert_eq!((marks.take(a), marks.get(a)), (mark, Mark::default()));
    }

    #[test]
    fn an_exporter_gets_the_nearest_of_its_level() {
        let [caller, request, step] = [1, 2, 3].map(SpanId::from);
        let above = Above::all((caller, true)).with(request, Level::Info).with(step, Level::Debug);
        assert_eq!(above.of(Level::Trace), (step, false));
        assert_eq!(above.of(Level::Debug), (step, false));
        assert_eq!(above.of(Level::Info), (request, false));
        assert_eq!(above.of(Level::Warn), (caller, true));
    }

    #[test]
    fn a_failure_is_there_until_it_is_taken_and_the_oldest_are_forgotten() {
        let marks = Marks::default();
        let span = |number: usize| SpanId::from(number as u64);
        (1..=FAILURES_MAX + 1).for_each(|number| marks.fail(span(number)));
        assert!(!marks.take_failure(span(1)), "forgotten");
        assert!(marks.take_failure(span(2)) && !marks.take_failure(span(2)));
        (3..=FAILURES_MAX + 1).for_each(|number| assert!(marks.take_failure(span(number))));
        assert_eq!(super::lock(&marks.failures).order.len(), 0);
    }
}
