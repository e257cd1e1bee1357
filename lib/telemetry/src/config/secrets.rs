//! The variables that a file references, and the secrets that it must not show.

use std::{collections::BTreeSet, ops::Range};

use source::{Node, Scalar, Span, Text, Value, did_you_mean};

use super::{
    Kind,
    keys::KeyIndex,
    variables::{Piece, pieces},
};

/// The referenced variables and the hidden spans of a file.
#[derive(Default)]
pub(super) struct File {
    /// The variables that its values reference.
    pub(super) named: BTreeSet<String>,
    /// The referenced variables that are part of a secret.
    pub(super) secret: BTreeSet<String>,
    pub(super) hidden: Vec<Span>,
}

impl File {
    pub(super) fn look(&mut self, node: &Node, path: &mut Vec<String>, known: &KeyIndex<'_>) {
        let names: Vec<&str> = path.iter().map(String::as_str).collect();
        let kind = known.key(&names).map(|key| key.kind);
        match &node.value {
            Value::Scalar(scalar) => self.look_at(scalar, kind, path, known),
            Value::Sequence(items) => items.iter().for_each(|item| self.look(item, path, known)),
            Value::Table(entries) => {
                for entry in entries {
                    if kind == Some(Kind::Headers) {
                        self.hide_all(&entry.value);
                        continue;
                    }
                    path.push(entry.key.text.clone());
                    self.look(&entry.value, path, known);
                    path.pop();
                }
            }
        }
    }

    fn look_at(
        &mut self,
        scalar: &Scalar,
        kind: Option<Kind>,
        path: &[String],
        known: &KeyIndex<'_>,
    ) {
        let names = |scalar: &Scalar| -> Vec<String> {
            let pieces = pieces(&scalar.text).into_iter();
            let name = |piece| match piece {
                Piece::Variable { name, .. } => Some(name.to_owned()),
                Piece::Text(_) | Piece::File { .. } | Piece::Broken { .. } => None,
            };
            pieces.filter_map(name).collect()
        };
        self.named.extend(names(scalar));
        let from = match kind {
            Some(Kind::Headers) => scalar.text.find(':').map_or(0, |colon| colon + 1),
            Some(Kind::Secret | Kind::Secrets) => 0,
            // The value of a misspelt secret key is still a secret.
            None if is_like_secret(path, known) => 0,
            _ => {
                if let Some(range) = user(&scalar.text) {
                    self.secret.extend(names(scalar));
                    self.hidden.push(scalar.span_of(range));
                }
                return;
            }
        };
        self.secret.extend(names(scalar));
        let rest = &scalar.text[from..];
        let from = from + (rest.len() - rest.trim_start().len());
        self.hidden.push(if from == 0 {
            scalar.span
        } else {
            scalar.span_of(from..scalar.text.len())
        });
    }

    fn hide_all(&mut self, node: &Node) {
        match &node.value {
            Value::Scalar(scalar) => {
                self.look_at(scalar, Some(Kind::Secret), &[], &KeyIndex::new(&[]));
            }
            Value::Sequence(items) => items.iter().for_each(|item| self.hide_all(item)),
            Value::Table(entries) => entries.iter().for_each(|entry| self.hide_all(&entry.value)),
        }
    }
}

/// Returns whether the last key, or its parent, is a typo away from the key of a secret.
fn is_like_secret(path: &[String], known: &KeyIndex<'_>) -> bool {
    path.iter().rev().take(2).any(|name| did_you_mean(name, known.secrets()).is_some())
}

/// Returns the range of user and password in a URL.
pub(super) fn user(text: &str) -> Option<Range<usize>> {
    let start = text.find("://")? + 3;
    let length = text[start..].find('@')?;
    Some(start..start + length)
}

/// Returns the spans of possible secrets in a file that could not be parsed: the text behind the key of a secret on its
/// line, and the following lines that appear to belong to it.
pub(super) fn guessed(text: &Text, keys: &[&str]) -> Vec<Span> {
    let mut hidden = Vec::new();
    let mut at = 0;
    // The indentation of the line with the key, as long as the following lines may belong to it.
    let mut below = None;
    for line in text.content().split_inclusive('\n') {
        let indent = line.len() - line.trim_start().len();
        let belongs = |below: usize| {
            indent > below
                || line[indent..].starts_with(['-', '"', '\'', ']', '}'])
                || line.trim().is_empty()
        };
        let value = keys.iter().filter_map(|key| value_of(line, key)).min();
        if let Some(value) = value {
            hidden.push(Span { start: at + value, end: at + line.len() });
            below = Some(indent);
        } else if below.is_some_and(belongs) {
            hidden.push(Span { start: at, end: at + line.len() });
        } else {
            below = None;
        }
        at += line.len();
    }
    hidden
}

/// Returns the offset of the value of a key on a line.
fn value_of(line: &str, key: &str) -> Option<usize> {
    line.match_indices(key).find_map(|(at, _)| {
        let behind = line[at + key.len()..].trim_start_matches(['"', '\'', ' ']);
        let is_whole = !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
        (is_whole && behind.starts_with([':', '='])).then_some(line.len() - behind.len() + 1)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_guessed_from_lines() {
        let file = "\
a: {headers: [one], b: two}
x: 1
  headers:
    - \"three
  - four

 \"five
  y: 2
[t]
  'password' = six
headers-not: 3
password 4
";
        let text = Text::new("t", file);
        let text = text.hiding(guessed(&text, &["headers", "password"]));
        let shown: Vec<&str> = file
            .split_whitespace()
            .filter(|word| {
                let start = file.find(word).unwrap_or_default();
                !text.hides(Span { start, end: start + word.len() })
            })
            .collect();
        let expected = [
            "a:",
            "{headers:",
            "x:",
            "1",
            "headers:",
            "y:",
            "2",
            "[t]",
            "'password'",
            "=",
            "headers-not:",
            "3",
            "password",
            "4",
        ];
        assert_eq!(shown, expected);
    }
}
