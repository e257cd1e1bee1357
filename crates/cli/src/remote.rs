//! The client of a server: applies documents, starts runs, follows them to their outcomes.
//!
//! Client and server may have different versions: the client ignores fields that a newer server adds to its responses, and
//! falls back to the older API if an older server lacks an endpoint.

mod api;
mod apply;
mod client;
mod documents;
mod error;
mod exporters;
mod http;
mod lists;
mod live;
mod open;
mod pages;
mod prune;
mod run;
mod runs;
mod status;
mod tokens;
mod tolerant;
mod traces;
mod trend;

pub(crate) use api::api;
pub(crate) use apply::apply;
pub(crate) use client::{Me, me};
pub(crate) use documents::{delete, export, get, list};
pub(crate) use exporters::exporters;
pub(crate) use lists::{audit, history, sessions, tokens};
pub(crate) use open::open;
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use status::{ServerLook, look, status};
pub(crate) use tokens::{create_token, end_sessions, revoke};
pub(crate) use traces::trace;
pub(crate) use trend::trend;
