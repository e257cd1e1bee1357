//! Decodes scalars with their source locations: each scalar style is decoded a second time from its raw text.
//!
//! The functions here assume that the parser has accepted the text. On unexpected input they return `None`, and the
//! caller then discards the locations. They find the end of a quoted or block scalar themselves.

use std::ops::Range;

use crate::Span;

/// A map from each part of a decoded text to its source bytes.
///
/// In the order of the decoded text and without gaps in it. Without pieces, the locations are unknown.
#[derive(Clone, Debug, Default)]
pub(crate) struct Places(Vec<Piece>);

#[derive(Clone, Debug)]
struct Piece {
    decoded: Range<usize>,
    source: Range<usize>,
}

/// A decoded scalar, and its end in the source.
#[derive(Debug, Default)]
pub(crate) struct DecodedScalar {
    pub(crate) text: String,
    pub(crate) places: Places,
    pub(crate) end: usize,
}

impl Places {
    pub(crate) fn span_of(&self, range: Range<usize>) -> Option<Span> {
        let start = match self.piece_with(range.start) {
            Some(piece) if piece.is_verbatim() => {
                piece.source.start + (range.start - piece.decoded.start)
            }
            Some(piece) => piece.source.start,
            None => return self.0.last().map(|piece| Span::at(piece.source.end)),
        };
        if range.is_empty() {
            return Some(Span::at(start));
        }
        let last = self.piece_with(range.end - 1).or(self.0.last())?;
        let end = if last.is_verbatim() {
            last.source.start + (range.end - last.decoded.start).min(last.decoded.len())
        } else {
            last.source.end
        };
        Some(Span { start, end })
    }

    pub(crate) fn weight(&self) -> usize {
        self.0.len() * size_of::<Piece>()
    }

    fn piece_with(&self, at: usize) -> Option<&Piece> {
        self.0.get(self.0.partition_point(|piece| piece.decoded.end <= at))
    }
}

impl Piece {
    /// Returns whether each decoded byte equals a source byte. If the lengths are equal by coincidence, the piece is
    /// one character, which is never split, so the result is still correct.
    fn is_verbatim(&self) -> bool {
        self.decoded.len() == self.source.len()
    }
}

impl DecodedScalar {
    fn put(&mut self, decoded: &str, source: Range<usize>) {
        let start = self.text.len();
        self.text.push_str(decoded);
        self.end = source.end;
        let decoded = start..self.text.len();
        match self.places.0.last_mut() {
            Some(last)
                if last.is_verbatim()
                    && decoded.len() == source.len()
                    && last.source.end == source.start =>
            {
                last.decoded.end = decoded.end;
                last.source.end = source.end;
            }
            _ => self.places.0.push(Piece { decoded, source }),
        }
    }

    fn put_char(&mut self, decoded: char, source: Range<usize>) {
        self.put(decoded.encode_utf8(&mut [0; 4]), source);
    }

    /// Removes everything behind the first `length` bytes.
    fn truncate(&mut self, length: usize) {
        self.text.truncate(length);
        self.places.0.retain(|piece| piece.decoded.start < length);
        if let Some(last) = self.places.0.last_mut()
            && last.decoded.end > length
        {
            // Only a verbatim piece can be longer than a character.
            last.source.end -= last.decoded.end - length;
            last.decoded.end = length;
        }
    }
}

/// Decodes text without any escapes or folding.
pub(crate) fn verbatim(source: &str, range: Range<usize>) -> Option<DecodedScalar> {
    let mut decoded = DecodedScalar { end: range.end, ..DecodedScalar::default() };
    if !range.is_empty() {
        decoded.put(source.get(range.clone())?, range);
    }
    Some(decoded)
}

/// Decodes a YAML plain scalar; the parser supplies its end.
pub(crate) fn plain(source: &str, range: Range<usize>) -> Option<DecodedScalar> {
    flow(source.get(..range.end)?, range.start, None)
}

/// Decodes a YAML scalar in single or double quotes, from the opening quote on.
pub(crate) fn quoted(source: &str, start: usize) -> Option<DecodedScalar> {
    let quote = source.get(start..)?.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    flow(source, start + 1, Some(quote))
}

