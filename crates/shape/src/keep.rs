//! Which attributes are kept.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// Keys at the most.
const KEYS_MAX: usize = 200;

/// Attributes that say what was done and how it went, and say the same the next time. Older names stand beside the newer
/// ones, since both are sent.
const DEFAULT: &[&str] = &[
    "db.collection.name",
    "db.operation.name",
    "db.system",
    "db.system.name",
    "error.type",
    "exception.type",
    "http.method",
    "http.request.method",
    "http.response.status_code",
    "http.route",
    "http.status_code",
    "messaging.destination.name",
    "messaging.operation.type",
    "messaging.system",
    "rpc.method",
    "rpc.service",
];

/// A list of attributes, by key; one that ends in `*` stands for all that begin so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    keys: Vec<String>,
}

/// A list that is none.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{key}` is no key of an attribute: expected a key such as `http.route`, the beginning of several such as `http.*`, or `*`"
)]
pub struct InvalidKeep {
    key: String,
}

impl Keep {
    /// Whether an attribute is kept.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|kept| match kept.strip_suffix('*') {
            Some(beginning) => key.starts_with(beginning),
            None => kept == key,
        })
    }

    /// No attribute at all.
    pub fn none() -> Self {
        Self { keys: Vec::new() }
    }

    /// All that this keeps and all that the other one does.
    pub(crate) fn and(&self, other: &Self) -> Self {
        Self::of(self.keys.iter().chain(&other.keys).cloned())
    }

    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    fn of(keys: impl Iterator<Item = String>) -> Self {
        let mut keys: Vec<_> = keys.collect();
        keys.sort();
        keys.dedup();
        Self { keys }
    }
}

impl Default for Keep {
    fn default() -> Self {
        Self::of(DEFAULT.iter().map(|key| (*key).to_owned()))
    }
}

impl FromStr for Keep {
    type Err = InvalidKeep;

    /// Reads keys with commas between them; `none` is no key.
    fn from_str(text: &str) -> Result<Self, InvalidKeep> {
        if text.trim() == "none" {
            return Ok(Self::none());
        }
        let mut keys = Vec::new();
        for key in text.split(',').map(str::trim) {
            let body = key.strip_suffix('*').unwrap_or(key);
            let is_word = |c: char| c.is_alphanumeric() || "._-/:@".contains(c);
            if key.is_empty() || !body.chars().all(is_word) || keys.len() == KEYS_MAX {
                return Err(InvalidKeep { key: key.to_owned() });
            }
            keys.push(key.to_owned());
        }
        Ok(Self::of(keys.into_iter()))
    }
}

impl fmt::Display for Keep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.keys.as_slice() {
            [] => f.write_str("none"),
            keys => f.write_str(&keys.join(", ")),
        }
    }
}
