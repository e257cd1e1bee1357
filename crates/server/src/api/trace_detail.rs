//! Spans of the stored trace of a run: one with everything that it has, and those that a selector selects.
//!
//! Deliberately absent: lists of spans, which the columns of the trace are for.

use axum::{
    Extension, Json,
    extract::State,
    http::{StatusCode, header},
    response::{IntoResponse, Response},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use lang::SelectionError;
use model::{
    ErrorCode, Fault, Faulty, Project, RunId, SpanId, Timestamp, Trace,
    trace::{Attributes, Event, Link, Span, ValueRef},
};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::{router::OpenApiRouter, routes};

use super::{openapi, runs::ProjectQuery, traces::TraceSource};
use crate::{
    http::{
        app::App,
        extract::{PathId, PathIds, QueryParams},
        permit::ReaderPermit,
        problem::Problem,
    },
    telemetry::traceparent::TraceParent,
};

/// The maximum number of ids in a selection.
const SELECTED_MAX: usize = 10_000;
/// The maximum length of a selector.
const SELECTOR_BYTES_MAX: usize = 8 * 1024;
/// The maximum number of spans with one id that are returned.
const COPIES_MAX: usize = 100;
/// The maximum size of these spans in OTLP. In JSON they are a few times larger.
const SPANS_BYTES_MAX: usize = 4 << 20;
/// The maximum length of the key of an attribute.
const KEY_BYTES_MAX: usize = 1024;
/// The maximum number of different values of an attribute that are returned, and the maximum length of each.
const VALUES_MAX: usize = 10_000;
const VALUE_BYTES_MAX: usize = 1024;
/// Integers beyond this are texts: a program may read a number of JSON as a double.
const INTEGER_MAX: u64 = 1 << 53;

pub(super) fn routes() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(read)).routes(routes!(select)).routes(routes!(attribute))
}

/// The spans with an id: one, unless a system sent several different ones.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanCopies)]
struct CopyList {
    /// At most 100, in the order in which they arrived.
    spans: Vec<CompleteSpan>,
    /// How many spans have the id.
    total: usize,
}

/// A span with everything that it has.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct CompleteSpan {
    id: String,
    /// Null for a root.
    parent_span_id: Option<String>,
    name: String,
    /// `unspecified`, `internal`, `server`, `client`, `producer`, `consumer` or `other`.
    kind: &'static str,
    /// The `service.name` of its resource; null if that has none.
    service: Option<String>,
    status: StatusDetail,
    /// In nanoseconds since 1970, in decimal.
    start: String,
    /// In nanoseconds since 1970, in decimal.
    end: String,
    attributes: Vec<AttributeDetail>,
    events: Vec<EventDetail>,
    links: Vec<LinkDetail>,
    /// The attributes of the resource.
    resource: Vec<AttributeDetail>,
    scope: ScopeDetail,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanStatus)]
struct StatusDetail {
    /// `unset`, `ok`, `error` or `other`.
    code: &'static str,
    message: String,
}

/// A key and its value.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanAttribute)]
struct AttributeDetail {
    key: String,
    /// `empty`, `bool`, `int`, `double`, `string`, `bytes`, `array` or `map`.
    #[serde(rename = "type")]
    kind: &'static str,
    /// By its type: an integer beyond 2^53 and a double that is no number of JSON are texts, bytes are base64, a map is an object, in which the
    /// last of equal keys counts.
    value: Value,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanEvent)]
struct EventDetail {
    name: String,
    /// In nanoseconds since 1970, in decimal.
    time: String,
    attributes: Vec<AttributeDetail>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanLink)]
struct LinkDetail {
    /// Null if it is invalid.
    trace_id: Option<String>,
    /// Null if it is invalid.
    span_id: Option<String>,
    attributes: Vec<AttributeDetail>,
}

/// The instrumentation scope that created the span.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SpanScope)]
struct ScopeDetail {
    name: String,
    version: String,
}

/// The values of an attribute of all spans.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct AttributeValues {
    /// The different values as texts, at most 10,000 of at most 1,024 bytes; what is not a text is JSON.
    values: Vec<String>,
    /// For each span, in the order of the columns, the number of its value in two bytes, little endian, in base64: 65535 for a span without the attribute,
    /// 65534 for values beyond those.
    spans: String,
}