fn flow(source: &str, start: usize, quote: Option<char>) -> Option<DecodedScalar> {
    let mut out = DecodedScalar { end: start, ..DecodedScalar::default() };
    let mut at = start;
    while let Some(c) = source.get(at..)?.chars().next() {
        let next = at + c.len_utf8();
        match c {
            ' ' | '\t' | '\n' | '\r' => at = fold_gap(source, at, &mut out),
            '\'' if quote == Some(c) && source[next..].starts_with('\'') => {
                out.put("'", at..next + 1);
                at = next + 1;
            }
            _ if quote == Some(c) => {
                out.end = next;
                return Some(out);
            }
            '\\' if quote == Some('"') && source[next..].starts_with(['\n', '\r']) => {
                at = join_gap(source, next, &mut out);
            }
            '\\' if quote == Some('"') => {
                let (escaped, end) = escape(source, next)?;
                out.put_char(escaped, at..end);
                at = end;
            }
            _ => {
                out.put_char(c, at..next);
                at = next;
            }
        }
    }
    quote.is_none().then_some(out)
}

/// Keeps blanks within a line. Folds blanks with line breaks: one break becomes a space, and of several breaks all but
/// the first are kept.
fn fold_gap(source: &str, start: usize, out: &mut DecodedScalar) -> usize {
    let (breaks, end) = gap(source, start);
    match breaks.as_slice() {
        [] => out.put(&source[start..end], start..end),
        [only] => out.put(" ", only.clone()),
        [_, kept @ ..] => kept.iter().for_each(|kept| out.put("\n", kept.clone())),
    }
    end
}

/// Behind an escaped line break, removes the blanks but keeps the empty lines.
fn join_gap(source: &str, start: usize, out: &mut DecodedScalar) -> usize {
    let (breaks, end) = gap(source, start);
    breaks.iter().skip(1).for_each(|kept| out.put("\n", kept.clone()));
    end
}

/// Returns the line breaks in the white space from `start` on, and the end of the white space.
fn gap(source: &str, start: usize) -> (Vec<Range<usize>>, usize) {
    let mut breaks = Vec::new();
    let mut at = start;
    loop {
        let broken = line_break(source, at);
        if broken > 0 {
            breaks.push(at..at + broken);
            at += broken;
        } else if source[at..].starts_with([' ', '\t']) {
            at += 1;
        } else {
            return (breaks, at);
        }
    }
}

/// Returns the length of the line break at a byte, or 0 if there is none.
fn line_break(source: &str, at: usize) -> usize {
    let rest = &source.as_bytes()[at..];
    match rest {
        [b'\r', b'\n', ..] => 2,
        [b'\r' | b'\n', ..] => 1,
        _ => 0,
    }
}

/// Returns the first invalid escape in the double-quoted scalar at `start`.
pub(crate) fn wrong_escape(source: &str, start: usize) -> Option<Span> {
    let mut rest = source.get(start..)?.strip_prefix('"')?.char_indices();
    while let Some((length, c)) = rest.next() {
        let at = start + 1 + length;
        match c {
            '"' => return None,
            '\\' => {
                let letter = rest.next()?.1;
                if !matches!(letter, '\n' | '\r') && escape(source, at + 1).is_none() {
                    return Some(Span { start: at, end: at + 1 + letter.len_utf8() });
                }
            }
            _ => {}
        }
    }
    None
}

/// Decodes an escape, given the offset of its letter. Returns the character, and the end of the escape.
///
/// The escapes are those of YAML. TOML has a subset of them, and its parser has rejected the others.
fn escape(source: &str, at: usize) -> Option<(char, usize)> {
    let letter = source.get(at..)?.chars().next()?;
    let digits = match letter {
        'x' => 2,
        'u' => 4,
        'U' => 8,
        _ => 0,
    };
    let end = at + letter.len_utf8() + digits;
    let escaped = match letter {
        '0' => '\0',
        'a' => '\x07',
        'b' => '\x08',
        't' | '\t' => '\t',
        'n' => '\n',
        'v' => '\x0b',
        'f' => '\x0c',
        'r' => '\r',
        'e' => '\x1b',
        ' ' | '"' | '/' | '\\' => letter,
        'N' => '\u{85}',
        '_' => '\u{a0}',
        'L' => '\u{2028}',
        'P' => '\u{2029}',
        'x' | 'u' | 'U' => char::from_u32(u32::from_str_radix(source.get(at + 1..end)?, 16).ok()?)?,
        _ => return None,
    };
    Some((escaped, end))
}

