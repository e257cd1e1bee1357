//! Evaluates all atoms in one pass over the spans.
//!
//! Atoms on the same property are evaluated together. Their results for a value are memoized as a row, so that a value that
//! occurred before only sets a few bits. The bits of 64 spans at a time are adjacent in memory and stay in the cache.

use std::collections::HashMap;

use model::trace::{
    Attributes, Kind, NumberedAttribute, ResourceIx, ScopeIx, Span, StatusCode, ValueRef,
};

use super::{
    atom::{Atom, Source},
    drop_count::has_dropped_attributes,
    future::Truth,
    index::Extent,
    lookup::{BROWSER_KEY, BROWSER_NAMES, Lookup, TYPES},
    span_time::duration,
    world::EvalContext,
};
use crate::{
    budget,
    syntax::ast::{Intrinsic, Property},
    value::{Number, Value},
};

/// Results as indexes of bits: each atom has three bits, and the bit that is set is its result.
type Row = Vec<u16>;

/// The budget steps to visit a span once, in addition to the evaluation of atoms.
const SPAN_STEPS: u64 = 64;

/// The maximum number of rows that an atom group memoizes.
const REMEMBERED: usize = 1024;

/// Returns the results of all atoms, in their order.
pub(super) fn answer<'a>(atoms: &[Atom<'a>], world: &EvalContext<'a>) -> Vec<Extent> {
    let mut extents: Vec<_> = atoms.iter().map(|_| Extent::nowhere(world.len())).collect();
    if atoms.is_empty() {
        return extents;
    }
    if !budget::spend(world.len() as u64 * (SPAN_STEPS + atoms.len() as u64 / 8)) {
        return extents;
    }
    let mut asked = AtomIndex::of(atoms, world);
    let mut block = Block::of(atoms);
    for span in world.trace.spans() {
        let number = span.ix().number();
        block.bit = 1 << (number % 64);
        asked.of_span(span, &mut block);
        if number % 64 == 63 {
            block.flush(number / 64, &mut extents);
            if budget::is_over() {
                return extents;
            }
        }
    }
    if !world.len().is_multiple_of(64) {
        block.flush(world.len() / 64, &mut extents);
    }
    extents
}

/// The results for 64 spans.
struct Block {
    words: Vec<u64>,
    /// The initial results, before any value is found.
    absent: Vec<u64>,
    bit: u64,
}

impl Block {
    fn of(atoms: &[Atom<'_>]) -> Self {
        let mut absent = vec![0; atoms.len() * 3];
        for (at, atom) in atoms.iter().enumerate() {
            // An atom without another source is absent until an attribute is found.
            if atom.source() == Source::None
                && let Some(plane) = plane(at, atom.absent())
            {
                absent[usize::from(plane)] = u64::MAX;
            }
        }
        Self { words: absent.clone(), absent, bit: 0 }
    }

    fn set(&mut self, row: &[u16]) {
        for plane in row {
            self.words[usize::from(*plane)] |= self.bit;
        }
    }

    fn clear(&mut self, atoms: &[u16]) {
        for at in atoms {
            let first = usize::from(*at) * 3;
            self.words[first..first + 3].iter_mut().for_each(|word| *word &= !self.bit);
        }
    }

    fn flush(&mut self, word: usize, extents: &mut [Extent]) {
        for (planes, extent) in self.words.chunks_exact(3).zip(extents) {
            extent.yes.set_word(word, planes[0]);
            extent.no.set_word(word, planes[1]);
            extent.open.set_word(word, planes[2]);
        }
        self.words.copy_from_slice(&self.absent);
    }
}

/// Returns the index of the bit of a result.
fn plane(at: usize, truth: Truth) -> Option<u16> {
    let kind = match truth {
        Truth::True => 0,
        Truth::False => 1,
        Truth::Open => 2,
        // Never unmet: an atom is one comparison.
        Truth::Undefined | Truth::Unmet => return None,
    };
    u16::try_from(at * 3 + kind).ok()
}

/// The atoms on one property.
#[derive(Default)]
struct AtomGroup {
    atoms: Vec<u16>,
    /// The atoms for which another source may have set a result before.
    later: Vec<u16>,
    texts: Rows,
    wholes: Rows,
}

/// The memoized rows of values, by the numbers of the values.
#[derive(Default)]
struct Rows(Vec<(u64, Row)>);

impl Rows {
    /// Returns the row of a value. Computes it if the slot of the value holds the row of another value.
    fn get(&mut self, key: u64, make: impl FnOnce(&mut Row)) -> &Row {
        if self.0.is_empty() {
            // Each slot starts with a key that does not belong to it.
            self.0 = (0..REMEMBERED as u64).map(|at| (at + 1, Row::new())).collect();
        }
        let (known, row) = &mut self.0[key as usize % REMEMBERED];
        if *known != key {
            row.clear();
            make(row);
            *known = key;
        }
        row
    }
}

impl AtomGroup {
    fn add(&mut self, at: usize, is_later: bool) {
        let Ok(at) = u16::try_from(at) else { return };
        self.atoms.push(at);
        if is_later {
            self.later.push(at);
        }
    }

