//! The checks of `release verify`: each uses artefacts of a release as their users do.

use std::time::Duration;

use anyhow::Result;

use super::Release;
use crate::machine::Machine;

/// One check of a release.
pub(crate) struct Check {
    pub(crate) name: &'static str,
    /// What it shows, for the help.
    pub(crate) what: &'static str,
    /// Returns why it cannot run on this machine, by the name of what is missing; none if it can.
    pub(crate) missing: fn(&Machine) -> Option<String>,
    pub(crate) run: fn(&Machine, &Release) -> Result<Vec<Row>>,
}

/// A line of the table that `release verify` prints.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) artefact: String,
    pub(crate) bytes: Option<u64>,
    /// From the file to an installed program.
    pub(crate) installed_in: Option<Duration>,
    /// From the installed program to the first green run.
    pub(crate) green_in: Option<Duration>,
}
