//! Encodes spans, logs, resources and scopes of the SDK as OTLP bytes.
//!
//! Each function appends to a buffer of its caller, in one pass and without an intermediate message: this code
//! determines the cost of ending a span for its thread. Deliberately absent: the export request (`record` builds it
//! from these bytes), metrics (a few a minute, so opentelemetry-proto's own transform is sufficient), and decoding.

mod log;
mod span;
mod value;
mod wire;

use opentelemetry::{InstrumentationScope, Key, Value};
use opentelemetry_sdk::{Resource, logs::SdkLogRecord};

use self::{value::attribute, wire::tag};

pub(crate) use self::{log::log, span::span};

/// Appends `scope` and `schema_url` as fields of `ScopeSpans` and `ScopeLogs`.
pub(crate) fn scope(out: &mut Vec<u8>, scope: &InstrumentationScope) {
    named_scope(out, scope, scope.name());
}

/// Appends the scope of a log. The target of the log, if it has one, is the name of the scope on the wire.
pub(crate) fn scope_of_log(out: &mut Vec<u8>, scope: &InstrumentationScope, record: &SdkLogRecord) {
    named_scope(out, scope, record.target().map_or(scope.name(), |target| target));
}

fn named_scope(out: &mut Vec<u8>, scope: &InstrumentationScope, name: &str) {
    wire::message(out, tag::bytes(1), name.len(), |out| {
        wire::text(out, tag::bytes(1), name);
        wire::text(out, tag::bytes(2), scope.version().unwrap_or_default());
        for pair in scope.attributes() {
            attribute(out, tag::bytes(3), pair);
        }
    });
    wire::text(out, tag::bytes(3), scope.schema_url().unwrap_or_default());
}

/// Appends `resource` and `schema_url` as fields of `ResourceSpans` and `ResourceLogs`. Attributes are sorted, so that
/// a resource has the same bytes in every process.
pub(crate) fn resource(out: &mut Vec<u8>, resource: &Resource) {
    let mut attributes: Vec<(&Key, &Value)> = resource.iter().collect();
    attributes.sort_unstable_by_key(|(key, _)| *key);
    wire::message(out, tag::bytes(1), 64 * attributes.len(), |out| {
        for (key, value) in attributes {
            value::pair(out, tag::bytes(1), key, value);
        }
    });
    wire::text(out, tag::bytes(3), resource.schema_url().unwrap_or_default());
}

#[cfg(test)]
mod tests;
