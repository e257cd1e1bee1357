//! `cargo xtask release`: every artefact of a release from one binary per target, and the checks that use each artefact as its users do.
//!
//! The workflow on the forge only calls this, so that a release is rehearsed on any machine. Deliberately absent: anything that needs
//! credentials, but for `publish`.

mod artefacts;
mod checks;

pub(crate) use artefacts::Release;
pub(crate) use checks::{Check, Row};
