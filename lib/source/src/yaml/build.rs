//! Builds a document from the parser's events.
//!
//! Aliases are replaced by the value of their anchor, under one limit for the entire document: otherwise a few lines of
//! aliases to aliases can exhaust the memory.

use std::collections::{HashMap, HashSet};

use saphyr_parser::{Event, ScalarStyle, Tag};

use super::YamlStop;
use crate::{
    Diagnostics, Entry, NESTING_MAX, Node, Scalar, Span, Style, Value,
    decode::{self, DecodedScalar, Places},
    mistakes::{duplicate, too_deep},
    scalar::Kind,
};

/// The maximum bytes that the anchors and aliases of one document may copy, approximately.
const COPIED_BYTES_MAX: usize = 8 * 1024 * 1024;

/// The approximate overhead of a node besides its text, in bytes.
const NODE_BYTES: usize = 128;

const CORE_TAGS: &str = "tag:yaml.org,2002:";

pub(super) struct Builder<'a> {
    found: &'a Diagnostics,
    source: &'a str,
    frames: Vec<Frame>,
    root: Option<Node>,
    anchors: HashMap<usize, (Node, Size)>,
    copied_bytes: usize,
    /// The end of the last value; only indicators, properties and comments come between it and the next value.
    last_end: usize,
}

/// A scalar as the parser reports it.
struct RawScalar<'e> {
    text: &'e str,
    style: ScalarStyle,
    /// From its anchor and tag to its end; for a block scalar without them only the content.
    span: Span,
    /// The start behind its anchor and tag.
    start: usize,
}

/// A collection that is not closed yet.
struct Frame {
    start: usize,
    anchor: usize,
    content: Content,
    size: Size,
    /// The end of its last value.
    end: usize,
}

enum Content {
    Sequence(Vec<Node>),
    Table { entries: Vec<Entry>, key: PendingKey },
}

enum PendingKey {
    None,
    Key(Scalar),
    /// A node that cannot be a key; its value is read and discarded.
    Refused,
}

#[derive(Clone, Copy)]
struct Size {
    bytes: usize,
    height: usize,
}

impl<'a> Builder<'a> {
    pub(super) fn new(found: &'a Diagnostics, start: usize) -> Self {
        Self {
            found,
            source: found.text().content(),
            frames: Vec::new(),
            root: None,
            anchors: HashMap::new(),
            copied_bytes: 0,
            last_end: start,
        }
    }

    /// Returns the document, unless it is empty. Its anchors end with it.
    pub(super) fn finish(&mut self) -> Option<Node> {
        self.anchors.clear();
        self.copied_bytes = 0;
        let is_empty = |node: &Node| {
            node.as_scalar().is_some_and(|scalar| scalar.is_null() && scalar.text.is_empty())
        };
        self.root.take().filter(|root| !is_empty(root))
    }

