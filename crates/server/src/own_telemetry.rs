//! The server's own spans on their way out: the one module that knows the OpenTelemetry SDK.
//!
//! The rest of the server speaks of spans in the words of `model` and does not wait: a Collector that is down
//! or slow costs spans, not runs. Deliberately absent: durability. The stock exporter loses what a longer
//! outage or a crash leaves in its queue; `docs/adr/0006-telemetry-by-journal.md` says what replaces it.

use std::{
    borrow::Cow,
    sync::Arc,
    time::{Duration, SystemTime},
};

use model::{
    Fault, Faulty, SpanId, Timestamp, TraceId,
    trace::{Kind, LinkData, SpanData, StatusCode, Value},
};
use opentelemetry::{
    InstrumentationScope, KeyValue,
    trace::{Link, SpanContext, SpanKind, Status, TraceFlags, TraceState},
};
use opentelemetry_otlp::{
    WithExportConfig, WithTonicConfig, tonic_types::transport::ClientTlsConfig,
};
use opentelemetry_sdk::{
    Resource,
    trace::{BatchSpanProcessor, SpanData as SdkSpan, SpanLinks, SpanProcessor},
};
use thiserror::Error;

use crate::config;

/// How long a shutdown waits for what is queued.
const SHUTDOWN_MAX: Duration = Duration::from_secs(5);

/// The exporters of a server, by what they carry.
#[derive(Debug, Default)]
pub(crate) struct Telemetry {
    own: Option<Arc<Exporter>>,
    application: Option<Arc<Exporter>>,
}

#[derive(Debug)]
struct Exporter {
    processor: BatchSpanProcessor,
    sampling: f64,
}

/// An exporter that cannot be made.
#[derive(Debug, Error)]
#[error("the exporter `{name}` cannot be started for `{endpoint}`: {reason}")]
pub struct ExporterError {
    name: String,
    endpoint: String,
    reason: String,
}

impl Faulty for ExporterError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl Telemetry {
    /// Starts the exporters. None of them needs its Collector to be there.
    pub(crate) fn start(config: &config::Telemetry) -> Result<Self, ExporterError> {
        let start = |config: &config::Exporter| Exporter::start(config).map(Arc::new);
        let own = config.exporter.as_ref().map(start).transpose()?;
        let application = match &config.application_exporter {
            same if *same == config.exporter => own.clone(),
            other => other.as_ref().map(start).transpose()?,
        };
        Ok(Self { own, application })
    }

    /// Sends one of the server's own spans.
    pub(crate) fn own(&self, trace: TraceId, span: SpanData) {
        if let Some(exporter) = &self.own {
            exporter.send(trace, span);
        }
    }

    /// Sends the trigger span of a run to the application's trace store.
    pub(crate) fn application(&self, trace: TraceId, span: SpanData) {
        if let Some(exporter) = &self.application {
            exporter.send(trace, span);
        }
    }

    /// Sends what is queued and ends. Blocks for up to five seconds an exporter.
    pub(crate) fn shutdown(&self) {
        let other = self.application.as_ref().filter(|application| {
            self.own.as_ref().is_none_or(|own| !Arc::ptr_eq(own, application))
        });
        for exporter in self.own.iter().chain(other) {
            if let Err(error) = exporter.processor.shutdown_with_timeout(SHUTDOWN_MAX) {
                tracing::warn!(%error, "telemetry that was queued at shutdown may be lost");
            }
        }
    }
}

impl Exporter {
    fn start(config: &config::Exporter) -> Result<Self, ExporterError> {
        let refused = |reason: String| ExporterError {
            name: config.name.clone(),
            endpoint: config.endpoint.clone(),
            reason,
        };
        let mut builder = opentelemetry_otlp::SpanExporter::builder()
            .with_tonic()
            .with_endpoint(&config.endpoint)
            .with_compression(opentelemetry_otlp::Compression::Gzip);
        if config.endpoint.starts_with("https://") {
            builder = builder.with_tls_config(ClientTlsConfig::new().with_enabled_roots());
        }
        let exporter = builder.build().map_err(|error| refused(error.to_string()))?;
        let resource =
            Resource::builder_empty().with_service_name(config.service_name.clone()).build();
        let mut processor = BatchSpanProcessor::builder(exporter).build();
        processor.set_resource(&resource);
        Ok(Self { processor, sampling: config.sampling })
    }

