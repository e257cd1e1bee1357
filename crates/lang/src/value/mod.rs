//! Typed values, as selectors and expressions see them, and what can be done with them: compare, add, filter.
//!
//! Deliberately absent: where values come from (`eval`), and how they are written in a test (`syntax`). No reason that
//! is given here holds a value, since it may be a secret.

pub(crate) mod arithmetic;
pub(crate) mod compare;
pub(crate) mod filter;
pub(crate) mod function;
pub(crate) mod json;
pub(crate) mod json_path;
pub(crate) mod key;
mod literal;
mod numeral;
pub(crate) mod pattern;

use std::borrow::Cow;

use model::trace::ValueRef;

pub(crate) use json::Json;
pub(crate) use literal::Literal;
pub(crate) use numeral::{Number, read_duration, read_loose, read_number, show_duration};

/// A value of a span, of the trigger's answer, of a literal, or of what was made from them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value<'a> {
    /// What a filter gives that found nothing. It equals the empty text and the empty list, is not unequal to anything
    /// else, and does not exist.
    Nothing,
    /// The literal, a null of JSON, an attribute that was sent without a value.
    Null,
    Bool(bool),
    Number(Number),
    /// In nanoseconds.
    Duration(i128),
    Text(Cow<'a, str>),
    Bytes(Cow<'a, [u8]>),
    /// Several values: a list as written, or what a filter or an aggregate found.
    List(Vec<Self>),
    /// A list or an object of one document, or of one attribute; never anything smaller.
    Json(Json),
    /// A text as it stands in quotes in the test: it is compared as it is spelled.
    Quoted(&'a str),
    /// A number as it stands in the test: `007` equals the text `007` as well as the number 7.
    Numeral {
        number: Number,
        spelling: &'a str,
    },
}

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// There is none: something is absent, or cannot be done with what is there.
    Undefined(String),
    /// Nobody knows.
    Open(String),
}

/// What has an order: how large a value is.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Size {
    Number(Number),
    Nanos(i128),
}

/// Why something was not found out that could have been, with more time.
pub(crate) const TOO_LARGE: &str = "too large to compare";

/// How many bytes a value of a document takes, by [`Json::weight`].
const JSON_BYTES: usize = 2 * size_of::<Json>();

/// How many characters of a value evidence shows.
const SHOWN_CHARS_MAX: usize = 200;

impl<'a> Value<'a> {
    /// The value as plain text: what `contains` searches, and what an output gives.
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

    /// About how many bytes it has.
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

    /// How many of them are its own and not those of the trace or the test.
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

    /// The value for people, with its type to be seen and not longer than fits.
    pub(crate) fn show(&self) -> String {
        match self {
            Self::Nothing => "nothing".to_owned(),
            Self::Duration(nanos) => show_duration(*nanos),
            Self::Text(_) | Self::Quoted(_) => format!("{:?}", shorten(&self.text())),
            _ => shorten(&self.text()).into_owned(),
        }
    }

    /// The value as JSON: durations as their nanoseconds, bytes as their hexadecimal digits.
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

    /// How large it is; none for what has no order. A text has one if it holds a number or a duration.
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

    /// A whole number.
    pub(crate) fn whole(number: u64) -> Self {
        Self::Number(Number::Int(number.into()))
    }

    /// Text that somebody else holds.
    pub(crate) fn borrowed(text: &'a str) -> Self {
        Self::Text(Cow::Borrowed(text))
    }

    /// Text that was made.
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

/// The beginning of a text that may be too long for evidence.
pub(crate) fn shorten(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => Cow::Owned(format!("{}…", &text[..end])),
        None => Cow::Borrowed(text),
    }
}
