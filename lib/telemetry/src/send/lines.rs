//! Formats items as lines of text, for standard output and for log files: for local use without a collector.
//!
//! `time kind name key=value…`. Deliberately absent: colours, rotation (a file that is moved away is created again),
//! and any guarantee that a program can parse the lines; OTLP is for that.

use std::{
    fmt::Write as _,
    fs, io,
    io::Write as _,
    path::{Path, PathBuf},
};

use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    common::v1::{AnyValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    metrics::v1::{Metric, metric::Data},
    trace::v1::{Span, span::SpanKind, status::StatusCode},
};
use prost::{DecodeError, Message};

use super::{
    answer::{Answer, Why, WhyKind},
    calendar,
};
use crate::plan::Signal;

/// The destination of lines.
#[derive(Debug)]
pub(crate) enum Lines {
    Stdout,
    File(PathBuf),
}

impl Lines {
    /// Writes the items of an export request.
    pub(crate) fn send(&self, signal: Signal, request: &[u8]) -> Answer {
        let text = match text(signal, request) {
            Ok(text) => text,
            Err(error) => {
                let message = format!("cannot be shown as lines: {error}");
                return Answer::Poison(Why::new(WhyKind::Protocol, message));
            }
        };
        let (written, place) = match self {
            Self::Stdout => (to_stdout(&text), "standard output".to_owned()),
            Self::File(path) => (to_file(path, &text), format!("`{}`", path.display())),
        };
        match written {
            Ok(()) => Answer::Accepted,
            Err(error) => {
                let message = format!("cannot write to {place}: {error}; it is tried again");
                Answer::Later { after: None, why: Why::new(WhyKind::Io, message) }
            }
        }
    }
}

