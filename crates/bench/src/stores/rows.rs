//! Spans as rows of the table that the Collector's exporter for ClickHouse writes.
//!
//! The exporter itself cannot be used: it inserts binary blocks of a protocol version that the HTTP front of the tests does not
//! have.

use std::sync::Arc;

use anyhow::{Result, ensure};
use axum::{Json, Router, extract::State, http::StatusCode, routing::post};
use reqwest::Client;
use serde_json::{Map, Value, json};
use tokio::{net::TcpListener, task::JoinSet};

/// The database of the table.
pub(super) const DATABASE: &str = "demo";

/// The columns with which the tests of the driver create the table.
const COLUMNS: &str = include_str!("../../../drivers/tests/stores/clickhouse/columns.sql");

/// The type of attributes.
const ATTRIBUTES: &str = "Map(LowCardinality(String), String)";

const KINDS: [&str; 6] = ["Unspecified", "Internal", "Server", "Client", "Producer", "Consumer"];
const STATUSES: [&str; 3] = ["Unset", "Ok", "Error"];

/// An OTLP receiver that inserts what it receives. It ends with this value.
pub(super) struct RowWriter {
    port: u16,
    _tasks: JoinSet<()>,
}

struct SpanTable {
    client: Client,
    url: String,
}

impl RowWriter {
    /// Creates the table at this URL, and starts.
    pub(super) async fn start(url: &str) -> Result<Self> {
        let table = SpanTable { client: Client::new(), url: format!("{url}/") };
        table.execute(format!("CREATE DATABASE IF NOT EXISTS {DATABASE}")).await?;
        let columns = COLUMNS.replace("KIND", ATTRIBUTES);
        let statement = format!(
            "CREATE TABLE IF NOT EXISTS {DATABASE}.otel_traces ({columns}) ENGINE = MergeTree \
             ORDER BY (ServiceName, SpanName, toDateTime(Timestamp))"
        );
        table.execute(statement).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let router = Router::new().route("/v1/traces", post(receive)).with_state(Arc::new(table));
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { port, _tasks: tasks })
    }

    pub(super) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }
}

impl SpanTable {
    async fn execute(&self, statement: String) -> Result<()> {
        let answer = self.client.post(&self.url).body(statement).send().await?;
        let is_done = answer.status().is_success();
        ensure!(is_done, "{}", answer.text().await?);
        Ok(())
    }
}

/// Inserts a request. The Collector repeats one that fails.
async fn receive(
    State(table): State<Arc<SpanTable>>,
    Json(request): Json<Value>,
) -> Result<Json<Value>, (StatusCode, String)> {
    let rows: Vec<_> = list(&request, "resourceSpans").flat_map(rows_of).collect();
    let lines = rows.iter().map(|row| format!("{row}\n")).collect::<String>();
    let statement = format!("INSERT INTO {DATABASE}.otel_traces FORMAT JSONEachRow\n{lines}");
    let failed = |error: anyhow::Error| (StatusCode::SERVICE_UNAVAILABLE, error.to_string());
    table.execute(statement).await.map_err(failed)?;
    Ok(Json(json!({})))
}

fn rows_of(resource: &Value) -> impl Iterator<Item = Value> {
    let attributes = texts(&resource["resource"]);
    list(resource, "scopeSpans").flat_map(move |scope| {
        let attributes = attributes.clone();
        list(scope, "spans").map(move |span| row(span, &scope["scope"], &attributes))
    })
}

fn row(span: &Value, scope: &Value, resource: &Map<String, Value>) -> Value {
    let at = |of: &Value, key: &str| nanos(&of[key]);
    let (start, end) = (at(span, "startTimeUnixNano"), at(span, "endTimeUnixNano"));
    let named = |names: &[&'static str], code: &Value| {
        names[code.as_u64().unwrap_or(0) as usize % names.len()]
    };
    let column =
        |of: &str, value: &dyn Fn(&Value) -> Value| list(span, of).map(value).collect::<Vec<_>>();
    json!({
        "Timestamp": time(start),
        "TraceId": span["traceId"],
        "SpanId": span["spanId"],
        "ParentSpanId": text(&span["parentSpanId"]),
        "TraceState": text(&span["traceState"]),
        "SpanName": span["name"],
        "SpanKind": named(&KINDS, &span["kind"]),
        "ServiceName": resource.get("service.name").map_or("", |it| text(it)),
        "ResourceAttributes": resource,
        "ScopeName": text(&scope["name"]),
        "ScopeVersion": text(&scope["version"]),
        "SpanAttributes": texts(span),
        "Duration": end.saturating_sub(start),
        "StatusCode": named(&STATUSES, &span["status"]["code"]),
        "StatusMessage": text(&span["status"]["message"]),
        "Events.Timestamp": column("events", &|it| time(at(it, "timeUnixNano")).into()),
        "Events.Name": column("events", &|it| it["name"].clone()),
        "Events.Attributes": column("events", &|it| texts(it).into()),
        "Links.TraceId": column("links", &|it| it["traceId"].clone()),
        "Links.SpanId": column("links", &|it| it["spanId"].clone()),
        "Links.TraceState": column("links", &|it| text(&it["traceState"]).into()),
        "Links.Attributes": column("links", &|it| texts(it).into()),
    })
}

/// Returns the attributes of a message; every value is a text.
fn texts(of: &Value) -> Map<String, Value> {
    let pairs = list(of, "attributes").map(|pair| {
        let value = pair["value"].as_object().and_then(|it| it.values().next());
        let value = match value {
            Some(Value::String(text)) => text.clone(),
            value => value.map_or_else(String::new, Value::to_string),
        };
        (text(&pair["key"]).to_owned(), value.into())
    });
    pairs.collect()
}

fn list<'a>(of: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> + use<'a> {
    of[key].as_array().into_iter().flatten()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

/// Reads a time, which is a text in OTLP's JSON.
fn nanos(value: &Value) -> u64 {
    text(value).parse().unwrap_or_default()
}

fn time(nanos: u64) -> String {
    format!("{}.{:09}", nanos / 1_000_000_000, nanos % 1_000_000_000)
}