/// The spans that a selector selects.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct SelectedSpans {
    /// Their ids, in the order of the tree; at most 10,000.
    spans: Vec<String>,
    /// How many it selects.
    total: usize,
    /// Whether it selects more than `spans` has.
    cut: bool,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SelectorQuery {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// A selector of the test language, of at most 8,192 bytes.
    #[param(max_length = 8192)]
    q: String,
}

#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct AttributeQuery {
    /// The project of the run.
    #[serde(default)]
    #[param(schema_with = openapi::word, required = false)]
    project: Project,
    /// The key of an attribute, of at most 1,024 bytes.
    #[param(max_length = 1024)]
    key: String,
}

/// A span of the trace that was judged, with everything that it has.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace/spans/{span}",
    tag = "runs",
    operation_id = "readTraceSpan",
    params(
        ProjectQuery,
        ("run" = inline(openapi::RunId), Path, description = "The run."),
        ("span" = inline(openapi::SpanId), Path, description = "The id of the span, in hexadecimal."),
    ),
    responses((status = 200, description = "The spans with this id: one, almost always.", body = CopyList)),
)]
async fn read(
    State(app): State<App>,
    QueryParams(ProjectQuery { project }): QueryParams<ProjectQuery>,
    Extension(context): Extension<TraceParent>,
    PathIds(id, span): PathIds<RunId, SpanId>,
) -> Result<Response, Problem> {
    let source = TraceSource { app: &app, context, project: &project, id };
    let place = ReaderPermit::take(&app, &project).await;
    let (place, bytes) = source.otlp(place).await?;
    let (place, json) = place.work(move || copies(&bytes, id, span)).await;
    Ok(([(header::CONTENT_TYPE, "application/json")], place.held(json?)).into_response())
}

/// The spans of the trace that was judged that a selector selects.
///
/// A selector that takes more work than a statement of a test may is refused.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace/select",
    tag = "runs",
    operation_id = "selectTraceSpans",
    params(SelectorQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses((status = 200, description = "The ids of the spans.", body = SelectedSpans)),
)]
async fn select(
    State(app): State<App>,
    QueryParams(SelectorQuery { project, q }): QueryParams<SelectorQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Json<SelectedSpans>, Problem> {
    if q.len() > SELECTOR_BYTES_MAX {
        let detail = format!("`q` has more than {SELECTOR_BYTES_MAX} bytes");
        return Err(Problem::new(Fault::Invalid, detail).with_code(ErrorCode::TooLarge));
    }
    let source = TraceSource { app: &app, context, project: &project, id };
    let place = ReaderPermit::take(&app, &project).await;
    let (place, trace) = source.decoded(place).await?;
    let (_place, selected) = place.work(move || selected(&q, &trace)).await;
    selected.map(Json)
}

/// The values of an attribute of all spans, to group them: that of the span, else that of its resource.
#[utoipa::path(
    get,
    path = "/api/v1/runs/{run}/trace/attribute",
    tag = "runs",
    operation_id = "readTraceAttribute",
    params(AttributeQuery, ("run" = inline(openapi::RunId), Path, description = "The run.")),
    responses((status = 200, description = "The values.", body = AttributeValues)),
)]
async fn attribute(
    State(app): State<App>,
    QueryParams(AttributeQuery { project, key }): QueryParams<AttributeQuery>,
    Extension(context): Extension<TraceParent>,
    PathId(id): PathId<RunId>,
) -> Result<Json<AttributeValues>, Problem> {
    if key.len() > KEY_BYTES_MAX {
        let detail = format!("`key` has more than {KEY_BYTES_MAX} bytes");
        return Err(Problem::new(Fault::Invalid, detail).with_code(ErrorCode::TooLarge));
    }
    let source = TraceSource { app: &app, context, project: &project, id };
    let place = ReaderPermit::take(&app, &project).await;
    let (place, trace) = source.decoded(place).await?;
    let read = move || {
        let column = otlp::attribute_column(&trace, &key, VALUES_MAX, value_text);
        let bytes: Vec<u8> = column.spans.iter().flat_map(|it| it.to_le_bytes()).collect();
        AttributeValues { values: column.values, spans: STANDARD.encode(bytes) }
    };
    Ok(Json(place.work(read).await.1))
}

