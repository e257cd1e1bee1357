//! Scalars: the decoded text, its style, its type, and the source location of each character.

use std::ops::Range;

use crate::{Span, decode::Places};

/// A single value.
#[derive(Clone, Debug)]
pub struct Scalar {
    /// The decoded text: without quotes, escapes, indentation and folding. A number is stored as written.
    pub text: String,
    pub style: Style,
    /// The span of the entire scalar as written, quotes and block headers included.
    pub span: Span,
    kind: Kind,
    places: Places,
    /// Further sources of parts of the text, such as the variables that it references.
    sources: Vec<Span>,
}

/// The style in which a scalar was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Style {
    /// Without quotes; in TOML also numbers, booleans, dates and bare keys.
    Plain,
    /// `'…'`
    SingleQuoted,
    /// `"…"`
    DoubleQuoted,
    /// YAML's `|`
    Literal,
    /// YAML's `>`
    Folded,
    /// TOML's `'''…'''`
    MultilineLiteral,
    /// TOML's `"""…"""`
    MultilineBasic,
}

/// The type of a scalar, with its value if the value is representable.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Kind {
    Null,
    Boolean(bool),
    /// `None`: an integer that does not fit into 64 bits.
    Integer(Option<i64>),
    Float(f64),
    String,
    DateTime,
}

impl Scalar {
    pub(crate) fn new(text: String, style: Style, span: Span, kind: Kind, places: Places) -> Self {
        Self { text, style, span, kind, places, sources: Vec::new() }
    }

    /// Creates a string that replaces the text at `span`: every part of it has that span.
    pub fn instead(text: impl Into<String>, span: Span) -> Self {
        Self::new(text.into(), Style::DoubleQuoted, span, Kind::String, Places::default())
    }

    /// Returns the scalar with the type that it would have in YAML without quotes.
    pub fn plain(self) -> Self {
        Self { style: Style::Plain, kind: Kind::of_yaml(&self.text), ..self }
    }

    /// Returns the scalar with further source spans; a diagnostic about it also shows them.
    pub fn with_sources(self, sources: Vec<Span>) -> Self {
        Self { sources, ..self }
    }

    pub(crate) fn sources(&self) -> &[Span] {
        &self.sources
    }

    /// Returns the source span of the bytes `range` of [`text`](Self::text).
    ///
    /// A range that splits a character includes the entire character. An empty range returns the empty span before that
    /// character, or behind the last one.
    pub fn span_of(&self, range: Range<usize>) -> Span {
        let start = self.text.floor_char_boundary(range.start);
        let end = self.text.ceil_char_boundary(range.end.min(self.text.len())).max(start);
        self.places.span_of(start..end).unwrap_or(self.span)
    }

    /// The text, if the scalar is a string: `5` is not, `"5"` is.
    pub fn as_str(&self) -> Option<&str> {
        (self.kind == Kind::String).then_some(self.text.as_str())
    }

    pub fn as_bool(&self) -> Option<bool> {
        match self.kind {
            Kind::Boolean(value) => Some(value),
            _ => None,
        }
    }

    /// The value, if the scalar is an integer of at most 64 bits.
    pub fn as_i64(&self) -> Option<i64> {
        match self.kind {
            Kind::Integer(value) => value,
            _ => None,
        }
    }

    /// The value, if the scalar is a number; a large integer may be rounded.
    pub fn as_f64(&self) -> Option<f64> {
        match self.kind {
            Kind::Float(value) => Some(value),
            Kind::Integer(Some(value)) => Some(value as f64),
            Kind::Integer(None) => self.text.parse().ok(),
            _ => None,
        }
    }

    pub fn is_null(&self) -> bool {
        self.kind == Kind::Null
    }

    /// Describes the type of the scalar, with a text that fits behind "found".
    pub fn kind(&self) -> &'static str {
        match self.kind {
            Kind::Null => "nothing",
            Kind::Boolean(_) => "a boolean",
            Kind::Integer(_) => "an integer",
            Kind::Float(_) => "a number",
            Kind::String => "a string",
            Kind::DateTime => "a date",
        }
    }

    /// The approximate size in bytes, for limits.
    pub(crate) fn weight(&self) -> usize {
        self.text.len() + self.places.weight()
    }
}

