//! Writes a trace: strings are interned as they arrive, rows are written in place, nothing is allocated in between.
//!
//! Deliberately absent: any wire format, and the decision whether a span belongs here. Both are up to the caller.

use super::{
    Kind, StatusCode,
    store::{
        AttributeRow, Cell, EntityRow, EventRow, LinkRow, PushResult, ResourceIx, ResourceRow, Run,
        ScopeIx, ScopeRow, SpanIx, SpanRow, Trace, TraceFull,
    },
    strings::Text,
};
use crate::{SpanId, Timestamp, TraceId};

/// Writes spans, and their resources and scopes, into a trace.
///
/// The parts of an item are written first, in any order, and the item then takes them: an event takes the attributes since a
/// [`Mark`]; a resource, a scope or a span takes everything that was written since the previous one. [`Writer::discard`], and
/// the drop of the writer, remove the parts that no item has taken yet; their strings stay.
#[derive(Debug)]
pub struct Writer<'t> {
    trace: &'t mut Trace,
    /// Attributes that no item has taken yet. A stack: those of an event are above those of its span.
    attributes: Vec<AttributeRow>,
    /// Elements that no array has taken yet, a stack too.
    cells: Vec<Cell>,
    /// The last key at each position of the stack: spans of one producer are similar to each other.
    keys: Vec<Text>,
    taken: Lengths,
}

/// A position in the parts that were written and not taken yet.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mark {
    attributes: usize,
    cells: usize,
}

/// The fields of a span, except its attributes, events and links.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SpanHead {
    /// Its id.
    pub id: SpanId,
    /// The id of its parent.
    pub parent: Option<SpanId>,
    /// Its resource.
    pub resource: ResourceIx,
    /// Its instrumentation scope.
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
    /// Its status code.
    pub status: StatusCode,
    /// The producer's message about an error.
    pub status_message: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// Events that the producer dropped.
    pub dropped_events: u32,
    /// Links that the producer dropped.
    pub dropped_links: u32,
}

impl SpanHead {
    /// Creates a span with these fields; all others have the defaults of OTLP.
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

/// The fields of an event, except its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct EventHead {
    /// The time of the event.
    pub at: Timestamp,
    /// The name of the event.
    pub name: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// The fields of a link, except its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct LinkHead {
    /// The id of the linked trace.
    pub trace_id: Option<TraceId>,
    /// The id of the linked span.
    pub span_id: Option<SpanId>,
    /// W3C trace state of the link, as sent.
    pub trace_state: Text,
    /// W3C trace flags and OTLP's bits above them.
    pub flags: u32,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
}

/// The fields of a resource, except its attributes and entities.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ResourceHead {
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// The schema of the attributes.
    pub schema_url: Text,
}

/// The fields of a scope, except its attributes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct ScopeHead {
    /// Its name.
    pub name: Text,
    /// Its version.
    pub version: Text,
    /// Attributes that the producer dropped.
    pub dropped_attributes: u32,
    /// The schema of its telemetry.
    pub schema_url: Text,
}

/// The lengths of the vectors of a trace.
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
    /// Creates a writer that appends to this trace.
    pub fn new(trace: &'t mut Trace) -> Self {
        let taken = Lengths::of(trace);
        Self { trace, attributes: Vec::new(), cells: Vec::new(), keys: Vec::new(), taken }
    }

    /// Returns the number of a text, or none if these bytes are not UTF-8.
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

    /// Writes a bytes value.
    pub fn bytes(&mut self, bytes: &[u8]) -> Result<Cell, TraceFull> {
        let start = self.trace.bytes.len();
        self.trace.bytes.extend_from_slice(bytes);
        Ok(Cell::Bytes(run(start, self.trace.bytes.len())?))
    }

    /// Returns the position where the next attribute or element is written.
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

    /// Creates a map value of the attributes since this position.
    pub fn map(&mut self, since: Mark) -> Result<Cell, TraceFull> {
        Ok(Cell::Map(self.attributes_since(since)?))
    }

    /// Creates an array value of the elements since this position.
    pub fn array(&mut self, since: Mark) -> Result<Cell, TraceFull> {
        let start = self.trace.cells.len();
        self.trace.cells.extend(self.cells.drain(since.cells..));
        Ok(Cell::Array(run(start, self.trace.cells.len())?))
    }

    /// Removes the attributes and elements since this position.
    #[inline]
    pub fn forget(&mut self, since: Mark) {
        self.attributes.truncate(since.attributes);
        self.cells.truncate(since.cells);
    }

    /// Writes an event with the attributes since this position.
    pub fn event(&mut self, head: EventHead, since: Mark) -> Result<(), TraceFull> {
        let attributes = self.attributes_since(since)?;
        self.trace.events.push(EventRow { head, attributes });
        Ok(())
    }

    /// Writes a link with the attributes since this position.
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

    /// Returns the index of a resource with the attributes and entities that no item has taken. Stores it if it is new.
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

    /// Returns the index of a scope with the attributes that no item has taken. Stores it if it is new.
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

    /// Adds a span with the attributes, events and links that no item has taken, unless it is already there.
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

    /// Removes the parts that no item has taken.
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
