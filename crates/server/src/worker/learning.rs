//! The queue of learned profiles to the database: collected from runs, and written together every second.
//!
//! They are not part of a run: the next runs show again what a crash lost.

use std::{
    collections::HashMap,
    mem,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use db::{Db, DbError};
use model::{LearnedProfile, Project};
use tokio::time::{Instant, sleep};

/// The interval of writes.
const KEEP: Duration = Duration::from_secs(1);
/// The maximum number of queued runs for each project; further runs are not learned from.
const RUNS_MAX: usize = 4096;

/// The learned profiles that are not stored yet.
#[derive(Debug, Default)]
pub(super) struct LearnedQueue(Mutex<HashMap<Project, Vec<LearnedProfile>>>);

impl LearnedQueue {
    /// Stores what is queued every second, until it is dropped.
    /// `was_held` states whether a full telemetry buffer blocked the server since then.
    pub(super) async fn keep(&self, db: &Db, was_held: impl Fn(Instant) -> bool) {
        loop {
            sleep(KEEP).await;
            let began = Instant::now();
            if let Err(error) = self.flush(db).await
                && !was_held(began)
            {
                tracing::warn!(%error, "learned profiles are not stored yet; trying again");
            }
        }
    }

    pub(super) fn note(&self, project: &Project, seen: LearnedProfile) {
        if !seen.is_empty() {
            self.add(project, vec![seen]);
        }
    }

    /// Stores what is queued. What could not be stored stays in the queue, and the last error is returned.
    pub(super) async fn flush(&self, db: &Db) -> Result<(), DbError> {
        let all = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        let mut result = Ok(());
        for (project, seen) in all {
            if let Err(error) = db.learn(&project, &seen).await {
                self.add(&project, seen);
                result = Err(error);
            }
        }
        result
    }

    fn add(&self, project: &Project, seen: Vec<LearnedProfile>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.entry(project.clone()).or_default();
        let room = RUNS_MAX.saturating_sub(waiting.len());
        waiting.extend(seen.into_iter().take(room));
    }
}
