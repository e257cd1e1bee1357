//! Views: read access to the rows of a trace.

use std::time::Duration;

use super::{
    EntityData, EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode,
    Trace, Value,
    store::{
        Cell, EventRow, LinkRow, ResourceIx, ResourceRow, Run, ScopeIx, ScopeRow, SpanIx, SpanRow,
    },
};
use crate::{SpanId, Timestamp, TraceId};

/// A span of a trace.
#[derive(Clone, Copy, Debug)]
pub struct Span<'a> {
    trace: &'a Trace,
    row: &'a SpanRow,
    ix: SpanIx,
}

/// The resource that produced a span.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    trace: &'a Trace,
    row: &'a ResourceRow,
}

/// The instrumentation scope that created a span.
#[derive(Clone, Copy, Debug)]
pub struct Scope<'a> {
    trace: &'a Trace,
    row: &'a ScopeRow,
}

/// An event at a time within a span.
#[derive(Clone, Copy, Debug)]
pub struct Event<'a> {
    trace: &'a Trace,
    row: &'a EventRow,
}

/// A link to another span.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    trace: &'a Trace,
    row: &'a LinkRow,
}

/// Keys and values, in the order sent.
#[derive(Clone, Copy, Debug)]
pub struct Attributes<'a> {
    trace: &'a Trace,
    run: Run,
}

/// The values of an array.
#[derive(Clone, Copy, Debug)]
pub struct Values<'a> {
    trace: &'a Trace,
    run: Run,
}

/// A typed value, borrowed from its trace.
#[derive(Clone, Copy, Debug)]
pub enum ValueRef<'a> {
    /// A value that was sent without content.
    Empty,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int(i64),
    /// A double.
    Double(f64),
    /// A text.
    Str(&'a str),
    /// Raw bytes.
    Bytes(&'a [u8]),
    /// A list of values, of any kinds.
    Array(Values<'a>),
    /// Keys and values.
    Map(Attributes<'a>),
}

impl<'a> Span<'a> {
    pub(super) fn new(trace: &'a Trace, ix: SpanIx) -> Self {
        Self { trace, row: &trace.spans[ix.0 as usize], ix }
    }

    /// Returns its index in the trace.
    pub fn ix(self) -> SpanIx {
        self.ix
    }

    /// Returns its id.
    pub fn id(self) -> SpanId {
        self.row.head.id
    }

    /// Returns the id of its parent, which may be absent from the trace.
    pub fn parent(self) -> Option<SpanId> {
        self.row.head.parent
    }

    /// Returns the W3C trace state, as sent.
    pub fn trace_state(self) -> &'a str {
        self.trace.strings.get(self.row.head.trace_state)
    }

    /// Returns the W3C trace flags and OTLP's bits above them.
    pub fn flags(self) -> u32 {
        self.row.head.flags
    }

    /// Returns its name.
    pub fn name(self) -> &'a str {
        self.trace.strings.get(self.row.head.name)
    }

    /// Returns its kind.
    pub fn kind(self) -> Kind {
        self.row.head.kind
    }

    /// Returns its start.
    pub fn start(self) -> Timestamp {
        self.row.head.start
    }

    /// Returns its end.
    pub fn end(self) -> Timestamp {
        self.row.head.end
    }

    /// Returns the time from its start to its end, zero if the end is before the start.
    pub fn duration(self) -> Duration {
        self.row.head.end.since(self.row.head.start)
    }

    /// Returns its status code.
    pub fn status(self) -> StatusCode {
        self.row.head.status
    }

    /// Returns the producer's message about an error.
    pub fn status_message(self) -> &'a str {
        self.trace.strings.get(self.row.head.status_message)
    }

    /// Returns its attributes.
    pub fn attributes(self) -> Attributes<'a> {
        Attributes { trace: self.trace, run: self.row.attributes }
    }

    /// Returns the number of attributes that the producer dropped.
    pub fn dropped_attributes(self) -> u32 {
        self.row.head.dropped_attributes
    }

    /// Returns the number of events that the producer dropped.
    pub fn dropped_events(self) -> u32 {
        self.row.head.dropped_events
    }

    /// Returns the number of links that the producer dropped.
    pub fn dropped_links(self) -> u32 {
        self.row.head.dropped_links
    }

    /// Returns its events, in the order sent.
    pub fn events(self) -> impl Iterator<Item = Event<'a>> {
        let trace = self.trace;
        trace.events[self.row.events.range()].iter().map(move |row| Event { trace, row })
    }

    /// Returns its links, in the order sent.
    pub fn links(self) -> impl Iterator<Item = Link<'a>> {
        let trace = self.trace;
        trace.links[self.row.links.range()].iter().map(move |row| Link { trace, row })
    }

    /// Returns its resource.
    pub fn resource(self) -> Resource<'a> {
        Resource::new(self.trace, self.row.head.resource)
    }

    /// Returns the index of its resource, the same for all spans of one producer.
    pub fn resource_ix(self) -> ResourceIx {
        self.row.head.resource
    }

    /// Returns its instrumentation scope.
    pub fn scope(self) -> Scope<'a> {
        Scope::new(self.trace, self.row.head.scope)
    }

    /// Returns the index of its scope.
    pub fn scope_ix(self) -> ScopeIx {
        self.row.head.scope
    }

    /// Converts the span to an owned value.
    pub fn to_data(self) -> SpanData {
        SpanData {
            id: self.row.head.id,
            parent: self.row.head.parent,
            trace_state: self.trace_state().to_owned(),
            flags: self.row.head.flags,
            name: self.name().to_owned(),
            kind: self.row.head.kind,
            start: self.row.head.start,
            end: self.row.head.end,
            attributes: self.attributes().to_data(),
            dropped_attributes: self.row.head.dropped_attributes,
            events: self.events().map(Event::to_data).collect(),
            dropped_events: self.row.head.dropped_events,
            links: self.links().map(Link::to_data).collect(),
            dropped_links: self.row.head.dropped_links,
            status: Status {
                code: self.row.head.status,
                message: self.status_message().to_owned(),
            },
        }
    }
}

