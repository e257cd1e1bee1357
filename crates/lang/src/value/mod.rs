//! Typed values of selectors and expressions, and the operations on them: compare, calculate, filter.
//!
//! Deliberately absent: the sources of values (`eval`), and their notation in a test (`syntax`). No error message from here
//! contains a value, since the value may be a secret.

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod filter;
pub(crate) mod function;
pub(crate) mod json;
pub(crate) mod json_path;
pub(crate) mod key;
mod literal;
mod numeral;
pub(crate) mod operator;
pub(crate) mod pattern;

use std::borrow::Cow;

use model::trace::ValueRef;

pub(crate) use json::Json;
pub(crate) use literal::Literal;
pub(crate) use numeral::{Number, read_duration, read_loose, read_number, show_duration};

/// A value of a span, of the trigger's response, of a literal, or a value computed from them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// The result of a filter that found nothing. It equals the empty text and the empty list, is not unequal to anything else,
    /// and does not exist.
    Nothing,
    /// The literal, a JSON null, or an attribute that was sent without a value.
    Null,
    Bool(bool),
    Number(Number),
    /// In nanoseconds.
    Duration(i128),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Several values: a list as written, or the results of a filter or an aggregate.
    List(Vec<Self>),
    /// A list or an object of a document or of an attribute; never a scalar.
    Json(Json),
    /// A quoted text of the test: it is compared by its spelling.
    Quoted(&'a str),
    /// A number of the test: `007` equals the text `007` as well as the number 7.
    Numeral {
        number: Number,
        spelling: &'a str,
    },
}

/// The reason why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// The value is undefined: an input is absent, or the operation is invalid for it.
    Undefined(String),
    /// The value is unknown.
    Open(String),
}

/// The size of a value that has an order.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Number(Number),
    Nanos(i128),
}

/// The reason for an unknown result that more time could have determined.
pub(crate) const TOO_LARGE: &str = "too large to compare";

/// The number of bytes of a JSON value for each unit of [`Json::weight`].
const JSON_BYTES: usize = 2 * size_of::<Json>();

/// The maximum number of characters of a value in evidence.
const SHOWN_CHARS_MAX: usize = 200;

impl<'a> Value<'a> {
    /// Returns the value as plain text: for `contains` and for outputs.
    pub(crate) fn text(&self) -> Cow<'_, str> {
        match self {
            Self::Nothing => Cow::Borrowed(""),
            Self::Null => Cow::Borrowed("null"),
            Self::Bool(true) => Cow::Borrowed("true"),
            Self::Bool(false) => Cow::Borrowed("false"),
            Self::Number(number) => Cow::Owned(number.to_string()),
            Self::Duration(nanos) => Cow::Owned(nanos.to_string()),
            Self::Text(text) => Cow::Borrowed(text),
            Self::Bytes(bytes) => Cow::Owned(json::hex(bytes)),
            Self::List(items) => {
                let items: Vec<_> = items.iter().map(|item| item.to_json().to_string()).collect();
                Cow::Owned(format!("[{}]", items.join(", ")))
            }
            Self::Json(json) => Cow::Owned(json.to_string()),
            Self::Quoted(text) => Cow::Borrowed(text),
            Self::Numeral { spelling, .. } => Cow::Borrowed(spelling),
        }
    }

    /// Returns its approximate size in bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Quoted(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
            Self::List(items) => items.len() * size_of::<Self>(),
            Self::Json(json) => json.weight(),
            _ => size_of::<Self>(),
        }
    }

    /// Returns how many of these bytes it owns, and does not borrow from the trace or the test.
    pub(crate) fn owned_len(&self) -> usize {
        match self {
            Self::Text(Cow::Borrowed(_)) | Self::Bytes(Cow::Borrowed(_)) | Self::Quoted(_) => 0,
            Self::List(items) => {
                items.iter().map(|item| size_of::<Self>() + item.owned_len()).sum()
            }
            Self::Json(json) => JSON_BYTES * json.weight(),
            _ => self.len(),
        }
    }

    /// Renders the value for evidence: with its type visible, and truncated if it is too long.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Duration(nanos) => show_duration(*nanos),
            Self::Text(_) | Self::Quoted(_) => format!("{:?}", shorten(&self.text())),
            _ => shorten(&self.text()).into_owned(),
        }
    }

    /// Returns the value as JSON: durations in nanoseconds, bytes as hexadecimal digits.
    pub(crate) fn to_json(&self) -> Json {
        match self {
            Self::Nothing | Self::Null => Json::Null,
            Self::Bool(bool) => Json::Bool(*bool),
            Self::Number(number) | Self::Numeral { number, .. } => Json::Number(*number),
            Self::Duration(nanos) => Json::Number(Number::Int(*nanos)),
            Self::Text(_) | Self::Quoted(_) | Self::Bytes(_) => {
                Json::Text(self.text().into_owned())
            }
            Self::List(items) => Json::List(items.iter().map(Self::to_json).collect()),
            Self::Json(json) => json.clone(),
        }
    }

    /// Returns its size; `None` for a value without an order. A text has an order if it contains a number or a duration.
    pub(crate) fn size(&self) -> Option<Size> {
        match self {
            Self::Number(number) | Self::Numeral { number, .. } => Some(Size::Number(*number)),
            Self::Duration(nanos) => Some(Size::Nanos(*nanos)),
            Self::Text(_) | Self::Quoted(_) => {
                let text = self.text();
                let number = read_loose(&text).map(Size::Number);
                number.or_else(|| read_duration(&text).map(Size::Nanos))
            }
            _ => None,
        }
    }

    /// Returns an integer value.
    pub(crate) fn whole(number: u64) -> Self {
        Self::Number(Number::Int(number.into()))
    }

    /// Returns a borrowed text.
    pub(crate) fn borrowed(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Returns an owned text.
    pub(crate) fn owned(text: String) -> Self {
        Self::Text(Cow::Owned(text))
    }
}

impl From<ValueRef<'_>> for Json {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Empty => Self::Null,
            ValueRef::Bool(bool) => Self::Bool(bool),
            ValueRef::Int(int) => Self::Number(Number::Int(int.into())),
            ValueRef::Double(double) => Self::Number(Number::Double(double)),
            ValueRef::Str(text) => Self::Text(text.to_owned()),
            ValueRef::Bytes(bytes) => Self::Text(json::hex(bytes)),
            ValueRef::Array(values) => Self::List(values.iter().map(Self::from).collect()),
            ValueRef::Map(entries) => Self::Object(
                entries.iter().map(|(key, value)| (key.to_owned(), value.into())).collect(),
            ),
        }
    }
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Self {
        match value {
            ValueRef::Str(text) => Self::borrowed(text),
            ValueRef::Bytes(bytes) => Self::Bytes(Cow::Borrowed(bytes)),
            _ => Json::from(value).into(),
        }
    }
}

impl From<Json> for Value<'_> {
    fn from(json: Json) -> Self {
        match json {
            Json::Null => Self::Null,
            Json::Bool(bool) => Self::Bool(bool),
            Json::Number(number) => Self::Number(number),
            Json::Text(text) => Self::owned(text),
            Json::List(_) | Json::Object(_) => Self::Json(json),
        }
    }
}

/// Truncates a text that may be too long for evidence.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