    /// Evaluates all atoms with the callback, and appends their results to the row.
    fn row<'a>(which: &[u16], atoms: &[Atom<'a>], row: &mut Row, ask: impl Fn(&Atom<'a>) -> Truth) {
        row.extend(which.iter().filter_map(|at| {
            let at = usize::from(*at);
            plane(at, ask(&atoms[at]))
        }));
    }

    fn text<'a>(
        &mut self,
        number: u32,
        atoms: &[Atom<'a>],
        world: &EvalContext<'a>,
        block: &mut Block,
    ) {
        let Self { atoms: which, texts, .. } = self;
        let ask = |atom: &Atom<'a>| atom.text(number, world);
        block.set(texts.get(number.into(), |row| Self::row(which, atoms, row, ask)));
    }

    fn attribute<'a>(
        &mut self,
        attribute: NumberedAttribute<'_>,
        atoms: &[Atom<'a>],
        world: &EvalContext<'a>,
        block: &mut Block,
    ) {
        block.clear(&self.later);
        if let Some(number) = attribute.text() {
            return self.text(number, atoms, world, block);
        }
        let Self { atoms: which, wholes, .. } = self;
        match attribute.value() {
            ValueRef::Int(int) => {
                let ask = |atom: &Atom<'a>| atom.number(Number::Int(int.into()));
                block.set(wholes.get(int as u64, |row| Self::row(which, atoms, row, ask)));
            }
            ValueRef::Double(double) => {
                Self::ask(which, atoms, block, |atom| atom.number(Number::Double(double)));
            }
            value => {
                Self::ask(which, atoms, block, |atom| atom.looked_up(Lookup::One(value.into())));
            }
        }
    }

    /// Evaluates all atoms, without memoizing the results.
    fn ask<'a>(
        which: &[u16],
        atoms: &[Atom<'a>],
        block: &mut Block,
        ask: impl Fn(&Atom<'a>) -> Truth,
    ) {
        for at in which {
            let at = usize::from(*at);
            if let Some(plane) = plane(at, ask(&atoms[at])) {
                block.set(&[plane]);
            }
        }
    }
}

/// All atoms, by property.
struct AtomIndex<'s, 'a> {
    atoms: &'s [Atom<'a>],
    world: &'s EvalContext<'a>,
    names: AtomGroup,
    /// Rows by the number of a kind, of a status, of a type.
    kinds: Vec<Row>,
    statuses: Vec<Row>,
    types: Vec<Row>,
    type_numbers: Types,
    durations: AtomGroup,
    /// Atoms that are looked up for each span.
    others: AtomGroup,
    /// Atoms that are looked up for spans with any other kind or status.
    rare: AtomGroup,
    shared: SharedAnswers,
    attributes: AttributeIndex,
    all: Vec<u16>,
}

