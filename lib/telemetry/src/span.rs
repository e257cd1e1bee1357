//! A finished span with ids and times of the caller's choice.
//!
//! For spans that no tracer can create: the root of an external trace, a step that is recorded after the fact, work
//! that another process began. Deliberately absent: starting and ending, which belong to the tracer.

use std::{borrow::Cow, time::SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId,
    trace::{Event, Link, SpanContext, SpanKind, Status},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::plan::Level;

/// A finished span with ids and times of the caller's choice.
#[derive(Clone, Debug)]
pub struct FinishedSpan {
    /// Its own ids. A span that is not sampled is discarded.
    pub context: SpanContext,
    /// The parent's id, if it has one.
    pub parent: Option<SpanId>,
    /// The state of the parent.
    pub parent_state: ParentState,
    /// Whether another program sampled the trace: then no exporter applies its own sampling.
    pub followed: bool,
    /// Its severity. Exporters with a higher level do not receive it, unless it or a descendant failed.
    pub level: Level,
    /// Its kind.
    pub kind: SpanKind,
    /// Its name.
    pub name: Cow<'static, str>,
    /// The start time.
    pub start: SystemTime,
    /// The end time.
    pub end: SystemTime,
    /// Its attributes.
    pub attributes: Vec<KeyValue>,
    /// Its events.
    pub events: Vec<Event>,
    /// Its links.
    pub links: Vec<Link>,
    /// Its status.
    pub status: Status,
    /// Its instrumentation scope.
    pub scope: InstrumentationScope,
}

/// The state of a span's parent, as far as the caller knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentState {
    /// The parent is in this program and ends later: if its child failed, the parent is sent too.
    UnderWay,
    /// The parent has already ended, with this level: for exporters that did not receive it, the span is a root.
    Ended(Level),
    /// The parent is in another program.
    Remote,
}

impl FinishedSpan {
    /// Creates a span with this context and name; all other fields have defaults.
    pub fn new(context: SpanContext, name: impl Into<Cow<'static, str>>) -> Self {
        Self {
            context,
            parent: None,
            parent_state: ParentState::UnderWay,
            followed: false,
            level: Level::Info,
            kind: SpanKind::Internal,
            name: name.into(),
            start: SystemTime::UNIX_EPOCH,
            end: SystemTime::UNIX_EPOCH,
            attributes: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            status: Status::Unset,
            scope: InstrumentationScope::default(),
        }
    }

    pub(crate) fn into_data(self) -> SpanData {
        let mut events = SpanEvents::default();
        events.events = self.events;
        let mut links = SpanLinks::default();
        links.links = self.links;
        SpanData {
            span_context: self.context,
            parent_span_id: self.parent.unwrap_or(SpanId::INVALID),
            parent_span_is_remote: self.parent_state == ParentState::Remote,
            span_kind: self.kind,
            name: self.name,
            start_time: self.start,
            end_time: self.end,
            attributes: self.attributes,
            dropped_attributes_count: 0,
            events,
            links,
            status: self.status,
            instrumentation_scope: self.scope,
        }
    }
}
