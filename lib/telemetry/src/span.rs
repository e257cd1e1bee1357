//! A span that its maker has finished, with ids and times of the maker's choice.
//!
//! For what no tracer can say: the root of somebody else's trace, a step told after the fact, work that another process
//! began. Deliberately absent: starting and ending, which is the tracer's.

use std::{borrow::Cow, time::SystemTime};

use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId,
    trace::{Event, Link, SpanContext, SpanKind, Status},
};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::plan::Level;

/// A span with ids and times of its maker's choice.
#[derive(Clone, Debug)]
pub struct FinishedSpan {
    /// Its own ids. A span that is not sampled is let go.
    pub context: SpanContext,
    /// The parent's id, if it has one.
    pub parent: Option<SpanId>,
    /// What is known of the parent.
    pub parent_state: ParentState,
    /// Whether the trace was sampled by somebody else: then no exporter thins it.
    pub followed: bool,
    /// How severe it is; exporters of a higher level do not get it, unless it failed, or a span below it.
    pub level: Level,
    /// Its kind.
    pub kind: SpanKind,
    /// Its name.
    pub name: Cow<'static, str>,
    /// When it began.
    pub start: SystemTime,
    /// When it ended.
    pub end: SystemTime,
    /// Its attributes.
    pub attributes: Vec<KeyValue>,
    /// What happened in it.
    pub events: Vec<Event>,
    /// What it is linked to.
    pub links: Vec<Link>,
    /// How it ended.
    pub status: Status,
    /// What made it.
    pub scope: InstrumentationScope,
}

/// What the maker of a span knows of its parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentState {
    /// It is in this program and ends later: where its child failed, it is sent with it.
    UnderWay,
    /// It has ended before, with this level: for exporters that did not get it, the span is a root.
    Ended(Level),
    /// It is in another program.
    Remote,
}

impl FinishedSpan {
    /// A span of this context and name; the rest is as nothing was said.
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
