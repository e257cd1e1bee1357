//! Ids as types: a string is parsed into an id at the boundary, and nowhere else.

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};
use thiserror::Error;
use uuid::Uuid;

use crate::{Fault, Faulty, Timestamp};

/// The id of a trace: sixteen bytes, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TraceId([u8; 16]);

/// The id of a span within a trace: eight bytes, not all zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct SpanId([u8; 8]);

/// The id of a run: a UUIDv7, so that ids sort, and partition, by creation time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct RunId(Uuid);

/// The id of a token, which reveals nothing about the token itself: a UUIDv7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TokenId(Uuid);

/// The id under which a test is stored: 1 to 128 of `A-Z a-z 0-9 . _ -`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct TestId(String);

/// The owner of resources and runs: a word like a test's id; `default` if none is named.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Project(String);

/// The error of a text that is not a valid id.
#[derive(Debug, Error, PartialEq, Eq)]
#[error("`{text}` is not a {what}: expected {expected}")]
pub struct InvalidId {
    text: String,
    what: &'static str,
    expected: &'static str,
}

impl Faulty for InvalidId {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl TraceId {
    /// Returns the id with these bytes, or none if they are all zero, which W3C and OTLP define as invalid.
    pub fn from_bytes(bytes: [u8; 16]) -> Option<Self> {
        (bytes != [0; 16]).then_some(Self(bytes))
    }

    /// Creates an id from random bytes; the one value in 2^128 that is not an id is replaced by a valid one.
    pub fn from_random(bytes: [u8; 16]) -> Self {
        Self::from_bytes(bytes).unwrap_or(Self([1; 16]))
    }

    /// Returns the bytes as encoded on the wire.
    pub fn as_bytes(&self) -> &[u8; 16] {
        &self.0
    }
}

impl SpanId {
    /// Returns the id with these bytes, or none if they are all zero, which W3C and OTLP define as invalid.
    pub fn from_bytes(bytes: [u8; 8]) -> Option<Self> {
        (bytes != [0; 8]).then_some(Self(bytes))
    }

    /// Creates an id from random bytes; the one value in 2^64 that is not an id is replaced by a valid one.
    pub fn from_random(bytes: [u8; 8]) -> Self {
        Self::from_bytes(bytes).unwrap_or(Self([1; 8]))
    }

    /// Returns the bytes as encoded on the wire.
    pub fn as_bytes(&self) -> &[u8; 8] {
        &self.0
    }
}

impl RunId {
    /// Creates an id with the time `now`; `random` distinguishes it from others of the same millisecond.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        let millis = now.as_nanos() / 1_000_000;
        Self(uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
    }

    /// Returns the id as stored in the database.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }

    /// Returns the creation time, to the millisecond.
    pub fn created(self) -> Timestamp {
        let (seconds, nanos) = self.0.get_timestamp().map_or((0, 0), |at| at.to_unix());
        Timestamp::from_nanos(seconds.saturating_mul(1_000_000_000).saturating_add(nanos.into()))
    }
}

impl TokenId {
    /// Creates an id with the time `now`; `random` distinguishes it from others of the same millisecond.
    pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
        Self(RunId::new(now, random).as_uuid())
    }

    /// Returns the id as stored in the database.
    pub fn as_uuid(self) -> Uuid {
        self.0
    }
}

impl From<Uuid> for TokenId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl FromStr for TokenId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::try_parse(text).map(Self).map_err(|_| invalid(text, "token id", "a UUID"))
    }
}

impl fmt::Display for TokenId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl From<Uuid> for RunId {
    fn from(uuid: Uuid) -> Self {
        Self(uuid)
    }
}

