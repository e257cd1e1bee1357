//! Foreign traces: decodes the ring of raw exports of traces that no run waited for.

use std::{collections::HashMap, time::Duration};

use model::{
    SpanId, TraceId,
    trace::{Span, Trace},
};
use tokio::time::Instant;

use super::{case::Case, words};
use crate::{settle::peer::is_entry, started::MARKER};

/// The upper bound of foreign traces that are decoded, the newest first.
const TRACES_MAX: usize = 1024;

/// The remaining difference of the clocks of synchronized machines.
const TOLERANCE: Duration = Duration::from_millis(20);

/// The instrumentation scope of Qualitytrace's own telemetry. It arrives here if a Collector forwards everything that it
/// receives, and is no evidence about the system.
const OWN_SCOPE: &str = "qualitytrace";

/// The foreign traces of the ring, by start time.
#[derive(Debug, Default)]
pub(super) struct Foreign {
    traces: Vec<Stranger>,
}

#[derive(Debug)]
struct Stranger {
    trace: Trace,
    /// The time of its last arrival.
    arrived: Instant,
}

/// The first span of a foreign trace, as far as its spans arrived.
#[derive(Clone, Copy, Debug)]
pub(super) struct Root<'a> {
    pub(super) span: Span<'a>,
    /// Whether the last span of the trace arrived after the trigger was fired.
    pub(super) has_arrived_since: bool,
    /// Whether it started after the trigger was fired, by its own clock and by arrival time.
    pub(super) is_within: bool,
    /// Whether its process carries the marker of the processes that we started.
    pub(super) is_marked: bool,
}

impl Foreign {
    /// Decodes the ring, without the traces of this run and of other runs.
    pub(super) fn decode(case: &Case<'_>) -> Self {
        let exports = case.seen.map_or(&[][..], |seen| &seen.foreign);
        let is_stranger = |id: &TraceId| is_stranger(case, id);
        let mut found: HashMap<TraceId, Stranger> = HashMap::new();
        for export in exports.iter().rev() {
            // The receiver counted an export that cannot be split or decoded as foreign. It is no evidence.
            let Ok(split) = drivers::split(&export.bytes, is_stranger) else { continue };
            for batch in split.batches {
                if found.len() >= TRACES_MAX && !found.contains_key(&batch.trace_id) {
                    continue;
                }
                let stranger = found.entry(batch.trace_id).or_insert_with(|| Stranger {
                    trace: Trace::new(batch.trace_id),
                    arrived: export.at,
                });
                let _malformed = drivers::append(&mut stranger.trace, &batch.bytes);
            }
        }
        let is_stranger = |it: &Stranger| first(&it.trace).is_some_and(|span| !is_own(span));
        let mut traces: Vec<_> = found.into_values().filter(is_stranger).collect();
        traces.sort_by_key(|it| (first(&it.trace).map(Span::start), it.trace.id()));
        Self { traces }
    }

    /// Returns the first span of each trace, by start time.
    pub(super) fn roots<'a>(&'a self, case: &Case<'_>) -> Vec<Root<'a>> {
        let roots = self.traces.iter();
        roots.filter_map(|stranger| root(case, &stranger.trace, stranger.arrived)).collect()
    }

    /// Returns the spans that link to this trace.
    pub(super) fn linking(&self, trace: TraceId) -> impl Iterator<Item = Span<'_>> {
        let spans = self.traces.iter().flat_map(|stranger| stranger.trace.spans());
        spans.filter(move |span| span.links().any(|link| link.trace_id() == Some(trace)))
    }

    /// Whether one of the foreign spans links to this span of this trace.
    pub(super) fn is_linked(&self, trace: TraceId, span: SpanId) -> bool {
        let mut links = self.linking(trace).flat_map(Span::links);
        links.any(|link| link.span_id() == Some(span))
    }

    /// Returns the services of the foreign traces, by start time.
    pub(super) fn services(&self) -> impl Iterator<Item = &str> {
        self.traces.iter().filter_map(|stranger| first(&stranger.trace)).map(words::service)
    }

    pub(super) fn len(&self) -> usize {
        self.traces.len()
    }
}

/// Calls `look` with the first span of each foreign trace that arrived at least in part since the trigger was fired. It stores
/// no trace, so that it can visit all traces of the ring: the one that a run looks for may be the oldest.
pub(super) fn each_root(case: &Case<'_>, mut look: impl FnMut(&Root<'_>)) {
    let exports = case.seen.map_or(&[][..], |seen| &seen.foreign);
    for export in exports.iter().filter(|export| export.at >= case.fired.began) {
        let Ok(split) = drivers::split(&export.bytes, |id| is_stranger(case, id)) else { continue };
        for batch in split.batches {
            let mut trace = Trace::new(batch.trace_id);
            let _malformed = drivers::append(&mut trace, &batch.bytes);
            if let Some(root) = root(case, &trace, export.at).filter(|root| !is_own(root.span)) {
                look(&root);
            }
        }
    }
}

/// Whether a span is Qualitytrace's own telemetry.
fn is_own(span: Span<'_>) -> bool {
    span.scope().name() == OWN_SCOPE
}

/// Whether a trace belongs neither to this run nor to another run.
fn is_stranger(case: &Case<'_>, id: &TraceId) -> bool {
    *id != case.fired.attempt.trace_id && case.keys.verify(id).is_none()
}

fn root<'t>(case: &Case<'_>, trace: &'t Trace, arrived: Instant) -> Option<Root<'t>> {
    let span = first(trace)?;
    let marker = case.started.map(|started| started.marker.as_str());
    let has_arrived_since = arrived >= case.fired.began;
    let is_within = has_arrived_since && span.start().plus(TOLERANCE) >= case.fired.attempt.at;
    let is_marked = marker.is_some() && words::text(span.resource(), MARKER) == marker;
    Some(Root { span, has_arrived_since, is_within, is_marked })
}

impl Root<'_> {
    /// Whether it is the receiving side of a call or a message.
    pub(super) fn is_entry(&self) -> bool {
        is_entry(self.span)
    }

    /// Whether it started a new trace, instead of continuing one that we did not receive.
    pub(super) fn is_first(&self) -> bool {
        self.span.parent().is_none()
    }
}

/// Returns the first span of a trace: one without a parent, else the earliest.
fn first(trace: &Trace) -> Option<Span<'_>> {
    trace.spans().min_by_key(|span| (span.parent().is_some(), span.start(), span.id()))
}
