//! How a trace store is reached and queried.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Secret, Tls};

/// How a trace store is reached and queried. `Debug` shows no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The name that the user gave it.
    pub name: String,
    /// Its type, as documents name it.
    pub kind: String,
    /// The URL below which its API is.
    pub url: String,
    /// Whether it is queried by gRPC.
    pub is_grpc: bool,
    /// The headers of every query.
    pub headers: Vec<(String, Secret)>,
    /// The TLS settings.
    pub tls: Tls,
    /// The index or the table that has the spans, if the user names one.
    pub index: Option<String>,
    /// How long after its arrival at the store a span may be missing from complete answers, if the user knows it.
    pub lag: Option<Duration>,
}

/// A part of a span that a trace store may not keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum SpanDetail {
    /// The links.
    Links,
    /// The attributes of events.
    EventAttributes,
    /// The types of attribute values: each is a text.
    ValueTypes,
    /// The instrumentation scope.
    Scope,
    /// The attributes of the instrumentation scope.
    ScopeAttributes,
    /// The attributes of the resource, but for the name of the service.
    Resource,
    /// The status message.
    StatusMessage,
    /// Times more exact than a microsecond.
    Nanoseconds,
    /// The flags of spans and links.
    Flags,
    /// The trace state of spans and links.
    TraceState,
    /// Capital letters in the names of spans and services.
    NameCase,
    /// The kind `internal`, or none, as distinct from one another.
    Kinds,
}

impl SpanDetail {
    /// Names what a store without it lacks.
    pub const fn words(self) -> &'static str {
        match self {
            Self::Links => "links",
            Self::EventAttributes => "attributes of events",
            Self::ValueTypes => "types of attribute values",
            Self::Scope => "instrumentation scopes",
            Self::ScopeAttributes => "attributes of instrumentation scopes",
            Self::Resource => "resource attributes",
            Self::StatusMessage => "status messages",
            Self::Nanoseconds => "nanoseconds",
            Self::Flags => "flags",
            Self::TraceState => "trace states",
            Self::NameCase => "capital letters of names",
            Self::Kinds => "internal kinds",
        }
    }
}
