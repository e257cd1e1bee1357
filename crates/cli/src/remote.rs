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
mod look;
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
pub(crate) use client::{Me, is_readable, me};
pub(crate) use documents::{delete, export, get, list};
pub(crate) use exporters::{Exporter, exporters};
pub(crate) use lists::{audit, history, sessions, tokens};
pub(crate) use look::{ReadyLook, ServerLook, StoreLook, certificate, is_out_of_reach, look};
pub(crate) use open::open;
pub(crate) use run::run;
pub(crate) use runs::runs;
pub(crate) use status::status;
pub(crate) use tokens::{create_token, end_sessions, revoke};
pub(crate) use traces::trace;
pub(crate) use trend::trend;
