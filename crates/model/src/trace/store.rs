//! The rows of a trace, and how they are appended.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use thiserror::Error;

use super::{
    EventData, Kind, LinkData, ResourceData, ScopeData, Span, SpanData, StatusCode, Value,
    data::EntityData,
    strings::{Strings, Text},
    view::{Resource, Scope},
};
use crate::{Fault, Faulty, SpanId, Timestamp, TraceId};

/// A trace, in memory.
#[derive(Clone, Debug)]
pub struct Trace {
    id: TraceId,
    pub(super) strings: Strings,
    pub(super) bytes: Vec<u8>,
    pub(super) attributes: Vec<AttributeRow>,
    pub(super) cells: Vec<Cell>,
    pub(super) texts: Vec<Text>,
    pub(super) entities: Vec<EntityRow>,
    pub(super) resources: Vec<ResourceRow>,
    pub(super) scopes: Vec<ScopeRow>,
    pub(super) spans: Vec<SpanRow>,
    pub(super) events: Vec<EventRow>,
    pub(super) links: Vec<LinkRow>,
    resource_numbers: HashTable<ResourceIx>,
    scope_numbers: HashTable<ScopeIx>,
    span_numbers: HashTable<SpanIx>,
    conflicts: Vec<SpanIx>,
    /// By content, since all of them may bear one id.
    conflict_numbers: HashTable<SpanIx>,
    hasher: DefaultHashBuilder,
}

/// A span of a trace, by its number in the order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanIx(pub(super) u32);

/// A resource of a trace, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceIx(pub(super) u32);

/// A scope of a trace, by its number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeIx(pub(super) u32);

/// What became of a pushed span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pushed {
    /// It is new.
    New(SpanIx),
    /// The same span with the same content is there already; nothing changed.
    Repeated(SpanIx),
    /// A span with this id and other content is there; both are kept, children belong to the first.
    Conflicting(SpanIx),
}

/// The trace holds as much as its 32-bit numbers can tell apart.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the trace holds more than 4 GiB of text or 2^32 values")]
pub struct TraceFull;

