//! A text with a name, and locations in it.
//!
//! All other modules use byte offsets ([`Span`]); lines and columns ([`Place`]) are computed only for display. A text
//! may have further parts behind it, each with its own name, and offsets count through all of them. Values from other
//! sources therefore have locations like any other value.

use std::{fmt, iter, ops::Range, sync::Arc};

const BYTE_ORDER_MARK: &str = "\u{feff}";

/// The distance between stored character counts: an upper bound of the bytes that are counted for one location.
const COUNT_BYTES: usize = 1024;

/// A text and the name that is shown to the user. Cloning is cheap.
#[derive(Clone)]
pub struct Text(Arc<Inner>);

#[derive(Clone)]
struct Inner {
    /// At least one; a separator between two parts belongs to the first.
    parts: Vec<Part>,
    content: String,
    /// The start of each line, part by part. The byte order mark belongs to no line.
    lines: Vec<usize>,
    /// The number of characters that start before each multiple of [`COUNT_BYTES`].
    counts: Vec<usize>,
    /// The spans that no snippet shows: each within one line, sorted, not touching.
    hidden: Vec<Span>,
}

#[derive(Clone)]
struct Part {
    name: String,
    span: Span,
    /// The index of its first line among all lines.
    line: usize,
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
    /// Creates a text from any content; `name` is the path as the user wrote it.
    pub fn new(name: impl Into<String>, content: impl Into<String>) -> Self {
        let content = content.into();
        let body = if content.starts_with(BYTE_ORDER_MARK) { BYTE_ORDER_MARK.len() } else { 0 };
        let part = Part { name: name.into(), span: (0..content.len()).into(), line: 0 };
        let lines = line_starts(body, 0, &content).collect();
        let counts = counts(&content);
        Self(Arc::new(Inner { parts: vec![part], content, lines, counts, hidden: Vec::new() }))
    }

    /// Returns this text with a further part behind it, and the start of that part. Existing locations stay valid.
    pub fn with_part(&self, name: impl Into<String>, content: &str) -> (Self, usize) {
        let mut inner = Inner::clone(&self.0);
        // A location at the end of one part must differ from the start of the next.
        inner.content.push('\n');
        let start = inner.content.len();
        inner.content.push_str(content);
        let span = Span { start, end: inner.content.len() };
        inner.parts.push(Part { name: name.into(), span, line: inner.lines.len() });
        inner.lines.extend(line_starts(start, start, content));
        inner.counts = counts(&inner.content);
        (Self(Arc::new(inner)), start)
    }

    /// Returns this text with spans that snippets show as `***`, regardless of their length.
    pub fn hiding(&self, spans: impl IntoIterator<Item = Span>) -> Self {
        let mut inner = Inner::clone(&self.0);
        for span in spans {
            let span = self.clamp(span);
            let mut at = span.start;
            for line in self.slice(span).split_inclusive('\n') {
                let start = at + (line.len() - line.trim_start().len());
                let end = start + line.trim().len();
                inner.hidden.extend((start < end).then_some(Span { start, end }));
                at += line.len();
            }
        }
        inner.hidden.sort();
        inner.hidden.dedup_by(|next, kept| {
            let touches = next.start <= kept.end;
            if touches {
                kept.end = kept.end.max(next.end);
            }
            touches
        });
        Self(Arc::new(inner))
    }

    pub fn name(&self) -> &str {
        &self.0.parts[0].name
    }

    /// The name of the part that a byte belongs to.
    pub fn name_at(&self, byte: usize) -> &str {
        &self.part(byte).name
    }

    /// Returns the span of the last part with this name, if there is one.
    pub fn part_named(&self, name: &str) -> Option<Span> {
        self.0.parts.iter().rfind(|part| part.name == name).map(|part| part.span)
    }

    /// Returns whether snippets hide any part of a span.
    pub fn hides(&self, span: Span) -> bool {
        self.hidden_in(span).next().is_some()
    }

    /// The content of all parts.
    pub fn content(&self) -> &str {
        &self.0.content
    }

    /// Returns the location of a byte. A byte inside a character counts as its start, a byte past the end as the end.
    pub fn place(&self, byte: usize) -> Place {
        let byte = self.content().floor_char_boundary(byte);
        let line = self.line_index(byte);
        let first = self.part(byte).line;
        // A byte of the byte order mark is before the line to which it is counted.
        let column = self.characters_before(byte.max(self.0.lines[line]))
            - self.characters_before(self.0.lines[line]);
        Place { line: line - first + 1, column: column + 1 }
    }

    /// Returns the source text of a span, clamped to this text.
    pub fn slice(&self, span: Span) -> &str {
        let span = self.clamp(span);
        &self.content()[span.start..span.end]
    }

    /// Returns the part of a span on its first line, without the line break.
    pub fn first_line(&self, span: Span) -> Span {
        let span = self.clamp(span);
        let length = self.slice(span).find(['\n', '\r']).unwrap_or(span.end - span.start);
        Span { start: span.start, end: span.start + length }
    }

