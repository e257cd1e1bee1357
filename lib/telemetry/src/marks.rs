//! What is remembered of a span between its start and its end, for exporters that do not get everything.
//!
//! Two things cannot be told from a finished span alone: that its trace was sampled by a caller, and that a span above
//! it was withheld from an exporter by level. Both are inherited from the parent at the start. Nothing is remembered
//! while every exporter gets every span, which is the default, and nothing of spans that have nothing to inherit.

use std::{
    collections::HashMap,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use opentelemetry::SpanId;

/// So that producers seldom meet.
const SHARDS: usize = 16;
/// A program that never ends its spans must not fill the memory with what is remembered of them.
const MARKS_MAX: usize = 1 << 20;

/// What is remembered of one span.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Mark {
    /// A caller sampled its trace: nobody thins it.
    pub(crate) followed: bool,
    /// From which exporters it is withheld, by their place in the pipeline.
    pub(crate) withheld: u64,
}

/// The marks of all spans under way.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    shards: [Mutex<HashMap<SpanId, Mark>>; SHARDS],
    count: AtomicUsize,
}

impl Marks {
    pub(crate) fn get(&self, span: SpanId) -> Mark {
        if self.count.load(Ordering::Acquire) == 0 {
            return Mark::default();
        }
        let shard = self.shard(span).lock().unwrap_or_else(PoisonError::into_inner);
        shard.get(&span).copied().unwrap_or_default()
    }

    pub(crate) fn set(&self, span: SpanId, mark: Mark) {
        if mark == Mark::default() || self.count.load(Ordering::Acquire) >= MARKS_MAX {
            return;
        }
        let mut shard = self.shard(span).lock().unwrap_or_else(PoisonError::into_inner);
        if shard.insert(span, mark).is_none() {
            self.count.fetch_add(1, Ordering::AcqRel);
        }
    }

    pub(crate) fn take(&self, span: SpanId) -> Mark {
        if self.count.load(Ordering::Acquire) == 0 {
            return Mark::default();
        }
        let mut shard = self.shard(span).lock().unwrap_or_else(PoisonError::into_inner);
        let taken = shard.remove(&span);
        if taken.is_some() {
            self.count.fetch_sub(1, Ordering::AcqRel);
        }
        taken.unwrap_or_default()
    }

    fn shard(&self, span: SpanId) -> &Mutex<HashMap<SpanId, Mark>> {
        &self.shards[usize::from(span.to_bytes()[7]) % SHARDS]
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::SpanId;

    use super::{Mark, Marks};

    #[test]
    fn a_mark_is_there_until_it_is_taken() {
        let marks = Marks::default();
        let (a, b) = (SpanId::from(1), SpanId::from(2));
        let mark = Mark { followed: true, withheld: 0b10 };
        marks.set(a, mark);
        marks.set(b, Mark::default());
        assert_eq!((marks.get(a), marks.get(b)), (mark, Mark::default()));
        assert_eq!((marks.take(a), marks.get(a)), (mark, Mark::default()));
    }
}
