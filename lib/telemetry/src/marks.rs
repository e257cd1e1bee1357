//! The state of a span between its start and its end, for exporters that do not receive all spans.
//!
//! A finished span alone does not show three facts: that a caller sampled its trace, which of its ancestors an exporter
//! receives, and that a descendant failed. The first two are inherited from the parent at the start; the child sets the
//! third at its end. No state is stored while every exporter receives every span, which is the default, and none for
//! spans that have nothing to inherit.

use std::{
    collections::{HashMap, HashSet, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use opentelemetry::SpanId;

use crate::plan::Level;

/// The number of shards, so that producers rarely contend for a lock.
const SHARDS: usize = 16;
/// The maximum number of marks: a program that never ends its spans must not fill the memory.
const MARKS_MAX: usize = 1 << 20;
/// The maximum number of stored spans with a failed descendant. If more of them never end, the oldest are filtered by
/// their level alone.
const FAILURES_MAX: usize = 1 << 14;

/// The stored state of one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// Whether a caller sampled its trace: no exporter applies its own sampling then.
    pub(crate) followed: bool,
    /// Its level, if some exporter does not receive the span because of it.
    pub(crate) withheld: Option<Level>,
    /// Its ancestors, if some exporter does not receive one of them.
    pub(crate) above: Option<Above>,
}

/// The parent of a span: its id, which may be invalid, and whether it is in another process.
pub(crate) type Parent = (SpanId, bool);

/// The nearest ancestor that an exporter receives, for each level of an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Above([Parent; Level::COUNT]);

/// The marks of all active spans.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    shards: [Mutex<HashMap<SpanId, Mark>>; SHARDS],
    count: AtomicUsize,
    failures: Mutex<Failures>,
    failures_count: AtomicUsize,
}

/// Spans with a failed descendant.
#[derive(Debug, Default)]
struct Failures {
    spans: HashSet<SpanId>,
    /// The oldest first; spans that have ended are still included.
    order: VecDeque<SpanId>,
}

impl Above {
    /// Creates the value for a parent that every exporter receives.
    pub(crate) fn all(parent: Parent) -> Self {
        Self([parent; Level::COUNT])
    }

    /// Returns the value with a nearer ancestor of this level.
    pub(crate) fn with(self, nearer: SpanId, level: Level) -> Self {
        let is_sent = |at: usize| at <= level as usize;
        Self(std::array::from_fn(|at| if is_sent(at) { (nearer, false) } else { self.0[at] }))
    }

    /// Returns the nearest ancestor that an exporter of this level receives.
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

    /// Stores that a descendant of this span failed.
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

    /// Returns whether a descendant of this span has failed so far.
    pub(crate) fn has_failure(&self, span: SpanId) -> bool {
        self.failures_count.load(Ordering::Acquire) > 0
            && lock(&self.failures).spans.contains(&span)
    }

    /// Returns whether a descendant of this span failed, and removes the entry; called once, at its end.
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
