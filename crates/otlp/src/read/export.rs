//! An export in JSON: converts traces to protobuf, and counts logs and metrics.
//!
//! Unknown fields are ignored, as the protocol requires. An invalid id is replaced by an invalid one in protobuf, so that only
//! its span is refused, and not the others.

use model::TraceId;

use crate::LogRecords;
use serde_json::Value;

use super::{
    Form, ReadError,
    json::{Mistake, Node},
    otlp::{KINDS, STATUS_CODES},
};
use crate::message::Message;

/// The fields of a message: their names in JSON, their numbers, and their types.
struct Table(&'static [(&'static str, u32, FieldContent)]);

#[derive(Clone, Copy)]
enum FieldContent {
    Text,
    Texts,
    /// An id of this many bytes.
    Id(usize),
    Bytes,
    Bool,
    U32,
    I64,
    Fixed32,
    Fixed64,
    Double,
    Enumeration(&'static [&'static str]),
    One(&'static Table),
    Many(&'static Table),
}

use FieldContent::{
    Bool, Bytes, Double, Enumeration, Fixed32, Fixed64, I64, Id, Many, One, Text, Texts, U32,
};

/// The field number of `doubleValue` in a value.
const DOUBLE_VALUE: u32 = 4;

/// The replacement of an id that cannot be decoded. No valid id has its length.
const NO_ID: &[u8] = &[0xff];

static TRACES: Table = Table(&[("resourceSpans", 1, Many(&RESOURCE_SPANS))]);
static RESOURCE_SPANS: Table = Table(&[
    ("resource", 1, One(&RESOURCE)),
    ("scopeSpans", 2, Many(&SCOPE_SPANS)),
    ("schemaUrl", 3, Text),
]);
static RESOURCE: Table = Table(&[
    ("attributes", 1, Many(&KEY_VALUE)),
    ("droppedAttributesCount", 2, U32),
    ("entityRefs", 3, Many(&ENTITY_REF)),
]);
static ENTITY_REF: Table = Table(&[
    ("schemaUrl", 1, Text),
    ("type", 2, Text),
    ("idKeys", 3, Texts),
    ("descriptionKeys", 4, Texts),
]);
static SCOPE_SPANS: Table =
    Table(&[("scope", 1, One(&SCOPE)), ("spans", 2, Many(&SPAN)), ("schemaUrl", 3, Text)]);
static SCOPE: Table = Table(&[
    ("name", 1, Text),
    ("version", 2, Text),
    ("attributes", 3, Many(&KEY_VALUE)),
    ("droppedAttributesCount", 4, U32),
]);
static SPAN: Table = Table(&[
    ("traceId", 1, Id(16)),
    ("spanId", 2, Id(8)),
    ("traceState", 3, Text),
    ("parentSpanId", 4, Id(8)),
    ("name", 5, Text),
    ("kind", 6, Enumeration(&KINDS)),
    ("startTimeUnixNano", 7, Fixed64),
    ("endTimeUnixNano", 8, Fixed64),
    ("attributes", 9, Many(&KEY_VALUE)),
    ("droppedAttributesCount", 10, U32),
    ("events", 11, Many(&EVENT)),
    ("droppedEventsCount", 12, U32),
    ("links", 13, Many(&LINK)),
    ("droppedLinksCount", 14, U32),
    ("status", 15, One(&STATUS)),
    ("flags", 16, Fixed32),
]);
static EVENT: Table = Table(&[
    ("timeUnixNano", 1, Fixed64),
    ("name", 2, Text),
    ("attributes", 3, Many(&KEY_VALUE)),
    ("droppedAttributesCount", 4, U32),
]);
static LINK: Table = Table(&[
    ("traceId", 1, Id(16)),
    ("spanId", 2, Id(8)),
    ("traceState", 3, Text),
    ("attributes", 4, Many(&KEY_VALUE)),
    ("droppedAttributesCount", 5, U32),
    ("flags", 6, Fixed32),
]);
static STATUS: Table = Table(&[("message", 2, Text), ("code", 3, Enumeration(&STATUS_CODES))]);
static KEY_VALUE: Table = Table(&[("key", 1, Text), ("value", 2, One(&ANY_VALUE))]);
static ANY_VALUE: Table = Table(&[
    ("stringValue", 1, Text),
    ("boolValue", 2, Bool),
    ("intValue", 3, I64),
    ("doubleValue", DOUBLE_VALUE, Double),
    ("arrayValue", 5, One(&ARRAY)),
    ("kvlistValue", 6, One(&KEY_VALUES)),
    ("bytesValue", 7, Bytes),
]);
static ARRAY: Table = Table(&[("values", 1, Many(&ANY_VALUE))]);
static KEY_VALUES: Table = Table(&[("values", 1, Many(&KEY_VALUE))]);

/// Converts a traces request in JSON to protobuf.
pub fn traces_from_json(text: &[u8]) -> Result<Vec<u8>, ReadError> {
    with_root(text, |root| {
        let mut out = Message::default();
        write(root, &TRACES, &mut out)?;
        Ok(out.bytes)
    })
}

/// Counts the records of a logs request in JSON, and reads their trace ids.
pub fn read_logs_json(text: &[u8]) -> Result<LogRecords, ReadError> {
    with_root(text, log_records)
}

/// Reads the records of a logs request.
pub(super) fn log_records(root: &Node<'_>) -> Result<LogRecords, Mistake> {
    let mut records = LogRecords::default();
    for of_resource in root.get("resourceLogs")?.items()? {
        for of_scope in of_resource.get("scopeLogs")?.items()? {
            for record in of_scope.get("logRecords")?.items()? {
                records.count += 1;
                let id = record.get("traceId")?.id_bytes(16);
                let id = id.and_then(|id| <[u8; 16]>::try_from(id).ok());
                records.traces.extend(id.and_then(TraceId::from_bytes));
            }
        }
    }
    Ok(records)
}

/// Counts the data points of a metrics request in JSON.
pub fn count_metrics_json(text: &[u8]) -> Result<u64, ReadError> {
    const DATA: [&str; 5] = ["gauge", "sum", "histogram", "exponentialHistogram", "summary"];
    with_root(text, |root| {
        let mut points = 0;
        for of_resource in root.get("resourceMetrics")?.items()? {
            for of_scope in of_resource.get("scopeMetrics")?.items()? {
                for metric in of_scope.get("metrics")?.items()? {
                    for data in DATA {
                        points += metric.get(data)?.get("dataPoints")?.items()?.count() as u64;
                    }
                }
            }
        }
        Ok(points)
    })
}

fn with_root<T>(
    text: &[u8],
    read: impl FnOnce(&Node<'_>) -> Result<T, Mistake>,
) -> Result<T, ReadError> {
    let value: Value = serde_json::from_slice(text)
        .map_err(|error| ReadError::Json { reason: error.to_string() })?;
    read(&Node::root(&value)).map_err(|Mistake { path, reason }| ReadError::Content {
        form: Form::Otlp,
        line: 1,
        path,
        reason,
    })
}

/// Encodes a message. Recursion is as deep as JSON may nest.
fn write(object: &Node<'_>, table: &Table, out: &mut Message) -> Result<(), Mistake> {
    for (name, number, content) in table.0 {
        let field = object.get(name)?;
        if field.is_absent() {
            continue;
        }
        match content {
            Text => out.bytes(*number, field.text()?.as_bytes()),
            Texts => {
                for item in field.items()? {
                    out.bytes(*number, item.text()?.as_bytes());
                }
            }
            Id(len) => out.bytes(*number, &field.id_bytes(*len).unwrap_or(NO_ID.to_vec())),
            Bytes => out.bytes(*number, &field.bytes()?),
            Bool => out.number(*number, field.bool()?.into()),
            U32 => out.number(*number, field.whole::<u32>()?.into()),
            I64 => match field.beyond_whole() {
                Some(double) => out.fixed64(DOUBLE_VALUE, double.to_bits()),
                None => out.number(*number, field.whole::<i64>()? as u64),
            },
            Fixed32 => out.some_fixed32(*number, field.whole()?),
            Fixed64 => out.fixed64(*number, field.whole()?),
            Double => out.fixed64(*number, field.double()?.to_bits()),
            Enumeration(names) => {
                out.number(*number, i64::from(field.enumeration(names)?) as u64);
            }
            One(table) => within(&field, *number, table, out)?,
            Many(table) => {
                for item in field.items()? {
                    within(&item, *number, table, out)?;
                }
            }
        }
    }
    Ok(())
}

fn within(object: &Node<'_>, number: u32, table: &Table, out: &mut Message) -> Result<(), Mistake> {
    let mut written = Ok(());
    out.message(number, |out| written = write(object, table, out));
    written
}
