//! The bridge from the `tracing` crate: its spans become spans, its events become log records.
//!
//! A level that nobody wants is refused before anything is built. Deliberately absent: a subscriber. A program has one,
//! and puts this layer beside its others; the layer belongs to one `Telemetry`.

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
    /// A layer for the program's `tracing` subscriber.
    pub fn tracing_layer<S>(&self) -> impl Layer<S> + Send + Sync + use<S>
    where
        S: Subscriber + for<'a> LookupSpan<'a> + Send + Sync,
    {
        let tracer = self.tracer_provider().tracer(BRIDGE_SCOPE);
        // Neither paths of the build nor names of threads: they say nothing about the work.
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

/// Tells `tracing` that levels may have changed.
pub(crate) fn levels_changed() {
    tracing_core::callsite::rebuild_interest_cache();
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum CallsiteKind {
    Spans,
    Logs,
}

/// Lets through what some exporter wants at the moment.
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
        // A span without a parent would begin a context that is not suppressed, so that a sender's own are refused here.
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
        // Of both kinds: of two layers that stand directly on a registry, only the hint of the outer one is heard.
        let pipeline = self.state.pipeline.load();
        Some(as_filter(pipeline.span_level).max(as_filter(pipeline.log_level)))
    }
}