/// Returns a value as text, cut to its maximum length.
fn value_text(value: ValueRef<'_>) -> String {
    let text = match json(value) {
        Value::String(text) => text,
        value => value.to_string(),
    };
    match text.char_indices().take_while(|(at, it)| at + it.len_utf8() <= VALUE_BYTES_MAX).last() {
        Some((at, last)) if text.len() > VALUE_BYTES_MAX => {
            format!("{}…", &text[..at + last.len_utf8()])
        }
        _ => text,
    }
}

/// Evaluates a selector, within the budget of a judgement.
fn selected(selector: &str, trace: &Trace) -> Result<SelectedSpans, Problem> {
    let selected = lang::select_within_budget(selector, trace).map_err(|error| match error {
        SelectionError::Invalid(diagnostics) => Problem::document(&diagnostics),
        SelectionError::TooMuchWork(reason) => {
            let detail = format!("the selector is not evaluated: {reason}");
            Problem::new(Fault::Invalid, detail).with_status(StatusCode::UNPROCESSABLE_ENTITY)
        }
    })?;
    let first = selected.iter().take(SELECTED_MAX);
    Ok(SelectedSpans {
        spans: first.map(|ix| trace.span(*ix).id().to_string()).collect(),
        total: selected.len(),
        cut: selected.len() > SELECTED_MAX,
    })
}

/// Returns the spans with this id, as JSON.
fn copies(message: &[u8], run: RunId, id: SpanId) -> Result<Vec<u8>, Problem> {
    let found = otlp::find(message, id).map_err(|error| {
        let detail = format!("the trace of the run `{run}` cannot be read: {error}");
        Problem::new(error.fault(), detail)
    })?;
    let found = found.ok_or_else(|| {
        Problem::new(Fault::Missing, format!("the trace of the run `{run}` has no span `{id}`"))
    })?;
    if otlp::encode(&found).len() > SPANS_BYTES_MAX {
        let detail = format!(
            "the span `{id}` has more than {SPANS_BYTES_MAX} bytes: read the trace as OTLP"
        );
        let problem = Problem::new(Fault::Invalid, detail);
        return Err(problem.with_status(StatusCode::PAYLOAD_TOO_LARGE));
    }
    let spans = found.spans().take(COPIES_MAX).map(CompleteSpan::from).collect();
    let copies = CopyList { spans, total: found.len() };
    serde_json::to_vec(&copies).map_err(|error| Problem::new(Fault::Internal, error.to_string()))
}

impl From<Span<'_>> for CompleteSpan {
    fn from(span: Span<'_>) -> Self {
        let resource = span.resource().attributes();
        let service = match resource.get("service.name") {
            Some(ValueRef::Str(name)) => Some(name.to_owned()),
            _ => None,
        };
        let message = span.status_message().to_owned();
        let (name, version) = (span.scope().name().to_owned(), span.scope().version().to_owned());
        Self {
            id: span.id().to_string(),
            parent_span_id: span.parent().map(|id| id.to_string()),
            name: span.name().to_owned(),
            kind: span.kind().as_str(),
            service,
            status: StatusDetail { code: span.status().as_str(), message },
            start: nanoseconds(span.start()),
            end: nanoseconds(span.end()),
            attributes: attributes(span.attributes()),
            events: span.events().map(EventDetail::from).collect(),
            links: span.links().map(LinkDetail::from).collect(),
            resource: attributes(resource),
            scope: ScopeDetail { name, version },
        }
    }
}

impl From<Event<'_>> for EventDetail {
    fn from(event: Event<'_>) -> Self {
        let attributes = attributes(event.attributes());
        Self { name: event.name().to_owned(), time: nanoseconds(event.at()), attributes }
    }
}

