//! Rewrites a scalar with another text in the same notation: same style, same line breaks, same escapes.
//!
//! The new text is aligned with the old one, character by character, ignoring whitespace. Characters in both are copied from the
//! file, and so are line breaks, with the indentation after them.

use std::ops::Range;

use source::{Scalar, Span, Style, Text};

/// A span of a file, and its replacement.
pub(super) type Edit = (Span, String);

const BREAKS: [char; 2] = ['\n', '\r'];

/// Returns the edit that changes the content of the scalar to `text`, if one is needed; or the reason why that is impossible.
pub(super) fn rewrite(
    scalar: &Scalar,
    file: &Text,
    text: &str,
) -> Result<Option<Edit>, &'static str> {
    let old = scalar.text.trim();
    if old.is_empty() || text.is_empty() {
        return if old == text { Ok(None) } else { Err("nothing would be left of it") };
    }
    let start = scalar.text.len() - scalar.text.trim_start().len();
    let core = start..start + old.len();
    let signs = signs(scalar, core.clone()).ok_or("its place in the file is not known")?;
    let span = outer(scalar, core);
    let before = file.slice(span);
    let is_broken = before.contains(BREAKS);
    let raw = match lay(&signs, scalar.style, file, text) {
        Some(raw) => raw,
        None if is_broken => return Err("its line breaks cannot be kept"),
        None => encoded(text, scalar.style),
    };
    if raw == before {
        return Ok(None);
    }
    if raw.matches(BREAKS).count() != before.matches(BREAKS).count() {
        return Err("its line breaks cannot be kept");
    }
    if scalar.style == Style::Plain && !is_plain(&raw, before) {
        return Err("it would need quotes");
    }
    Ok(Some((span, raw)))
}

/// A non-whitespace character of the old text, and its span in the file.
struct Sign {
    sign: char,
    span: Span,
}

/// Returns the characters of the old text; `None` if a span is not exact.
fn signs(scalar: &Scalar, core: Range<usize>) -> Option<Vec<Sign>> {
    let mut signs: Vec<Sign> = Vec::new();
    for (at, sign) in scalar.text[core.clone()].char_indices() {
        if sign.is_whitespace() {
            continue;
        }
        let at = core.start + at;
        let span = scalar.span_of(at..at + sign.len_utf8());
        if signs.last().is_some_and(|last| span.start < last.span.end) {
            return None;
        }
        signs.push(Sign { sign, span });
    }
    Some(signs)
}

/// Returns the span to replace: the characters, and inside quotes the whitespace around them on the same line.
fn outer(scalar: &Scalar, core: Range<usize>) -> Span {
    let whole = scalar.span_of(0..scalar.text.len());
    let inner = scalar.span_of(core.clone());
    let is_quoted = matches!(scalar.style, Style::SingleQuoted | Style::DoubleQuoted);
    let is_near = |blanks: &str| is_quoted && !blanks.contains(BREAKS);
    Span {
        start: if is_near(&scalar.text[..core.start]) { whole.start } else { inner.start },
        end: if is_near(&scalar.text[core.end..]) { whole.end } else { inner.end },
    }
}

/// Returns the new text in the bytes of the file, if it can be aligned with the old one.
fn lay(old: &[Sign], style: Style, file: &Text, text: &str) -> Option<String> {
    let mut raw = String::new();
    let mut at = 0;
    let mut blanks = String::new();
    for sign in text.chars() {
        if sign.is_whitespace() {
            blanks.push(sign);
            continue;
        }
        let place = next(old, at, sign)?;
        match line_break(old, at..place.unwrap_or(at) + 1, file) {
            // The character before it was dropped: the scalar cannot start with a line break.
            Some(_) if raw.is_empty() => return None,
            // The line break stays between the same two characters.
            Some(gap) => raw.push_str(gap),
            None => raw.push_str(&blanks),
        }
        blanks.clear();
        match place.map(|place| &old[place]) {
            Some(here) if here.sign == sign => raw.push_str(file.slice(here.span)),
            // Another quote than before, or a parenthesis.
            _ => raw.push_str(&encoded_sign(sign, style)),
        }
        at = place.map_or(at, |place| place + 1);
    }
    old[at..].iter().all(|sign| is_dropped(sign.sign)).then_some(raw)
}

/// Finds the character among the old ones: at `at`, or after characters that the formatter drops. `Some(None)`: the formatter
/// inserts it.
fn next(old: &[Sign], at: usize, sign: char) -> Option<Option<usize>> {
    let is_quote = |sign: char| sign == '"' || sign == '\'';
    let mut place = at;
    while let Some(here) = old.get(place) {
        if here.sign == sign || (is_quote(here.sign) && is_quote(sign)) {
            return Some(Some(place));
        }
        if !is_dropped(here.sign) {
            break;
        }
        place += 1;
    }
    matches!(sign, '(' | ')').then_some(None)
}

/// Whether the formatter may drop the character.
fn is_dropped(sign: char) -> bool {
    matches!(sign, ',' | '(' | ')' | '-')
}

/// Returns the text before one of these characters, if it contains a line break.
fn line_break<'a>(old: &[Sign], signs: Range<usize>, file: &'a Text) -> Option<&'a str> {
    signs.filter_map(|at| Some((old.get(at.checked_sub(1)?)?, old.get(at)?))).find_map(
        |(before, behind)| {
            let gap = file.slice(Span { start: before.span.end, end: behind.span.start });
            gap.contains(BREAKS).then_some(gap)
        },
    )
}

/// Encodes a text on one line for a scalar of this style.
fn encoded(text: &str, style: Style) -> String {
    text.chars().map(|sign| encoded_sign(sign, style)).collect()
}

fn encoded_sign(sign: char, style: Style) -> String {
    match (style, sign) {
        (Style::SingleQuoted, '\'') => "''".to_owned(),
        (Style::DoubleQuoted, '"' | '\\') => format!("\\{sign}"),
        (Style::DoubleQuoted, '\n') => "\\n".to_owned(),
        (Style::DoubleQuoted, '\t') => "\\t".to_owned(),
        (Style::DoubleQuoted, sign) if sign.is_control() => {
            format!("\\U{:08X}", u32::from(sign))
        }
        (_, sign) => sign.to_string(),
    }
}

/// Whether a plain scalar can have this text, given that it could have the text before.
fn is_plain(raw: &str, before: &str) -> bool {
    let first = raw.chars().next().unwrap_or(' ');
    let second = raw.chars().nth(1).unwrap_or(' ');
    let starts = match first {
        '-' | '?' | ':' => !second.is_whitespace(),
        _ => !"\"'[]{},#&*!|>%@`".contains(first),
    };
    // In a flow collection of YAML some characters end a scalar; a character that was there before does not.
    let ends = |sign: char| ",[]{}".contains(sign);
    let is_flow_safe = !raw.contains(ends) || before.contains(ends);
    let is_text = !matches!(raw, "null" | "Null" | "NULL" | "~");
    let is_mapped = |line: &str| line.contains(": ") || line.trim_end().ends_with(':');
    let is_commented = |line: &str| line.contains(" #") || line.contains("\t#");
    starts
        && is_flow_safe
        && is_text
        && !raw.lines().any(|line| is_mapped(line) || is_commented(line))
}
