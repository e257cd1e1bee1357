//! Typed values, as assertions and selectors see them.
//!
//! Deliberately absent: maps and lists as literals, and JSON as a type of its own; a text that holds JSON is a text
//! until something asks (`json.rs`).

use std::borrow::Cow;

use model::trace::{Attributes, ValueRef, Values};

use crate::{
    json,
    numeral::{Number, show_duration},
};

/// A value of a span, of the trigger's answer, or of a literal.
#[derive(Clone, Debug)]
pub(crate) enum Value<'a> {
    /// An attribute that was sent without a value.
    Nothing,
    Bool(bool),
    Number(Number),
    /// In nanoseconds.
    Duration(i128),
    Text(Cow<'a, str>),
    Bytes(&'a [u8]),
    List(Values<'a>),
    Map(Attributes<'a>),
}

/// A value as it stands in a selector or an expression.
#[derive(Clone, Debug)]
pub(crate) enum Literal {
    Bool(bool),
    /// With its spelling: `007` equals the text `007` as well as the number 7.
    Number {
        value: Number,
        spelling: String,
    },
    Duration(i128),
    Text(String),
}

/// How many characters of a value evidence shows.
const SHOWN_CHARS_MAX: usize = 200;

impl<'a> Value<'a> {
    /// The value as plain text: what `contains` searches, and what an output gives.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Nothing => Cow::Borrowed(""),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Number(Number::Int(int)) => Cow::Owned(int.to_string()),
            Self::Number(Number::Double(double)) => Cow::Owned(double.to_string()),
            Self::Duration(nanos) => Cow::Owned(nanos.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bytes(bytes) => Cow::Owned(hex(bytes)),
            Self::List(_) | Self::Map(_) => Cow::Owned(json::of_value(self).to_string()),
        }
    }

    /// The value for people, with its type to be seen and not longer than fits.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Duration(nanos) => show_duration(*nanos),
            Self::Text(text) => format!("{:?}", shorten(text)),
            _ => shorten(&self.text()).into_owned(),
        }
    }

    /// A whole number.
    pub(crate) fn whole(number: u64) -> Self {
        Self::Number(Number::Int(number.into()))
    }
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Empty => Self::Nothing,
            ValueRef::Bool(bool) => Self::Bool(bool),
            ValueRef::Int(int) => Self::Number(Number::Int(int.into())),
            ValueRef::Double(double) => Self::Number(Number::Double(double)),
            ValueRef::Str(text) => Self::Text(Cow::Borrowed(text)),
            ValueRef::Bytes(bytes) => Self::Bytes(bytes),
            ValueRef::Array(values) => Self::List(values),
            ValueRef::Map(entries) => Self::Map(entries),
        }
    }
}

impl Literal {
    pub(crate) fn value(&self) -> Value<'_> {
        match self {
            Self::Bool(bool) => Value::Bool(*bool),
            Self::Number { value, .. } => Value::Number(*value),
            Self::Duration(nanos) => Value::Duration(*nanos),
            Self::Text(text) => Value::Text(Cow::Borrowed(text)),
        }
    }

    /// The literal as plain text, a number as it was spelled.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Number { spelling, .. } => Cow::Borrowed(spelling),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Duration(nanos) => Cow::Owned(nanos.to_string()),
        }
    }

    /// The literal for people.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Number { spelling, .. } => shorten(spelling).into_owned(),
            _ => self.value().show(),
        }
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The beginning of a text that may be too long for evidence.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