    pub(super) fn add(&mut self, event: Event<'_>, span: Span) -> Result<(), YamlStop> {
        match event {
            Event::Scalar(text, style, anchor, tag) => {
                let kind = self.kind(&text, style, tag.as_deref(), span);
                let start = self.content_start(span, anchor, tag.as_deref());
                let scalar = self.scalar(&RawScalar { text: &text, style, span, start }, kind);
                let size = Size { bytes: NODE_BYTES + scalar.weight(), height: 1 };
                let node = Node { span: scalar.span, value: Value::Scalar(scalar) };
                self.anchor(anchor, &node, size)?;
                self.place(node, size);
            }
            Event::Alias(anchor) => self.alias(anchor, span)?,
            Event::SequenceStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "seq", span);
                let start = self.content_start(span, anchor, tag.as_deref());
                self.open(anchor, Content::Sequence(Vec::new()), start)?;
            }
            Event::MappingStart(anchor, tag) => {
                self.check_tag(tag.as_deref(), "map", span);
                let start = self.content_start(span, anchor, tag.as_deref());
                let content = Content::Table { entries: Vec::new(), key: PendingKey::None };
                self.open(anchor, content, start)?;
            }
            Event::SequenceEnd | Event::MappingEnd => self.close(span)?,
            Event::DocumentStart(true) => self.last_end = span.end,
            Event::DocumentStart(false)
            | Event::DocumentEnd
            | Event::Nothing
            | Event::StreamStart
            | Event::StreamEnd => {}
        }
        Ok(())
    }

    fn open(&mut self, anchor: usize, content: Content, start: usize) -> Result<(), YamlStop> {
        if self.frames.len() >= NESTING_MAX {
            return Err(self.too_deep(Span::at(start)));
        }
        let size = Size { bytes: NODE_BYTES, height: 1 };
        self.frames.push(Frame { start, anchor, content, size, end: start });
        Ok(())
    }

    fn close(&mut self, span: Span) -> Result<(), YamlStop> {
        let Some(frame) = self.frames.pop() else { return Ok(()) };
        // A flow collection ends with its bracket; for a block collection the parser reports the next token instead.
        let opened = self.source[frame.start..].starts_with(['[', '{']);
        let closed = !span.is_empty() && self.source[span.start..].starts_with([']', '}']);
        let end = if opened && closed { span.start + 1 } else { frame.end };
        let value = match frame.content {
            Content::Sequence(items) => Value::Sequence(items),
            Content::Table { entries, .. } => Value::Table(unique(entries, self.found)),
        };
        let node = Node { span: Span { start: frame.start, end: end.max(frame.start) }, value };
        self.last_end = self.last_end.max(node.span.end);
        self.anchor(frame.anchor, &node, frame.size)?;
        self.place(node, frame.size);
        Ok(())
    }

    /// Adds a complete node to its collection, or makes it the root.
    fn place(&mut self, node: Node, size: Size) {
        let Some(frame) = self.frames.last_mut() else {
            self.root = Some(node);
            return;
        };
        frame.size.bytes += size.bytes;
        frame.size.height = frame.size.height.max(size.height + 1);
        frame.end = frame.end.max(self.last_end);
        match &mut frame.content {
            Content::Sequence(items) => items.push(node),
            Content::Table { entries, key } => match std::mem::replace(key, PendingKey::None) {
                PendingKey::Key(key) => entries.push(Entry { key, value: node }),
                PendingKey::Refused => {}
                PendingKey::None => {
                    *key = match node.value {
                        Value::Scalar(scalar) => PendingKey::Key(scalar),
                        Value::Sequence(_) | Value::Table(_) => {
                            let span = self.found.text().first_line(node.span);
                            let mistake = self.found.error(span, "a key must be a single value");
                            self.found.push(mistake.label(format!("found {}", node.kind())));
                            PendingKey::Refused
                        }
                    };
                }
            },
        }
    }

    fn anchor(&mut self, anchor: usize, node: &Node, size: Size) -> Result<(), YamlStop> {
        if anchor > 0 {
            self.copy(size, node.span)?;
            self.anchors.insert(anchor, (node.clone(), size));
        }
        Ok(())
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<(), YamlStop> {
        self.last_end = span.end;
        let Some((node, size)) = self.anchors.get(&anchor) else {
            let inside = self.frames.iter().any(|frame| frame.anchor == anchor);
            let message = if inside {
                "an alias is inside the value that it repeats"
            } else {
                "an alias without an anchor in this document"
            };
            self.found.push(self.found.error(span, message));
            return Err(YamlStop(span.end));
        };
        let size = *size;
        if self.frames.len() + size.height > NESTING_MAX {
            return Err(self.too_deep(span));
        }
        if self.copied_bytes + size.bytes <= COPIED_BYTES_MAX {
            let node = node.clone();
            self.place(node, size);
        }
        self.copy(size, span)
    }

    fn copy(&mut self, size: Size, span: Span) -> Result<(), YamlStop> {
        self.copied_bytes += size.bytes;
        if self.copied_bytes > COPIED_BYTES_MAX {
            let span = self.found.text().first_line(span);
            let mistake = self.found.error(span, "anchors and aliases repeat too much");
            self.found.push(mistake.help("write the values out, or split the document"));
            return Err(YamlStop(span.end));
        }
        Ok(())
    }

    fn too_deep(&self, span: Span) -> YamlStop {
        self.found.push(too_deep(self.found, span));
        YamlStop(span.end)
    }

    fn scalar(&mut self, told: &RawScalar<'_>, kind: Kind) -> Scalar {
        let (style, decoded) = self.decoded(told);
        let (span, places) = match decoded {
            Some((start, decoded)) if decoded.text == told.text => {
                (Span { start, end: decoded.end }, decoded.places)
            }
            _ => (told.span, Places::default()),
        };
        self.last_end = self.last_end.max(span.end);
        Scalar::new(told.text.to_owned(), style, span, kind, places)
    }

    /// Decodes the scalar again with its locations, and returns its start.
    fn decoded(&self, told: &RawScalar<'_>) -> (Style, Option<(usize, DecodedScalar)>) {
        let from_start =
            |decoded: Option<DecodedScalar>| decoded.map(|decoded| (told.start, decoded));
        let quoted = || from_start(decode::quoted(self.source, told.start));
        match told.style {
            ScalarStyle::Plain if told.text.is_empty() => (Style::Plain, self.nothing(told)),
            ScalarStyle::Plain => {
                let range = told.start..told.span.end.max(told.start);
                (Style::Plain, from_start(decode::plain(self.source, range)))
            }
            ScalarStyle::SingleQuoted => (Style::SingleQuoted, quoted()),
            ScalarStyle::DoubleQuoted => (Style::DoubleQuoted, quoted()),
            ScalarStyle::Literal => (Style::Literal, self.block('|', told.text)),
            ScalarStyle::Folded => (Style::Folded, self.block('>', told.text)),
        }
    }

    /// An empty value is located right behind its indicator, or at its anchor and tag.
    fn nothing(&self, told: &RawScalar<'_>) -> Option<(usize, DecodedScalar)> {
        let indicator = self.source[told.span.start..].starts_with([':', '-', '?']);
        let at = told.span.start + usize::from(indicator);
        let nothing = DecodedScalar { end: at, ..DecodedScalar::default() };
        (told.start == told.span.start).then_some((at, nothing))
    }

    /// Finds the header of a block scalar: the parser only reports the start of its content.
    fn block(&self, indicator: char, text: &str) -> Option<(usize, DecodedScalar)> {
        let mut at = self.last_end;
        loop {
            at = self.skip_properties(at);
            let next = self.source.get(at..)?.chars().next()?;
            match next {
                '|' | '>' if next == indicator => break,
                ':' | '-' | '?' | '.' => at += 1,
                _ => return None,
            }
        }
        decode::block(self.source, at, text).map(|decoded| (at, decoded))
    }

    /// Returns the start of a value behind its anchor and tag.
    fn content_start(&self, span: Span, anchor: usize, tag: Option<&Tag>) -> usize {
        if anchor > 0 || tag.is_some() { self.skip_properties(span.start) } else { span.start }
    }

    /// Skips white space, comments, anchors and tags.
    fn skip_properties(&self, mut at: usize) -> usize {
        while let Some(next) = self.source[at..].chars().next() {
            let rest = &self.source[at..];
            let length = match next {
                ' ' | '\t' | '\n' | '\r' => Some(1),
                '#' => rest.find(['\n', '\r']),
                '!' if rest.starts_with("!<") => rest.find('>').map(|last| last + 1),
                '&' | '!' => rest.find([' ', '\t', '\n', '\r', ',', '[', ']', '{', '}']),
                _ => return at,
            };
            at += length.unwrap_or(rest.len());
        }
        at
    }

    fn kind(&self, text: &str, style: ScalarStyle, tag: Option<&Tag>, span: Span) -> Kind {
        let plain = || match style {
            ScalarStyle::Plain => Kind::of_yaml(text),
            _ => Kind::String,
        };
        let Some(tag) = tag else { return plain() };
        let name = full_name(tag);
        match name.strip_prefix(CORE_TAGS).unwrap_or(&name) {
            "!" | "str" => Kind::String,
            "null" | "bool" | "int" | "float" => Kind::of_yaml(text),
            _ => {
                self.ignored_tag(tag, span);
                plain()
            }
        }
    }

    fn check_tag(&self, tag: Option<&Tag>, expected: &str, span: Span) {
        if let Some(tag) = tag
            && full_name(tag).strip_prefix(CORE_TAGS) != Some(expected)
        {
            self.ignored_tag(tag, span);
        }
    }

    fn ignored_tag(&self, tag: &Tag, span: Span) {
        let span = self.found.text().first_line(span);
        let message = format!("the tag `{}` is ignored", full_name(tag));
        let help =
            "YAML takes a word behind `!` for a tag; put a value that begins with `!` in quotes";
        self.found.push(self.found.warning(span, message).help(help));
    }
}

