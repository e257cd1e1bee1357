//! Traces that runs wait for though nobody here minted their ids: those of `traceid` triggers.
//!
//! Asked for every foreign span, and nearly always empty: then it costs one look at a number.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use db::{Db, DbError};
use model::{KeyRing, TraceId};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long traces are wanted whose runs were in flight when the server started: a worker takes each of them when its
/// lease is over, and then has an interest of its own.
const RESUMED_MAX: Duration = Duration::from_secs(10 * 60);

/// So many of them.
const RESUMED_TRACES_MAX: u32 = 10_000;

/// The traces. A clone is the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interests(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    /// How many traces there are.
    traces: AtomicUsize,
    /// With each, how many runs wait for it; as many traces as there are runs at the most.
    runs: Mutex<HashMap<TraceId, usize>>,
    /// Those of runs that were in flight when the record was opened, and since when they are here.
    resumed: Mutex<Option<(Instant, Vec<TraceId>)>>,
}

/// One run's interest, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    trace: TraceId,
    of: Interests,
}

impl Interests {
    /// Wants what runs in flight wait for, before a worker has taken them again: spans come as soon as they are taken.
    pub(crate) async fn resume(&self, db: &Db, keys: &KeyRing) -> Result<(), DbError> {
        let traces = db.awaited_traces(RESUMED_TRACES_MAX).await?.into_iter();
        let foreign: Vec<_> = traces.filter(|trace| keys.verify(trace).is_none()).collect();
        self.let_go();
        foreign.iter().for_each(|trace| self.0.add(*trace));
        *self.0.resumed() = Some((Instant::now(), foreign));
        Ok(())
    }

    /// Lets go of those, once workers have interests of their own.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        while tokio::time::timeout(RESUMED_MAX / 10, stop.cancelled()).await.is_err() {
            let since = self.0.resumed().as_ref().map(|(since, _)| *since);
            if since.is_some_and(|since| since.elapsed() > RESUMED_MAX) {
                self.let_go();
            }
        }
    }

    fn let_go(&self) {
        let resumed = self.0.resumed().take();
        resumed.into_iter().flat_map(|(_, traces)| traces).for_each(|trace| self.0.remove(trace));
    }

    pub(crate) fn register(&self, trace: TraceId) -> Interest {
        self.0.add(trace);
        Interest { trace, of: self.clone() }
    }

    pub(crate) fn has(&self, trace: &TraceId) -> bool {
        self.0.traces.load(Ordering::Acquire) > 0 && self.0.runs().contains_key(trace)
    }
}

impl Shared {
    fn add(&self, trace: TraceId) {
        let mut runs = self.runs();
        *runs.entry(trace).or_default() += 1;
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn remove(&self, trace: TraceId) {
        let mut runs = self.runs();
        if let Some(count) = runs.get_mut(&trace) {
            *count -= 1;
            if *count == 0 {
                runs.remove(&trace);
            }
        }
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<TraceId, usize>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resumed(&self) -> MutexGuard<'_, Option<(Instant, Vec<TraceId>)>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.of.0.remove(self.trace);
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
