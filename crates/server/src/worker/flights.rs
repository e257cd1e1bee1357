//! The runs that this process works on: who is told to look again, and what is left when the server stops.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use model::RunId;
use tokio::sync::Notify;

/// Epoch and news of each run.
type Known = HashMap<RunId, (i64, Arc<Notify>)>;

/// Runs in flight, as many as the worker takes. A clone is the same list.
#[derive(Clone, Debug, Default)]
pub(super) struct Flights(Arc<Mutex<Known>>);

/// One run in flight, until it is dropped.
#[derive(Debug)]
pub(super) struct Flight {
    run: RunId,
    /// Told when there may be news in the run's row.
    pub(super) news: Arc<Notify>,
    of: Flights,
}

impl Flights {
    pub(super) fn begin(&self, run: RunId, epoch: i64) -> Flight {
        let news = Arc::new(Notify::new());
        self.lock().insert(run, (epoch, Arc::clone(&news)));
        Flight { run, news, of: self.clone() }
    }

    /// Has the run's row looked at, if the run is one of these.
    pub(super) fn look_again(&self, run: RunId) {
        if let Some((_, news)) = self.lock().get(&run) {
            news.notify_one();
        }
    }

    /// All of them, with their epochs.
    pub(super) fn all(&self) -> Vec<(RunId, i64)> {
        self.lock().iter().map(|(run, (epoch, _))| (*run, *epoch)).collect()
    }

    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut flights = self.of.lock();
        // This process may have lost the run and taken it again meanwhile.
        if flights.get(&self.run).is_some_and(|(_, news)| Arc::ptr_eq(news, &self.news)) {
            flights.remove(&self.run);
        }
    }
}