impl TestId {
    /// Derives an id from a test's name: its letters and digits in lower case, each run of other characters as one `-`.
    pub fn from_name(name: &str) -> Result<Self, InvalidId> {
        let mut slug = String::new();
        for c in name.chars() {
            if c.is_ascii_alphanumeric() {
                slug.push(c.to_ascii_lowercase());
            } else if !slug.ends_with('-') && !slug.is_empty() {
                slug.push('-');
            }
        }
        slug.truncate(128);
        slug.trim_end_matches('-').parse()
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Project {
    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Project {
    fn default() -> Self {
        Self("default".to_owned())
    }
}

impl FromStr for TraceId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let expected = "32 hexadecimal digits, not all zero";
        hex(text).and_then(Self::from_bytes).ok_or_else(|| invalid(text, "trace id", expected))
    }
}

impl FromStr for SpanId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        let expected = "16 hexadecimal digits, not all zero";
        hex(text).and_then(Self::from_bytes).ok_or_else(|| invalid(text, "span id", expected))
    }
}

impl FromStr for RunId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        Uuid::try_parse(text).map(Self).map_err(|_| invalid(text, "run id", "a UUID"))
    }
}

impl FromStr for TestId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        word(text, "test id").map(Self)
    }
}

impl FromStr for Project {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<Self, InvalidId> {
        word(text, "project").map(Self)
    }
}

impl fmt::Display for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Display for RunId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for TestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Project {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for TraceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Debug for SpanId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Implements the conversions for serde of an id that is serialized as text.
macro_rules! as_text {
    ($($id:ty),*) => { $(
        impl TryFrom<String> for $id {
            type Error = InvalidId;

            fn try_from(text: String) -> Result<Self, InvalidId> {
                text.parse()
            }
        }

        impl From<$id> for String {
            fn from(id: $id) -> Self {
                id.to_string()
            }
        }
    )* };
}

as_text!(TraceId, SpanId, RunId, TokenId, TestId, Project);

fn invalid(text: &str, what: &'static str, expected: &'static str) -> InvalidId {
    InvalidId { text: text.to_owned(), what, expected }
}

/// Parses `N` bytes from exactly `2 N` hexadecimal digits of either case.
fn hex<const N: usize>(text: &str) -> Option<[u8; N]> {
    let mut bytes = [0; N];
    if text.len() != 2 * N || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

fn word(text: &str, what: &'static str) -> Result<String, InvalidId> {
    let fits = (1..=128).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b));
    if fits {
        Ok(text.to_owned())
    } else {
        Err(invalid(text, what, "1 to 128 letters, digits, `.`, `_` or `-`"))
    }
}

#[cfg(test)]
mod tests {
    use super::{RunId, SpanId, TestId, TraceId};
    use crate::Timestamp;

    #[test]
    fn ids_are_their_text() {
        let text = "0af7651916cd43dd8448eb211c80319c";
        let id: TraceId = text.to_uppercase().parse().expect("either case is read");
        assert_eq!(id.to_string(), text);
        assert_eq!(serde_json::to_string(&id).expect("written"), format!("\"{text}\""));
    }

    #[test]
    fn what_is_no_id_is_refused_with_what_was_expected() {
        let cases = [
            ("".parse::<TraceId>().map(drop), "32 hexadecimal digits"),
            ("0".repeat(32).parse::<TraceId>().map(drop), "not all zero"),
            ("+f".repeat(16).parse::<TraceId>().map(drop), "32 hexadecimal digits"),
            ("é".repeat(8).parse::<SpanId>().map(drop), "16 hexadecimal digits"),
            ("a b".parse::<TestId>().map(drop), "1 to 128 letters"),
            ("x".repeat(129).parse::<TestId>().map(drop), "1 to 128 letters"),
            ("7".parse::<RunId>().map(drop), "a UUID"),
        ];
        for (result, expected) in cases {
            let error = result.expect_err("refused").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn run_ids_sort_by_time() {
        let early = RunId::new(Timestamp::from_nanos(1_000_000), [255; 10]);
        let late = RunId::new(Timestamp::from_nanos(2_000_000), [0; 10]);
        assert!(early < late);
        assert_eq!(early.as_uuid().get_version_num(), 7);
    }

    #[test]
    fn a_name_becomes_an_id() {
        let id = |name| TestId::from_name(name).map(|id| id.to_string());
        assert_eq!(id("Import a Pokémon!").as_deref(), Ok("import-a-pok-mon"));
        assert!(id("日本").is_err(), "nothing is left of it");
    }
}
