//! The active runs of this process, and their leases: renewed together, each measured by the worker's own clock.
//!
//! One statement renews all leases, so that many runs cost no more than one, and a slow database gets one query and not one
//! for each. It runs on the control runtime. A task that executes a run checks its lease and not the database; what follows from a
//! lease is decided in `lease_term.rs`.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use db::Db;
use model::RunId;
use runner::LeaseLost;
use tokio::{
    sync::Notify,
    time::{Instant, sleep, sleep_until},
};
use tokio_util::sync::CancellationToken;

use super::lease_term::{LeaseState, LeaseTerm};

/// How long to wait before a failed write is retried.
pub(super) const RETRY: Duration = Duration::from_millis(200);

/// The active runs: as many as the worker has slots, and those that linger.
#[derive(Debug, Default)]
pub(super) struct ActiveRuns {
    leases: Mutex<HashMap<RunId, Arc<Lease>>>,
    /// Notified when the row of one of them may have changed.
    news: Notify,
}

/// A worker's lease on a run, measured by its own monotonic clock.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) run: RunId,
    pub(super) epoch: i64,
    /// When the lease was requested: its times count from there.
    asked: Instant,
    term: Mutex<LeaseTerm>,
    /// Cancelled once another worker was seen to own the run.
    lost: CancellationToken,
    /// Cancelled once a stop request for the run was seen.
    stopped: CancellationToken,
}

/// One active run, until it is dropped.
#[derive(Debug)]
pub(super) struct ActiveRun<'a> {
    pub(super) lease: Arc<Lease>,
    of: &'a ActiveRuns,
}

impl ActiveRuns {
    /// Renews all leases whenever a third of a lease is over, until it is dropped.
    pub(super) async fn keep(&self, db: &Db, lease: Duration) {
        loop {
            tokio::select! {
                () = sleep(lease / 3) => {}
                () = self.news.notified() => {}
            }
            while !self.renew(db, lease).await {
                sleep(RETRY).await;
            }
        }
    }

    /// Adds a run with a lease that was requested at `asked`.
    pub(super) fn begin(
        &self,
        (run, epoch): (RunId, i64),
        length: Duration,
        asked: Instant,
    ) -> ActiveRun<'_> {
        let lease = Arc::new(Lease {
            run,
            epoch,
            asked,
            term: Mutex::new(LeaseTerm::new(Duration::ZERO, length)),
            lost: CancellationToken::new(),
            stopped: CancellationToken::new(),
        });
        self.lock().insert(run, Arc::clone(&lease));
        ActiveRun { lease, of: self }
    }

    /// Triggers a check of the rows, if the run is one of these.
    pub(super) fn look_again(&self, run: RunId) {
        if self.lock().contains_key(&run) {
            self.news.notify_one();
        }
    }

    /// Returns all active runs, with their epochs.
    pub(super) fn all(&self) -> Vec<(RunId, i64)> {
        self.lock().values().map(|lease| (lease.run, lease.epoch)).collect()
    }

    /// Renews all leases. Returns false if the database failed.
    async fn renew(&self, db: &Db, length: Duration) -> bool {
        let leases: Vec<_> = self.lock().values().cloned().collect();
        if leases.is_empty() {
            return true;
        }
        let asked = Instant::now();
        let runs: Vec<_> = leases.iter().map(|lease| (lease.run, lease.epoch)).collect();
        let renewed = match db.renew(&runs, length).await {
            Ok(renewed) => renewed.into_iter().collect::<HashMap<_, _>>(),
            Err(error) => {
                tracing::warn!(%error, "leases could not be renewed; trying again");
                return false;
            }
        };
        for lease in leases {
            match renewed.get(&lease.run) {
                Some(stop_at) => {
                    lease.term().renewed(lease.time_of(asked));
                    if stop_at.is_some() {
                        lease.stopped.cancel();
                    }
                }
                None => {
                    lease.term().lose();
                    lease.lost.cancel();
                }
            }
        }
        true
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, Arc<Lease>>> {
        self.leases.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lease {
    /// Waits until the lease is lost or has expired.
    pub(super) async fn over(&self) -> LeaseLost {
        loop {
            let until = self.asked + self.term().until();
            tokio::select! {
                () = self.lost.cancelled() => {}
                () = sleep_until(until) => {}
            }
            match self.term().state(self.time_of(Instant::now())) {
                LeaseState::Held => {}
                LeaseState::Lost => {
                    return LeaseLost("another worker has taken the run".to_owned());
                }
                LeaseState::Expired => {
                    let words = "the lease ran out while the database did not answer";
                    return LeaseLost(words.to_owned());
                }
            }
        }
    }

    /// Waits until a stop of the run is requested.
    pub(super) async fn stopped(&self) {
        self.stopped.cancelled().await;
    }

    /// Whether enough of the lease is left to record an attempt, and to fire the trigger.
    pub(super) fn allows_trigger(&self) -> bool {
        self.term().allows_trigger(self.time_of(Instant::now()))
    }

    fn time_of(&self, moment: Instant) -> Duration {
        moment.saturating_duration_since(self.asked)
    }

    fn term(&self) -> MutexGuard<'_, LeaseTerm> {
        self.term.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for ActiveRun<'_> {
    fn drop(&mut self) {
        let mut leases = self.of.lock();
        // This process may have lost the run and leased it again meanwhile.
        if leases.get(&self.lease.run).is_some_and(|lease| Arc::ptr_eq(lease, &self.lease)) {
            leases.remove(&self.lease.run);
        }
    }
}
