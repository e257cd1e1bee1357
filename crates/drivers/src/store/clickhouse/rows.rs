//! Translates the rows of a table into spans.

use std::{fmt, str::FromStr};

use model::{
    InvalidId, SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use serde::{
    Deserialize, Deserializer,
    de::{MapAccess, SeqAccess, Visitor},
};

use super::{answer::SettingsRow, schema::AttributeColumns};

/// The answer about a trace, which is one row.
#[derive(Debug, Deserialize)]
pub(super) struct TraceRow {
    count: String,
    rows: Vec<TableRow>,
    pub(super) settings: SettingsRow,
}

/// A row of the table, in the order of the columns in the statement.
#[derive(Debug, Deserialize)]
struct TableRow {
    id: String,
    parent: String,
    trace_state: String,
    name: String,
    kind: String,
    start_nanos: String,
    duration_nanos: String,
    status: String,
    status_message: String,
    scope: String,
    scope_version: String,
    resource_attributes: Json,
    attributes: Json,
    event_nanos: Vec<String>,
    event_names: Vec<String>,
    event_attributes: Vec<Json>,
    link_traces: Vec<String>,
    link_spans: Vec<String>,
    link_states: Vec<String>,
    link_attributes: Vec<Json>,
}

/// A value of JSON. An object may have a key twice: a `JSON` column writes the attributes `a` and `a.b` as two keys `a`.
#[derive(Debug)]
struct Json(Value);

/// Returns the spans of an answer, and why the answer lacks some, if it does. Fails if the answer is not what the statement selects.
pub(super) fn translate(
    row: TraceRow,
    trace: TraceId,
    columns: AttributeColumns,
) -> Result<(Trace, Option<String>), String> {
    let TraceRow { count, rows, .. } = row;
    if count != rows.len().to_string() {
        return Err(format!("its answer has {} of {count} rows", rows.len()));
    }
    let (mut spans, mut unreadable) = (Vec::new(), Vec::new());
    for row in rows {
        match translated(row, columns) {
            Ok(span) => spans.push(span),
            Err(why) => unreadable.push(why),
        }
    }
    // ClickHouse returns rows in any order, and equal answers must be equal here.
    spans.sort_by(|one, other| {
        let key = |(_, _, span): &Translation| (span.id, span.start, span.end);
        // Versions of a span are rare, so that their texts may cost something.
        let text = |span: &Translation| format!("{span:?}");
        key(one).cmp(&key(other)).then_with(|| text(one).cmp(&text(other)))
    });
    let mut found = Trace::new(trace);
    for (resource, scope, span) in spans {
        let full = |error: model::trace::TraceFull| error.to_string();
        let resource = found.resource(resource).map_err(full)?;
        let scope = found.scope(scope).map_err(full)?;
        // The exporter repeats an insert that failed: equal spans are one.
        found.push(resource, scope, span).map_err(full)?;
    }
    let reason = unreadable
        .iter()
        .min()
        .map(|why| format!("{} of {count} rows cannot be read: {why}", unreadable.len()));
    Ok((found, reason))
}

/// A span with its resource and scope.
type Translation = (ResourceData, ScopeData, SpanData);

fn translated(row: TableRow, columns: AttributeColumns) -> Result<Translation, String> {
    let attributes = |Json(value)| attributes(value, columns);
    let resource = ResourceData {
        attributes: attributes(row.resource_attributes)?,
        ..ResourceData::default()
    };
    let scope = ScopeData { name: row.scope, version: row.scope_version, ..ScopeData::default() };
    let span_id: SpanId = id(&row.id)?.ok_or_else(|| format!("a span `{}` has no id", row.name))?;
    let mut span = SpanData::new(span_id, id(&row.parent)?, row.name);
    span.trace_state = row.trace_state;
    span.kind = kind(&row.kind)?;
    span.start = time(&row.start_nanos)?;
    span.end = Timestamp::from_nanos(
        span.start.as_nanos().wrapping_add(duration_nanos(&row.duration_nanos)?),
    );
    span.attributes = attributes(row.attributes)?;
    span.status = Status { code: code(&row.status)?, message: row.status_message };
    let [events, links] = [row.event_nanos.len(), row.link_traces.len()];
    let is_even = [row.event_names.len(), row.event_attributes.len()] == [events; 2]
        && [row.link_spans.len(), row.link_states.len(), row.link_attributes.len()] == [links; 3];
    if !is_even {
        return Err(format!(
            "the columns of the events or links of span {span_id} have different lengths"
        ));
    }
    let names = row.event_names.into_iter().zip(row.event_attributes);
    for (at, (name, values)) in row.event_nanos.iter().zip(names) {
        let (at, attributes) = (time(at)?, attributes(values)?);
        span.events.push(EventData { at, name, attributes, ..EventData::default() });
    }
    let states = row.link_states.into_iter().zip(row.link_attributes);
    for ((trace, span_of), (trace_state, values)) in
        row.link_traces.iter().zip(&row.link_spans).zip(states)
    {
        span.links.push(LinkData {
            trace_id: id(trace)?,
            span_id: id(span_of)?,
            trace_state,
            attributes: attributes(values)?,
            ..LinkData::default()
        });
    }
    Ok((resource, scope, span))
}

fn id<T: FromStr<Err = InvalidId>>(text: &str) -> Result<Option<T>, String> {
    match text {
        "" => Ok(None),
        text => text.parse().map(Some).map_err(|error: InvalidId| error.to_string()),
    }
}

fn time(nanos: &str) -> Result<Timestamp, String> {
    nanos.parse().map(Timestamp::from_nanos).map_err(|_| format!("`{nanos}` is not a time in ns"))
}

/// The exporter subtracts without regard to the sign; tables of older versions have a sign.
fn duration_nanos(text: &str) -> Result<u64, String> {
    let signed = |_| text.parse().map(i64::cast_unsigned);
    text.parse().or_else(signed).map_err(|_| format!("`{text}` is not a duration in ns"))
}

fn kind(text: &str) -> Result<Kind, String> {
    let kinds = [
        Kind::Unspecified,
        Kind::Internal,
        Kind::Server,
        Kind::Client,
        Kind::Producer,
        Kind::Consumer,
    ];
    // `Server`, and `SPAN_KIND_SERVER` of older versions.
    let word = text.trim_start_matches("SPAN_KIND_");
    let found = kinds.into_iter().find(|kind| kind.as_str().eq_ignore_ascii_case(word));
    found.ok_or_else(|| format!("`{}` is not a kind of span", text.escape_debug()))
}

fn code(text: &str) -> Result<StatusCode, String> {
    let word = text.trim_start_matches("STATUS_CODE_");
    let codes = [StatusCode::Unset, StatusCode::Ok, StatusCode::Error];
    let found = codes.into_iter().find(|code| code.as_str().eq_ignore_ascii_case(word));
    found.ok_or_else(|| format!("`{}` is not a status code", text.escape_debug()))
}

/// Returns the attributes in an object, sorted.
fn attributes(value: Value, columns: AttributeColumns) -> Result<Vec<(String, Value)>, String> {
    let Value::Map(entries) = value else {
        return Err("a column of attributes is not an object".to_owned());
    };
    let mut attributes = match columns {
        AttributeColumns::Map => entries,
        AttributeColumns::Json => paths(entries),
    };
    attributes.sort_by(|(one, _), (other, _)| one.cmp(other));
    Ok(attributes)
}

/// Returns each path of an object as a key: a `JSON` column does not distinguish the key `a.b` from a map `a` with a key `b`.
fn paths(entries: Vec<(String, Value)>) -> Vec<(String, Value)> {
    let mut found = Vec::with_capacity(entries.len());
    for (key, value) in entries {
        match value {
            Value::Map(inner) => {
                let inner = paths(inner).into_iter();
                found.extend(inner.map(|(path, value)| (format!("{key}.{path}"), value)));
            }
            Value::Array(values) => {
                found.push((key, Value::Array(values.into_iter().map(paths_in).collect())));
            }
            value => found.push((key, value)),
        }
    }
    found
}

fn paths_in(value: Value) -> Value {
    match value {
        Value::Map(entries) => Value::Map(paths(entries)),
        Value::Array(values) => Value::Array(values.into_iter().map(paths_in).collect()),
        value => value,
    }
}

impl<'de> Deserialize<'de> for Json {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(JsonVisitor).map(Self)
    }
}

struct JsonVisitor;

impl<'de> Visitor<'de> for JsonVisitor {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a value of JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Empty)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Int(value))
    }

    /// Beyond the integers of OTLP it was a double, which the exporter writes without a fraction.
    #[expect(clippy::cast_precision_loss, reason = "it was a double")]
    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(i64::try_from(value).map_or(Value::Double(value as f64), Value::Int))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Value::Double(value))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::Str(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut values: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some(Json(value)) = values.next_element()? {
            found.push(value);
        }
        Ok(Value::Array(found))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Value, A::Error> {
        let mut found = Vec::new();
        while let Some((key, Json(value))) = entries.next_entry()? {
            found.push((key, value));
        }
        Ok(Value::Map(found))
    }
}
