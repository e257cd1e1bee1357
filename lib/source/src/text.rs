//! A text with a name, and places in it.
//!
//! Everything else speaks of byte offsets ([`Span`]); lines and columns ([`Place`]) are computed when a person is
//! to see them.

use std::{fmt, ops::Range, sync::Arc};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// How far apart the counts of characters are kept: what is counted for one place.
const COUNT_BYTES: usize = 1024;

/// A text and the name under which the user knows it. Cloning is cheap.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

struct Inner {
    name: String,
    content: String,
    /// Where each line starts. The byte order mark belongs to no line.
    lines: Vec<usize>,
    /// How many characters start before each multiple of [`COUNT_BYTES`].
    counts: Vec<usize>,
}

/// A line and a column, both counted from 1; the column counts characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Place {
    pub line: usize,
    pub column: usize,
}

/// A range of bytes of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span {
    pub start: usize,
    pub end: usize,
}

impl Text {
    /// Takes any text; `name` is the path as the user wrote it.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        let (name, content) = (name.into(), content.into());
        let body = if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let mut lines = vec![body];
        lines.extend(content.match_indices('\n').map(|(at, _)| at + 1));
        let mut counts = vec![0];
        counts.extend(content.as_bytes().chunks(COUNT_BYTES).scan(0, |count, chunk| {
            *count += characters(chunk);
            Some(*count)
        }));
        Self(Arc::new(Inner { name, content, lines, counts }))
    }

    pub fn name(&self) -> &str {
        &self.0.name
    }

    pub fn content(&self) -> &str {
        &self.0.content
    }

    /// The place of a byte. One inside a character counts as its start, one past the end as the end.
    pub fn place(&self, byte: usize) -> Place {
        let byte = self.content().floor_char_boundary(byte);
        let line = self.line_index(byte);
        // A byte of the byte order mark stands before the line to which it is counted.
        let column = self.characters_before(byte.max(self.0.lines[line]))
            - self.characters_before(self.0.lines[line]);
        Place { line: line + 1, column: column + 1 }
    }

    /// The written text of a span, as far as it lies within this text.
    pub fn slice(&self, span: Span) -> &str {
        let span = self.clamp(span);
        &self.content()[span.start..span.end]
    }

    /// The part of a span that stands on its first line, without the line break.
    pub fn first_line(&self, span: Span) -> Span {
        let span = self.clamp(span);
        let length = self.slice(span).find(['\n', '\r']).unwrap_or(span.end - span.start);
        Span { start: span.start, end: span.start + length }
    }

    /// Where the content starts: behind a byte order mark, if there is one.
    pub(crate) fn body(&self) -> usize {
        self.0.lines[0]
    }

    /// The whole lines that a span touches, and the number of the first of them.
    pub(crate) fn lines_around(&self, span: Span) -> (Span, usize) {
        let (first, last) = (self.line_index(span.start), self.line_index(span.end));
        let end = self.0.lines.get(last + 1).copied().unwrap_or(self.content().len());
        (Span { start: self.0.lines[first], end }, first + 1)
    }

    /// The nearest span that can be used to slice this text.
    pub(crate) fn clamp(&self, span: Span) -> Span {
        let start = self.content().floor_char_boundary(span.start.max(self.body()));
        let end = self.content().ceil_char_boundary(span.end.min(self.content().len()));
        Span { start, end: end.max(start) }
    }

    fn characters_before(&self, byte: usize) -> usize {
        let kept = byte / COUNT_BYTES;
        self.0.counts[kept] + characters(&self.content().as_bytes()[kept * COUNT_BYTES..byte])
    }

    fn line_index(&self, byte: usize) -> usize {
        self.0.lines.partition_point(|start| *start <= byte).saturating_sub(1)
    }
}

/// How many characters start in these bytes: all bytes but those that continue one.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

impl fmt::Debug for Text {
    /// The content is left out: a text is named in every diagnostic.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.0.name).finish()
    }
}

impl Span {
    /// The empty span at a byte.
    pub fn at(byte: usize) -> Self {
        Self { start: byte, end: byte }
    }

    pub fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }
}

impl From<Range<usize>> for Span {
    fn from(range: Range<usize>) -> Self {
        Self { start: range.start, end: range.end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters() {
        let text = Text::new("t", "ab\nçd\r\n\nend");
        for (byte, line, column) in [
            (0, 1, 1),
            (2, 1, 3),
            (3, 2, 1),
            (4, 2, 1),
            (5, 2, 2),
            (8, 3, 1),
            (9, 4, 1),
            (12, 4, 4),
            (99, 4, 4),
        ] {
            assert_eq!(text.place(byte), Place { line, column }, "byte {byte}");
        }
    }

    #[test]
    fn a_byte_order_mark_takes_no_column() {
        let text = Text::new("t", "\u{feff}a: 1\n");
        assert_eq!(text.place(0), Place { line: 1, column: 1 });
        assert_eq!(text.place(3), Place { line: 1, column: 1 });
        assert_eq!(text.place(4), Place { line: 1, column: 2 });
        assert_eq!(text.place(8), Place { line: 2, column: 1 });
    }

    #[test]
    fn places_on_a_long_line_are_those_of_its_characters() {
        // Characters of one to four bytes, so that counts are kept inside of some.
        for (mark, line) in [("", 1), ("\u{feff}", 1), ("a\n", 2)] {
            let text = Text::new("t", format!("{mark}{}", "aß日𝄞".repeat(3 * COUNT_BYTES / 10)));
            let long = &text.content()[mark.len()..];
            for (column, (at, _)) in (1..).zip(long.char_indices()) {
                assert_eq!(text.place(mark.len() + at), Place { line, column });
            }
            let end = Place { line, column: long.chars().count() + 1 };
            assert_eq!(text.place(text.content().len()), end);
        }
        // Each of these is counted from the nearest count that is kept, not from the start of the line.
        let text = Text::new("t", "é".repeat(1 << 20));
        for column in (1..=1 << 20).step_by(63) {
            assert_eq!(text.place(2 * column - 2), Place { line: 1, column });
        }
    }

    #[test]
    fn an_empty_text_has_a_first_place() {
        for content in ["", "\u{feff}"] {
            assert_eq!(Text::new("t", content).place(7), Place { line: 1, column: 1 });
        }
    }

    #[test]
    fn the_first_line_of_a_span_ends_before_the_break() {
        let text = Text::new("t", "ab\r\ncd\n");
        assert_eq!(text.first_line(Span { start: 1, end: 7 }), Span { start: 1, end: 2 });
        assert_eq!(text.first_line(Span { start: 4, end: 6 }), Span { start: 4, end: 6 });
    }
}