/// Decodes a YAML block scalar from its `|` or `>` on, given the text to which the parser decoded it.
///
/// That text decides two things that are not visible here: the indentation of the parent, to which an explicit
/// indentation indicator is relative, and how many of the last line breaks count.
pub(crate) fn block(source: &str, header: usize, text: &str) -> Option<DecodedScalar> {
    let folded = source.get(header..)?.starts_with('>');
    let indent = block_indent(source, header, text)?;
    let mut out = DecodedScalar { end: header + 1, ..DecodedScalar::default() };
    let mut breaks: Vec<Range<usize>> = Vec::new();
    let mut at = next_line(source, header);
    let mut content_end = at;
    // Whether the last content line starts with a blank. `None` before the first content line: all line breaks there
    // are kept.
    let mut last: Option<bool> = None;
    while at < source.len() && out.text.len() <= text.len() {
        let spaces = spaces(source, at);
        let start = at + spaces.min(indent);
        let end = start + source[start..].find(['\n', '\r']).unwrap_or(source.len() - start);
        if start < end {
            if spaces < indent {
                break;
            }
            let blank = source[start..].starts_with([' ', '\t']);
            put_breaks(&mut out, &breaks, folded && last == Some(false) && !blank);
            breaks.clear();
            out.put(&source[start..end], start..end);
            content_end = end;
            last = Some(blank);
        }
        at = end + line_break(source, end);
        if at > end {
            breaks.push(end..at);
        }
    }
    put_breaks(&mut out, &breaks, false);
    // At the end of the source, a last line without a line break may count as if it had one.
    if out.text.len() + 1 == text.len() && text.ends_with('\n') && content_end == source.len() {
        out.put("\n", source.len()..source.len());
    }
    out.truncate(text.len());
    out.end = content_end;
    (out.text == text).then_some(out)
}

/// Appends the line breaks between two content lines, or around them.
fn put_breaks(out: &mut DecodedScalar, breaks: &[Range<usize>], fold: bool) {
    let kept = match breaks {
        [only] if fold => return out.put(" ", only.clone()),
        [_, kept @ ..] if fold => kept,
        all => all,
    };
    kept.iter().for_each(|kept| out.put("\n", kept.clone()));
}

/// Returns the removed indentation: how much longer the first non-blank line is in the source than in the decoded text.
fn block_indent(source: &str, header: usize, text: &str) -> Option<usize> {
    let is_content = |line: &&str| line.contains(|c| c != ' ');
    let kept = text.split('\n').find(is_content)?;
    let mut at = next_line(source, header);
    while at < source.len() {
        let end = at + source[at..].find(['\n', '\r']).unwrap_or(source.len() - at);
        if is_content(&&source[at..end]) {
            return spaces(source, at).checked_sub(spaces(kept, 0));
        }
        at = end + line_break(source, end);
    }
    None
}

fn next_line(source: &str, at: usize) -> usize {
    let end = at + source[at..].find(['\n', '\r']).unwrap_or(source.len() - at);
    end + line_break(source, end)
}

fn spaces(source: &str, at: usize) -> usize {
    source.as_bytes()[at..].iter().take_while(|b| **b == b' ').count()
}

/// Decodes a TOML string or quoted key, including its quotes.
pub(crate) fn toml_string(source: &str, range: Range<usize>) -> Option<DecodedScalar> {
    let raw = source.get(range.clone())?;
    let delimiter =
        ["\"\"\"", "'''", "\"", "'"].into_iter().find(|delimiter| raw.starts_with(delimiter))?;
    let inner = raw.strip_prefix(delimiter)?.strip_suffix(delimiter)?;
    let start = range.start + delimiter.len();
    let end = start + inner.len();
    // TOML ignores a line break right behind the opening quotes of a multi-line string.
    let skipped = if delimiter.len() == 3 { line_break(source, start) } else { 0 };
    let mut out = if delimiter.starts_with('\'') {
        verbatim(source, start + skipped..end)?
    } else {
        toml_basic(source.get(..end)?, start + skipped)?
    };
    out.end = range.end;
    Some(out)
}

fn toml_basic(source: &str, start: usize) -> Option<DecodedScalar> {
    let mut out = DecodedScalar { end: start, ..DecodedScalar::default() };
    let mut at = start;
    while let Some(c) = source.get(at..)?.chars().next() {
        let next = at + c.len_utf8();
        if c != '\\' {
            out.put_char(c, at..next);
            at = next;
        } else if let (breaks, end) = gap(source, next)
            && !breaks.is_empty()
        {
            at = end;
        } else {
            let (escaped, end) = escape(source, next)?;
            out.put_char(escaped, at..end);
            at = end;
        }
    }
    Some(out)
}