    fn send(&self, trace: TraceId, span: SpanData) {
        if is_sampled(trace, self.sampling) {
            self.processor.on_end(sdk_span(trace, span));
        }
    }
}

/// Whether `percent` of all traces includes this one: its low 56 bits are the draw.
fn is_sampled(trace: TraceId, percent: f64) -> bool {
    let mut low = [0; 8];
    low[1..].copy_from_slice(&trace.as_bytes()[9..]);
    // The draw stays an integer: as a double, the highest ones would round up to 2^56.
    u64::from_be_bytes(low) < (percent / 100.0 * (1u64 << 56) as f64) as u64
}

fn sdk_span(trace: TraceId, span: SpanData) -> SdkSpan {
    let mut links = SpanLinks::default();
    links.links = span.links.iter().filter_map(sdk_link).collect();
    SdkSpan {
        span_context: context(trace, span.id, false),
        parent_span_id: span.parent.map_or(opentelemetry::trace::SpanId::INVALID, sdk_span_id),
        parent_span_is_remote: false,
        span_kind: match span.kind {
            Kind::Server => SpanKind::Server,
            Kind::Client => SpanKind::Client,
            Kind::Producer => SpanKind::Producer,
            Kind::Consumer => SpanKind::Consumer,
            Kind::Unspecified | Kind::Internal | Kind::Other(_) => SpanKind::Internal,
        },
        name: Cow::Owned(span.name),
        start_time: system_time(span.start),
        end_time: system_time(span.end),
        attributes: span.attributes.into_iter().map(sdk_attribute).collect(),
        dropped_attributes_count: span.dropped_attributes,
        events: Default::default(),
        links,
        status: match span.status.code {
            StatusCode::Error => Status::error(span.status.message),
            StatusCode::Ok => Status::Ok,
            StatusCode::Unset | StatusCode::Other(_) => Status::Unset,
        },
        instrumentation_scope: InstrumentationScope::builder("qualitytrace").build(),
    }
}

fn sdk_link(link: &LinkData) -> Option<Link> {
    Some(Link::with_context(context(link.trace_id?, link.span_id?, true)))
}

fn sdk_attribute((key, value): (String, Value)) -> KeyValue {
    match value {
        Value::Bool(value) => KeyValue::new(key, value),
        Value::Int(value) => KeyValue::new(key, value),
        Value::Double(value) => KeyValue::new(key, value),
        Value::Str(value) => KeyValue::new(key, value),
        // The server's own spans carry plain values only.
        Value::Empty | Value::Bytes(_) | Value::Array(_) | Value::Map(_) => KeyValue::new(key, ""),
    }
}

fn context(trace: TraceId, span: SpanId, remote: bool) -> SpanContext {
    let trace = opentelemetry::trace::TraceId::from_bytes(*trace.as_bytes());
    SpanContext::new(trace, sdk_span_id(span), TraceFlags::SAMPLED, remote, TraceState::NONE)
}

fn sdk_span_id(span: SpanId) -> opentelemetry::trace::SpanId {
    opentelemetry::trace::SpanId::from_bytes(*span.as_bytes())
}

fn system_time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(at.as_nanos())
}

#[cfg(test)]
mod tests {
    use model::TraceId;

    use super::is_sampled;

    #[test]
    fn sampling_is_by_the_trace_id_and_exact_at_its_ends() {
        let with_low = |byte| {
            let mut bytes = [255; 16];
            bytes[9..].fill(byte);
            TraceId::from_bytes(bytes).expect("not zero")
        };
        assert!(is_sampled(with_low(255), 100.0), "100 % is everything");
        assert!(!is_sampled(with_low(0), 0.0), "0 % is nothing");
        assert!(is_sampled(with_low(0x7f), 50.0) && !is_sampled(with_low(0x80), 50.0));
    }
}
