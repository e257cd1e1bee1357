//! Malformed requests, generated from their numbers.

use std::io::Write;

use anyhow::Result;
use flate2::{Compression, write::GzEncoder};
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, any_value::Value},
    logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    metrics::v1::{Gauge, Metric, NumberDataPoint, ResourceMetrics, ScopeMetrics, metric::Data},
};
use prost::Message;

use super::super::load::{RUNS, trace_of};
use crate::{decode, lang::chance::Dice};

/// The upper bound of a mutated body.
const BODY_BYTES_MAX: usize = 64 * 1024;
/// One request in this number is not HTTP.
const RAW_ONE_IN: usize = 100;

const SIGNALS: [&str; 3] = ["traces", "logs", "metrics"];
const SERVICES: [&str; 3] = ["trace.v1.Trace", "logs.v1.Logs", "metrics.v1.Metrics"];
#[rustfmt::skip]
const TYPES: [&str; 9] = [
    "application/x-protobuf", "application/json", "application/grpc", "application/grpc+proto", "application/grpc+json",
    "application/json; charset=utf-8", "text/plain", "", "\u{1f980}",
];
const PACKINGS: [&str; 6] = ["gzip", "zstd", "identity", "br", "", "gzip, gzip"];
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Valid exports: for each signal some in protobuf and some in JSON.
pub(super) struct Pool {
    protobuf: [Vec<Vec<u8>>; 3],
    json: [Vec<Vec<u8>>; 3],
}

/// A request.
pub(super) enum Broken {
    Call(Request),
    Http1(Request),
    Http2(Request),
    Raw(Vec<u8>),
}

pub(super) struct Request {
    pub(super) method: &'static str,
    pub(super) path: String,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    pub(super) body: Vec<u8>,
}

impl Pool {
    pub(super) fn new() -> Result<Self> {
        let mut traces = Vec::new();
        for run in 0..RUNS {
            let bytes = decode::request(0, 1 + 7 * run as u64);
            let mut request = ExportTraceServiceRequest::decode(bytes.as_slice())?;
            let scopes = request.resource_spans.iter_mut().flat_map(|it| &mut it.scope_spans);
            for (number, span) in scopes.flat_map(|scope| &mut scope.spans).enumerate() {
                // A third of the spans belong to a run, the rest are foreign.
                if number % 3 == 0 {
                    span.trace_id = trace_of(run).as_bytes().to_vec();
                }
            }
            traces.push(request.encode_to_vec());
        }
        let text = AnyValue { value: Some(Value::StringValue("stock is low".to_owned())) };
        let record = LogRecord { body: Some(text), ..LogRecord::default() };
        let scope = ScopeLogs { log_records: vec![record; 9], ..ScopeLogs::default() };
        let logs = ResourceLogs { scope_logs: vec![scope], ..ResourceLogs::default() };
        let logs = ExportLogsServiceRequest { resource_logs: vec![logs] };
        let data = Data::Gauge(Gauge { data_points: vec![NumberDataPoint::default(); 5] });
        let metric = Metric { name: "stock".to_owned(), data: Some(data), ..Metric::default() };
        let scope = ScopeMetrics { metrics: vec![metric; 3], ..ScopeMetrics::default() };
        let metrics = ResourceMetrics { scope_metrics: vec![scope], ..ResourceMetrics::default() };
        let metrics = ExportMetricsServiceRequest { resource_metrics: vec![metrics] };
        let protobuf = [traces, vec![logs.encode_to_vec()], vec![metrics.encode_to_vec()]];
        let json = [TRACES_JSON, LOGS_JSON, METRICS_JSON].map(|text| vec![text.into()]);
        Ok(Self { protobuf, json })
    }
}

const TRACES_JSON: &str = r#"{"resourceSpans":[{"resource":{"attributes":[{"key":"service.name","value":{"stringValue":"shop"}}]},"scopeSpans":[{"scope":{"name":"a"},"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","parentSpanId":"eee19b7ec3c1b173","name":"I'm a server span","startTimeUnixNano":"1544712660000000000","endTimeUnixNano":"1544712661000000000","kind":"SPAN_KIND_SERVER","attributes":[{"key":"list","value":{"arrayValue":{"values":[{"intValue":"1"},{"doubleValue":0.5},{"bytesValue":"AP8="}]}}}],"events":[{"timeUnixNano":"1","name":"e"}],"status":{"code":2}}]}]}]}"#;
const LOGS_JSON: &str = r#"{"resourceLogs":[{"scopeLogs":[{"logRecords":[{"timeUnixNano":"1","body":{"stringValue":"a"}},{}]}]}]}"#;
const METRICS_JSON: &str = r#"{"resourceMetrics":[{"scopeMetrics":[{"metrics":[{"name":"m","sum":{"dataPoints":[{"asInt":"1"}]}}]}]}]}"#;

impl Broken {
    /// Generates the request with this number.
    pub(super) fn throw(number: u64, pool: &Pool) -> Self {
        let mut dice = Dice::new(number);
        if dice.once_in(RAW_ONE_IN) {
            return Self::Raw(raw(&mut dice, pool));
        }
        match dice.below(4) {
            0 | 1 => Self::Call(call(&mut dice, pool)),
            2 => Self::Http1(http(&mut dice, pool)),
            _ => Self::Http2(http(&mut dice, pool)),
        }
    }
}

