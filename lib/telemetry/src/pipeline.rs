//! From a finished item to the journals of the exporters that receive it: encoded once, appended to each.
//!
//! This is the only code that runs on the program's own threads. The pipeline is swapped as a unit when the plan
//! changes. Deliberately absent: sending, and the SDK's traits (`processor`).

use std::{
    cell::RefCell,
    path::PathBuf,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use journal::{AppendResult, Journal};
use opentelemetry::{InstrumentationScope, SpanId, TraceId, Value, logs::Severity, trace::Status};
use opentelemetry_sdk::{logs::SdkLogRecord, trace::SpanData};

use crate::{
    encode,
    host::Host,
    marks::{Marks, Parent},
    plan::{EXPORTERS_MAX, Level, Signal},
    record,
    send::Lane,
    span::{FinishedSpan, ParentState},
};

/// The maximum number of outlets at a time: an exporter has one for spans and one for logs, and as many again may be
/// draining while a new plan starts.
pub(crate) const OUTLETS_MAX: usize = 4 * EXPORTERS_MAX;
/// The scope of spans that come from the `tracing` bridge. They carry their level as an attribute.
pub(crate) const BRIDGE_SCOPE: &str = "tracing";
const LEVEL_KEY: &str = "level";
/// A buffer that grew beyond this size for one huge item is not reused.
const SCRATCH_BYTES_MAX: usize = 1 << 20;

/// The state that producers share. The SDK's processors hold it permanently; its content changes.
#[derive(Debug)]
pub(crate) struct State {
    pub(crate) pipeline: ArcSwap<Pipeline>,
    /// The part of the pipeline that is read at the start of each span: an atomic load is cheaper than loading the
    /// pipeline. `u64::MAX` means that no exporter receives spans.
    threshold_max: AtomicU64,
    pub(crate) differs: AtomicBool,
    pub(crate) marks: Marks,
    /// Exported scopes and targets; empty means all.
    pub(crate) scopes: Vec<String>,
    /// The crates of the program; empty means all.
    #[cfg_attr(not(feature = "tracing"), expect(dead_code, reason = "only the bridge reads it"))]
    pub(crate) crates: Vec<String>,
}

/// The routing of items to exporters.
#[derive(Debug, Default)]
pub(crate) struct Pipeline {
    pub(crate) outlets: Vec<Arc<Outlet>>,
    /// The largest share of traces that any exporter of own spans receives; traces beyond it are not recorded.
    pub(crate) threshold_max: u64,
    /// Whether some exporter of own spans does not receive all spans that are created, so that marks are needed.
    pub(crate) differs: bool,
    /// Whether the level is the reason for that.
    pub(crate) withholds: bool,
    /// The least severe level of bridge spans that are created. Spans of [`Level::Info`] are always created, because
    /// they may fail.
    pub(crate) span_level: Option<Level>,
    /// The least severe level that any exporter of logs receives.
    pub(crate) log_level: Option<Level>,
}

/// The producer side of one exporter, or of its spans or logs alone.
#[derive(Debug)]
pub(crate) struct Outlet {
    pub(crate) name: String,
    /// The destinations of spans, logs and metrics, for messages.
    pub(crate) destinations: [String; 3],
    /// The folder of its buffer, if it is on disk.
    pub(crate) folder: Option<PathBuf>,
    /// How long a batch that is not full waits.
    pub(crate) throttle: Duration,
    /// Its number, which stays the same for its lifetime.
    pub(crate) slot: u8,
    /// Whether it carries the program's own spans and logs, or only spans that are emitted to it by name.
    pub(crate) own: bool,
    pub(crate) spans: bool,
    pub(crate) logs: bool,
    /// The number of trace ids, out of 2^56, that it receives.
    pub(crate) threshold: u64,
    pub(crate) level: Option<Level>,
    /// Whether it drops items when it is full; otherwise it blocks the producer.
    pub(crate) lossy: bool,
    pub(crate) journal: Arc<Journal>,
    pub(crate) lane: Arc<Lane>,
}

impl Pipeline {
    pub(crate) fn new(outlets: Vec<Arc<Outlet>>) -> Self {
        let own = || outlets.iter().filter(|outlet| outlet.own && outlet.spans);
        let thresholds = || own().map(|outlet| outlet.threshold);
        let made = own().map(|outlet| outlet.level.unwrap_or(Level::Info).min(Level::Info)).min();
        let withholds = own().any(|outlet| made.is_some_and(|made| outlet.least_span() > made));
        let thins = thresholds().any(|threshold| threshold < ALL);
        let logs = outlets.iter().filter(|outlet| outlet.own && outlet.logs);
        Self {
            threshold_max: thresholds().max().unwrap_or(0),
            differs: thins || withholds,
            withholds,
            span_level: made,
            log_level: logs.map(|outlet| outlet.least_log()).min(),
            outlets,
        }
    }
}

/// No share at all, because there is no exporter.
const NOBODY: u64 = u64::MAX;

/// The number of possible values of the low 56 bits of a trace id.
pub(crate) const ALL: u64 = 1 << 56;

/// Converts a percentage to a number of trace ids out of 2^56.
pub(crate) fn threshold(percent: f64) -> u64 {
    // The sampling value stays an integer: as a double, the highest ones would round up to 2^56.
    ((percent / 100.0 * ALL as f64) as u64).min(ALL)
}

/// Returns the sampling value of a trace: the low 56 bits of its id, which are random by the W3C specification.
pub(crate) fn draw(trace: TraceId) -> u64 {
    let mut low = [0; 8];
    low[1..].copy_from_slice(&trace.to_bytes()[9..]);
    u64::from_be_bytes(low)
}

impl State {
    pub(crate) fn new(scopes: Vec<String>, crates: Vec<String>) -> Self {
        Self {
            pipeline: ArcSwap::default(),
            threshold_max: AtomicU64::new(NOBODY),
            differs: AtomicBool::default(),
            marks: Marks::default(),
            scopes,
            crates,
        }
    }

    /// Replaces the pipeline, and returns the old one.
    pub(crate) fn swap(&self, pipeline: Pipeline) -> Arc<Pipeline> {
        let threshold = pipeline.span_level.map_or(NOBODY, |_| pipeline.threshold_max);
        self.threshold_max.store(threshold, Ordering::Relaxed);
        self.differs.store(pipeline.differs, Ordering::Relaxed);
        self.pipeline.swap(Arc::new(pipeline))
    }

    /// Returns the largest share of traces that any exporter of own spans receives; `None` if there is no such
    /// exporter.
    pub(crate) fn threshold_max(&self) -> Option<u64> {
        Some(self.threshold_max.load(Ordering::Relaxed)).filter(|threshold| *threshold != NOBODY)
    }

    /// Handles the end of a span of the program.
    pub(crate) fn span(&self, span: &SpanData) {
        let pipeline = self.pipeline.load();
        let scope = &span.instrumentation_scope;
        let mark = self.marks.take(span.span_context.span_id());
        // The bridge has already checked the target.
        let bridged = scope.name() == BRIDGE_SCOPE;
        if pipeline.span_level.is_none() || !(bridged || Host::exports(&self.scopes, scope.name()))
        {
            return;
        }
        let level = if pipeline.withholds && bridged { level_of(span) } else { Level::Info };
        let parent = (span.parent_span_id, span.parent_span_is_remote);
        // A parent that some exporter does not receive has a mark as long as it is active.
        let is_under_way = || self.marks.get(parent.0).withheld.is_some();
        let (is_failed, parent_is_sent) = match pipeline.withholds {
            true => self.failed(span, is_under_way),
            false => (false, true),
        };
        let parent_is_sent = parent_is_sent || self.marks.has_failure(parent.0);
        let parent_of = |outlet: &Outlet| match mark.above.filter(|_| !parent_is_sent) {
            Some(above) => above.of(outlet.least_span()),
            None => parent,
        };
        let wanted = |outlet: &Outlet| {
            outlet.own
                && outlet.samples(span.span_context.trace_id(), mark.followed)
                && (is_failed || outlet.least_span() <= level)
        };
        append_span(&pipeline, span, (wanted, parent_of), bridged.then_some(LEVEL_KEY));
    }

    /// Returns whether a span is sent regardless of its level, because it or a descendant failed, and whether its
    /// parent is sent for the same reason, which requires that the parent is active.
    fn failed(&self, span: &SpanData, is_under_way: impl FnOnce() -> bool) -> (bool, bool) {
        let is_failed_below = self.marks.take_failure(span.span_context.span_id());
        let is_failed = is_failed_below || matches!(span.status, Status::Error { .. });
        let has_parent = is_failed && span.parent_span_id != SpanId::INVALID && is_under_way();
        if has_parent {
            self.marks.fail(span.parent_span_id);
        }
        (is_failed, has_parent)
    }

    /// Sends a span with ids of the caller's choice to these exporters.
    pub(crate) fn emitted(&self, span: FinishedSpan, to: impl Fn(&Outlet) -> bool) {
        let (followed, level, parent_state) = (span.followed, span.level, span.parent_state);
        let span = span.into_data();
        let pipeline = self.pipeline.load();
        let has_level = |outlet: &Arc<Outlet>| to(outlet) && outlet.level.is_some();
        let is_failed = pipeline.outlets.iter().any(has_level)
            && self.failed(&span, || parent_state == ParentState::UnderWay).0;
        let parent_of = |outlet: &Outlet| match parent_state {
            ParentState::Ended(level) if level < outlet.least_span() => (SpanId::INVALID, false),
            _ => (span.parent_span_id, span.parent_span_is_remote),
        };
        let wanted = |outlet: &Outlet| {
            to(outlet)
                && outlet.samples(span.span_context.trace_id(), followed)
                && (is_failed || outlet.least_span() <= level)
        };
        append_span(&pipeline, &span, (wanted, parent_of), None);
    }

    /// Handles a log record of the program.
    pub(crate) fn log(&self, log: &SdkLogRecord, scope: &InstrumentationScope) {
        let level = level(log.severity_number());
        let wanted = |outlet: &Outlet| outlet.own && outlet.logs && outlet.least_log() <= level;
        append(&self.pipeline.load(), wanted, |out| {
            record::begin(out, Signal::Logs, |out| encode::scope_of_log(out, scope, log));
            encode::log(out, log);
        });
    }

    /// Returns whether any exporter receives a record of this level, so that other records need not be created.
    pub(crate) fn wants_log(&self, severity: Severity, target: &str) -> bool {
        self.pipeline.load().log_level.is_some_and(|least| least <= level(Some(severity)))
            && Host::exports(&self.scopes, target)
    }
}

impl Outlet {
    /// Returns whether it receives spans of this trace.
    fn samples(&self, trace: TraceId, followed: bool) -> bool {
        self.spans && (self.threshold == ALL || followed || draw(trace) < self.threshold)
    }

    /// The least severe level of spans that it receives.
    pub(crate) fn least_span(&self) -> Level {
        self.level.unwrap_or(Level::Trace)
    }

    /// The least severe level of log records that it receives.
    fn least_log(&self) -> Level {
        self.level.unwrap_or(Level::Info)
    }
}

/// Appends a span to the journal of each exporter that receives it, with the parent that this exporter receives.
/// Encodes it once for all exporters that receive its own parent.
fn append_span(
    pipeline: &Pipeline,
    span: &SpanData,
    (wanted, parent_of): (impl Fn(&Outlet) -> bool, impl Fn(&Outlet) -> Parent),
    omit: Option<&str>,
) {
    let encode = |out: &mut Vec<u8>, span: &SpanData| {
        record::begin(out, Signal::Spans, |out| encode::scope(out, &span.instrumentation_scope));
        encode::span(out, span, omit);
    };
    let own = (span.parent_span_id, span.parent_span_is_remote);
    append(pipeline, |it| wanted(it) && parent_of(it) == own, |out| encode(out, span));
    for outlet in pipeline.outlets.iter().filter(|it| wanted(it) && parent_of(it) != own) {
        let (parent_span_id, parent_span_is_remote) = parent_of(outlet);
        let moved = SpanData { parent_span_id, parent_span_is_remote, ..span.clone() };
        append(pipeline, |it| it.slot == outlet.slot, |out| encode(out, &moved));
    }
}

thread_local! {
    static SCRATCH: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Encodes an item once, if any exporter receives it, and appends it to the journal of each of them.
fn append(
    pipeline: &Pipeline,
    wanted: impl Fn(&Outlet) -> bool,
    encode: impl FnOnce(&mut Vec<u8>),
) {
    let mut outlets = pipeline.outlets.iter().filter(|outlet| wanted(outlet)).peekable();
    if outlets.peek().is_none() {
        return;
    }
    let mut record = SCRATCH.try_with(RefCell::take).unwrap_or_default();
    record.clear();
    encode(&mut record);
    for outlet in outlets {
        // The journal counts dropped items, and there is no caller to report to.
        let (AppendResult::Kept | AppendResult::Dropped(_)) = outlet.journal.append(1, &record);
    }
    if record.capacity() <= SCRATCH_BYTES_MAX {
        // At the end of a thread the buffer is not needed any more.
        drop(SCRATCH.try_with(|scratch| scratch.replace(record)));
    }
}

/// Returns the level of a span that the bridge created.
pub(crate) fn level_of(span: &SpanData) -> Level {
    let level = span.attributes.iter().find(|attribute| attribute.key.as_str() == LEVEL_KEY);
    match level.map(|attribute| &attribute.value) {
        Some(Value::String(level)) => match level.as_str() {
            "TRACE" => Level::Trace,
            "DEBUG" => Level::Debug,
            "WARN" => Level::Warn,
            "ERROR" => Level::Error,
            _ => Level::Info,
        },
        _ => Level::Info,
    }
}

fn level(severity: Option<Severity>) -> Level {
    match severity.map_or(9, |severity| severity as i32) {
        ..=4 => Level::Trace,
        5..=8 => Level::Debug,
        9..=12 => Level::Info,
        13..=16 => Level::Warn,
        _ => Level::Error,
    }
}

#[cfg(test)]
mod tests {
    use opentelemetry::TraceId;

    use super::{ALL, draw, threshold};

    #[test]
    fn a_share_is_exact_at_its_ends() {
        let with_low = |byte: u8| {
            let mut bytes = [255; 16];
            bytes[9..].fill(byte);
            draw(TraceId::from_bytes(bytes))
        };
        assert_eq!((threshold(100.0), threshold(0.0)), (ALL, 0));
        assert!(with_low(255) < threshold(100.0), "100 % is everything");
        assert!(with_low(0x7f) < threshold(50.0) && with_low(0x80) >= threshold(50.0));
    }
}
