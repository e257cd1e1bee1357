//! The tree that both readers return: scalars, sequences and tables, each with its location.

use crate::{Scalar, Span};

/// A value and its location.
///
/// A YAML alias has the value of its anchor, with the locations of the anchor's text.
#[derive(Clone, Debug)]
pub struct Node {
    pub span: Span,
    pub value: Value,
}

#[derive(Clone, Debug)]
pub enum Value {
    Scalar(Scalar),
    Sequence(Vec<Node>),
    /// In the order of the text; the keys are unique.
    Table(Vec<Entry>),
}

#[derive(Clone, Debug)]
pub struct Entry {
    pub key: Scalar,
    pub value: Node,
}

impl Node {
    pub fn as_scalar(&self) -> Option<&Scalar> {
        match &self.value {
            Value::Scalar(scalar) => Some(scalar),
            Value::Sequence(_) | Value::Table(_) => None,
        }
    }

    pub fn as_sequence(&self) -> Option<&[Node]> {
        match &self.value {
            Value::Sequence(items) => Some(items),
            Value::Scalar(_) | Value::Table(_) => None,
        }
    }

    pub fn as_table(&self) -> Option<&[Entry]> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            Value::Scalar(_) | Value::Sequence(_) => None,
        }
    }

    /// Returns the value under a key, if this is a table that has the key.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.as_table()?.iter().find(|entry| entry.key.text == key).map(|entry| &entry.value)
    }

    pub fn is_null(&self) -> bool {
        self.as_scalar().is_some_and(Scalar::is_null)
    }

    /// Describes the type of the value, with a text that fits behind "found".
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Scalar(scalar) => scalar.kind(),
            Value::Sequence(_) => "a list",
            Value::Table(_) => "a table",
        }
    }
}