/// Returns the full name of a tag. A tag that is written in full has no handle.
fn full_name(tag: &Tag) -> String {
    format!("{}{}", tag.handle, tag.suffix)
}

/// Rejects duplicate keys, and replaces `<<` by the entries of the merged tables. The entries of the table itself win,
/// then those of the first of several merged tables.
fn unique(entries: Vec<Entry>, found: &Diagnostics) -> Vec<Entry> {
    let mut seen: HashMap<String, Span> = HashMap::new();
    let mut kept = Vec::with_capacity(entries.len());
    let mut merges = Vec::new();
    for entry in entries {
        if let Some(first) = seen.get(&entry.key.text) {
            found.push(duplicate(found, &entry.key, *first));
            continue;
        }
        seen.insert(entry.key.text.clone(), entry.key.span);
        if entry.key.text == "<<" && entry.key.style == Style::Plain {
            merges.push(entry.value);
        } else {
            kept.push(entry);
        }
    }
    let mut names: HashSet<String> = seen.into_keys().collect();
    for merged in merges {
        for entry in merged_entries(merged, found) {
            if names.insert(entry.key.text.clone()) {
                kept.push(entry);
            }
        }
    }
    kept
}

fn merged_entries(node: Node, found: &Diagnostics) -> Vec<Entry> {
    match node.value {
        Value::Table(entries) => entries,
        Value::Sequence(items) if items.iter().all(|item| item.as_table().is_some()) => {
            items.into_iter().flat_map(|item| merged_entries(item, found)).collect()
        }
        Value::Scalar(_) | Value::Sequence(_) => {
            let span = found.text().first_line(node.span);
            found.push(found.error(span, "`<<` must be a table or a list of tables"));
            Vec::new()
        }
    }
}
