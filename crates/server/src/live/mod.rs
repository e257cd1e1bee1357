//! What happens to runs, while it happens: to clients that follow a run.

pub(crate) mod followers;
