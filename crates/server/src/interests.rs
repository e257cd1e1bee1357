//! Traces that runs wait for though nobody here minted their ids: those of `traceid` triggers.
//!
//! Asked for every foreign span, and nearly always empty: then it costs one look at a number.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
};

use model::TraceId;

/// The traces. A clone is the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How many traces there are.
    traces: AtomicUsize,
    /// With each, how many runs wait for it; as many traces as there are runs at the most.
    runs: Mutex<HashMap<TraceId, usize>>,
}

/// One run's interest, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    trace: TraceId,
    of: Interests,
}

impl Interests {
    pub(crate) fn register(&self, trace: TraceId) -> Interest {
        let mut runs = self.0.runs();
        *runs.entry(trace).or_default() += 1;
        self.0.traces.store(runs.len(), Ordering::Release);
        Interest { trace, of: self.clone() }
    }

    pub(crate) fn has(&self, trace: &TraceId) -> bool {
        self.0.traces.load(Ordering::Acquire) > 0 && self.0.runs().contains_key(trace)
    }
}

impl Shared {
    fn runs(&self) -> MutexGuard<'_, HashMap<TraceId, usize>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        let shared = &self.of.0;
        let mut runs = shared.runs();
        if let Some(count) = runs.get_mut(&self.trace) {
            *count -= 1;
            if *count == 0 {
                runs.remove(&self.trace);
            }
        }
        shared.traces.store(runs.len(), Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use model::TraceId;

    use super::Interests;

    #[test]
    fn a_trace_is_wanted_for_as_long_as_a_run_waits_for_it() {
        let interests = Interests::default();
        let (one, other) = (TraceId::from_random([1; 16]), TraceId::from_random([2; 16]));
        assert!(!interests.has(&one));
        let (first, second) = (interests.register(one), interests.register(one));
        assert!(interests.has(&one) && !interests.has(&other));
        drop(first);
        assert!(interests.has(&one));
        drop(second);
        assert!(!interests.has(&one));
    }
}
