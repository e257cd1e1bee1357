//! The JSON of Zipkin's API v2. A field that is not known here is an error: Zipkin writes no others.

use std::collections::BTreeMap;

use model::{SpanId, TraceId};
use serde::{Deserialize, Deserializer, de::Error};

/// One report about a span: all of it, or a part.
#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Report {
    #[serde(deserialize_with = "trace_id")]
    pub(super) trace_id: TraceId,
    pub(super) id: SpanId,
    pub(super) parent_id: Option<SpanId>,
    pub(super) kind: Option<ReportKind>,
    pub(super) name: Option<String>,
    /// The start, in microseconds since the epoch.
    pub(super) timestamp: Option<u64>,
    /// In microseconds, never zero.
    pub(super) duration: Option<u64>,
    pub(super) local_endpoint: Option<Endpoint>,
    pub(super) remote_endpoint: Option<Endpoint>,
    #[serde(default)]
    pub(super) annotations: Vec<Annotation>,
    #[serde(default)]
    pub(super) tags: BTreeMap<String, String>,
    /// Whether another tracer began the span: this is the server, and the client has the same id.
    #[serde(default)]
    pub(super) shared: bool,
    /// A demand to store the span whatever is sampled.
    #[serde(default)]
    pub(super) debug: bool,
}

#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "UPPERCASE")]
pub(super) enum ReportKind {
    Client,
    Server,
    Producer,
    Consumer,
}

/// A side of a connection.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct Endpoint {
    pub(super) service_name: Option<String>,
    pub(super) ipv4: Option<String>,
    pub(super) ipv6: Option<String>,
    pub(super) port: Option<u16>,
}

#[derive(Clone, Debug, Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(deny_unknown_fields)]
pub(super) struct Annotation {
    /// In microseconds since the epoch.
    pub(super) timestamp: u64,
    pub(super) value: String,
}

impl Report {
    /// Whether it belongs to a trace. Unless Zipkin is strict about ids, it answers by their lower halves alone: an id that a service cut to 64 bits is that
    /// of the same trace, and one with another upper half is not.
    pub(super) fn is_of(&self, trace: TraceId) -> bool {
        let (own, wanted) = (self.trace_id.as_bytes(), trace.as_bytes());
        let is_short = |id: &[u8; 16]| id[..8] == [0; 8];
        own == wanted || own[8..] == wanted[8..] && (is_short(own) || is_short(wanted))
    }

    pub(super) fn service(&self) -> Option<&str> {
        self.local_endpoint.as_ref()?.service_name.as_deref()
    }
}

/// Parses a trace id of 16 or 32 digits.
fn trace_id<'de, D: Deserializer<'de>>(deserializer: D) -> Result<TraceId, D::Error> {
    let text = String::deserialize(deserializer)?;
    format!("{text:0>32}").parse().map_err(D::Error::custom)
}
