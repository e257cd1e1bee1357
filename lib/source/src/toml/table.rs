//! The rules of TOML for tables: which tables a header or a dotted key may open, and which may be extended later.

use std::collections::{HashMap, hash_map};

use crate::{
    Diagnostic, Diagnostics, Entry, NESTING_MAX, Node, Scalar, Span, Value,
    mistakes::{duplicate, too_deep},
};

/// The document while it is built.
pub(super) struct Tree<'a> {
    found: &'a Diagnostics,
    root: Table,
    /// The table of the last header, as positions from the root. `None`: the header was rejected, and the following
    /// entries are stored separately, so that their errors are still reported.
    current: Option<Vec<usize>>,
    refused: Table,
}

pub(super) struct Table {
    span: Span,
    origin: Origin,
    entries: Vec<(Scalar, Slot)>,
    by_name: HashMap<String, usize>,
}

/// The value of a key.
pub(super) enum Slot {
    /// A scalar, or an array that was written inline: it cannot be extended.
    Value(Node),
    Table(Table),
    /// The tables that `[[…]]` opened; never empty.
    Tables(Vec<Table>),
}

/// The syntax that created a table.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// A longer header; the table's own header may follow once.
    Path,
    Header,
    DottedKey,
    Inline,
}

impl<'a> Tree<'a> {
    pub(super) fn new(found: &'a Diagnostics) -> Self {
        let table = || Table::new(Span::at(found.text().body()), Origin::Header);
        Self { found, root: table(), current: Some(Vec::new()), refused: table() }
    }

    pub(super) fn finish(mut self) -> Node {
        let content = self.found.text().content();
        let end = content.trim_end().len().max(self.root.span.start);
        let blank = content[self.root.span.start..end].len()
            - content[self.root.span.start..end].trim_start().len();
        self.root.span = Span { start: self.root.span.start + blank, end };
        self.root.into_node()
    }

    pub(super) fn into_inline(mut self, span: Span) -> Table {
        self.root.span = span;
        self.root.origin = Origin::Inline;
        self.root
    }

    /// Opens the table of `[a.b]`.
    pub(super) fn open_table(&mut self, path: Vec<Scalar>, header: Span) {
        self.current = self.parent_of(path).and_then(|(mut position, key)| {
            let found = self.found;
            let table = self.root.at(&position)?;
            let at = match table.by_name.get(&key.text) {
                None => table.add(key, Slot::Table(Table::new(header, Origin::Header))),
                Some(&at) => match &mut table.entries[at].1 {
                    Slot::Table(old) if old.origin == Origin::Path => {
                        old.span = header;
                        old.origin = Origin::Header;
                        at
                    }
                    _ => {
                        found.push(duplicate(found, &key, table.entries[at].0.span));
                        return None;
                    }
                },
            };
            position.push(at);
            Some(position)
        });
    }

    /// Opens the table of `[[a.b]]`.
    pub(super) fn open_array_table(&mut self, path: Vec<Scalar>, header: Span) {
        self.current = self.parent_of(path).and_then(|(mut position, key)| {
            let found = self.found;
            let table = self.root.at(&position)?;
            let new = Table::new(header, Origin::Header);
            let at = match table.by_name.get(&key.text) {
                None => table.add(key, Slot::Tables(vec![new])),
                Some(&at) => match &mut table.entries[at].1 {
                    Slot::Tables(tables) => {
                        tables.push(new);
                        at
                    }
                    Slot::Value(_) | Slot::Table(_) => {
                        found.push(duplicate(found, &key, table.entries[at].0.span));
                        return None;
                    }
                },
            };
            position.push(at);
            Some(position)
        });
    }

    /// Inserts `a.b = value` into the table of the last header.
    pub(super) fn insert(&mut self, mut path: Vec<Scalar>, slot: Slot) {
        let found = self.found;
        let depth = self.current.as_ref().map_or(0, Vec::len);
        let Some(key) = path.pop() else { return };
        if depth + path.len() >= NESTING_MAX {
            found.push(too_deep(found, key.span));
            return;
        }
        let mut table = match &self.current {
            Some(position) => self.root.at(position).unwrap_or(&mut self.refused),
            None => &mut self.refused,
        };
        for part in path {
            let at = match table.by_name.get(&part.text) {
                Some(&at) => at,
                None => {
                    let new = Table::new(part.span, Origin::DottedKey);
                    table.add(part.clone(), Slot::Table(new))
                }
            };
            let (first, slot) = &mut table.entries[at];
            match slot {
                Slot::Table(inner) if inner.origin == Origin::DottedKey => table = inner,
                _ => {
                    found.push(closed(found, &part, first.span));
                    return;
                }
            }
        }
        if let Some(&at) = table.by_name.get(&key.text) {
            found.push(duplicate(found, &key, table.entries[at].0.span));
        } else {
            table.add(key, slot);
        }
    }

    /// Resolves all but the last part of a header, and opens missing tables.
    fn parent_of(&mut self, mut path: Vec<Scalar>) -> Option<(Vec<usize>, Scalar)> {
        let found = self.found;
        let last = path.pop()?;
        if path.len() >= NESTING_MAX {
            found.push(too_deep(found, last.span));
            return None;
        }
        let mut position = Vec::with_capacity(path.len() + 1);
        let mut table = &mut self.root;
        for part in path {
            let at = match table.by_name.get(&part.text) {
                Some(&at) => at,
                None => table.add(part.clone(), Slot::Table(Table::new(part.span, Origin::Path))),
            };
            position.push(at);
            let (first, slot) = &mut table.entries[at];
            let first = first.span;
            table = match slot.open() {
                Some(inner) => inner,
                None => {
                    found.push(closed(found, &part, first));
                    return None;
                }
            };
        }
        Some((position, last))
    }
}

impl Table {
    fn new(span: Span, origin: Origin) -> Self {
        Self { span, origin, entries: Vec::new(), by_name: HashMap::new() }
    }

    fn add(&mut self, key: Scalar, slot: Slot) -> usize {
        let at = self.entries.len();
        if let hash_map::Entry::Vacant(vacant) = self.by_name.entry(key.text.clone()) {
            vacant.insert(at);
        }
        self.entries.push((key, slot));
        at
    }

    /// Returns the table at a position that was resolved before.
    fn at(&mut self, position: &[usize]) -> Option<&mut Table> {
        position.iter().try_fold(self, |table, at| table.entries.get_mut(*at)?.1.open())
    }

    fn into_node(self) -> Node {
        let entries =
            self.entries.into_iter().map(|(key, slot)| Entry { key, value: slot.into_node() });
        Node { span: self.span, value: Value::Table(entries.collect()) }
    }
}

impl Slot {
    /// Returns the table that a header may extend: the last one of an array of tables.
    fn open(&mut self) -> Option<&mut Table> {
        match self {
            Self::Table(table) if table.origin != Origin::Inline => Some(table),
            Self::Tables(tables) => tables.last_mut(),
            Self::Value(_) | Self::Table(_) => None,
        }
    }

    pub(super) fn into_node(self) -> Node {
        match self {
            Self::Value(node) => node,
            Self::Table(table) => table.into_node(),
            Self::Tables(tables) => {
                let span = tables.first().map_or(Span::default(), |table| table.span);
                let items = tables.into_iter().map(Table::into_node).collect();
                Node { span, value: Value::Sequence(items) }
            }
        }
    }
}

fn closed(found: &Diagnostics, key: &Scalar, first: Span) -> Diagnostic {
    found
        .error(key.span, format!("nothing can be added to `{}`", key.text))
        .label("added to here")
        .also(first, "complete since here")
}
