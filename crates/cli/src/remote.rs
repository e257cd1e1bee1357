//! The client of a server: applies documents, starts runs, follows them to their outcomes.
//!
//! Client and server may have different versions: the client ignores fields that a newer server adds to its responses, and
//! falls back to the older API if an older server lacks an endpoint.

mod apply;
mod client;
mod documents;
mod error;
mod http;
mod live;
mod run;
mod status;
mod tolerant;
mod traces;
mod trend;

pub(crate) use apply::apply;
pub(crate) use client::me;
pub(crate) use documents::{delete, export, get, list};
pub(crate) use run::run;
pub(crate) use status::status;
pub(crate) use traces::trace;
pub(crate) use trend::trend;
