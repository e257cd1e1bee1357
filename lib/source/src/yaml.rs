//! Reads YAML: turns the parser's events into a tree, with locations in bytes.
//!
//! A syntax error ends its document; reading continues at the next `---`, so that one read reports the errors of all
//! documents. Tags beyond the core schema are reported and ignored.

mod build;
mod positions;

use saphyr_parser::{Event, Parser};

use crate::{
    Diagnostic, Diagnostics, Node, Span, TEXT_BYTES_MAX, Text, decode, mistakes::too_large,
};
use build::Builder;
use positions::Positions;

/// A read that cannot continue, with the byte at which it stopped. The reason is already reported.
struct YamlStop(usize);

/// Substrings of the parser's messages, each with advice.
const ADVICE: &[(&str, &str)] = &[
    ("tab", "indent with spaces"),
    ("quoted scalar, found unexpected end", "close the quote"),
    ("quoted scalar, found unexpected document", "close the quote"),
    ("indentation in quoted scalar", "close the quote, or indent what goes on on the next line"),
    ("unknown escape", "write `\\\\` for a backslash, or use single quotes"),
    ("unexpected character", "put the value in quotes"),
    (
        "mapping values are not allowed",
        "check the indentation and the blanks behind `-` and `:`, or put a value that holds `: ` in quotes",
    ),
    ("valid YAML whitespace", "write a space behind the `:`"),
    ("trailing content after", "put all of the value in quotes of the other kind"),
    (
        "expected `-` indicator",
        "indent the line as far as the text after the `-` above it, or begin it with `- `",
    ),
    ("simple key expect", "begin the line with `- `, or write `: ` behind its key"),
    ("unknown anchor", "define the anchor before it is used"),
    ("expected `,` or `]`", "close the list with `]`"),
    ("expected `,` or `}`", "close the table with `}`"),
];

/// Reads all documents of a text, and omits empty ones.
///
/// Returns the readable part even if there are errors. Documents with a syntax error are missing.
pub fn read_yaml(text: &Text) -> (Vec<Node>, Vec<Diagnostic>) {
    let found = Diagnostics::new(text);
    let mut documents = Vec::new();
    if text.content().len() > TEXT_BYTES_MAX {
        found.push(too_large(&found));
        return (documents, found.into_vec());
    }
    let positions = Positions::new(text.content());
    let mut start = text.body();
    while let Err(YamlStop(at)) = read_stream(&found, &positions, start, &mut documents) {
        match next_document(text.content(), at) {
            Some(next) if next > start && !found.is_full() => start = next,
            _ => break,
        }
    }
    (documents, found.into_vec())
}

/// Reads from the start of a document to the end of the text or to the first syntax error.
fn read_stream(
    found: &Diagnostics,
    positions: &Positions,
    start: usize,
    documents: &mut Vec<Node>,
) -> Result<(), YamlStop> {
    let source = found.text().content();
    let first = positions.char_of(start);
    let mut builder = Builder::new(found, start);
    for event in Parser::new_from_str(&source[start..]) {
        let (event, span) = match event {
            Ok((event, span)) => {
                let start = positions.byte_of(first + span.start.index());
                let end = positions.byte_of(first + span.end.index());
                (event, Span { start, end: end.max(start) })
            }
            Err(error) => {
                let at = positions.byte_of(first + error.marker().index());
                found.push(mistake(found, at, error.info()));
                return Err(YamlStop(at));
            }
        };
        match event {
            Event::DocumentEnd => documents.extend(builder.finish()),
            Event::StreamEnd => break,
            event => builder.add(event, span)?,
        }
    }
    Ok(())
}

fn mistake(found: &Diagnostics, at: usize, info: &str) -> Diagnostic {
    let source = found.text().content();
    // For an invalid escape, the parser only reports the start of the string.
    let wrong_escape = info.contains("quoted scalar").then(|| decode::wrong_escape(source, at));
    // For a line without a colon, the parser only reports the start of the next line.
    let at = if info.contains("simple key expect") { last_line(source, at) } else { at };
    let span = wrong_escape.flatten().unwrap_or_else(|| {
        let end = source[at..].chars().next().map_or(at, |c| at + c.len_utf8());
        found.text().first_line(Span { start: at, end })
    });
    let info = info.replace('\'', "`").replace("``", "`");
    let mistake = found.error(span, format!("not valid YAML: {info}"));
    match advice(source, at, &mistake.message) {
        Some(advice) => mistake.help(advice),
        None => mistake,
    }
}

/// Returns advice for a syntax error, based on the text at its location and on the parser's message. It quotes no part
/// of the text: the text may contain secrets that are hidden later.
fn advice(source: &str, at: usize, message: &str) -> Option<&'static str> {
    let (before, behind) = source.split_at(at);
    let line = before[before.rfind('\n').map_or(0, |last| last + 1)..].trim();
    if before.ends_with('$') && behind.starts_with('{') {
        return Some("put a value that holds `${` in quotes here");
    }
    if message.contains("expected `,` or") && behind.starts_with(['[', '{']) && !line.is_empty() {
        return Some("put a value that holds brackets in quotes here");
    }
    if message.contains("expected `-` indicator") && line.ends_with([']', '}']) {
        return Some("put a value that begins with a bracket in quotes");
    }
    ADVICE.iter().find(|(words, _)| message.contains(words)).map(|(_, advice)| *advice)
}

/// Returns the start of the last line before `at` that is not blank.
fn last_line(source: &str, at: usize) -> usize {
    let before = source[..at].trim_end();
    let start = before.rfind('\n').map_or(0, |last| last + 1);
    before.len() - before[start..].trim_start().len()
}

/// Returns the next line, from `at` on, that starts a document.
fn next_document(source: &str, at: usize) -> Option<usize> {
    let is_start = |at: usize| {
        let rest = &source[at..];
        rest.strip_prefix("---")
            .is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r']))
    };
    let here = (at == 0 || source[..at].ends_with('\n')).then_some(at);
    let later = source[at..].match_indices('\n').map(|(length, _)| at + length + 1);
    here.into_iter().chain(later).find(|at| is_start(*at))
}
