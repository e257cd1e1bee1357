//! How a trace is written: strings as they come, rows where they stay, nothing owned in between.
//!
//! Deliberately absent: any wire format, and the decision whether a span belongs here. Both are the caller's.

use super::{
    Kind, StatusCode,
    store::{
        AttributeRow, Cell, EntityRow, EventRow, LinkRow, PushResult, ResourceIx, ResourceRow, Run,
        ScopeIx, ScopeRow, SpanIx, SpanRow, Trace, TraceFull,
    },
    strings::Text,
};
use crate::{SpanId, Timestamp, TraceId};

/// Writes spans into a trace, and what is around them.
///
/// What a thing consists of is written first, in any order, and the thing then takes it: an event the attributes since
/// a [`Mark`], a resource, a scope or a span everything that was written since the one before. What no such thing has
/// taken yet is taken back by [`Writer::discard`], and when the writer goes; the strings of it stay.
#[derive(Debug)]
pub struct Writer<'t> {
    trace: &'t mut Trace,
    /// Attributes that nothing has taken yet. A stack: those of an event lie above those of its span.
    attributes: Vec<AttributeRow>,
    /// Elements that no array has taken yet, a stack too.
    cells: Vec<Cell>,
    /// The key that came last at each place of the stack: spans of one producer resemble each other.
    keys: Vec<Text>,
    taken: Lengths,
}

/// A place in what was written and not taken yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    attributes: usize,
    cells: usize,
}

/// What a span is, apart from its attributes, events and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanHead {
    /// Its id.
    pub id: SpanId,
    /// The span under which it happened.
    pub parent: Option<SpanId>,
    /// What produced it.
    pub resource: ResourceIx,
    /// The library that made it.
    pub scope: ScopeIx,
    /// Its start.
    pub start: Timestamp,
    /// Its end.
    pub end: Timestamp,
    /// Its name.
    pub name: Text,
    /// W3C trace state, as sent.
    pub trace_state: Text,
    /// W3C trace flags and OTLP's bits above them.
    pub flags: u32,
    /// Its kind.
    pub kind: Kind,
    /// How it ended.
    pub status: StatusCode,
    /// What the producer said about an error.
    pub status_message: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// Events that the producer dropped.
    pub dropped_events: u32,
    /// Links that the producer dropped.
    pub dropped_links: u32,
}

impl SpanHead {
    /// A span of which only this is known; the rest is as OTLP leaves it out.
    pub fn new(id: SpanId, parent: Option<SpanId>, resource: ResourceIx, scope: ScopeIx) -> Self {
        Self {
            id,
            parent,
            resource,
            scope,
            start: Timestamp::default(),
            end: Timestamp::default(),
            name: Text::default(),
            trace_state: Text::default(),
            flags: 0,
            kind: Kind::default(),
            status: StatusCode::default(),
            status_message: Text::default(),
            dropped_attributes: 0,
            dropped_events: 0,
            dropped_links: 0,
        }
    }
}

/// What an event is, apart from its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventHead {
    /// When.
    pub at: Timestamp,
    /// What.
    pub name: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// What a link is, apart from its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkHead {
    /// The trace referred to.
    pub trace_id: Option<TraceId>,
    /// The span referred to.
    pub span_id: Option<SpanId>,
    /// W3C trace state of the link, as sent.
    pub trace_state: Text,
    /// W3C trace flags and OTLP's bits above them.
    pub flags: u32,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// What a resource is, apart from its attributes and entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceHead {
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// The schema of the attributes.
    pub schema_url: Text,
}

/// What a scope is, apart from its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScopeHead {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// The schema of what it makes.
    pub schema_url: Text,
}

/// How long the vectors of a trace are.
#[derive(Clone, Copy, Debug)]
struct Lengths {
    bytes: usize,
    attributes: usize,
    cells: usize,
    texts: usize,
    entities: usize,
    events: usize,
    links: usize,
}

