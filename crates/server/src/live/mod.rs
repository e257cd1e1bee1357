//! What happens to runs, while it happens: to clients that follow a run or a project.

pub(crate) mod followers;
pub(crate) mod projects;
pub(crate) mod snapshots;
