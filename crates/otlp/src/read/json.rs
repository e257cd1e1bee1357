//! A JSON value with its path, read as its expected type.
//!
//! An absent value and `null` are the same, as in the JSON mapping of protobuf: an empty text, a zero, an empty list.

use std::borrow::Cow;

use base64::{
    Engine, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use model::{SpanId, TraceId};
use serde_json::Value;

use super::outline::lane;

/// The number of characters of a wrong value that are shown.
const SHOWN_MAX: usize = 40;

/// A value, and its path.
#[derive(Clone, Copy)]
pub(super) struct Node<'a> {
    value: &'a Value,
    above: Option<&'a Node<'a>>,
    step: Step<'a>,
}

#[derive(Clone, Copy)]
enum Step<'a> {
    Root,
    /// The value at this path itself.
    Path(&'a str),
    /// An item of the list at this path.
    ItemOf(&'a str, usize),
    Key(&'a str),
    Item(usize),
}

/// An error: a value that does not have its expected type.
#[derive(Debug)]
pub(super) struct Mistake {
    pub(super) path: String,
    pub(super) reason: String,
}

impl<'a> Node<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, above: None, step: Step::Root }
    }

    /// Creates a node for a value that was at this path.
    pub(super) fn at(path: &'a str, value: &'a Value) -> Self {
        Self { value, above: None, step: Step::Path(path) }
    }

    /// Creates a node for a value that was an item of the list at this path.
    pub(super) fn item_of(path: &'a str, ix: usize, value: &'a Value) -> Self {
        Self { value, above: None, step: Step::ItemOf(path, ix) }
    }

    /// Returns the number of the lane that replaces a list of spans; none if the list is absent.
    pub(super) fn lane(&self) -> Result<Option<usize>, Mistake> {
        match self.value {
            Value::Null => Ok(None),
            value => lane(value).map(Some).ok_or_else(|| self.expected("an array")),
        }
    }

    pub(super) fn to_value(self) -> Value {
        self.value.clone()
    }

    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        self.write_path(&mut path);
        path
    }

    /// Whether this is an object with this field.
    pub(super) fn has(&self, name: &str) -> bool {
        self.value.as_object().is_some_and(|object| {
            object.contains_key(name) || object.contains_key(&snake_case(name))
        })
    }

    /// Returns the field of an object, by its name in `camelCase`. The file may use `snake_case` too.
    pub(super) fn get<'n>(&'n self, name: &'static str) -> Result<Node<'n>, Mistake> {
        let (value, key) = match self.value {
            Value::Object(object) => match object.get(name) {
                Some(value) => (value, name),
                None => match object.get_key_value(&snake_case(name)) {
                    Some((key, value)) => (value, key.as_str()),
                    None => (&Value::Null, name),
                },
            },
            Value::Null => (&Value::Null, name),
            _ => return Err(self.expected("an object")),
        };
        Ok(Node { value, above: Some(self), step: Step::Key(key) })
    }

    /// Returns the entry of an object that is a map, by its key.
    pub(super) fn entry<'n>(&'n self, key: &'n str) -> Option<Node<'n>> {
        let value = self.value.get(key)?;
        Some(Node { value, above: Some(self), step: Step::Key(key) })
    }

    /// Returns the items of a list.
    pub(super) fn items<'n>(&'n self) -> Result<impl Iterator<Item = Node<'n>>, Mistake> {
        let items = match self.value {
            Value::Array(items) => items.as_slice(),
            Value::Null => &[],
            _ => return Err(self.expected("an array")),
        };
        let node = |(ix, value)| Node { value, above: Some(self), step: Step::Item(ix) };
        Ok(items.iter().enumerate().map(node))
    }

    pub(super) fn is_absent(&self) -> bool {
        self.value.is_null()
    }

    pub(super) fn text(&self) -> Result<&'a str, Mistake> {
        match self.value {
            Value::String(text) => Ok(text),
            Value::Null => Ok(""),
            _ => Err(self.expected("a text")),
        }
    }

    pub(super) fn bool(&self) -> Result<bool, Mistake> {
        match self.value {
            Value::Bool(value) => Ok(*value),
            Value::String(text) if text == "true" => Ok(true),
            Value::String(text) if text == "false" => Ok(false),
            Value::Null => Ok(false),
            _ => Err(self.expected("`true` or `false`")),
        }
    }

    /// Reads an integer. A 64-bit integer may be a string, since not every JSON parser can read it as a number.
    pub(super) fn whole<N: TryFrom<i128>>(&self) -> Result<N, Mistake> {
        let number = match self.value {
            Value::Number(number) => match (number.as_i128(), number.as_f64()) {
                (Some(number), _) => Some(number),
                // Some tools write large numbers with an exponent. The conversion below rejects all others.
                (None, Some(number)) if number.fract() == 0.0 => Some(number as i128),
                _ => None,
            },
            Value::String(text) => text.parse().ok(),
            Value::Null => Some(0),
            _ => None,
        };
        let number = number.and_then(|number| N::try_from(number).ok());
        number
            .ok_or_else(|| self.expected(&format!("a whole number of {} bits", 8 * size_of::<N>())))
    }

    /// Returns the double that was sent as an integer but exceeds 64 bits: the JavaScript SDK sends every number without a
    /// fraction as an integer.
    pub(super) fn beyond_whole(&self) -> Option<f64> {
        let Value::Number(number) = self.value else { return None };
        number.as_f64().filter(|number| number.fract() == 0.0 && self.whole::<i64>().is_err())
    }

    pub(super) fn double(&self) -> Result<f64, Mistake> {
        let number = match self.value {
            Value::Number(number) => number.as_f64(),
            // `NaN` and the infinities are strings.
            Value::String(text) => text.parse().ok(),
            Value::Null => Some(0.0),
            _ => None,
        };
        number.ok_or_else(|| self.expected("a number"))
    }

    pub(super) fn bytes(&self) -> Result<Vec<u8>, Mistake> {
        from_base64(self.text()?).ok_or_else(|| self.expected("bytes in base64"))
    }

    /// Reads the number of an enumeration, which may be one of these names; their positions are their numbers.
    pub(super) fn enumeration(&self, names: &[&str]) -> Result<i32, Mistake> {
        let Value::String(text) = self.value else { return self.whole() };
        match (0..).zip(names).find(|(_, name)| *name == text) {
            Some((number, _)) => Ok(number),
            None => Err(self.expected(&format!("a number or one of `{}`", names.join("`, `")))),
        }
    }

    /// Reads a trace id; none if it is absent or all zero. OTLP encodes it in hexadecimal, Tempo in base64.
    pub(super) fn trace_id(&self) -> Result<Option<TraceId>, Mistake> {
        self.id().map(|id| id.and_then(TraceId::from_bytes))
    }

    /// The same for a span id.
    pub(super) fn span_id(&self) -> Result<Option<SpanId>, Mistake> {
        self.id().map(|id| id.and_then(SpanId::from_bytes))
    }

    fn id<const N: usize>(&self) -> Result<Option<[u8; N]>, Mistake> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        let id = self.id_bytes(N).and_then(|bytes| bytes.try_into().ok());
        let expected = || format!("{} hexadecimal digits, or {N} bytes in base64", 2 * N);
        id.map(Some).ok_or_else(|| self.expected(&expected()))
    }

    /// Returns the bytes of an id of this length, if it can be decoded.
    pub(super) fn id_bytes(&self, len: usize) -> Option<Vec<u8>> {
        let text = self.text().ok()?;
        if text.len() == 2 * len { from_hex(text) } else { from_base64(text) }
    }

    /// Reads a trace id of Jaeger, which omits leading zeros.
    pub(super) fn short_trace_id(&self) -> Result<Option<TraceId>, Mistake> {
        self.short_id().map(|id| id.and_then(TraceId::from_bytes))
    }

    /// The same for a span id.
    pub(super) fn short_span_id(&self) -> Result<Option<SpanId>, Mistake> {
        self.short_id().map(|id| id.and_then(SpanId::from_bytes))
    }

    fn short_id<const N: usize>(&self) -> Result<Option<[u8; N]>, Mistake> {
        let text = self.text()?;
        if text.is_empty() {
            return Ok(None);
        }
        let id = from_hex(&format!("{text:0>width$}", width = 2 * N));
        let id = id.and_then(|bytes| bytes.try_into().ok());
        let expected = || format!("up to {} hexadecimal digits", 2 * N);
        id.map(Some).ok_or_else(|| self.expected(&expected()))
    }

    /// Returns the error that this value has another type.
    pub(super) fn expected(&self, what: &str) -> Mistake {
        let found = match self.value {
            Value::Null => "nothing".to_owned(),
            _ => self.sketch(),
        };
        self.wrong(format!("expected {what}, found {found}"))
    }

    /// Returns an error at this path.
    pub(super) fn wrong(&self, reason: String) -> Mistake {
        Mistake { path: self.path(), reason }
    }

    /// Returns a short description of the value.
    pub(super) fn sketch(&self) -> String {
        match self.value {
            Value::Array(_) => "an array".to_owned(),
            Value::Object(object) if object.is_empty() => "an empty object".to_owned(),
            Value::Object(object) => {
                let keys = object.keys().take(3).map(|key| format!("`{}`", shortened(key)));
                format!("an object with {}", keys.collect::<Vec<_>>().join(", "))
            }
            other => format!("`{}`", shortened(&other.to_string())),
        }
    }

    /// Recursion is as deep as JSON may nest.
    fn write_path(&self, path: &mut String) {
        if let Some(above) = self.above {
            above.write_path(path);
        }
        match self.step {
            Step::Root => {}
            Step::Path(at) => path.push_str(at),
            Step::ItemOf(list, ix) => path.push_str(&format!("{list}[{ix}]")),
            Step::Key(key) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(&shortened(key));
            }
            Step::Item(ix) => path.push_str(&format!("[{ix}]")),
        }
    }
}

fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(SHOWN_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]).into(),
        None => text.into(),
    }
}

fn snake_case(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    snake
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digit = |digit: &u8| char::from(*digit).to_digit(16);
    let digits: Option<Vec<_>> = text.as_bytes().iter().map(digit).collect();
    Some(
        digits?
            .chunks(2)
            .map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | *digit as u8))
            .collect(),
    )
}

/// Accepts both alphabets, with and without padding, as protobuf requires.
fn from_base64(text: &str) -> Option<Vec<u8>> {
    const LENIENT: GeneralPurpose = GeneralPurpose::new(
        &alphabet::STANDARD,
        GeneralPurposeConfig::new()
            .with_decode_allow_trailing_bits(true)
            .with_decode_padding_mode(DecodePaddingMode::Indifferent),
    );
    let standard = text.trim_end_matches('=').replace('-', "+").replace('_', "/");
    LENIENT.decode(standard).ok()
}

#[cfg(test)]
mod tests {
    use super::{from_base64, from_hex};

    #[test]
    fn bytes_are_read_from_both_spellings() {
        let cases = [
            ("", Some(&b""[..])),
            ("YQ==", Some(b"a")),
            ("YQ", Some(b"a")),
            ("YWI=", Some(b"ab")),
            ("YWJj", Some(b"abc")),
            ("+/8A", Some(b"\xfb\xff\x00")),
            ("-_8A", Some(b"\xfb\xff\x00")),
            ("YWJjZ", None),
            ("YW J", None),
        ];
        for (text, expected) in cases {
            assert_eq!(from_base64(text).as_deref(), expected, "{text}");
        }
        assert_eq!(from_hex("00fF1a"), Some(vec![0, 0xff, 0x1a]));
        assert_eq!(from_hex("0g"), None);
    }
}