impl<'t> Writer<'t> {
    /// A writer to the end of this trace.
    pub fn new(trace: &'t mut Trace) -> Self {
        let taken = Lengths::of(trace);
        Self { trace, attributes: Vec::new(), cells: Vec::new(), keys: Vec::new(), taken }
    }

    /// The number of a text, or nothing where these bytes are not UTF-8.
    #[inline]
    pub fn text(&mut self, bytes: &[u8]) -> Result<Option<Text>, TraceFull> {
        self.trace.strings.intern(bytes)
    }

    /// The same for the key of the attribute that is written next.
    #[inline]
    pub fn key(&mut self, bytes: &[u8]) -> Result<Option<Text>, TraceFull> {
        let place = self.attributes.len();
        let last = self.keys.get(place).copied();
        if let Some(last) = last.filter(|last| self.trace.strings.is(*last, bytes)) {
            return Ok(Some(last));
        }
        let key = self.trace.strings.intern(bytes)?;
        if let Some(key) = key {
            self.keys.resize(self.keys.len().max(place + 1), Text::default());
            self.keys[place] = key;
        }
        Ok(key)
    }

    /// A value of bytes.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<Cell, TraceFull> {
        let start = self.trace.bytes.len();
        self.trace.bytes.extend_from_slice(bytes);
        Ok(Cell::Bytes(run(start, self.trace.bytes.len())?))
    }

    /// The place where the next attribute or element is written.
    #[inline]
    pub fn mark(&self) -> Mark {
        Mark { attributes: self.attributes.len(), cells: self.cells.len() }
    }

    /// Writes an attribute.
    #[inline]
    pub fn attribute(&mut self, key: Text, value: Cell) {
        self.attributes.push(AttributeRow { key, value });
    }

    /// Writes an element of an array.
    #[inline]
    pub fn element(&mut self, value: Cell) {
        self.cells.push(value);
    }

    /// A value of the attributes since this place.
    pub fn map(&mut self, since: Mark) -> Result<Cell, TraceFull> {
        Ok(Cell::Map(self.attributes_since(since)?))
    }

    /// A value of the elements since this place.
    pub fn array(&mut self, since: Mark) -> Result<Cell, TraceFull> {
        let start = self.trace.cells.len();
        self.trace.cells.extend(self.cells.drain(since.cells..));
        Ok(Cell::Array(run(start, self.trace.cells.len())?))
    }

    /// Takes back the attributes and elements since this place.
    #[inline]
    pub fn forget(&mut self, since: Mark) {
        self.attributes.truncate(since.attributes);
        self.cells.truncate(since.cells);
    }

    /// Writes an event of the attributes since this place.
    pub fn event(&mut self, head: EventHead, since: Mark) -> Result<(), TraceFull> {
        let attributes = self.attributes_since(since)?;
        self.trace.events.push(EventRow { head, attributes });
        Ok(())
    }

    /// Writes a link of the attributes since this place.
    pub fn link(&mut self, head: LinkHead, since: Mark) -> Result<(), TraceFull> {
        let attributes = self.attributes_since(since)?;
        self.trace.links.push(LinkRow { head, attributes });
        Ok(())
    }

    /// Writes an entity of a resource.
    pub fn entity(
        &mut self,
        schema_url: Text,
        kind: Text,
        id_keys: &[Text],
        description_keys: &[Text],
    ) -> Result<(), TraceFull> {
        let [id_keys, description_keys] = [id_keys, description_keys].map(|keys| {
            let start = self.trace.texts.len();
            self.trace.texts.extend_from_slice(keys);
            run(start, self.trace.texts.len())
        });
        let (id_keys, description_keys) = (id_keys?, description_keys?);
        self.trace.entities.push(EntityRow { schema_url, kind, id_keys, description_keys });
        Ok(())
    }

    /// The number of a resource of the attributes and entities that nothing has taken. It is stored if it is new.
    pub fn resource(&mut self, head: ResourceHead) -> Result<ResourceIx, TraceFull> {
        let attributes = self.attributes_since(Mark::default())?;
        let entities = run(self.taken.entities, self.trace.entities.len())?;
        let row = ResourceRow { head, attributes, entities };
        let trace = &mut *self.trace;
        let hash = trace.hash_of_resource(&row);
        let is_same = |(_, ix): &(u64, ResourceIx)| {
            trace.is_same_resource(&trace.resources[ix.0 as usize], &row)
        };
        if let Some((_, known)) = trace.resource_numbers.find(hash, is_same).copied() {
            self.discard();
            return Ok(known);
        }
        let ix = ResourceIx(number(trace.resources.len())?);
        trace.resources.push(row);
        trace.resource_numbers.insert_unique(hash, (hash, ix), |(hash, _)| *hash);
        self.take();
        Ok(ix)
    }

    /// The number of a scope of the attributes that nothing has taken. It is stored if it is new.
    pub fn scope(&mut self, head: ScopeHead) -> Result<ScopeIx, TraceFull> {
        let row = ScopeRow { head, attributes: self.attributes_since(Mark::default())? };
        let trace = &mut *self.trace;
        let hash = trace.hash_of_scope(&row);
        let is_same =
            |(_, ix): &(u64, ScopeIx)| trace.is_same_scope(&trace.scopes[ix.0 as usize], &row);
        if let Some((_, known)) = trace.scope_numbers.find(hash, is_same).copied() {
            self.discard();
            return Ok(known);
        }
        let ix = ScopeIx(number(trace.scopes.len())?);
        trace.scopes.push(row);
        trace.scope_numbers.insert_unique(hash, (hash, ix), |(hash, _)| *hash);
        self.take();
        Ok(ix)
    }

    /// Adds a span of the attributes, events and links that nothing has taken, unless it is there already.
    pub fn span(&mut self, head: SpanHead) -> Result<PushResult, TraceFull> {
        let row = SpanRow {
            head,
            attributes: self.attributes_since(Mark::default())?,
            events: run(self.taken.events, self.trace.events.len())?,
            links: run(self.taken.links, self.trace.links.len())?,
        };
        let ix = SpanIx(number(self.trace.spans.len())?);
        let pushed = self.trace.admit(&row, ix);
        if let PushResult::Repeated(_) = pushed {
            self.discard();
        } else {
            self.trace.spans.push(row);
            self.take();
        }
        Ok(pushed)
    }

    /// Takes back what nothing has taken.
    pub fn discard(&mut self) {
        self.forget(Mark::default());
        let Lengths { bytes, attributes, cells, texts, entities, events, links } = self.taken;
        self.trace.bytes.truncate(bytes);
        self.trace.attributes.truncate(attributes);
        self.trace.cells.truncate(cells);
        self.trace.texts.truncate(texts);
        self.trace.entities.truncate(entities);
        self.trace.events.truncate(events);
        self.trace.links.truncate(links);
    }

    fn take(&mut self) {
        self.taken = Lengths::of(self.trace);
    }

    fn attributes_since(&mut self, since: Mark) -> Result<Run, TraceFull> {
        let start = self.trace.attributes.len();
        self.trace.attributes.extend_from_slice(&self.attributes[since.attributes..]);
        self.attributes.truncate(since.attributes);
        run(start, self.trace.attributes.len())
    }
}

impl Drop for Writer<'_> {
    fn drop(&mut self) {
        self.discard();
    }
}

impl Lengths {
    fn of(trace: &Trace) -> Self {
        Self {
            bytes: trace.bytes.len(),
            attributes: trace.attributes.len(),
            cells: trace.cells.len(),
            texts: trace.texts.len(),
            entities: trace.entities.len(),
            events: trace.events.len(),
            links: trace.links.len(),
        }
    }
}

fn number(len: usize) -> Result<u32, TraceFull> {
    u32::try_from(len).map_err(|_| TraceFull)
}

fn run(start: usize, end: usize) -> Result<Run, TraceFull> {
    Ok(Run { start: number(start)?, len: number(end - start)? })
}
