//! The tables of the exporter, and the rows that it writes.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt, Full};
use model::{Timestamp, Trace, trace::Value};
use net::{HttpClient, HttpVersion, tls};
use serde_json::{Map, json};

use super::MAP;
use crate::sample::{as_json, as_text};

/// Executes a statement.
pub(super) async fn execute(url: &str, statement: &str) {
    let tls = tls::anonymous(Arc::new(tls::RootCertStore::empty()), &[]);
    let client = HttpClient::new(tls, HttpVersion::Http1, Duration::ZERO);
    let mut request = Request::new(Full::new(Bytes::from(statement.to_owned())));
    *request.method_mut() = Method::POST;
    *request.uri_mut() = format!("{url}/").parse().expect("a URL");
    let (head, body) = client.send(request).await.expect("an answer").into_parts();
    let body = body.collect().await.expect("an answer").to_bytes();
    assert_eq!(head.status, StatusCode::OK, "{}", String::from_utf8_lossy(&body));
}

pub(super) fn quoted(index: &str) -> String {
    index.split('.').map(|part| format!("`{part}`")).collect::<Vec<_>>().join(".")
}

/// Creates a table as the exporter does, without indices.
pub(super) async fn create(url: &str, index: &str, attributes: &str) {
    let columns = include_str!("columns.sql").replace("KIND", attributes);
    let table = quoted(index);
    execute(
        url,
        &format!(
            "CREATE TABLE IF NOT EXISTS {table} ({columns}) ENGINE = MergeTree PARTITION BY toDate(Timestamp) \
             ORDER BY (ServiceName, SpanName, toDateTime(Timestamp)) \
             SETTINGS index_granularity = 256"
        ),
    )
    .await;
}

/// Creates the table with the times of every trace, and the view that fills it.
pub(super) async fn create_lookup(url: &str, index: &str) {
    let (table, lookup) = (quoted(index), quoted(&format!("{index}_trace_id_ts")));
    let view = quoted(&format!("{index}_trace_id_ts_mv"));
    execute(
        url,
        &format!(
            "CREATE TABLE IF NOT EXISTS {lookup} (TraceId String, Start DateTime, End DateTime) ENGINE = MergeTree \
             PARTITION BY toDate(Start) ORDER BY (TraceId, Start)"
        ),
    )
    .await;
    let times = "TraceId, min(Timestamp) AS Start, max(Timestamp) AS End";
    execute(
        url,
        &format!(
            "CREATE MATERIALIZED VIEW IF NOT EXISTS {view} TO {lookup} AS SELECT {times} FROM {table} \
             WHERE TraceId != '' GROUP BY TraceId"
        ),
    )
    .await;
}

/// Returns the statement that writes a trace as the exporter does.
pub(super) fn insert(trace: &Trace, index: &str) -> String {
    let attributes = |pairs: &[(String, Value)]| -> serde_json::Value {
        let value = |it| if index == MAP { as_text(it).into() } else { as_json(it) };
        pairs.iter().map(|(key, it)| (key.clone(), value(it))).collect::<Map<_, _>>().into()
    };
    let mut statement = format!("INSERT INTO {} FORMAT JSONEachRow\n", quoted(index));
    for span in trace.spans() {
        let (resource, scope, span) =
            (span.resource().to_data(), span.scope().to_data(), span.to_data());
        let service = resource.attributes.iter().find(|(key, _)| key == "service.name");
        let events = || span.events.iter();
        let links = || span.links.iter();
        let list = |it: &mut dyn Iterator<Item = serde_json::Value>| it.collect::<Vec<_>>();
        let row = json!({
            "Timestamp": time(span.start),
            "TraceId": trace.id().to_string(),
            "SpanId": span.id.to_string(),
            "ParentSpanId": span.parent.map_or_else(String::new, |it| it.to_string()),
            "TraceState": span.trace_state,
            "SpanName": span.name,
            "SpanKind": format!("{:?}", span.kind),
            "ServiceName": service.map_or_else(String::new, |(_, it)| as_text(it)),
            "ResourceAttributes": attributes(&resource.attributes),
            "ScopeName": scope.name,
            "ScopeVersion": scope.version,
            "SpanAttributes": attributes(&span.attributes),
            "Duration": span.end.as_nanos().wrapping_sub(span.start.as_nanos()),
            "StatusCode": format!("{:?}", span.status.code),
            "StatusMessage": span.status.message,
            "Events.Timestamp": list(&mut events().map(|it| time(it.at).into())),
            "Events.Name": list(&mut events().map(|it| it.name.clone().into())),
            "Events.Attributes": list(&mut events().map(|it| attributes(&it.attributes))),
            "Links.TraceId": list(&mut links().map(|it| it.trace_id.map(|id| id.to_string()).into())),
            "Links.SpanId": list(&mut links().map(|it| it.span_id.map(|id| id.to_string()).into())),
            "Links.TraceState": list(&mut links().map(|it| it.trace_state.clone().into())),
            "Links.Attributes": list(&mut links().map(|it| attributes(&it.attributes))),
        });
        statement.push_str(&row.to_string());
        statement.push('\n');
    }
    statement
}

fn time(at: Timestamp) -> String {
    format!("{}.{:09}", at.as_secs(), at.as_nanos() % 1_000_000_000)
}
