//! The attributes that a shape keeps.

use std::{fmt, str::FromStr};

use thiserror::Error;

/// The maximum number of keys.
const KEYS_MAX: usize = 200;

/// Attributes that describe the operation and its result, and are stable between runs. The list has the older and the newer
/// names, since both are in use.
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

/// A list of attribute keys; a key that ends in `*` is a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keep {
    keys: Vec<String>,
}

/// An error for an invalid list.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "`{key}` is no key of an attribute: expected a key such as `http.route`, the beginning of several such as `http.*`, or `*`"
)]
pub struct InvalidKeep {
    key: String,
}

impl Keep {
    /// Whether the list contains an attribute.
    pub fn has(&self, key: &str) -> bool {
        self.keys.iter().any(|kept| match kept.strip_suffix('*') {
            Some(beginning) => key.starts_with(beginning),
            None => kept == key,
        })
    }

    /// Returns an empty list.
    pub fn none() -> Self {
        Self { keys: Vec::new() }
    }

    /// Returns the union of both lists.
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

    /// Parses keys separated by commas; `none` is the empty list.
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