fn call(dice: &mut Dice, pool: &Pool) -> Request {
    let signal = signal(dice);
    let mut message = one_of(dice, &pool.protobuf[signal]);
    if !dice.once_in(10) {
        mutate(dice, &mut message, pool);
    }
    let (mut packing, message) = packed(dice, message, pool);
    let mut head = [u8::from(!packing.is_empty()), 0, 0, 0, 0];
    head[1..].copy_from_slice(&(message.len() as u32).to_be_bytes());
    if dice.once_in(10) {
        let at = dice.below(head.len());
        head[at] = dice.next() as u8;
    }
    let mut content_type = "application/grpc";
    if dice.once_in(20) {
        packing = dice.pick(&PACKINGS);
        content_type = dice.pick(&TYPES[2..5]);
    }
    let mut path = format!("/opentelemetry.proto.collector.{}Service/Export", SERVICES[signal]);
    if dice.once_in(30) {
        path.truncate(1 + dice.below(path.len() - 1));
    }
    Request {
        method: if dice.once_in(50) { "GET" } else { "POST" },
        path,
        headers: vec![
            ("content-type", content_type),
            ("grpc-encoding", packing),
            ("te", "trailers"),
        ],
        body: [&head[..], &message].concat(),
    }
}

fn http(dice: &mut Dice, pool: &Pool) -> Request {
    let signal = signal(dice);
    let is_json = dice.once_in(3);
    let (from, mut content_type) = match is_json {
        true => (&pool.json, "application/json"),
        false => (&pool.protobuf, "application/x-protobuf"),
    };
    let mut message = one_of(dice, &from[signal]);
    if !dice.once_in(10) {
        mutate(dice, &mut message, pool);
    }
    let (mut packing, body) = packed(dice, message, pool);
    if dice.once_in(20) {
        packing = dice.pick(&PACKINGS);
        content_type = dice.pick(&TYPES);
    }
    let mut path = format!("/v1/{}", SIGNALS[signal]);
    if dice.once_in(30) {
        path.truncate(1 + dice.below(path.len() - 1));
    }
    Request {
        method: if dice.once_in(50) { "PUT" } else { "POST" },
        path,
        headers: vec![("content-type", content_type), ("content-encoding", packing)],
        body,
    }
}

/// Bytes that are not HTTP, or were before the mutation.
fn raw(dice: &mut Dice, pool: &Pool) -> Vec<u8> {
    let body = one_of(dice, &pool.protobuf[0]);
    let mut raw = match dice.below(3) {
        0 => [PREFACE, &body[..body.len().min(100)]].concat(),
        1 => noise(dice, 300),
        _ => {
            let head = format!(
                "POST /v1/traces HTTP/1.1\r\nhost: a\r\ncontent-type: application/x-protobuf\r\n\
                 content-length: {}\r\n\r\n",
                body.len()
            );
            [head.as_bytes(), &body].concat()
        }
    };
    mutate(dice, &mut raw, pool);
    raw
}

fn signal(dice: &mut Dice) -> usize {
    // The receiver parses traces most, so most requests are traces.
    dice.below(5).saturating_sub(2)
}

fn one_of(dice: &mut Dice, of: &[Vec<u8>]) -> Vec<u8> {
    of[dice.below(of.len())].clone()
}

fn packed(dice: &mut Dice, message: Vec<u8>, pool: &Pool) -> (&'static str, Vec<u8>) {
    let (packing, packed) = match dice.below(6) {
        0 => ("gzip", gzip(&message)),
        1 => ("zstd", zstd(&message)),
        _ => return ("", message),
    };
    let Ok(mut packed) = packed else { return ("", message) };
    if dice.once_in(3) {
        mutate(dice, &mut packed, pool);
    }
    (packing, packed)
}

fn gzip(message: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(message)?;
    encoder.finish()
}

fn zstd(message: &[u8]) -> std::io::Result<Vec<u8>> {
    zstd::bulk::compress(message, 1)
}

/// Mutates some bytes.
fn mutate(dice: &mut Dice, bytes: &mut Vec<u8>, pool: &Pool) {
    for _ in 0..=dice.below(4) {
        let at = dice.below(bytes.len() + 1);
        let end = at + dice.below((bytes.len() - at).min(200) + 1);
        match dice.below(8) {
            0 if at < bytes.len() => bytes[at] ^= 1 << dice.below(8),
            1 if at < bytes.len() => bytes[at] = [0, 0x7f, 0x80, 0xff][dice.below(4)],
            2 => bytes.truncate(at),
            3 => drop(bytes.drain(at..end)),
            4 => {
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            5 => {
                let noise = noise(dice, 40);
                bytes.splice(at..at, noise);
            }
            6 => {
                let noise = noise(dice, end - at);
                bytes.splice(at..end, noise);
            }
            _ => {
                let other = one_of(dice, &pool.protobuf[0]);
                bytes.splice(at..at, other);
            }
        }
        bytes.truncate(BODY_BYTES_MAX);
    }
}

fn noise(dice: &mut Dice, len_max: usize) -> Vec<u8> {
    (0..dice.below(len_max + 1)).map(|_| dice.next() as u8).collect()
}
