//! The runs that wait for a worker, of all servers: where they are too many, new ones are refused with a time to retry.
//!
//! The database is read every two seconds, and what this server accepts meanwhile is added. So several servers exceed the bound by
//! what they accept in that time. A project gets half of the bound: no project fills the queue for all others.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use axum::http::StatusCode;
use db::Db;
use model::{ErrorCode, Fault, Project};
use tokio::{task::JoinSet, time::timeout};
use tokio_util::sync::CancellationToken;

use super::problem::Problem;

/// How often the database is read.
const POLL: Duration = Duration::from_secs(2);

/// When a caller may retry, in seconds.
const RETRY_S: u64 = 5;

/// The runs that wait, and how many may.
#[derive(Debug)]
pub(crate) struct Backlog {
    runs_max: u64,
    waiting: Mutex<HashMap<Project, u64>>,
}

impl Backlog {
    /// Returns a backlog that is read until the server stops.
    pub(crate) fn watch(
        tasks: &mut JoinSet<()>,
        db: Db,
        runs_max: u32,
        stop: CancellationToken,
    ) -> Arc<Self> {
        let backlog = Arc::new(Self { runs_max: runs_max.into(), waiting: Mutex::default() });
        let watched = Arc::clone(&backlog);
        tasks.spawn(async move {
            while timeout(POLL, stop.cancelled()).await.is_err() {
                // While the database does not answer, no run is accepted either.
                if let Ok(Ok(waiting)) = timeout(POLL, db.backlog()).await {
                    *watched.waiting() = waiting;
                }
            }
        });
        backlog
    }

    /// Refuses a new run of a project if too many wait.
    pub(crate) fn has_room(&self, project: &Project) -> Result<(), Problem> {
        let waiting = self.waiting();
        let (all, of_project) =
            (waiting.values().sum::<u64>(), waiting.get(project).copied().unwrap_or_default());
        let what = if all >= self.runs_max {
            format!("{all} runs wait for a worker")
        } else if of_project >= self.runs_max.div_ceil(2) {
            format!("{of_project} runs of the project `{project}` wait for a worker")
        } else {
            return Ok(());
        };
        let detail = format!(
            "{what}, as many as may (`server.limits.queuedRuns`): try again in {RETRY_S} s"
        );
        Err(Problem::new(Fault::Overloaded, detail)
            .with_status(StatusCode::TOO_MANY_REQUESTS)
            .with_code(ErrorCode::Overloaded)
            .with_retry(RETRY_S))
    }

    /// Counts a run that was accepted.
    pub(crate) fn add(&self, project: &Project) {
        *self.waiting().entry(project.clone()).or_default() += 1;
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<Project, u64>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use model::Project;

    use super::Backlog;

    #[test]
    fn a_project_gets_half_of_the_queue_and_all_together_the_whole() {
        let [alpha, beta, gamma]: [Project; 3] =
            ["alpha", "beta", "gamma"].map(|name| name.parse().expect("a name"));
        let backlog = Backlog { runs_max: 10, waiting: Mutex::default() };
        let fill = |project: &Project| {
            let taken = (0..20).take_while(|_| {
                let has_room = backlog.has_room(project).is_ok();
                if has_room {
                    backlog.add(project);
                }
                has_room
            });
            taken.count()
        };
        assert_eq!((fill(&alpha), fill(&beta), fill(&gamma)), (5, 5, 0));
        // As the database shows it later.
        *backlog.waiting() = [(alpha.clone(), 5), (beta, 4)].into();
        assert_eq!((fill(&alpha), fill(&gamma)), (0, 1));
    }
}