impl Faulty for TraceFull {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

/// A stretch of one of the vectors.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A value in 16 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cell {
    Empty,
    Bool(bool),
    Int(i64),
    Double(f64),
    Str(Text),
    /// Of `bytes`.
    Bytes(Run),
    /// Of `cells`.
    Array(Run),
    /// Of `attributes`.
    Map(Run),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AttributeRow {
    pub(super) key: Text,
    pub(super) value: Cell,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EntityRow {
    pub(super) schema_url: Text,
    pub(super) kind: Text,
    pub(super) id_keys: Run,
    pub(super) description_keys: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ResourceRow {
    pub(super) attributes: Run,
    pub(super) dropped_attributes: u32,
    pub(super) entities: Run,
    pub(super) schema_url: Text,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeRow {
    pub(super) name: Text,
    pub(super) version: Text,
    pub(super) attributes: Run,
    pub(super) dropped_attributes: u32,
    pub(super) schema_url: Text,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SpanRow {
    pub(super) id: SpanId,
    pub(super) parent: Option<SpanId>,
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) resource: ResourceIx,
    pub(super) scope: ScopeIx,
    pub(super) name: Text,
    pub(super) trace_state: Text,
    pub(super) flags: u32,
    pub(super) kind: Kind,
    pub(super) status: StatusCode,
    pub(super) status_message: Text,
    pub(super) attributes: Run,
    pub(super) events: Run,
    pub(super) links: Run,
    pub(super) dropped_attributes: u32,
    pub(super) dropped_events: u32,
    pub(super) dropped_links: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EventRow {
    pub(super) at: Timestamp,
    pub(super) name: Text,
    pub(super) attributes: Run,
    pub(super) dropped_attributes: u32,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LinkRow {
    pub(super) trace_id: Option<TraceId>,
    pub(super) span_id: Option<SpanId>,
    pub(super) trace_state: Text,
    pub(super) flags: u32,
    pub(super) attributes: Run,
    pub(super) dropped_attributes: u32,
}

impl Trace {
    /// A trace without spans.
    pub fn new(id: TraceId) -> Self {
        Self {
            id,
            strings: Strings::default(),
            bytes: Vec::new(),
            attributes: Vec::new(),
            cells: Vec::new(),
            texts: Vec::new(),
            entities: Vec::new(),
            resources: Vec::new(),
            scopes: Vec::new(),
            spans: Vec::new(),
            events: Vec::new(),
            links: Vec::new(),
            resource_numbers: HashTable::new(),
            scope_numbers: HashTable::new(),
            span_numbers: HashTable::new(),
            conflicts: Vec::new(),
            conflict_numbers: HashTable::new(),
            hasher: DefaultHashBuilder::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> TraceId {
        self.id
    }

    /// How many spans it has.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it has no span.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// The span with this number.
    pub fn span(&self, ix: SpanIx) -> Span<'_> {
        Span::new(self, ix)
    }

    /// All spans in the order of arrival.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        (0..self.spans.len()).map(|number| self.span(SpanIx(number as u32)))
    }

    /// The span with this id; of several, the first that came.
    pub fn find(&self, id: SpanId) -> Option<Span<'_>> {
        self.number_of(id).map(|ix| self.span(ix))
    }

    /// Spans whose id an earlier one bears with other content.
    pub fn conflicts(&self) -> &[SpanIx] {
        &self.conflicts
    }

    /// The number of this resource, which is stored if it is new.
    pub fn resource(&mut self, data: ResourceData) -> Result<ResourceIx, TraceFull> {
        let hash = self.hasher.hash_one(&data);
        let same = |ix: &ResourceIx| Resource::new(self, *ix).to_data() == data;
        if let Some(known) = self.resource_numbers.find(hash, same) {
            return Ok(*known);
        }
        let ix = ResourceIx(number(self.resources.len())?);
        let row = ResourceRow {
            attributes: self.add_attributes(data.attributes)?,
            dropped_attributes: data.dropped_attributes,
            entities: self.add_entities(data.entities)?,
            schema_url: self.strings.intern(&data.schema_url)?,
        };
        self.resources.push(row);
        let mut numbers = std::mem::take(&mut self.resource_numbers);
        let rehash = |ix: &ResourceIx| self.hasher.hash_one(Resource::new(self, *ix).to_data());
        numbers.insert_unique(hash, ix, rehash);
        self.resource_numbers = numbers;
        Ok(ix)
    }

    /// The number of this scope, which is stored if it is new.
    pub fn scope(&mut self, data: ScopeData) -> Result<ScopeIx, TraceFull> {
        let hash = self.hasher.hash_one(&data);
        let same = |ix: &ScopeIx| Scope::new(self, *ix).to_data() == data;
        if let Some(known) = self.scope_numbers.find(hash, same) {
            return Ok(*known);
        }
        let ix = ScopeIx(number(self.scopes.len())?);
        let row = ScopeRow {
            name: self.strings.intern(&data.name)?,
            version: self.strings.intern(&data.version)?,
            attributes: self.add_attributes(data.attributes)?,
            dropped_attributes: data.dropped_attributes,
            schema_url: self.strings.intern(&data.schema_url)?,
        };
        self.scopes.push(row);
        let mut numbers = std::mem::take(&mut self.scope_numbers);
        let rehash = |ix: &ScopeIx| self.hasher.hash_one(Scope::new(self, *ix).to_data());
        numbers.insert_unique(hash, ix, rehash);
        self.scope_numbers = numbers;
        Ok(ix)
    }

    /// Adds a span, unless it is there already.
    pub fn push(
        &mut self,
        resource: ResourceIx,
        scope: ScopeIx,
        data: SpanData,
    ) -> Result<Pushed, TraceFull> {
        let Some(first) = self.number_of(data.id) else {
            let id = data.id;
            let ix = self.add_span(resource, scope, data)?;
            let Self { span_numbers, hasher, spans, .. } = self;
            let rehash = |ix: &SpanIx| hasher.hash_one(spans[ix.0 as usize].id);
            span_numbers.insert_unique(hasher.hash_one(id), ix, rehash);
            return Ok(Pushed::New(ix));
        };
        let hash = self.hasher.hash_one((resource, scope, &data));
        let same = |ix: &SpanIx| self.has_content(*ix, resource, scope, &data);
        let known = Some(first).filter(same);
        if let Some(known) = known.or_else(|| self.conflict_numbers.find(hash, same).copied()) {
            return Ok(Pushed::Repeated(known));
        }
        let ix = self.add_span(resource, scope, data)?;
        let mut numbers = std::mem::take(&mut self.conflict_numbers);
        let rehash = |ix: &SpanIx| {
            let row = &self.spans[ix.0 as usize];
            self.hasher.hash_one((row.resource, row.scope, &self.span(*ix).to_data()))
        };
        numbers.insert_unique(hash, ix, rehash);
        self.conflict_numbers = numbers;
        self.conflicts.push(ix);
        Ok(Pushed::Conflicting(ix))
    }

    /// The same trace without the spans of this id.
    pub fn without(&self, id: SpanId) -> Result<Self, TraceFull> {
        let mut rest = Self::new(self.id);
        for span in self.spans().filter(|span| span.id() != id) {
            let resource = rest.resource(span.resource().to_data())?;
            let scope = rest.scope(span.scope().to_data())?;
            rest.push(resource, scope, span.to_data())?;
        }
        Ok(rest)
    }

    pub(super) fn number_of(&self, id: SpanId) -> Option<SpanIx> {
        let same = |ix: &SpanIx| self.spans[ix.0 as usize].id == id;
        self.span_numbers.find(self.hasher.hash_one(id), same).copied()
    }

    fn has_content(
        &self,
        ix: SpanIx,
        resource: ResourceIx,
        scope: ScopeIx,
        data: &SpanData,
    ) -> bool {
        let row = &self.spans[ix.0 as usize];
        row.resource == resource && row.scope == scope && self.span(ix).to_data() == *data
    }

    fn add_span(
        &mut self,
        resource: ResourceIx,
        scope: ScopeIx,
        data: SpanData,
    ) -> Result<SpanIx, TraceFull> {
        let ix = SpanIx(number(self.spans.len())?);
        let row = SpanRow {
            id: data.id,
            parent: data.parent,
            start: data.start,
            end: data.end,
            resource,
            scope,
            name: self.strings.intern(&data.name)?,
            trace_state: self.strings.intern(&data.trace_state)?,
            flags: data.flags,
            kind: data.kind,
            status: data.status.code,
            status_message: self.strings.intern(&data.status.message)?,
            attributes: self.add_attributes(data.attributes)?,
            events: self.add_events(data.events)?,
            links: self.add_links(data.links)?,
            dropped_attributes: data.dropped_attributes,
            dropped_events: data.dropped_events,
            dropped_links: data.dropped_links,
        };
        self.spans.push(row);
        Ok(ix)
    }

    fn add_events(&mut self, events: Vec<EventData>) -> Result<Run, TraceFull> {
        let start = self.events.len();
        for event in events {
            let row = EventRow {
                at: event.at,
                name: self.strings.intern(&event.name)?,
                attributes: self.add_attributes(event.attributes)?,
                dropped_attributes: event.dropped_attributes,
            };
            self.events.push(row);
        }
        run(start, self.events.len())
    }

    fn add_links(&mut self, links: Vec<LinkData>) -> Result<Run, TraceFull> {
        let start = self.links.len();
        for link in links {
            let row = LinkRow {
                trace_id: link.trace_id,
                span_id: link.span_id,
                trace_state: self.strings.intern(&link.trace_state)?,
                flags: link.flags,
                attributes: self.add_attributes(link.attributes)?,
                dropped_attributes: link.dropped_attributes,
            };
            self.links.push(row);
        }
        run(start, self.links.len())
    }

    fn add_entities(&mut self, entities: Vec<EntityData>) -> Result<Run, TraceFull> {
        let start = self.entities.len();
        for entity in entities {
            let row = EntityRow {
                schema_url: self.strings.intern(&entity.schema_url)?,
                kind: self.strings.intern(&entity.kind)?,
                id_keys: self.add_texts(&entity.id_keys)?,
                description_keys: self.add_texts(&entity.description_keys)?,
            };
            self.entities.push(row);
        }
        run(start, self.entities.len())
    }

    fn add_texts(&mut self, texts: &[String]) -> Result<Run, TraceFull> {
        let start = self.texts.len();
        for text in texts {
            let text = self.strings.intern(text)?;
            self.texts.push(text);
        }
        run(start, self.texts.len())
    }

    fn add_attributes(&mut self, attributes: Vec<(String, Value)>) -> Result<Run, TraceFull> {
        // The values come first: a map inside one writes its own rows, and these must stay together.
        let mut rows = Vec::with_capacity(attributes.len());
        for (key, value) in attributes {
            rows.push(AttributeRow { key: self.strings.intern(&key)?, value: self.cell(value)? });
        }
        let start = self.attributes.len();
        self.attributes.append(&mut rows);
        run(start, self.attributes.len())
    }

    fn cell(&mut self, value: Value) -> Result<Cell, TraceFull> {
        Ok(match value {
            Value::Empty => Cell::Empty,
            Value::Bool(value) => Cell::Bool(value),
            Value::Int(value) => Cell::Int(value),
            Value::Double(value) => Cell::Double(value),
            Value::Str(text) => Cell::Str(self.strings.intern(&text)?),
            Value::Bytes(bytes) => {
                let start = self.bytes.len();
                self.bytes.extend_from_slice(&bytes);
                Cell::Bytes(run(start, self.bytes.len())?)
            }
            Value::Array(values) => {
                let mut cells = Vec::with_capacity(values.len());
                for value in values {
                    cells.push(self.cell(value)?);
                }
                let start = self.cells.len();
                self.cells.append(&mut cells);
                Cell::Array(run(start, self.cells.len())?)
            }
            Value::Map(entries) => Cell::Map(self.add_attributes(entries)?),
        })
    }
}

fn number(len: usize) -> Result<u32, TraceFull> {
    u32::try_from(len).map_err(|_| TraceFull)
}

fn run(start: usize, end: usize) -> Result<Run, TraceFull> {
    Ok(Run { start: number(start)?, len: number(end - start)? })
}

impl Run {
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}
