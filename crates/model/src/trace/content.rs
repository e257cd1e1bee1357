//! Equality of the rows of a trace by content, and their hashes.
//!
//! Equal strings have equal numbers, so no text is compared here.

use std::hash::{Hash, Hasher};

use super::store::{AttributeRow, Cell, EntityRow, ResourceRow, Run, ScopeRow, SpanRow, Trace};

impl Trace {
    pub(super) fn is_same_resource(&self, a: &ResourceRow, b: &ResourceRow) -> bool {
        let same_entity = |(a, b): (&EntityRow, &EntityRow)| {
            let texts = |run: Run| &self.texts[run.range()];
            (a.schema_url, a.kind) == (b.schema_url, b.kind)
                && texts(a.id_keys) == texts(b.id_keys)
                && texts(a.description_keys) == texts(b.description_keys)
        };
        a.head == b.head
            && self.is_same_map(a.attributes, b.attributes)
            && a.entities.len == b.entities.len
            && self.entities[a.entities.range()]
                .iter()
                .zip(&self.entities[b.entities.range()])
                .all(same_entity)
    }

    pub(super) fn is_same_scope(&self, a: &ScopeRow, b: &ScopeRow) -> bool {
        a.head == b.head && self.is_same_map(a.attributes, b.attributes)
    }

    pub(super) fn is_same_span(&self, a: &SpanRow, b: &SpanRow) -> bool {
        let events = |row: &SpanRow| self.events[row.events.range()].iter();
        let links = |row: &SpanRow| self.links[row.links.range()].iter();
        a.head == b.head
            && self.is_same_map(a.attributes, b.attributes)
            && a.events.len == b.events.len
            && a.links.len == b.links.len
            && events(a)
                .zip(events(b))
                .all(|(a, b)| a.head == b.head && self.is_same_map(a.attributes, b.attributes))
            && links(a)
                .zip(links(b))
                .all(|(a, b)| a.head == b.head && self.is_same_map(a.attributes, b.attributes))
    }

    fn is_same_map(&self, a: Run, b: Run) -> bool {
        let same = |(a, b): (&AttributeRow, &AttributeRow)| {
            a.key == b.key && self.is_same(a.value, b.value)
        };
        let rows = |run: Run| self.attributes[run.range()].iter();
        a.len == b.len && rows(a).zip(rows(b)).all(same)
    }

    /// Recursion is as deep as the values, and the code that wrote them limits their depth.
    fn is_same(&self, a: Cell, b: Cell) -> bool {
        match (a, b) {
            (Cell::Empty, Cell::Empty) => true,
            (Cell::Bool(a), Cell::Bool(b)) => a == b,
            (Cell::Int(a), Cell::Int(b)) | (Cell::Double(a), Cell::Double(b)) => a == b,
            (Cell::Str(a), Cell::Str(b)) => a == b,
            (Cell::Bytes(a), Cell::Bytes(b)) => self.bytes[a.range()] == self.bytes[b.range()],
            (Cell::Array(a), Cell::Array(b)) => {
                let cells = |run: Run| self.cells[run.range()].iter().copied();
                a.len == b.len && cells(a).zip(cells(b)).all(|(a, b)| self.is_same(a, b))
            }
            (Cell::Map(a), Cell::Map(b)) => self.is_same_map(a, b),
            _ => false,
        }
    }

    pub(super) fn hash_of_resource(&self, row: &ResourceRow) -> u64 {
        let mut state = self.new_hasher();
        row.head.hash(&mut state);
        self.hash_map(row.attributes, &mut state);
        for entity in &self.entities[row.entities.range()] {
            (entity.schema_url, entity.kind).hash(&mut state);
            self.texts[entity.id_keys.range()].hash(&mut state);
            self.texts[entity.description_keys.range()].hash(&mut state);
        }
        state.finish()
    }

    pub(super) fn hash_of_scope(&self, row: &ScopeRow) -> u64 {
        let mut state = self.new_hasher();
        row.head.hash(&mut state);
        self.hash_map(row.attributes, &mut state);
        state.finish()
    }

    pub(super) fn hash_of_span(&self, row: &SpanRow) -> u64 {
        let mut state = self.new_hasher();
        row.head.hash(&mut state);
        self.hash_map(row.attributes, &mut state);
        for event in &self.events[row.events.range()] {
            event.head.hash(&mut state);
            self.hash_map(event.attributes, &mut state);
        }
        for link in &self.links[row.links.range()] {
            link.head.hash(&mut state);
            self.hash_map(link.attributes, &mut state);
        }
        state.finish()
    }

    fn hash_map(&self, run: Run, state: &mut impl Hasher) {
        run.len.hash(state);
        for row in &self.attributes[run.range()] {
            row.key.hash(state);
            self.hash_cell(row.value, state);
        }
    }

    fn hash_cell(&self, cell: Cell, state: &mut impl Hasher) {
        std::mem::discriminant(&cell).hash(state);
        match cell {
            Cell::Empty => {}
            Cell::Bool(value) => value.hash(state),
            Cell::Int(value) | Cell::Double(value) => value.hash(state),
            Cell::Str(text) => text.hash(state),
            Cell::Bytes(run) => self.bytes[run.range()].hash(state),
            Cell::Array(run) => {
                run.len.hash(state);
                self.cells[run.range()].iter().for_each(|cell| self.hash_cell(*cell, state));
            }
            Cell::Map(run) => self.hash_map(run, state),
        }
    }
}
