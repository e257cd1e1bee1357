//! Dotted keys: `enable.log-exporter: true` is equivalent to a table `enable` with `log-exporter`.
//!
//! Only a key that leads to a table of known keys is split, so that a name with a dot, or a header name, stays one key.
//! If a value and a table would have the same key (`enable: true` beside `enable.log-exporter: true`), the key stays
//! dotted, for a reader that accepts both.

use source::{Diagnostics, Entry, Node, Scalar, Span, Value};

use super::keys::KeyIndex;

/// Returns the value with every dotted key moved into its table. A duplicate key that results is an error.
pub(super) fn nested(
    node: &Node,
    path: &[&str],
    known: &KeyIndex<'_>,
    found: &Diagnostics,
) -> Node {
    let Value::Table(entries) = &node.value else { return node.clone() };
    if !known.has_table(path) {
        return node.clone();
    }
    let is_dotted = |entry: &Entry| {
        let key = entry.key.text.as_str();
        let is_name = known.has_chosen_names(path) && matches!(entry.value.value, Value::Table(_));
        let table = key.rsplit_once('.').map(|(table, _)| table);
        table.filter(|_| !is_name).is_some_and(|table| {
            let table: Vec<&str> = path.iter().copied().chain(table.split('.')).collect();
            known.has_table(&table)
        })
    };
    let (dotted, plain): (Vec<&Entry>, Vec<&Entry>) =
        entries.iter().partition(|entry| is_dotted(entry));
    let mut out: Vec<Entry> = plain.into_iter().cloned().collect();
    for entry in dotted {
        insert(&mut out, segments(&entry.key), entry.value.clone(), found);
    }
    for entry in &mut out {
        let path: Vec<&str> = path.iter().copied().chain([entry.key.text.as_str()]).collect();
        entry.value = nested(&entry.value, &path, known, found);
    }
    Node { span: node.span, value: Value::Table(out) }
}

/// Returns the segments of a key, last first, each with its location.
fn segments(key: &Scalar) -> Vec<Scalar> {
    let mut at = 0;
    let mut segments = Vec::new();
    for segment in key.text.split('.') {
        segments.push(Scalar::instead(segment, key.span_of(at..at + segment.len())));
        at += segment.len() + 1;
    }
    segments.reverse();
    segments
}

fn insert(entries: &mut Vec<Entry>, mut path: Vec<Scalar>, value: Node, found: &Diagnostics) {
    let Some(key) = path.pop() else { return };
    let existing = entries.iter().position(|entry| entry.key.text == key.text);
    let Some(existing) = existing else {
        let span = key.span;
        entries.push(Entry { key, value: wrapped(path, value, span) });
        return;
    };
    let entry = &mut entries[existing];
    let is_null = entry.value.is_null();
    match (&mut entry.value.value, path.is_empty()) {
        (Value::Table(inner), false) => insert(inner, path, value, found),
        (Value::Table(inner), true) if matches!(value.value, Value::Table(_)) => {
            let Value::Table(more) = value.value else { return };
            for entry in more {
                insert(inner, vec![entry.key], entry.value, found);
            }
        }
        (_, false) if is_null => entry.value = wrapped(path, value, key.span),
        (Value::Scalar(_) | Value::Sequence(_), false) => {
            let rest: Vec<&str> = path.iter().rev().map(|part| part.text.as_str()).collect();
            let text = format!("{}.{}", key.text, rest.join("."));
            let end = path.first().map_or(key.span.end, |last| last.span.end);
            let key = Scalar::instead(text, Span { start: key.span.start, end });
            if !entries.iter().any(|entry| entry.key.text == key.text) {
                entries.push(Entry { key, value });
            }
        }
        (_, true) => {
            let mistake = found.error(key.span, format!("the key `{}` is written twice", key.text));
            found.push(mistake.label("again here").also(entry.key.span, "first here"));
        }
    }
}

/// Wraps the value in the tables of its path; the path is given last segment first.
fn wrapped(path: Vec<Scalar>, value: Node, span: Span) -> Node {
    path.into_iter()
        .fold(value, |value, key| Node { span, value: Value::Table(vec![Entry { key, value }]) })
}
