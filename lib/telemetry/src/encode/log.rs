//! Encodes a log record.

use opentelemetry::logs::AnyValue;
use opentelemetry_sdk::logs::SdkLogRecord;

use super::{
    value::{any, any_pair},
    wire::{self, tag},
};

/// Appends the record as a field of `ScopeLogs`. Without its target: see `scope_of_log`.
pub(crate) fn log(out: &mut Vec<u8>, record: &SdkLogRecord) {
    let body = match record.body() {
        Some(AnyValue::String(text)) => text.as_str().len(),
        _ => 32,
    };
    let expected = 96 + body;
    out.reserve(expected);
    wire::message(out, tag::bytes(2), expected, |out| {
        if let Some(time) = record.timestamp() {
            wire::time(out, tag::fixed64(1), time);
        }
        if let Some(severity) = record.severity_number() {
            // The severity numbers of the API are those of the wire format.
            wire::count(out, tag::varint(2), severity as u32);
        }
        wire::text(out, tag::bytes(3), record.severity_text().unwrap_or_default());
        if let Some(body) = record.body() {
            any(out, tag::bytes(5), body);
        }
        for (key, value) in record.attributes_iter() {
            any_pair(out, tag::bytes(6), key, value);
        }
        if let Some(context) = record.trace_context() {
            if let Some(flags) = context.trace_flags {
                wire::fixed32(out, tag::fixed32(8), u32::from(flags.to_u8()));
            }
            wire::bytes(out, tag::bytes(9), &context.trace_id.to_bytes());
            wire::bytes(out, tag::bytes(10), &context.span_id.to_bytes());
        }
        // The SDK sets it when it passes the record on; a record from elsewhere has none.
        if let Some(time) = record.observed_timestamp() {
            wire::time(out, tag::fixed64(11), time);
        }
        wire::text(out, tag::bytes(12), record.event_name().unwrap_or_default());
    });
}