fn to_stdout(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn to_file(path: &Path, text: &str) -> io::Result<()> {
    fs::OpenOptions::new().create(true).append(true).open(path)?.write_all(text.as_bytes())
}

/// Formats a line for each item.
fn text(signal: Signal, request: &[u8]) -> Result<String, DecodeError> {
    let mut out = String::new();
    match signal {
        Signal::Spans => {
            let request = ExportTraceServiceRequest::decode(request)?;
            let scopes = request.resource_spans.iter().flat_map(|it| &it.scope_spans);
            scopes.flat_map(|it| &it.spans).for_each(|span| put_span(&mut out, span));
        }
        Signal::Logs => {
            let request = ExportLogsServiceRequest::decode(request)?;
            let scopes = request.resource_logs.iter().flat_map(|it| &it.scope_logs);
            scopes.flat_map(|it| &it.log_records).for_each(|log| put_log(&mut out, log));
        }
        Signal::Metrics => {
            let request = ExportMetricsServiceRequest::decode(request)?;
            let scopes = request.resource_metrics.iter().flat_map(|it| &it.scope_metrics);
            scopes.flat_map(|it| &it.metrics).for_each(|metric| put_metric(&mut out, metric));
        }
    }
    Ok(out)
}

fn put_span(out: &mut String, span: &Span) {
    let time = calendar::write_rfc3339(span.start_time_unix_nano);
    let kind = match span.kind() {
        SpanKind::Server => "server",
        SpanKind::Client => "client",
        SpanKind::Producer => "producer",
        SpanKind::Consumer => "consumer",
        SpanKind::Internal | SpanKind::Unspecified => "internal",
    };
    let nanos = span.end_time_unix_nano.saturating_sub(span.start_time_unix_nano);
    let took = std::time::Duration::from_nanos(nanos);
    put(out, format_args!("{time} {kind} {} took={took:?}", shown(&span.name)));
    put_ids(out, &span.trace_id, &span.span_id);
    if !span.parent_span_id.is_empty() {
        put(out, format_args!(" parent={}", hex(&span.parent_span_id)));
    }
    if let Some(status) = &span.status
        && status.code() == StatusCode::Error
    {
        put(out, format_args!(" error={}", shown(&status.message)));
    }
    put_attributes(out, &span.attributes);
    for event in &span.events {
        put(out, format_args!(" event={}", shown(&event.name)));
    }
    out.push('\n');
}

fn put_log(out: &mut String, log: &LogRecord) {
    let time =
        if log.time_unix_nano == 0 { log.observed_time_unix_nano } else { log.time_unix_nano };
    let time = calendar::write_rfc3339(time);
    let level = match log.severity_number {
        1..=4 => "TRACE",
        5..=8 => "DEBUG",
        9..=12 => "INFO",
        13..=16 => "WARN",
        17.. => "ERROR",
        _ => "-",
    };
    let body = log.body.as_ref().map(value).unwrap_or_default();
    let name = if log.event_name.is_empty() { String::new() } else { shown(&log.event_name) + " " };
    put(out, format_args!("{time} {level} {name}{body}"));
    put_ids(out, &log.trace_id, &log.span_id);
    put_attributes(out, &log.attributes);
    out.push('\n');
}

fn put_metric(out: &mut String, metric: &Metric) {
    let (kind, time, points) = match &metric.data {
        Some(Data::Gauge(it)) => {
            ("gauge", it.data_points.iter().map(|it| it.time_unix_nano).max(), it.data_points.len())
        }
        Some(Data::Sum(it)) => {
            ("sum", it.data_points.iter().map(|it| it.time_unix_nano).max(), it.data_points.len())
        }
        Some(Data::Histogram(it)) => {
            let times = it.data_points.iter().map(|it| it.time_unix_nano);
            ("histogram", times.max(), it.data_points.len())
        }
        Some(Data::ExponentialHistogram(it)) => {
            let times = it.data_points.iter().map(|it| it.time_unix_nano);
            ("exponential-histogram", times.max(), it.data_points.len())
        }
        Some(Data::Summary(it)) => {
            let times = it.data_points.iter().map(|it| it.time_unix_nano);
            ("summary", times.max(), it.data_points.len())
        }
        None => ("metric", None, 0),
    };
    let time = calendar::write_rfc3339(time.unwrap_or_default());
    let name = shown(&metric.name);
    put(out, format_args!("{time} {kind} {name} points={points} unit={}\n", shown(&metric.unit)));
}

fn put_ids(out: &mut String, trace_id: &[u8], span_id: &[u8]) {
    if !trace_id.is_empty() {
        put(out, format_args!(" trace={} span={}", hex(trace_id), hex(span_id)));
    }
}

fn put_attributes(out: &mut String, attributes: &[KeyValue]) {
    for KeyValue { key, value: of_key, .. } in attributes {
        put(
            out,
            format_args!(" {}={}", shown(key), of_key.as_ref().map(value).unwrap_or_default()),
        );
    }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes every text");
}

fn value(any: &AnyValue) -> String {
    let list = |values: Vec<String>, ends: [char; 2]| {
        format!("{}{}{}", ends[0], values.join(","), ends[1])
    };
    match &any.value {
        Some(Value::StringValue(text)) => shown(text),
        Some(Value::BoolValue(it)) => it.to_string(),
        Some(Value::IntValue(it)) => it.to_string(),
        Some(Value::DoubleValue(it)) => it.to_string(),
        Some(Value::BytesValue(it)) => hex(it),
        Some(Value::ArrayValue(it)) => list(it.values.iter().map(value).collect(), ['[', ']']),
        Some(Value::KvlistValue(it)) => {
            let pair = |it: &KeyValue| {
                format!("{}:{}", shown(&it.key), it.value.as_ref().map(value).unwrap_or_default())
            };
            list(it.values.iter().map(pair).collect(), ['{', '}'])
        }
        _ => String::new(),
    }
}

/// Returns a text unchanged, or in quotes if it is not a single word on one line.
fn shown(text: &str) -> String {
    let is_plain = |it: char| !it.is_whitespace() && !it.is_control() && !"\"=".contains(it);
    if !text.is_empty() && text.chars().all(is_plain) {
        text.to_owned()
    } else {
        format!("{text:?}")
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(2 * bytes.len()), |mut out, byte| {
        put(&mut out, format_args!("{byte:02x}"));
        out
    })
}