impl From<Link<'_>> for LinkDetail {
    fn from(link: Link<'_>) -> Self {
        Self {
            trace_id: link.trace_id().map(|id| id.to_string()),
            span_id: link.span_id().map(|id| id.to_string()),
            attributes: attributes(link.attributes()),
        }
    }
}

fn nanoseconds(at: Timestamp) -> String {
    at.as_nanos().to_string()
}

fn attributes(attributes: Attributes<'_>) -> Vec<AttributeDetail> {
    let attribute = |(key, value): (&str, ValueRef<'_>)| AttributeDetail {
        key: key.to_owned(),
        kind: kind(value),
        value: json(value),
    };
    attributes.iter().map(attribute).collect()
}

fn kind(value: ValueRef<'_>) -> &'static str {
    match value {
        ValueRef::Empty => "empty",
        ValueRef::Bool(_) => "bool",
        ValueRef::Int(_) => "int",
        ValueRef::Double(_) => "double",
        ValueRef::Str(_) => "string",
        ValueRef::Bytes(_) => "bytes",
        ValueRef::Array(_) => "array",
        ValueRef::Map(_) => "map",
    }
}

/// Recursion is as deep as the value, which the decoder limits.
fn json(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::Empty => Value::Null,
        ValueRef::Bool(value) => Value::Bool(value),
        ValueRef::Int(number) if number.unsigned_abs() > INTEGER_MAX => {
            Value::String(number.to_string())
        }
        ValueRef::Int(number) => Value::from(number),
        ValueRef::Double(number) if number.is_finite() => Value::from(number),
        // As JavaScript writes it.
        ValueRef::Double(number) => Value::String(number.to_string().replace("inf", "Infinity")),
        ValueRef::Str(text) => Value::String(text.to_owned()),
        ValueRef::Bytes(bytes) => Value::String(STANDARD.encode(bytes)),
        ValueRef::Array(values) => values.iter().map(json).collect(),
        ValueRef::Map(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.to_owned(), json(value)));
            Value::Object(entries.collect())
        }
    }
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Trace, TraceId,
        trace::{SpanData, Value as TraceValue},
    };
    use serde_json::json;

    use super::CompleteSpan;

    #[test]
    fn each_type_of_value_has_its_form() {
        let cases = [
            (TraceValue::Empty, "empty", json!(null)),
            (TraceValue::Bool(true), "bool", json!(true)),
            (TraceValue::Int(-(1 << 53)), "int", json!(-9_007_199_254_740_992_i64)),
            (TraceValue::Int((1 << 53) + 1), "int", json!("9007199254740993")),
            (TraceValue::Int(i64::MIN), "int", json!("-9223372036854775808")),
            (TraceValue::Double(1.5), "double", json!(1.5)),
            (TraceValue::Double(f64::NAN), "double", json!("NaN")),
            (TraceValue::Double(f64::NEG_INFINITY), "double", json!("-Infinity")),
            (TraceValue::Str("a\u{0}\"".to_owned()), "string", json!("a\u{0}\"")),
            (TraceValue::Bytes(vec![0xff, 0]), "bytes", json!("/wA=")),
            (
                TraceValue::Array(vec![TraceValue::Int(1), TraceValue::Str("b".to_owned())]),
                "array",
                json!([1, "b"]),
            ),
            (
                TraceValue::Map(vec![
                    ("k".to_owned(), TraceValue::Int(1)),
                    ("k".to_owned(), TraceValue::Int(2)),
                ]),
                "map",
                json!({"k": 2}),
            ),
        ];
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
        let resource = trace.resource(Default::default()).expect("room");
        let scope = trace.scope(Default::default()).expect("room");
        let values = cases.iter().map(|(value, ..)| ("a".to_owned(), value.clone()));
        let id = SpanId::from_bytes([1; 8]).expect("an id");
        let data = SpanData { attributes: values.collect(), ..SpanData::new(id, None, "a") };
        trace.push(resource, scope, data).expect("room");
        let span = CompleteSpan::from(trace.find(id).expect("it was pushed"));
        assert_eq!(span.attributes.len(), cases.len());
        for (found, (_, kind, value)) in span.attributes.iter().zip(cases) {
            assert_eq!((found.kind, &found.value), (kind, &value));
        }
    }
}