impl<'s, 'a> AtomIndex<'s, 'a> {
    fn of(atoms: &'s [Atom<'a>], world: &'s EvalContext<'a>) -> Self {
        let by = |source: Source| {
            let mut question = AtomGroup::default();
            for (at, _) in atoms.iter().enumerate().filter(|(_, atom)| atom.source() == source) {
                question.add(at, false);
            }
            question
        };
        let rows = |source: Source, words: &[(&'static str, &'static str)]| -> Vec<Row> {
            let which = by(source).atoms;
            if which.is_empty() {
                return Vec::new();
            }
            let row = |(word, code): &(&'static str, &'static str)| {
                let mut row = Row::new();
                AtomGroup::row(&which, atoms, &mut row, |atom| {
                    let word = if atom.is_status_code() { code } else { word };
                    atom.looked_up(Lookup::One(Value::borrowed(word)))
                });
                row
            };
            words.iter().map(row).collect()
        };
        let kinds: Vec<_> = (0..6)
            .map(|number| Kind::from_number(number).as_str())
            .map(|word| (word, word))
            .collect();
        let types: Vec<_> =
            TYPES.iter().map(|(_, name)| (*name, *name)).chain([("general", "general")]).collect();
        let mut rare = by(Source::Status);
        by(Source::Kind).atoms.iter().for_each(|at| rare.add(usize::from(*at), false));
        Self {
            atoms,
            world,
            names: by(Source::Name),
            kinds: rows(Source::Kind, &kinds),
            statuses: rows(Source::Status, &STATUSES),
            types: rows(Source::Type, &types),
            type_numbers: Types::of(world),
            durations: by(Source::Duration),
            others: by(Source::Span),
            rare,
            shared: SharedAnswers::default(),
            attributes: AttributeIndex::of(atoms, world),
            all: (0..atoms.len()).filter_map(|at| u16::try_from(at).ok()).collect(),
        }
    }

    fn of_span(&mut self, span: Span<'a>, block: &mut Block) {
        let (atoms, world) = (self.atoms, self.world);
        if !self.names.atoms.is_empty() {
            self.names.text(world.trace.name_number(span.ix()), atoms, world, block);
        }
        let kind = self.kinds.get(span.kind().number() as usize);
        let status = self.statuses.get(span.status().number() as usize);
        match (kind, status) {
            (Some(kind), Some(status)) if !world.is_trigger(span.ix()) => {
                block.set(kind);
                block.set(status);
            }
            // One of them may not be queried at all; or it is a kind or code of a later OTLP version.
            _ => self.rare_of(span, block),
        }
        if !self.types.is_empty() {
            block.set(&self.types[self.type_numbers.of_span(span, world)]);
        }
        if !self.durations.atoms.is_empty() {
            let duration = duration(span);
            AtomGroup::ask(&self.durations.atoms, atoms, block, |atom| match duration {
                Ok(nanos) => atom.duration(nanos),
                Err(lack) => atom.looked_up(Lookup::Untimed(lack)),
            });
        }
        AtomGroup::ask(&self.others.atoms, atoms, block, |atom| atom.of_span(span, world));
        let (cleared, row) = self.shared.of(atoms, span, world);
        block.clear(cleared);
        block.set(row);
        // From the last: if a key occurs twice, the last value counts.
        for attribute in world.trace.numbered_attributes(span.ix()).rev() {
            if let Some(question) = self.attributes.of_key(attribute.key(), span.ix().number()) {
                question.attribute(attribute, atoms, world, block);
            }
        }
        if has_dropped_attributes(span) {
            block.clear(&self.all);
            AtomGroup::ask(&self.all, atoms, block, |atom| atom.of_rest(span, world));
        }
    }

    fn rare_of(&self, span: Span<'a>, block: &mut Block) {
        let is_known = !self.world.is_trigger(span.ix());
        let kind = self.kinds.get(span.kind().number() as usize).filter(|_| is_known);
        let status = self.statuses.get(span.status().number() as usize).filter(|_| is_known);
        for row in kind.iter().chain(&status) {
            block.set(row);
        }
        let is_asked = |atom: &Atom<'_>| match atom.source() {
            Source::Kind => kind.is_none(),
            _ => status.is_none(),
        };
        AtomGroup::ask(&self.rare.atoms, self.atoms, block, |atom| match is_asked(atom) {
            true => atom.of_span(span, self.world),
            false => Truth::Undefined,
        });
    }
}

/// The names of a status, and those of its code, by the number of the code.
const STATUSES: [(&str, &str); 3] = [
    (StatusCode::Unset.as_str(), "STATUS_CODE_UNSET"),
    (StatusCode::Ok.as_str(), "STATUS_CODE_OK"),
    (StatusCode::Error.as_str(), "STATUS_CODE_ERROR"),
];

/// The types of spans, by the keys of their attributes.
struct Types {
    /// By the number of a key: 0 if it was not classified yet, else one more than the number of its type.
    keys: Vec<u8>,
    browser_names: [Option<u32>; 3],
    browser_key: Option<u32>,
}

impl Types {
    fn of(world: &EvalContext<'_>) -> Self {
        Self {
            keys: Vec::new(),
            browser_names: BROWSER_NAMES.map(|name| world.trace.text_number(name)),
            browser_key: world.trace.text_number(BROWSER_KEY),
        }
    }

    /// Returns the number of a span's type; one beyond the last for spans that have none.
    fn of_span(&mut self, span: Span<'_>, world: &EvalContext<'_>) -> usize {
        let name = Some(world.trace.name_number(span.ix()));
        if self.browser_names.contains(&name) || world.is_trigger(span.ix()) {
            return TYPES.len();
        }
        let mut found = TYPES.len();
        for attribute in world.trace.numbered_attributes(span.ix()) {
            if Some(attribute.key()) == self.browser_key {
                return TYPES.len();
            }
            found = found.min(self.of_key(attribute.key(), world));
        }
        found
    }

