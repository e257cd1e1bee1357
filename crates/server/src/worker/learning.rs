//! What runs have shown of the system, on its way to the record: gathered, and kept together every second.
//!
//! It is no part of a run: what a crash takes is shown by the next runs again.

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use model::{LearnedProfile, Project};
use tokio::time::sleep;

use super::Worker;

/// How often it is kept.
const KEEP: Duration = Duration::from_secs(1);
/// Of how many runs it waits at the most, for each project; of further ones nothing is learned.
const RUNS_MAX: usize = 4096;

/// What was shown and not kept yet.
#[derive(Debug, Default)]
pub(super) struct LearnedQueue(Mutex<HashMap<Project, Vec<LearnedProfile>>>);

/// Keeps what comes, until it is dropped.
pub(super) async fn keep(worker: Arc<Worker>) {
    loop {
        sleep(KEEP).await;
        worker.shared.learning.flush(&worker).await;
    }
}

impl LearnedQueue {
    pub(super) fn note(&self, project: &Project, seen: LearnedProfile) {
        if !seen.is_empty() {
            self.add(project, vec![seen]);
        }
    }

    pub(super) async fn flush(&self, worker: &Worker) {
        let all = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for (project, seen) in all {
            if let Err(error) = worker.db.learn(&project, &seen).await {
                tracing::warn!(%error, "what runs have shown is not kept yet; trying again");
                self.add(&project, seen);
            }
        }
    }

    fn add(&self, project: &Project, seen: Vec<LearnedProfile>) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let waiting = all.entry(project.clone()).or_default();
        let room = RUNS_MAX.saturating_sub(waiting.len());
        waiting.extend(seen.into_iter().take(room));
    }
}