impl Kind {
    /// The type of a plain scalar by the core schema of YAML 1.2.
    pub(crate) fn of_yaml(text: &str) -> Self {
        match text {
            "" | "~" | "null" | "Null" | "NULL" => Self::Null,
            "true" | "True" | "TRUE" => Self::Boolean(true),
            "false" | "False" | "FALSE" => Self::Boolean(false),
            ".nan" | ".NaN" | ".NAN" => Self::Float(f64::NAN),
            _ => yaml_number(text).unwrap_or(Self::String),
        }
    }

    /// The type of a TOML integer, given its digits without radix prefix and without underscores.
    pub(crate) fn of_toml_integer(digits: &str, radix: u32) -> Self {
        Self::Integer(i64::from_str_radix(digits, radix).ok())
    }

    pub(crate) fn of_toml_float(digits: &str) -> Self {
        digits.parse().map_or(Self::String, Self::Float)
    }
}

fn yaml_number(text: &str) -> Option<Kind> {
    for (prefix, radix) in [("0o", 8), ("0x", 16)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let all = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return all.then(|| Kind::Integer(i64::from_str_radix(digits, radix).ok()));
        }
    }
    let unsigned = text.strip_prefix(['-', '+']).unwrap_or(text);
    if matches!(unsigned, ".inf" | ".Inf" | ".INF") {
        let value = if text.starts_with('-') { f64::NEG_INFINITY } else { f64::INFINITY };
        return Some(Kind::Float(value));
    }
    if !unsigned.is_empty() && unsigned.bytes().all(|b| b.is_ascii_digit()) {
        return Some(Kind::Integer(text.parse().ok()));
    }
    is_yaml_float(unsigned).then(|| text.parse().ok().map(Kind::Float)).flatten()
}

/// Returns whether a text is a float such as `.5`, `5.` or `5.5`, each with or without an exponent, or `5e3`.
fn is_yaml_float(unsigned: &str) -> bool {
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let digits = |s: &str| s.bytes().all(|b| b.is_ascii_digit());
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let exponent = exponent.map(|e| e.strip_prefix(['-', '+']).unwrap_or(e));
    digits(whole)
        && digits(fraction)
        && !(whole.is_empty() && fraction.is_empty())
        && exponent.is_none_or(|e| !e.is_empty() && digits(e))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_scalars_have_the_types_of_the_core_schema() {
        for (text, kind) in [
            ("", Kind::Null),
            ("~", Kind::Null),
            ("null", Kind::Null),
            ("nULL", Kind::String),
            ("true", Kind::Boolean(true)),
            ("FALSE", Kind::Boolean(false)),
            ("yes", Kind::String),
            ("on", Kind::String),
            ("0", Kind::Integer(Some(0))),
            ("-12", Kind::Integer(Some(-12))),
            ("+7", Kind::Integer(Some(7))),
            ("007", Kind::Integer(Some(7))),
            ("0o17", Kind::Integer(Some(15))),
            ("0xfF", Kind::Integer(Some(255))),
            ("0x", Kind::String),
            ("-0x1", Kind::String),
            ("9223372036854775807", Kind::Integer(Some(i64::MAX))),
            ("9223372036854775808", Kind::Integer(None)),
            ("1_000", Kind::String),
            ("-", Kind::String),
            (".", Kind::String),
            (".5", Kind::Float(0.5)),
            ("5.", Kind::Float(5.0)),
            ("-1.5e3", Kind::Float(-1500.0)),
            ("1e3", Kind::Float(1000.0)),
            ("1e", Kind::String),
            ("e3", Kind::String),
            ("inf", Kind::String),
            ("nan", Kind::String),
            ("-.inf", Kind::Float(f64::NEG_INFINITY)),
            ("1.2.3", Kind::String),
            ("10s", Kind::String),
        ] {
            assert_eq!(Kind::of_yaml(text), kind, "{text}");
        }
        assert!(matches!(Kind::of_yaml(".nan"), Kind::Float(value) if value.is_nan()));
    }
}