    /// The start of the content: behind a byte order mark, if there is one.
    pub(crate) fn body(&self) -> usize {
        self.0.lines[0]
    }

    /// Returns the span of all lines that a span of one part touches, and the number of the first line.
    pub(crate) fn lines_around(&self, span: Span) -> (Span, usize) {
        let part = self.part(span.start);
        let (first, last) = (self.line_index(span.start), self.line_index(span.end));
        let end = self.0.lines.get(last + 1).map_or(part.span.end, |end| part.span.end.min(*end));
        (Span { start: self.0.lines[first], end }, first - part.line + 1)
    }

    /// Returns the nearest span that can slice this text; it lies within one part.
    pub(crate) fn clamp(&self, span: Span) -> Span {
        let start = self.content().floor_char_boundary(span.start.max(self.body()));
        let end = span.end.min(self.part(start).span.end);
        let end = self.content().ceil_char_boundary(end);
        Span { start, end: end.max(start) }
    }

    /// The end of the part that a byte belongs to.
    pub(crate) fn part_end(&self, byte: usize) -> usize {
        self.part(byte).span.end
    }

    /// The hidden spans that touch a span.
    pub(crate) fn hidden_in(&self, span: Span) -> impl Iterator<Item = Span> {
        let first = self.0.hidden.partition_point(|hidden| hidden.end <= span.start);
        self.0.hidden[first..].iter().copied().take_while(move |hidden| hidden.start < span.end)
    }

    fn part(&self, byte: usize) -> &Part {
        let behind = self.0.parts.partition_point(|part| part.span.start <= byte);
        &self.0.parts[behind.saturating_sub(1)]
    }

    fn characters_before(&self, byte: usize) -> usize {
        let kept = byte / COUNT_BYTES;
        self.0.counts[kept] + characters(&self.content().as_bytes()[kept * COUNT_BYTES..byte])
    }

    fn line_index(&self, byte: usize) -> usize {
        self.0.lines.partition_point(|start| *start <= byte).saturating_sub(1)
    }
}

/// Returns the starts of the lines of a part: the first at `body`, the others counted from `start`.
fn line_starts(body: usize, start: usize, content: &str) -> impl Iterator<Item = usize> {
    iter::once(body).chain(content.match_indices('\n').map(move |(at, _)| start + at + 1))
}

fn counts(content: &str) -> Vec<usize> {
    let chunks = content.as_bytes().chunks(COUNT_BYTES);
    let counts = chunks.scan(0, |count, chunk| {
        *count += characters(chunk);
        Some(*count)
    });
    iter::once(0).chain(counts).collect()
}

/// Counts the characters that start in these bytes: all bytes except UTF-8 continuation bytes.
fn characters(bytes: &[u8]) -> usize {
    bytes.iter().filter(|byte| **byte & 0b1100_0000 != 0b1000_0000).count()
}

impl fmt::Debug for Text {
    /// Omits the content, because every diagnostic holds its text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Text").field(&self.name()).finish()
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
        // Characters of one to four bytes, so that some stored counts fall inside a character.
        for (mark, line) in [("", 1), ("\u{feff}", 1), ("a\n", 2)] {
            let text = Text::new("t", format!("{mark}{}", "aß日𝄞".repeat(3 * COUNT_BYTES / 10)));
            let long = &text.content()[mark.len()..];
            for (column, (at, _)) in (1..).zip(long.char_indices()) {
                assert_eq!(text.place(mark.len() + at), Place { line, column });
            }
            let end = Place { line, column: long.chars().count() + 1 };
            assert_eq!(text.place(text.content().len()), end);
        }
        // Each location is counted from the nearest stored count, not from the start of the line.
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

    #[test]
    fn a_further_part_has_lines_of_its_own() {
        for content in ["\u{feff}a: 1\nb", "a\n", ""] {
            let text = Text::new("t", content);
            let (both, start) = text.with_part("more", "X=é\nY=2\n");
            for byte in 0..=content.len() {
                assert_eq!(both.place(byte), text.place(byte), "{content:?} {byte}");
                assert_eq!(both.name_at(byte), "t");
            }
            let y = start + "X=é\n".len();
            assert_eq!(both.place(y + 2), Place { line: 2, column: 3 });
            assert_eq!((both.name(), both.name_at(y)), ("t", "more"));
            assert_eq!(both.part_named("more"), Some((start..y + 4).into()));
            // A span does not extend beyond the part in which it starts.
            assert_eq!(
                both.slice(Span { start: 0, end: y }),
                content.trim_start_matches('\u{feff}')
            );
        }
    }

    #[test]
    fn what_is_hidden_is_hidden_line_by_line() {
        let text =
            Text::new("t", "k: |\n  one\n  two\nx: 1\n").hiding([(3..17).into(), (13..15).into()]);
        let hidden: Vec<_> = text.hidden_in((0..99).into()).map(|span| text.slice(span)).collect();
        assert_eq!(hidden, ["|", "one", "two"]);
        assert!(text.hides((7..8).into()) && !text.hides((18..21).into()));
    }
}
