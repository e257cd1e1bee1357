//! The three front ends: `telemetry.exporters`, `metrics` and `tracer`.

use std::time::Duration;

use source::{Fields, Item, Value};

use super::{
    Context,
    buffer::{buffer, path},
    duration::{self, PAUSE, SPAN},
    otlp::{Shape, otlp, transport},
};
use crate::plan::{Buffer, Destination, Exporter, Level, Plan, Signal, Signals, Transport};

const LEVELS: &[(&str, Level)] = &[
    (Level::Trace.as_str(), Level::Trace),
    (Level::Debug.as_str(), Level::Debug),
    (Level::Info.as_str(), Level::Info),
    (Level::Warn.as_str(), Level::Warn),
    (Level::Error.as_str(), Level::Error),
];

/// Keys of a tracer that only describe the connection to a collector.
const CONNECTION: &[&str] =
    &["transport", "endpoint", "endpoints", "headers", "tls", "timeout", "compression", "retry"];

/// Reads `telemetry.exporters.<name>`: exporters that carry data only if a role names them.
pub(super) fn telemetry(item: &Item<'_>, context: &Context<'_>, plan: &mut Plan) {
    let Some(mut telemetry) = item.fields() else { return };
    if let Some(mut named) = telemetry.table("exporters") {
        for (key, item) in named.rest() {
            let name = format!("telemetry.exporters.{}", key.text);
            if let Some(fields) = item.fields() {
                plan.exporters.extend(collector(name, fields, context));
            }
        }
    }
    telemetry.finish();
}

fn collector(name: String, mut fields: Fields<'_>, context: &Context<'_>) -> Option<Exporter> {
    let service_name = fields.take("serviceName").and_then(|item| {
        let name = item.string()?;
        let is_empty = name.trim().is_empty();
        if is_empty {
            item.misfit("a name: without one the service cannot be found");
        }
        (!is_empty).then(|| name.to_owned())
    });
    let interval = duration::take(&mut fields, "metricsReaderInterval", &SPAN)
        .or_else(|| context.otel.metrics_interval())
        .unwrap_or(Duration::from_secs(10));
    let stream = stream(&mut fields, context);
    let kind = fields.require("exporter").and_then(|item| item.fields());
    fields.finish();
    let mut kind = kind?;
    if let Some(item) = kind.require("type") {
        item.choice(&[("collector", ())]);
    }
    let mut connection = kind.section("collector");
    kind.finish();
    let carried = [Signal::Spans, Signal::Metrics];
    let transport = transport(&mut connection, &carried, context);
    let shape = Shape { name: &name, transport, carried: &carried };
    let destination = Destination::Otlp(otlp(&mut connection, &shape, context));
    connection.finish();
    let signals = Signals { spans: true, logs: false, metrics: Some(interval) };
    let service_name = service_name.unwrap_or_else(|| context.service_name.clone());
    Some(stream.exporter(name, service_name, signals, destination))
}

/// Reads `metrics`: the push of metrics, and whether Prometheus may scrape them.
pub(super) fn metrics(item: &Item<'_>, context: &Context<'_>, plan: &mut Plan) {
    let Some(mut metrics) = item.fields() else { return };
    let mut prometheus = metrics.section("prometheus");
    plan.prometheus = prometheus.boolean("enable").unwrap_or(true);
    prometheus.finish();
    if let Some(fields) = metrics.table("open-telemetry") {
        plan.exporters.extend(push(fields, context));
    }
    metrics.finish();
}

fn push(mut fields: Fields<'_>, context: &Context<'_>) -> Option<Exporter> {
    let name = "metrics.open-telemetry".to_owned();
    let carried = [Signal::Metrics];
    let options =
        [("grpc", Some(Transport::Grpc)), ("http", Some(Transport::Http)), ("disable", None)];
    let told = fields.choice("transport", &options);
    let transport =
        told.unwrap_or_else(|| context.otel.transport(&carried).or(Some(Transport::Grpc)));
    let interval = duration::take(&mut fields, "interval", &SPAN)
        .or_else(|| context.otel.metrics_interval())
        .unwrap_or(Duration::from_secs(60));
    let notes = context.notes.borrow().len();
    let shape =
        Shape { name: &name, transport: transport.unwrap_or(Transport::Grpc), carried: &carried };
    let destination = Destination::Otlp(otlp(&mut fields, &shape, context));
    fields.finish();
    if transport.is_none() {
        context.notes.borrow_mut().truncate(notes);
        context.note(format!("`{name}` is disabled: no metrics are pushed"));
        return None;
    }
    let signals = Signals { metrics: Some(interval), ..Signals::default() };
    let exporter =
        Stream::default().exporter(name, context.service_name.clone(), signals, destination);
    Some(Exporter { always: true, ..exporter })
}

