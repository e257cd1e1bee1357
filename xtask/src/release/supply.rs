//! A place for the licences and the list of components, which are not written yet.

use std::process::Command;

use anyhow::Result;

use super::Release;
use crate::machine::Machine;

pub(crate) fn write(_machine: &Machine, _release: &Release, _target: &str) -> Result<()> {
    Ok(())
}

pub(crate) fn licences(_machine: &Machine) -> Result<String> {
    Ok("stub\n".to_owned())
}

pub(crate) fn auditable(machine: &Machine) -> Result<Command> {
    Ok(machine.cargo())
}
