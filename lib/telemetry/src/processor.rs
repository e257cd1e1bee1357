//! The only module that implements the traits of the OpenTelemetry SDK, which are not stable for traces yet.
//!
//! The processors stay installed for the lifetime of a provider; the pipeline is swapped beneath them. Flush and
//! shutdown of the SDK do nothing here: `Telemetry::shutdown` delivers, and reports the result.

use std::{
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use opentelemetry::{
    Context, InstrumentationScope, KeyValue, TraceId,
    logs::{LogRecord as _, Severity},
    trace::{Link, Span as _, SpanKind, SpanRef, TraceContextExt, TraceState},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    logs::{LogProcessor, SdkLogRecord},
    trace::{SamplingDecision, SamplingResult, ShouldSample, Span, SpanData, SpanProcessor},
};

use crate::{
    marks::{Above, Mark},
    pipeline::{ALL, BRIDGE_SCOPE, Pipeline, State, draw, level_of},
    plan::Level,
};

/// The span processor.
#[derive(Debug)]
pub(crate) struct Spans(pub(crate) Arc<State>);

/// The log processor.
#[derive(Debug)]
pub(crate) struct Logs(pub(crate) Arc<State>);

/// The sampler: records a span if any exporter receives it. It follows the sampling decision of a parent.
#[derive(Clone, Debug)]
pub(crate) struct Sampler(pub(crate) Arc<State>);

impl SpanProcessor for Spans {
    fn on_start(&self, span: &mut Span, context: &Context) {
        if self.0.differs.load(Ordering::Relaxed) {
            let mark = inherited(&self.0, &self.0.pipeline.load(), span, context);
            self.0.marks.set(span.span_context().span_id(), mark);
        }
    }

    fn on_end(&self, span: SpanData) {
        if span.span_context.is_sampled() {
            self.0.span(&span);
        }
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// Returns the mark that a span inherits from its parent, extended for its children.
fn inherited(state: &State, pipeline: &Pipeline, span: &Span, context: &Context) -> Mark {
    let parent = context.span();
    let parent = parent.span_context();
    if parent.is_valid() && parent.is_remote() {
        let above = Above::all((parent.span_id(), true));
        return Mark { followed: true, ..withheld(pipeline, span, above) };
    }
    let of_parent = state.marks.get(parent.span_id());
    // A parent that all exporters receive is the nearest ancestor for all, regardless of the spans above it.
    let above = of_parent.withheld.zip(of_parent.above);
    let above = above.map(|(level, above)| above.with(parent.span_id(), level));
    let mark = withheld(pipeline, span, above.unwrap_or(Above::all((parent.span_id(), false))));
    Mark { followed: of_parent.followed, above: mark.above.or(above), ..mark }
}

/// Returns the mark of a span that results from its level alone.
fn withheld(pipeline: &Pipeline, span: &Span, above: Above) -> Mark {
    if !pipeline.withholds {
        return Mark::default();
    }
    // Only a copy shows the initial attributes of a span, so it is made only if levels differ.
    let data = span.exported_data();
    let bridged = data.filter(|data| data.instrumentation_scope.name() == BRIDGE_SCOPE);
    let level = bridged.map_or(Level::Info, |data| level_of(&data));
    let mut own = pipeline.outlets.iter().filter(|outlet| outlet.own && outlet.spans);
    match own.any(|outlet| outlet.least_span() > level) {
        true => Mark { followed: false, withheld: Some(level), above: Some(above) },
        false => Mark::default(),
    }
}

impl ShouldSample for Sampler {
    fn should_sample(
        &self,
        parent: Option<&Context>,
        trace_id: TraceId,
        _: &str,
        _: &SpanKind,
        _: &[KeyValue],
        _: &[Link],
    ) -> SamplingResult {
        let threshold = self.0.threshold_max();
        let parent = parent.map(Context::span);
        let parent = parent.as_ref().map(SpanRef::span_context).filter(|parent| parent.is_valid());
        let wanted = threshold.is_some_and(|threshold| match parent {
            Some(parent) => parent.is_sampled(),
            None => threshold == ALL || draw(trace_id) < threshold,
        });
        SamplingResult {
            decision: if wanted {
                SamplingDecision::RecordAndSample
            } else {
                SamplingDecision::Drop
            },
            attributes: Vec::new(),
            trace_state: parent.map_or(TraceState::NONE, |parent| parent.trace_state().clone()),
        }
    }
}

/// Returns whether this is the name that `tracing` generates for an event without one: its source location, including a
/// build path.
fn is_place(name: &str) -> bool {
    let line = name.strip_prefix("event ").and_then(|place| place.rsplit_once(".rs:"));
    line.is_some_and(|(_, line)| line.bytes().all(|byte| byte.is_ascii_digit()))
}

impl LogProcessor for Logs {
    fn emit(&self, record: &mut SdkLogRecord, scope: &InstrumentationScope) {
        if record.event_name().is_some_and(is_place) {
            record.set_event_name("");
        }
        self.0.log(record, scope);
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }

    fn event_enabled(&self, severity: Severity, target: &str, _: Option<&str>) -> bool {
        self.0.wants_log(severity, target)
    }
}