/// Reads `tracer.<id>`: exporters that carry all of the program's own spans, and optionally its logs.
pub(super) fn tracers(item: &Item<'_>, context: &Context<'_>, plan: &mut Plan) {
    let Some(mut named) = item.fields() else { return };
    for (key, item) in named.rest() {
        plan.exporters.extend(tracer(format!("tracer.{}", key.text), &item, context));
    }
}

/// The type of a tracer.
#[derive(Clone, Copy, PartialEq, Eq)]
enum TracerKind {
    OpenTelemetry,
    Stdout,
    Log,
}

fn tracer(name: String, item: &Item<'_>, context: &Context<'_>) -> Option<Exporter> {
    let mut fields = item.fields()?;
    let kinds = [
        ("open-telemetry", TracerKind::OpenTelemetry),
        ("stdout", TracerKind::Stdout),
        ("log", TracerKind::Log),
    ];
    let kind = fields.require("type").and_then(|item| item.choice(&kinds));
    let kind = kind.unwrap_or(TracerKind::OpenTelemetry);
    let signals = enabled(&mut fields);
    let carried: Vec<_> = signals.carried().collect();
    let stream = stream(&mut fields, context);
    let file = match kind {
        TracerKind::Log => fields.require("path"),
        TracerKind::OpenTelemetry | TracerKind::Stdout => fields.take("path"),
    };
    let file = file.and_then(|item| path(&item));
    // These keys are read for every type, so that a user can change the type without changing the other keys.
    let notes = context.notes.borrow().len();
    let transport = transport(&mut fields, &carried, context);
    let shape = Shape { name: &name, transport, carried: &carried };
    let otlp = otlp(&mut fields, &shape, context);
    fields.finish();
    if kind != TracerKind::OpenTelemetry || carried.is_empty() {
        context.notes.borrow_mut().truncate(notes);
    }
    if carried.is_empty() {
        context.note(format!("`{name}` is disabled: it carries neither spans nor logs"));
        return None;
    }
    let destination = match kind {
        TracerKind::OpenTelemetry => Destination::Otlp(otlp),
        TracerKind::Stdout => Destination::Stdout,
        TracerKind::Log => Destination::Log(file.unwrap_or_default()),
    };
    let unused = CONNECTION.iter().find(|key| item.node.get(key).is_some());
    if let Some(key) = unused.filter(|_| kind != TracerKind::OpenTelemetry) {
        context.note(format!("`{name}.{key}` has no effect: it does not send to a collector"));
    }
    let exporter = stream.exporter(name, context.service_name.clone(), signals, destination);
    Some(Exporter { always: true, ..exporter })
}

/// Reads `enable` as a boolean, as a table, and as dotted keys.
fn enabled(fields: &mut Fields<'_>) -> Signals {
    let (mut is_enabled, mut spans, mut logs) = (None, None, None);
    if let Some(item) = fields.take("enable") {
        match &item.node.value {
            Value::Table(_) => {
                if let Some(mut fields) = item.fields() {
                    logs = fields.boolean("log-exporter");
                    spans = fields.boolean("span-exporter");
                    fields.finish();
                }
            }
            Value::Scalar(_) | Value::Sequence(_) => is_enabled = item.boolean(),
        }
    }
    logs = fields.boolean("enable.log-exporter").or(logs);
    spans = fields.boolean("enable.span-exporter").or(spans);
    let is_enabled = is_enabled.unwrap_or(true);
    Signals {
        spans: is_enabled && spans.unwrap_or(true),
        logs: is_enabled && logs.unwrap_or(false),
        metrics: None,
    }
}

/// Which part of a signal an exporter receives, and how it buffers it.
struct Stream {
    sampling: f64,
    level: Option<Level>,
    throttle: Duration,
    lossy: bool,
    buffer: Buffer,
}

impl Default for Stream {
    fn default() -> Self {
        Self {
            sampling: 100.0,
            level: None,
            throttle: Duration::from_secs(1),
            lossy: false,
            buffer: Buffer::default(),
        }
    }
}

fn stream(fields: &mut Fields<'_>, context: &Context<'_>) -> Stream {
    let default = Stream::default();
    let sampling = fields.number("sampling", 0.0..=100.0).or_else(|| context.otel.sampling());
    Stream {
        sampling: sampling.unwrap_or(default.sampling),
        level: fields.choice("level", LEVELS).or(default.level),
        throttle: duration::take(fields, "throttle", &PAUSE).unwrap_or(default.throttle),
        lossy: fields.boolean("lossy").unwrap_or(default.lossy),
        buffer: buffer(fields, context),
    }
}

impl Stream {
    fn exporter(
        self,
        name: String,
        service_name: String,
        signals: Signals,
        destination: Destination,
    ) -> Exporter {
        let Self { sampling, level, throttle, lossy, buffer } = self;
        Exporter {
            name,
            service_name,
            always: false,
            signals,
            sampling,
            level,
            throttle,
            lossy,
            buffer,
            destination,
        }
    }
}
