//! The rows of a trace, and their indices.

use std::hash::{BuildHasher, Hasher};

use hashbrown::{DefaultHashBuilder, HashTable, hash_table::Entry};
use thiserror::Error;

use super::{
    Span,
    strings::{Strings, Text},
    writer::{EventHead, LinkHead, ResourceHead, ScopeHead, SpanHead},
};
use crate::{Fault, Faulty, SpanId, TraceId};

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
    /// By content, with its hash.
    pub(super) resource_numbers: HashTable<(u64, ResourceIx)>,
    /// By content, with its hash.
    pub(super) scope_numbers: HashTable<(u64, ScopeIx)>,
    span_numbers: HashTable<SpanIx>,
    conflicts: Vec<SpanIx>,
    /// By content, since all of them may have the same id.
    conflict_numbers: HashTable<(u64, SpanIx)>,
    hasher: DefaultHashBuilder,
}

/// A span of a trace, by its index in order of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SpanIx(pub(super) u32);

/// A resource of a trace, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ResourceIx(pub(super) u32);

/// A scope of a trace, by its index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ScopeIx(pub(super) u32);

/// The result of pushing a span.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PushResult {
    /// The span is new.
    New(SpanIx),
    /// The same span with the same content is already there; nothing changed.
    Repeated(SpanIx),
    /// A span with this id and other content is there; both are stored, children belong to the first.
    Conflicting(SpanIx),
}

/// The error of a trace that exceeds its 32-bit indices.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the trace holds more than 4 GiB of text or 2^32 values")]
pub struct TraceFull;

impl Faulty for TraceFull {
    fn fault(&self) -> Fault {
        Fault::Overloaded
    }
}

/// A range of one of the vectors of a trace.
#[derive(Clone, Copy, Debug, Default)]
pub struct Run {
    pub(super) start: u32,
    pub(super) len: u32,
}

/// A value in 12 bytes: short values are stored inline, long ones as a range of a vector of the trace.
#[derive(Clone, Copy, Debug)]
pub enum Cell {
    /// A value that was sent without content.
    Empty,
    /// A boolean.
    Bool(bool),
    /// A 64-bit integer.
    Int(Wide),
    /// A double.
    Double(Wide),
    /// A text.
    Str(Text),
    /// Raw bytes, in `bytes`.
    Bytes(Run),
    /// A list of values, in `cells`.
    Array(Run),
    /// Keys and values, in `attributes`.
    Map(Run),
}

/// A 64-bit number in two halves, so that its container needs an alignment of only four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Wide([u32; 2]);

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
    pub(super) head: ResourceHead,
    pub(super) attributes: Run,
    pub(super) entities: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ScopeRow {
    pub(super) head: ScopeHead,
    pub(super) attributes: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct SpanRow {
    pub(super) head: SpanHead,
    pub(super) attributes: Run,
    pub(super) events: Run,
    pub(super) links: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct EventRow {
    pub(super) head: EventHead,
    pub(super) attributes: Run,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct LinkRow {
    pub(super) head: LinkHead,
    pub(super) attributes: Run,
}

impl Trace {
    /// Creates a trace without spans.
    pub fn new(id: TraceId) -> Self {
        Self {
            id,
            strings: Strings::new(),
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

    /// Returns its id.
    pub fn id(&self) -> TraceId {
        self.id
    }

    /// Returns the number of spans.
    pub fn len(&self) -> usize {
        self.spans.len()
    }

    /// Whether it has no span.
    pub fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Returns the span with this index.
    pub fn span(&self, ix: SpanIx) -> Span<'_> {
        Span::new(self, ix)
    }

    /// Returns all spans in order of arrival.
    pub fn spans(&self) -> impl Iterator<Item = Span<'_>> {
        (0..self.spans.len()).map(|number| self.span(SpanIx(number as u32)))
    }

    /// Returns the span with this id; of several, the first that arrived.
    pub fn find(&self, id: SpanId) -> Option<Span<'_>> {
        self.number_of(id).map(|ix| self.span(ix))
    }

    /// Returns the spans with the id of an earlier span and other content.
    pub fn conflicts(&self) -> &[SpanIx] {
        &self.conflicts
    }

    pub(super) fn number_of(&self, id: SpanId) -> Option<SpanIx> {
        let same = |ix: &SpanIx| self.spans[ix.0 as usize].head.id == id;
        self.span_numbers.find(self.hasher.hash_one(id), same).copied()
    }

    /// Returns the result of adding a span with this index; unless it is already there, the caller must then push it.
    pub(super) fn admit(&mut self, row: &SpanRow, ix: SpanIx) -> PushResult {
        let Self { span_numbers, hasher, spans, .. } = self;
        let id = |ix: &SpanIx| spans[ix.0 as usize].head.id;
        let hash = hasher.hash_one(row.head.id);
        let rehash = |ix: &SpanIx| hasher.hash_one(id(ix));
        match span_numbers.entry(hash, |ix| id(ix) == row.head.id, rehash) {
            Entry::Vacant(vacant) => {
                vacant.insert(ix);
                PushResult::New(ix)
            }
            Entry::Occupied(first) => {
                let first = *first.get();
                self.admit_beside(first, row, ix)
            }
        }
    }

    /// The same for a span with a known id.
    fn admit_beside(&mut self, first: SpanIx, row: &SpanRow, ix: SpanIx) -> PushResult {
        let is_same = |ix: SpanIx| self.is_same_span(&self.spans[ix.0 as usize], row);
        if is_same(first) {
            return PushResult::Repeated(first);
        }
        let hash = self.hash_of_span(row);
        if let Some((_, known)) = self.conflict_numbers.find(hash, |(_, ix)| is_same(*ix)) {
            return PushResult::Repeated(*known);
        }
        self.conflict_numbers.insert_unique(hash, (hash, ix), |(hash, _)| *hash);
        self.conflicts.push(ix);
        PushResult::Conflicting(ix)
    }

    pub(super) fn new_hasher(&self) -> impl Hasher + use<> {
        self.hasher.build_hasher()
    }
}

impl Wide {
    fn from_bits(bits: u64) -> Self {
        Self([bits as u32, (bits >> 32) as u32])
    }

    fn to_bits(self) -> u64 {
        u64::from(self.0[0]) | u64::from(self.0[1]) << 32
    }

    pub(super) fn to_int(self) -> i64 {
        self.to_bits() as i64
    }

    pub(super) fn to_double(self) -> f64 {
        f64::from_bits(self.to_bits())
    }
}

impl From<i64> for Wide {
    fn from(number: i64) -> Self {
        Self::from_bits(number as u64)
    }
}

impl From<f64> for Wide {
    fn from(number: f64) -> Self {
        Self::from_bits(number.to_bits())
    }
}

impl Run {
    pub(super) fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.start as usize + self.len as usize
    }
}
