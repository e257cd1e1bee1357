//! `${NAME}`, `${NAME:-default}`, `${env:NAME}` and `${file:PATH}` in values. `$${` is an escaped `${`.

use std::{collections::BTreeMap, ops::Range};

use source::{Diagnostics, Node, Scalar, Span, Style, Value};

use super::{ENVIRONMENT, Environment, Kind, keys::KeyIndex};

/// A piece of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// Literal text.
    Text(&'a str),
    /// A variable, its default, and its range in the value.
    Variable { name: &'a str, default: Option<&'a str>, range: Range<usize> },
    /// A file whose content is the value, and the range of the reference.
    File { path: &'a str, range: Range<usize> },
    /// An invalid variable reference.
    Broken { range: Range<usize> },
}

/// Splits a value into pieces.
pub(super) fn pieces(text: &str) -> Vec<Piece<'_>> {
    let mut pieces = Vec::new();
    let mut at = 0;
    while let Some(found) = text[at..].find("${") {
        let start = at + found;
        if text[at..start].ends_with('$') {
            pieces.push(Piece::Text(&text[at..start]));
            pieces.push(Piece::Text("{"));
            at = start + 2;
            continue;
        }
        pieces.push(Piece::Text(&text[at..start]));
        let end = text[start..].find('}').map_or(text.len(), |length| start + length + 1);
        pieces.push(variable(text, start..end));
        at = end;
    }
    pieces.push(Piece::Text(&text[at..]));
    pieces.retain(|piece| *piece != Piece::Text(""));
    pieces
}

fn variable(text: &str, range: Range<usize>) -> Piece<'_> {
    let inside = text[range.clone()].strip_prefix("${").and_then(|rest| rest.strip_suffix('}'));
    let Some(inside) = inside else { return Piece::Broken { range } };
    if let Some(path) = inside.strip_prefix("file:") {
        return match path.trim() {
            "" => Piece::Broken { range },
            path => Piece::File { path, range },
        };
    }
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    let name = name.strip_prefix("env:").unwrap_or(name);
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.is_empty();
    if is_name { Piece::Variable { name, default, range } } else { Piece::Broken { range } }
}

/// Replaces variable references by the values of the variables.
pub(super) struct Substitution<'a> {
    pub(super) places: &'a BTreeMap<String, Span>,
    pub(super) environment: &'a Environment,
    pub(super) known: &'a KeyIndex<'a>,
    pub(super) found: &'a Diagnostics,
}

impl Substitution<'_> {
    pub(super) fn walk(&self, node: &mut Node, path: &mut Vec<String>) {
        match &mut node.value {
            Value::Scalar(scalar) => {
                let names: Vec<&str> = path.iter().map(String::as_str).collect();
                let kind = self.known.key(&names).map(|key| key.kind);
                if let Some(replaced) = self.replaced(scalar, kind) {
                    *scalar = replaced;
                }
            }
            Value::Sequence(items) => items.iter_mut().for_each(|item| self.walk(item, path)),
            Value::Table(entries) => {
                for entry in entries {
                    path.push(entry.key.text.clone());
                    self.walk(&mut entry.value, path);
                    path.pop();
                }
            }
        }
    }

    /// Returns the value with its variables substituted; `None` if it references none.
    fn replaced(&self, scalar: &Scalar, kind: Option<Kind>) -> Option<Scalar> {
        // The value of a variable is not substituted again.
        let part = self.found.text().part_named(ENVIRONMENT);
        if !scalar.text.contains("${") || part.is_some_and(|part| scalar.span.start >= part.start) {
            return None;
        }
        let mut text = String::new();
        let mut sources = Vec::new();
        for piece in pieces(&scalar.text) {
            match piece {
                Piece::Text(piece) => text.push_str(piece),
                Piece::Variable { name, default, range } => match self.environment.get(name) {
                    Some(value) => {
                        text.push_str(value);
                        sources.extend(self.places.get(name));
                    }
                    None => match default {
                        Some(default) => text.push_str(default),
                        None => self.missing(scalar, name, range),
                    },
                },
                Piece::File { path, range } => match self.environment.file(path) {
                    Ok(content) => text.push_str(content),
                    Err(reason) => {
                        let message = format!("the file `{path}` cannot be read: {reason}");
                        self.found.push(self.found.error(scalar.span_of(range), message));
                    }
                },
                Piece::Broken { range } => {
                    let mistake = self.found.error(
                        scalar.span_of(range),
                        "a variable is written `${NAME}` or `${NAME:-default}`, and a file `${file:PATH}`",
                    );
                    self.found.push(mistake.help("write `$${` for a `${` that is meant as such"));
                }
            }
        }
        let replaced = typed(text, scalar.span, kind);
        let is_plain = kind.is_none() && scalar.style == Style::Plain;
        Some(if is_plain { replaced.plain() } else { replaced }.with_sources(sources))
    }

    fn missing(&self, scalar: &Scalar, name: &str, range: Range<usize>) {
        let message = format!("the variable `{name}` is not set");
        let mistake = self.found.error(scalar.span_of(range), message);
        self.found.push(mistake.help(format!("set it, or write `${{{name}:-default}}`")));
    }
}

/// Converts an untyped text to a value of this kind.
pub(super) fn typed(text: String, span: Span, kind: Option<Kind>) -> Scalar {
    let is_empty = text.is_empty();
    let scalar = Scalar::instead(text, span);
    match kind {
        // An empty text counts as null: the key is absent.
        _ if is_empty => scalar.plain(),
        Some(Kind::Boolean | Kind::Integer { .. } | Kind::Number { .. }) => scalar.plain(),
        _ => scalar,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_taken_apart() {
        let variable = |name, default, range| Piece::Variable { name, default, range };
        for (text, expected) in [
            ("plain $ {x}", vec![Piece::Text("plain $ {x}")]),
            ("${A}", vec![variable("A", None, 0..4)]),
            ("${env:A}", vec![variable("A", None, 0..8)]),
            ("${A:-}", vec![variable("A", Some(""), 0..6)]),
            ("${env:A:-b c}", vec![variable("A", Some("b c"), 0..13)]),
            ("é${_a1}z", vec![Piece::Text("é"), variable("_a1", None, 2..8), Piece::Text("z")]),
            ("a$${A}", vec![Piece::Text("a$"), Piece::Text("{"), Piece::Text("A}")]),
            ("${}", vec![Piece::Broken { range: 0..3 }]),
            ("${1}", vec![Piece::Broken { range: 0..4 }]),
            ("${a b}c", vec![Piece::Broken { range: 0..6 }, Piece::Text("c")]),
            ("x${A", vec![Piece::Text("x"), Piece::Broken { range: 1..4 }]),
            ("a${file:/b c}", vec![Piece::Text("a"), Piece::File { path: "/b c", range: 1..13 }]),
            ("${file:}", vec![Piece::Broken { range: 0..8 }]),
            ("", vec![]),
        ] {
            assert_eq!(pieces(text), expected, "{text}");
        }
    }
}