    fn of_key(&mut self, key: u32, world: &EvalContext<'_>) -> usize {
        let at = key as usize;
        if self.keys.len() <= at {
            self.keys.resize(at + 1, 0);
        }
        if self.keys[at] == 0 {
            let name = world.trace.text(key);
            let known = TYPES.iter().position(|(prefix, _)| name.starts_with(prefix));
            self.keys[at] = known.unwrap_or(TYPES.len()) as u8 + 1;
        }
        usize::from(self.keys[at]) - 1
    }
}

/// The atoms on attributes, by the number of the key.
struct AttributeIndex {
    /// By key: one more than the index of its atom group; 0 for most keys.
    slots: Vec<u16>,
    /// Each with the last span that it was evaluated for, from 1: if a key occurs twice, the first one visited counts.
    questions: Vec<(AtomGroup, usize)>,
}

impl AttributeIndex {
    fn of(atoms: &[Atom<'_>], world: &EvalContext<'_>) -> Self {
        let mut wanted = Self { slots: Vec::new(), questions: Vec::new() };
        for (at, atom) in atoms.iter().enumerate() {
            let key = atom.attribute().and_then(|name| world.trace.text_number(name));
            let Some(key) = key.map(|key| key as usize) else { continue };
            if wanted.slots.len() <= key {
                wanted.slots.resize(key + 1, 0);
            }
            if wanted.slots[key] == 0 {
                wanted.questions.push((AtomGroup::default(), 0));
                wanted.slots[key] = u16::try_from(wanted.questions.len()).unwrap_or(u16::MAX);
            }
            let is_later = atom.source() != Source::None
                || atom.absent() != Truth::Undefined
                || atom.may_be_shared(world);
            wanted.questions[usize::from(wanted.slots[key]) - 1].0.add(at, is_later);
        }
        wanted
    }

    fn of_key(&mut self, key: u32, span: usize) -> Option<&mut AtomGroup> {
        let slot = self.slots.get(key as usize).filter(|slot| **slot > 0)?;
        let (question, taken) = &mut self.questions[usize::from(*slot) - 1];
        if *taken == span + 1 {
            return None;
        }
        *taken = span + 1;
        Some(question)
    }
}

/// The results that all spans of a resource and a scope share.
#[derive(Default)]
struct SharedAnswers {
    known: HashMap<(ResourceIx, ScopeIx), usize>,
    /// The atoms, and their results.
    answers: Vec<(Vec<u16>, Row)>,
    last: Option<((ResourceIx, ScopeIx), usize)>,
}

impl SharedAnswers {
    fn of<'a>(
        &mut self,
        atoms: &[Atom<'a>],
        span: Span<'a>,
        world: &EvalContext<'a>,
    ) -> (&[u16], &Row) {
        let whose = (span.resource_ix(), span.scope_ix());
        let number = match self.last {
            Some((last, number)) if last == whose => number,
            _ => *self.known.entry(whose).or_insert_with(|| {
                self.answers.push(shared(atoms, span, world));
                self.answers.len() - 1
            }),
        };
        self.last = Some((whose, number));
        let (cleared, row) = &self.answers[number];
        (cleared, row)
    }
}

fn shared<'a>(atoms: &[Atom<'a>], span: Span<'a>, world: &EvalContext<'a>) -> (Vec<u16>, Row) {
    let (mut whose, mut row) = (Vec::new(), Row::new());
    let attributes = span.resource().attributes();
    for (at, atom) in atoms.iter().enumerate() {
        let answer = on_resource(atom, attributes)
            .or_else(|| (atom.source() == Source::Scope).then(|| atom.of_span(span, world)));
        let (Some(truth), Ok(at)) = (answer, u16::try_from(at)) else { continue };
        whose.push(at);
        row.extend(plane(usize::from(at), truth));
    }
    (whose, row)
}

/// Returns the result for a resource; `None` if the atom must be evaluated for each span.
fn on_resource(atom: &Atom<'_>, attributes: Attributes<'_>) -> Option<Truth> {
    let found = |name: &str| attributes.get(name).map(|value| Lookup::One(value.into()));
    if let Some(lookup) = atom.attribute().and_then(found) {
        return Some(atom.looked_up(lookup));
    }
    let name = match atom.otherwise()? {
        Property::Intrinsic(Intrinsic::Service, _) => "service.name",
        Property::Resource(name) => name,
        _ => return None,
    };
    Some(atom.looked_up(found(name).unwrap_or(Lookup::Absent)))
}