impl<'a> Resource<'a> {
    pub(super) fn new(trace: &'a Trace, ix: ResourceIx) -> Self {
        Self { trace, row: &trace.resources[ix.0 as usize] }
    }

    /// Returns its attributes.
    pub fn attributes(self) -> Attributes<'a> {
        Attributes { trace: self.trace, run: self.row.attributes }
    }

    /// Returns the number of attributes that the producer dropped.
    pub fn dropped_attributes(self) -> u32 {
        self.row.head.dropped_attributes
    }

    /// Converts the resource to an owned value.
    pub fn to_data(self) -> ResourceData {
        let text = |text| self.trace.strings.get(text).to_owned();
        let texts =
            |run: Run| self.trace.texts[run.range()].iter().copied().map(text).collect::<Vec<_>>();
        let entities = self.trace.entities[self.row.entities.range()].iter();
        ResourceData {
            attributes: self.attributes().to_data(),
            dropped_attributes: self.row.head.dropped_attributes,
            entities: entities
                .map(|entity| EntityData {
                    schema_url: text(entity.schema_url),
                    kind: text(entity.kind),
                    id_keys: texts(entity.id_keys),
                    description_keys: texts(entity.description_keys),
                })
                .collect(),
            schema_url: text(self.row.head.schema_url),
        }
    }
}

impl<'a> Scope<'a> {
    pub(super) fn new(trace: &'a Trace, ix: ScopeIx) -> Self {
        Self { trace, row: &trace.scopes[ix.0 as usize] }
    }

    /// Returns its name.
    pub fn name(self) -> &'a str {
        self.trace.strings.get(self.row.head.name)
    }

    /// Returns its version.
    pub fn version(self) -> &'a str {
        self.trace.strings.get(self.row.head.version)
    }

    /// Returns its attributes.
    pub fn attributes(self) -> Attributes<'a> {
        Attributes { trace: self.trace, run: self.row.attributes }
    }

    /// Returns the number of attributes that the producer dropped.
    pub fn dropped_attributes(self) -> u32 {
        self.row.head.dropped_attributes
    }

    /// Converts the scope to an owned value.
    pub fn to_data(self) -> ScopeData {
        ScopeData {
            name: self.name().to_owned(),
            version: self.version().to_owned(),
            attributes: self.attributes().to_data(),
            dropped_attributes: self.row.head.dropped_attributes,
            schema_url: self.trace.strings.get(self.row.head.schema_url).to_owned(),
        }
    }
}

impl<'a> Event<'a> {
    /// Returns its time.
    pub fn at(self) -> Timestamp {
        self.row.head.at
    }

    /// Returns its name.
    pub fn name(self) -> &'a str {
        self.trace.strings.get(self.row.head.name)
    }

    /// Returns its attributes.
    pub fn attributes(self) -> Attributes<'a> {
        Attributes { trace: self.trace, run: self.row.attributes }
    }

    /// Returns the number of attributes that the producer dropped.
    pub fn dropped_attributes(self) -> u32 {
        self.row.head.dropped_attributes
    }

    fn to_data(self) -> EventData {
        EventData {
            at: self.row.head.at,
            name: self.name().to_owned(),
            attributes: self.attributes().to_data(),
            dropped_attributes: self.row.head.dropped_attributes,
        }
    }
}

