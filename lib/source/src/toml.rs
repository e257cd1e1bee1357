//! Reads TOML: turns the parser's events into a tree, by the rules of tables and dotted keys.
//!
//! The parser continues after an error, so that one read reports all errors.

mod table;

use toml_parser::{
    Expected, ParseError, Source,
    decoder::ScalarKind,
    parser::{Event, EventKind, RecursionGuard, ValidateWhitespace, parse_document},
};

use crate::{
    Diagnostic, Diagnostics, NESTING_MAX, Node, Scalar, Span, Style, TEXT_BYTES_MAX, Text, Value,
    decode::{self, DecodedScalar, Places},
    mistakes::too_large,
    scalar::Kind,
};
use table::{Slot, Table, Tree};

/// Reads a text as one table.
///
/// Returns the readable part even if there are errors; `None` if the text is too large to be read at all.
pub fn read_toml(text: &Text) -> (Option<Node>, Vec<Diagnostic>) {
    let found = Diagnostics::new(text);
    if text.content().len() > TEXT_BYTES_MAX {
        found.push(too_large(&found));
        return (None, found.into_vec());
    }
    let mut reader =
        Reader { found: &found, source: Source::new(text.content()), at: 0, events: Vec::new() };
    reader.parse();
    let root = reader.document();
    (Some(root), found.into_vec())
}

struct Reader<'a> {
    found: &'a Diagnostics,
    source: Source<'a>,
    events: Vec<Event>,
    /// The index of the next event.
    at: usize,
}

impl<'a> Reader<'a> {
    /// Fills the list of relevant events.
    fn parse(&mut self) {
        let tokens = self.source.lex().into_vec();
        let mut mistakes = |error: ParseError| self.found.push(mistake(self.found, &error));
        let depth = u32::try_from(NESTING_MAX).unwrap_or(u32::MAX);
        let mut guard = RecursionGuard::new(&mut self.events, depth);
        let mut checked = ValidateWhitespace::new(&mut guard, self.source);
        parse_document(&tokens, &mut checked, &mut mistakes);
        self.events.retain(|event| {
            use EventKind::{Comment, Error, KeySep, Newline, ValueSep, Whitespace};
            !matches!(event.kind(), Comment | Error | KeySep | Newline | ValueSep | Whitespace)
        });
    }

    fn document(&mut self) -> Node {
        let mut tree = Tree::new(self.found);
        while let Some(event) = self.next() {
            match event.kind() {
                EventKind::StdTableOpen | EventKind::ArrayTableOpen => {
                    let path = self.keys();
                    let end = self.closing(event);
                    let header = Span { start: event.span().start(), end };
                    if event.kind() == EventKind::StdTableOpen {
                        tree.open_table(path, header);
                    } else {
                        tree.open_array_table(path, header);
                    }
                }
                EventKind::SimpleKey => {
                    self.at -= 1;
                    if let Some((path, slot)) = self.key_value() {
                        tree.insert(path, slot);
                    }
                }
                // Events that remain where the parser recovered from an error.
                _ => {}
            }
        }
        tree.finish()
    }

    /// Returns the end of the header that `open` starts; for an unclosed header, the end of its last key.
    fn closing(&mut self, open: Event) -> usize {
        let end = self.events[..self.at].last().unwrap_or(&open).span().end();
        match self.peek() {
            Some(close)
                if matches!(
                    close.kind(),
                    EventKind::StdTableClose | EventKind::ArrayTableClose
                ) =>
            {
                self.at += 1;
                close.span().end()
            }
            _ => end,
        }
    }

    /// Reads `key = value`; the next event must be a key.
    fn key_value(&mut self) -> Option<(Vec<Scalar>, Slot)> {
        let path = self.keys();
        self.peek().filter(|event| event.kind() == EventKind::KeyValSep)?;
        self.at += 1;
        Some((path, self.value()?))
    }

    fn keys(&mut self) -> Vec<Scalar> {
        let mut path = Vec::new();
        while let Some(event) = self.peek().filter(|event| event.kind() == EventKind::SimpleKey) {
            self.at += 1;
            path.push(self.key(event));
        }
        path
    }

    /// The recursion guard of the parser limits the nesting.
    fn value(&mut self) -> Option<Slot> {
        let event = self.peek()?;
        match event.kind() {
            EventKind::Scalar => {
                self.at += 1;
                let scalar = self.scalar(event);
                Some(Slot::Value(Node { span: scalar.span, value: Value::Scalar(scalar) }))
            }
            EventKind::ArrayOpen => {
                self.at += 1;
                Some(Slot::Value(self.array(event)))
            }
            EventKind::InlineTableOpen => {
                self.at += 1;
                Some(Slot::Table(self.inline_table(event)))
            }
            _ => None,
        }
    }

