//! An index of the items of a list, to search one among many.

use std::collections::HashSet;

use super::expression::Values;
use crate::value::{Number, Value};

/// The texts and integers in a list.
#[derive(Debug)]
pub(super) struct Members {
    pub(super) texts: HashSet<String>,
    pub(super) wholes: HashSet<i128>,
    /// Whether the list has no other items.
    are_all: bool,
}

impl Members {
    pub(super) fn of(values: &Values<'_>) -> Self {
        let mut members = Self { texts: HashSet::new(), wholes: HashSet::new(), are_all: true };
        let Values::One(Value::List(items)) = values else {
            return Self { are_all: false, ..members };
        };
        for item in items {
            match item {
                Value::Text(text) => {
                    members.texts.insert(text.clone().into_owned());
                }
                Value::Number(Number::Int(int)) => {
                    members.wholes.insert(*int);
                }
                _ => members.are_all = false,
            }
        }
        members
    }

    pub(super) fn are_texts(&self) -> bool {
        self.are_all && self.wholes.is_empty()
    }

    pub(super) fn are_wholes(&self) -> bool {
        self.are_all && self.texts.is_empty()
    }
}
