//! The subjects of notifications on the bus.

use bus::Subject;
use model::{Project, RunId};

/// The bus subject that notifies workers of a queued run.
pub(crate) fn runs_waiting() -> Subject {
    Subject("runs.waiting".to_owned())
}

/// The bus subject that notifies workers of a queued suite run.
pub(crate) fn suites_waiting() -> Subject {
    Subject("suites.waiting".to_owned())
}

/// The prefix, before the run's id, of the subject that notifies the owner of a run of a stop request.
pub(crate) const RUN_STOPPED: &str = "run.stopped.";

/// The bus subject that notifies the owner of a run of a stop request.
pub(crate) fn run_stopped(run: RunId) -> Subject {
    Subject(format!("{RUN_STOPPED}{run}"))
}

/// The prefix, before the run's id, of the subject that announces the end of a run, and later events.
const RUN_NEWS: &str = "run.";

/// The bus subject that announces the end of a run, and later events.
pub(crate) fn run_news(run: RunId) -> Subject {
    Subject(format!("{RUN_NEWS}{run}"))
}

/// The prefix, before the run's id, of the subject that notifies the followers of a run of new events.
pub(crate) const RUN_EVENTS: &str = "run.events.";

/// The bus subject that notifies the followers of a run of new events before its end.
pub(crate) fn run_events(run: RunId) -> Subject {
    Subject(format!("{RUN_EVENTS}{run}"))
}

/// The prefix, before the name of a project, of the subject that notifies its followers.
const PROJECT_NEWS: &str = "project.";

/// The bus subject that notifies the followers of a project that a run was accepted or has ended.
pub(crate) fn project_news(project: &Project) -> Subject {
    Subject(format!("{PROJECT_NEWS}{project}"))
}

/// Returns the project that has changed, if the subject is about that.
pub(crate) fn project_with_news(subject: &Subject) -> Option<Project> {
    subject.0.strip_prefix(PROJECT_NEWS)?.parse().ok()
}

/// Returns the run that has new events, if the subject is about events.
pub(crate) fn run_with_news(subject: &Subject) -> Option<RunId> {
    let subject = &subject.0;
    subject.strip_prefix(RUN_EVENTS).or_else(|| subject.strip_prefix(RUN_NEWS))?.parse().ok()
}
