//! The client of a server: applies documents, starts runs, follows them to their outcomes.
//!
//! Client and server may have different versions: the client ignores fields that a newer server adds to its responses, and
//! falls back to the older API if an older server lacks an endpoint.

mod apply;
mod client;
mod documents;
mod error;
mod http;
mod lists;
mod live;
mod pages;
mod run;
mod runs;
mod status;
mod tolerant;
mod traces;
mod trend;

pub(crate) use apply::apply;
pub(crate) use client::{Me, me};
pub(crate) use documents::{delete, export, get, list};
pub(crate) use lists::{audit, history, revoke, tokens};
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use status::status;
pub(crate) use traces::trace;
pub(crate) use trend::trend;
