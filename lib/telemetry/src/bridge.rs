//! The bridge from the `tracing` crate: its spans become OpenTelemetry spans, its events become log records.
//!
//! The filter rejects a level that no exporter receives before a span or record is built. Deliberately absent: a
//! subscriber. A program has one subscriber, and adds this layer to its others; the layer belongs to one `Telemetry`.

use std::sync::Arc;

use opentelemetry::trace::TracerProvider;
use opentelemetry_appender_tracing::layer::OpenTelemetryTracingBridge;
use tracing_core::{Interest, LevelFilter, Metadata, Subscriber};
use tracing_subscriber::{
    Layer,
    layer::{Context, Filter},
    registry::LookupSpan,
};

use crate::{
    host::Host,
    life::Telemetry,
    pipeline::{BRIDGE_SCOPE, State},
    plan::Level,
};

impl Telemetry {
    /// Returns a layer for the program's `tracing` subscriber.
    pub fn tracing_layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.tracer_provider().tracer(BRIDGE_SCOPE);
        // Without build paths and thread names: they do not describe the work.
        let spans = tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_level(true)
            .with_location(false)
            .with_threads(false);
        let logs = OpenTelemetryTracingBridge::new(self.logger_provider());
        let of = |kind| ExportFilter { state: Arc::clone(self.state()), kind };
        spans
            .with_filter(of(CallsiteKind::Spans))
            .and_then(logs.with_filter(of(CallsiteKind::Logs)))
    }
}

/// Notifies `tracing` that levels may have changed.
pub(crate) fn levels_changed() {
    tracing_core::callsite::rebuild_interest_cache();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallsiteKind {
    Spans,
    Logs,
}

/// A filter that passes the spans and events that some exporter currently receives.
struct ExportFilter {
    state: Arc<State>,
    kind: CallsiteKind,
}

impl ExportFilter {
    fn level(&self) -> LevelFilter {
        let pipeline = self.state.pipeline.load();
        as_filter(match self.kind {
            CallsiteKind::Spans => pipeline.span_level,
            CallsiteKind::Logs => pipeline.log_level,
        })
    }
}

fn as_filter(level: Option<Level>) -> LevelFilter {
    match level {
        None => LevelFilter::OFF,
        Some(Level::Trace) => LevelFilter::TRACE,
        Some(Level::Debug) => LevelFilter::DEBUG,
        Some(Level::Info) => LevelFilter::INFO,
        Some(Level::Warn) => LevelFilter::WARN,
        Some(Level::Error) => LevelFilter::ERROR,
    }
}

impl<S: Subscriber> Filter<S> for ExportFilter {
    fn enabled(&self, meta: &Metadata<'_>, _: &Context<'_, S>) -> bool {
        // A span without a parent would begin a context that is not suppressed, so the spans of a sender are rejected
        // here.
        *meta.level() <= self.level()
            && Host::exports(&self.state.scopes, meta.target())
            && (*meta.level() <= LevelFilter::WARN
                || Host::is_own(&self.state.crates, meta.target()))
            && !opentelemetry::Context::is_current_telemetry_suppressed()
    }

    fn callsite_enabled(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn max_level_hint(&self) -> Option<LevelFilter> {
        // The maximum of both kinds: if two layers are directly on a registry, the registry only uses the hint of the
        // outer one.
        let pipeline = self.state.pipeline.load();
        Some(as_filter(pipeline.span_level).max(as_filter(pipeline.log_level)))
    }
}
