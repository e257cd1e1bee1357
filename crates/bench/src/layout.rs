//! The memory cost of a span: the layout of `model::Trace` compared with the structs that prost decodes into.
//!
//! Each is filled in its own process, so that neither reuses memory that the other freed.

use std::{fs, hint::black_box};

use anyhow::{Context, Result, ensure};
use model::{Trace, TraceId};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData, span::Event},
};
use prost::Message;
use tokio::process::Command;

use crate::table::Row;

/// The size that the layout is designed for.
const SPANS: u64 = 1_000_000;
/// Spans of one message.
const BATCH: u64 = 500;
/// Services in the trace.
const SERVICES: u64 = 3;

/// Measures both, each in its own process.
pub async fn measure() -> Result<Vec<Row>> {
    let wire = (0..SPANS / BATCH).map(|batch| message(batch).len()).sum::<usize>();
    let model = alone("layout:model").await?;
    let prost = alone("layout:prost").await?;
    let row = |name: &str, value: f64, unit| Row { name: name.to_owned(), value, unit, goal: None };
    let spans = SPANS as f64;
    Ok(vec![
        row("spans in the trace", spans, "spans"),
        row("on the wire", wire as f64 / spans, "bytes/span"),
        row("model::Trace, resident", model / spans, "bytes/span"),
        row("prost structs, resident", prost / spans, "bytes/span"),
        row("model::Trace over prost structs", model / prost, "ratio"),
    ])
}

/// Fills one of the two, and returns by how many bytes the process grew.
pub fn fill(kind: &str) -> Result<f64> {
    let before = resident()?;
    let after = match kind {
        "model" => {
            let id = TraceId::from_bytes([7; 16]).context("an id")?;
            let mut trace = Trace::new(id);
            for batch in 0..SPANS / BATCH {
                otlp::append(&mut trace, &message(batch))?;
            }
            ensure!(trace.len() as u64 == SPANS, "every span is in the trace");
            let after = resident()?;
            black_box(trace);
            after
        }
        _ => {
            let mut decoded = Vec::new();
            for batch in 0..SPANS / BATCH {
                decoded.push(TracesData::decode(message(batch).as_slice())?);
            }
            let after = resident()?;
            black_box(decoded);
            after
        }
    };
    Ok(after - before)
}

async fn alone(name: &str) -> Result<f64> {
    let output = Command::new(std::env::current_exe()?).arg(name).output().await?;
    ensure!(output.status.success(), "`{name}` failed");
    Ok(String::from_utf8(output.stdout)?.trim().parse()?)
}

/// Returns the resident memory of this process in bytes.
pub(crate) fn resident() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).context("a resident size")?;
    let kibibytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kibibytes * 1024.0)
}

/// Encodes one export of a service: spans with eight attributes of every plain kind and one event.
fn message(batch: u64) -> Vec<u8> {
    let service = batch % SERVICES;
    let resource = Resource {
        attributes: (0..6)
            .map(|n| text(&format!("resource.key.{n}"), format!("service-{service} value {n}")))
            .collect(),
        ..Resource::default()
    };
    let scope = InstrumentationScope {
        name: "instrumentation".to_owned(),
        version: "1.2.3".to_owned(),
        ..InstrumentationScope::default()
    };
    let spans = (batch * BATCH..(batch + 1) * BATCH).map(span).collect();
    let scope_spans = ScopeSpans { scope: Some(scope), spans, schema_url: String::new() };
    let resource_spans = ResourceSpans {
        resource: Some(resource),
        scope_spans: vec![scope_spans],
        schema_url: "https://opentelemetry.io/schemas/1.37.0".to_owned(),
    };
    TracesData { resource_spans: vec![resource_spans] }.encode_to_vec()
}

fn span(number: u64) -> Span {
    let start = 1_800_000_000_000_000_000 + number * 1000;
    Span {
        trace_id: vec![7; 16],
        span_id: (number + 1).to_be_bytes().to_vec(),
        parent_span_id: (number / 10 + 1).to_be_bytes().to_vec(),
        name: format!("GET /items/{}", number % 40),
        kind: 2,
        start_time_unix_nano: start,
        end_time_unix_nano: start + 750,
        attributes: vec![
            text("http.request.method", "GET".to_owned()),
            text("http.route", format!("/items/{}", number % 40)),
            text("server.address", "shop.internal".to_owned()),
            text("user.id", format!("user-{number}")),
            attribute("http.response.status_code", Value::IntValue(200)),
            attribute("http.response.body.size", Value::IntValue(number as i64)),
            attribute("cache.ratio", Value::DoubleValue(number as f64 / 7.0)),
            attribute("cache.hit", Value::BoolValue(number.is_multiple_of(2))),
        ],
        events: vec![Event {
            time_unix_nano: start + 10,
            name: "cache lookup".to_owned(),
            ..Event::default()
        }],
        ..Span::default()
    }
}

fn text(key: &str, value: String) -> KeyValue {
    attribute(key, Value::StringValue(value))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue {
        key: key.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}