impl<'a> Link<'a> {
    /// Returns the id of the linked trace.
    pub fn trace_id(self) -> Option<TraceId> {
        self.row.head.trace_id
    }

    /// Returns the id of the linked span.
    pub fn span_id(self) -> Option<SpanId> {
        self.row.head.span_id
    }

    /// Returns its attributes.
    pub fn attributes(self) -> Attributes<'a> {
        Attributes { trace: self.trace, run: self.row.attributes }
    }

    /// Returns the W3C trace state of the link, as sent.
    pub fn trace_state(self) -> &'a str {
        self.trace.strings.get(self.row.head.trace_state)
    }

    /// Returns the W3C trace flags and OTLP's bits above them.
    pub fn flags(self) -> u32 {
        self.row.head.flags
    }

    /// Returns the number of attributes that the producer dropped.
    pub fn dropped_attributes(self) -> u32 {
        self.row.head.dropped_attributes
    }

    fn to_data(self) -> LinkData {
        LinkData {
            trace_id: self.row.head.trace_id,
            span_id: self.row.head.span_id,
            trace_state: self.trace_state().to_owned(),
            flags: self.row.head.flags,
            attributes: self.attributes().to_data(),
            dropped_attributes: self.row.head.dropped_attributes,
        }
    }
}

impl<'a> Attributes<'a> {
    /// Returns the number of attributes.
    pub fn len(self) -> usize {
        self.run.len as usize
    }

    /// Whether there is no attribute.
    pub fn is_empty(self) -> bool {
        self.run.len == 0
    }

    /// Returns keys and values, in the order sent.
    pub fn iter(self) -> impl Iterator<Item = (&'a str, ValueRef<'a>)> {
        let trace = self.trace;
        trace.attributes[self.run.range()]
            .iter()
            .map(move |row| (trace.strings.get(row.key), ValueRef::new(trace, row.value)))
    }

    /// Returns the value of this key. OTLP forbids duplicate keys and does not define which one counts: here the last one
    /// counts, as if an attribute is set again, and as nearly every JSON parser treats an object.
    pub fn get(self, key: &str) -> Option<ValueRef<'a>> {
        let key = self.trace.strings.find(key)?;
        let row = self.trace.attributes[self.run.range()].iter().rfind(|row| row.key == key)?;
        Some(ValueRef::new(self.trace, row.value))
    }

    fn to_data(self) -> Vec<(String, Value)> {
        self.iter().map(|(key, value)| (key.to_owned(), value.to_data())).collect()
    }
}

impl<'a> Values<'a> {
    /// Returns the number of values.
    pub fn len(self) -> usize {
        self.run.len as usize
    }

    /// Whether there is no value.
    pub fn is_empty(self) -> bool {
        self.run.len == 0
    }

    /// Returns the values, in the order sent.
    pub fn iter(self) -> impl Iterator<Item = ValueRef<'a>> {
        let trace = self.trace;
        trace.cells[self.run.range()].iter().map(move |cell| ValueRef::new(trace, *cell))
    }
}

impl<'a> ValueRef<'a> {
    pub(super) fn new(trace: &'a Trace, cell: Cell) -> Self {
        match cell {
            Cell::Empty => Self::Empty,
            Cell::Bool(value) => Self::Bool(value),
            Cell::Int(value) => Self::Int(value.to_int()),
            Cell::Double(value) => Self::Double(value.to_double()),
            Cell::Str(text) => Self::Str(trace.strings.get(text)),
            Cell::Bytes(run) => Self::Bytes(&trace.bytes[run.range()]),
            Cell::Array(run) => Self::Array(Values { trace, run }),
            Cell::Map(run) => Self::Map(Attributes { trace, run }),
        }
    }

    /// Converts the value to an owned one.
    pub fn to_data(self) -> Value {
        match self {
            Self::Empty => Value::Empty,
            Self::Bool(value) => Value::Bool(value),
            Self::Int(value) => Value::Int(value),
            Self::Double(value) => Value::Double(value),
            Self::Str(text) => Value::Str(text.to_owned()),
            Self::Bytes(bytes) => Value::Bytes(bytes.to_owned()),
            Self::Array(values) => Value::Array(values.iter().map(Self::to_data).collect()),
            Self::Map(entries) => Value::Map(entries.to_data()),
        }
    }
}