    fn array(&mut self, open: Event) -> Node {
        let mut items = Vec::new();
        let mut end = open.span().end();
        while let Some(event) = self.peek() {
            end = event.span().end();
            if event.kind() == EventKind::ArrayClose {
                self.at += 1;
                break;
            }
            let Some(slot) = self.value() else { break };
            items.push(slot.into_node());
        }
        Node { span: Span { start: open.span().start(), end }, value: Value::Sequence(items) }
    }

    fn inline_table(&mut self, open: Event) -> Table {
        let mut tree = Tree::new(self.found);
        let mut end = open.span().end();
        while let Some(event) = self.peek() {
            end = event.span().end();
            match event.kind() {
                EventKind::InlineTableClose => {
                    self.at += 1;
                    break;
                }
                EventKind::SimpleKey => {
                    if let Some((path, slot)) = self.key_value() {
                        tree.insert(path, slot);
                    }
                }
                _ => break,
            }
        }
        tree.into_inline(Span { start: open.span().start(), end })
    }

    fn key(&self, event: Event) -> Scalar {
        let span = span(event.span());
        let mut text = String::new();
        if let Some(raw) = self.source.get(event) {
            let mut mistakes = |error: ParseError| self.found.push(mistake(self.found, &error));
            raw.decode_key(&mut text, &mut mistakes);
        }
        let (style, places) = self.written(event, &text);
        Scalar::new(text, style, span, Kind::String, places)
    }

    fn scalar(&self, event: Event) -> Scalar {
        let span = span(event.span());
        let mut text = String::new();
        let mut kind = Kind::String;
        if let Some(raw) = self.source.get(event) {
            let mut mistakes = |error: ParseError| self.found.push(mistake(self.found, &error));
            kind = match raw.decode_scalar(&mut text, &mut mistakes) {
                ScalarKind::String => Kind::String,
                ScalarKind::Boolean(value) => Kind::Boolean(value),
                ScalarKind::DateTime => Kind::DateTime,
                ScalarKind::Float => Kind::of_toml_float(&text),
                ScalarKind::Integer(radix) => Kind::of_toml_integer(&text, radix.value()),
            };
            if event.encoding().is_none() {
                text = raw.as_str().to_owned();
            }
        }
        let (style, places) = self.written(event, &text);
        Scalar::new(text, style, span, kind, places)
    }

    fn written(&self, event: Event, text: &str) -> (Style, Places) {
        use toml_parser::decoder::Encoding;
        let range = event.span().start()..event.span().end();
        let input = self.source.input();
        let (style, decoded) = match event.encoding() {
            None => (Style::Plain, decode::verbatim(input, range)),
            Some(encoding) => {
                let style = match encoding {
                    Encoding::LiteralString => Style::SingleQuoted,
                    Encoding::BasicString => Style::DoubleQuoted,
                    Encoding::MlLiteralString => Style::MultilineLiteral,
                    Encoding::MlBasicString => Style::MultilineBasic,
                };
                (style, decode::toml_string(input, range))
            }
        };
        let same = |decoded: &DecodedScalar| decoded.text == text;
        (style, decoded.filter(same).map(|decoded| decoded.places).unwrap_or_default())
    }

    fn peek(&self) -> Option<Event> {
        self.events.get(self.at).copied()
    }

    fn next(&mut self) -> Option<Event> {
        let event = self.peek()?;
        self.at += 1;
        Some(event)
    }
}

fn span(span: toml_parser::Span) -> Span {
    Span { start: span.start(), end: span.end() }
}

fn mistake(found: &Diagnostics, error: &ParseError) -> Diagnostic {
    let place = error.unexpected().or(error.context()).map(span);
    let place = place.map(|place| found.text().first_line(place));
    let mistake = found.error(place, format!("not valid TOML: {}", error.description()));
    let expected: Vec<String> = error
        .expected()
        .unwrap_or_default()
        .iter()
        .filter_map(|expected| match expected {
            Expected::Literal("\n") => Some("a line break".to_owned()),
            Expected::Literal(literal) => Some(format!("`{literal}`")),
            Expected::Description(words) => Some((*words).to_owned()),
            _ => None,
        })
        .collect();
    match expected.as_slice() {
        [] => mistake,
        expected => mistake.label(format!("expected {}", expected.join(", "))),
    }
}
