//! Parses JSON (RFC 8259).

use super::{Json, Number};
use crate::budget;

/// The maximum nesting depth.
const NESTING_MAX: usize = 128;

/// The cost of parsing a byte.
const READ_STEPS: u64 = 4;

/// The maximum number of bytes in memory for a byte of text: a list of small numbers has two bytes for each.
const HELD_BYTES: u64 = 32;

/// The reason why a text was not parsed. It contains no part of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadError {
    /// The text is not JSON, with the reason.
    Malformed(&'static str),
    /// The text is JSON that exceeds this limit: its content is unknown.
    Beyond(&'static str),
}

const TOO_DEEP: &str = "the JSON is nested more than 128 deep, which is not read";

const TOO_LARGE: &str = "a number in the JSON is larger than is read";

const LIST_GOES_ON: &str = "a list goes on with `,` or ends with `]`";

const OBJECT_GOES_ON: &str = "an object goes on with `,` or ends with `}`";

/// Parses a document: any value, with nothing after it. A document beyond a limit is still parsed to its end, to check that it is
/// JSON.
pub(crate) fn read(text: &str) -> Result<Json, ReadError> {
    let bytes = text.len() as u64;
    if !budget::spend(READ_STEPS * bytes) || !budget::has_room(HELD_BYTES * bytes) {
        return Err(ReadError::Beyond(budget::OVER));
    }
    let mut reader = Reader { rest: text, beyond: None };
    let json = reader.value(0).map_err(ReadError::Malformed)?;
    reader.skip_blanks();
    match reader.beyond {
        _ if !reader.rest.is_empty() => Err(ReadError::Malformed("text follows its end")),
        Some(limit) => Err(ReadError::Beyond(limit)),
        None => Ok(json),
    }
}

struct Reader<'a> {
    rest: &'a str,
    /// The first limit that was exceeded.
    beyond: Option<&'static str>,
}

impl Reader<'_> {
    fn value(&mut self, depth: usize) -> Result<Json, &'static str> {
        if depth > NESTING_MAX {
            self.beyond.get_or_insert(TOO_DEEP);
            return self.skip_value().map(|()| Json::Null);
        }
        self.skip_blanks();
        match self.rest.as_bytes().first() {
            Some(b'{') => self.object(depth),
            Some(b'[') => self.list(depth),
            _ => self.scalar(),
        }
    }

    fn scalar(&mut self) -> Result<Json, &'static str> {
        match self.rest.as_bytes().first() {
            None => Err("it ends too early"),
            Some(b'"') => self.text().map(Json::Text),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(_) => {
                [("null", Json::Null), ("true", Json::Bool(true)), ("false", Json::Bool(false))]
                    .into_iter()
                    .find(|(word, _)| self.take(word))
                    .map(|(_, json)| json)
                    .ok_or("a value was expected")
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, &'static str> {
        let mut items = Vec::new();
        self.take("[");
        self.skip_blanks();
        if self.take("]") {
            return Ok(Json::List(items));
        }
        loop {
            items.push(self.value(depth + 1)?);
            self.skip_blanks();
            if self.take("]") {
                return Ok(Json::List(items));
            }
            if !self.take(",") {
                return Err(LIST_GOES_ON);
            }
        }
    }

    fn object(&mut self, depth: usize) -> Result<Json, &'static str> {
        let mut entries = Vec::new();
        self.take("{");
        self.skip_blanks();
        if self.take("}") {
            return Ok(Json::Object(entries.into_iter().collect()));
        }
        loop {
            let key = self.key()?;
            entries.push((key, self.value(depth + 1)?));
            self.skip_blanks();
            if self.take("}") {
                return Ok(Json::Object(entries.into_iter().collect()));
            }
            if !self.take(",") {
                return Err(OBJECT_GOES_ON);
            }
        }
    }

    fn key(&mut self) -> Result<String, &'static str> {
        self.skip_blanks();
        if !self.rest.starts_with('"') {
            return Err("a key in double quotes was expected");
        }
        let key = self.text()?;
        self.skip_blanks();
        if self.take(":") { Ok(key) } else { Err("a `:` follows a key") }
    }

    /// Skips a value of any nesting depth.
    fn skip_value(&mut self) -> Result<(), &'static str> {
        // For each open list or object: whether it is an object.
        let mut open: Vec<bool> = Vec::new();
        let close = |is_object: bool| if is_object { "}" } else { "]" };
        loop {
            self.skip_blanks();
            let is_object = self.rest.starts_with('{');
            if self.take("{") || self.take("[") {
                self.skip_blanks();
                if !self.take(close(is_object)) {
                    open.push(is_object);
                    if is_object {
                        self.key()?;
                    }
                    continue;
                }
            } else {
                self.scalar()?;
            }
            loop {
                let Some(is_object) = open.last().copied() else { return Ok(()) };
                self.skip_blanks();
                if self.take(close(is_object)) {
                    open.pop();
                    continue;
                }
                if !self.take(",") {
                    return Err(if is_object { OBJECT_GOES_ON } else { LIST_GOES_ON });
                }
                if is_object {
                    self.key()?;
                }
                break;
            }
        }
    }

    fn text(&mut self) -> Result<String, &'static str> {
        const NO_END: &str = "a text has no end";
        let mut text = String::new();
        self.take("\"");
        loop {
            let end = self.rest.find(['"', '\\']).ok_or(NO_END)?;
            if self.rest[..end].contains(|c: char| u32::from(c) < 0x20) {
                return Err("a control character stands in a text");
            }
            text.push_str(&self.rest[..end]);
            self.rest = &self.rest[end..];
            if self.take("\"") {
                return Ok(text);
            }
            self.take("\\");
            let escaped = self.rest.chars().next().ok_or(NO_END)?;
            self.rest = &self.rest[escaped.len_utf8()..];
            text.push(match escaped {
                '"' | '\\' | '/' => escaped,
                'b' => '\u{8}',
                'f' => '\u{c}',
                'n' => '\n',
                'r' => '\r',
                't' => '\t',
                'u' => self.code_point()?,
                _ => return Err("an unknown escape stands in a text"),
            });
        }
    }

    /// Decodes `\uXXXX`, or a pair of them; half of a surrogate pair becomes the replacement character.
    fn code_point(&mut self) -> Result<char, &'static str> {
        let first = self.four_digits()?;
        let after_first = self.rest;
        if (0xd800..0xdc00).contains(&first) && self.take("\\u") {
            let second = self.four_digits()?;
            if (0xdc00..0xe000).contains(&second) {
                let code = 0x1_0000 + ((first - 0xd800) << 10) + (second - 0xdc00);
                return Ok(char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER));
            }
            self.rest = after_first;
        }
        Ok(char::from_u32(first).unwrap_or(char::REPLACEMENT_CHARACTER))
    }

    fn four_digits(&mut self) -> Result<u32, &'static str> {
        let digits =
            self.rest.get(..4).filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()));
        let digits = digits.ok_or("four hexadecimal digits follow `\\u`")?;
        self.rest = &self.rest[4..];
        u32::from_str_radix(digits, 16).map_err(|_| "four hexadecimal digits follow `\\u`")
    }

    fn number(&mut self) -> Result<Json, &'static str> {
        const MALFORMED: &str = "a number is malformed";
        let end = self
            .rest
            .find(|c: char| !matches!(c, '0'..='9' | '+' | '-' | '.' | 'e' | 'E'))
            .unwrap_or(self.rest.len());
        let (written, rest) = self.rest.split_at(end);
        if !is_number(written) {
            return Err(MALFORMED);
        }
        self.rest = rest;
        let number = match written.contains(['.', 'e', 'E']) {
            // A double would be another integer.
            false => written.parse().ok().map(Number::Int),
            true => {
                let double: f64 = written.parse().map_err(|_| MALFORMED)?;
                Some(Number::Double(double)).filter(|_| double.is_finite())
            }
        };
        if number.is_none() {
            self.beyond.get_or_insert(TOO_LARGE);
        }
        Ok(number.map_or(Json::Null, Json::Number))
    }

    fn skip_blanks(&mut self) {
        self.rest = self.rest.trim_start_matches([' ', '\t', '\n', '\r']);
    }

    fn take(&mut self, word: &str) -> bool {
        match self.rest.strip_prefix(word) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }
}

/// Whether a text matches `[ "-" ] ( "0" | a digit from 1 to 9 and digits ) [ "." digits ] [ "e" [ "+" | "-" ] digits ]`.
pub(in crate::value) fn is_number(written: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let (mantissa, exponent) = match written.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (written, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    let whole = whole.strip_prefix('-').unwrap_or(whole);
    is_digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(is_digits)
        && exponent.is_none_or(|e| is_digits(e.strip_prefix(['+', '-']).unwrap_or(e)))
}

#[cfg(test)]
mod tests {
    use super::{NESTING_MAX, ReadError, TOO_DEEP, TOO_LARGE, read};

    #[test]
    fn what_is_no_json_is_refused() {
        for source in [
            "",
            " ",
            "{",
            "[1",
            "[1,]",
            "{\"a\":1,}",
            "{\"a\"}",
            "{a:1}",
            "'a'",
            "\"a",
            "\"\\x\"",
            "\"\\u12\"",
            "\"\t\"",
            "01",
            "1.",
            ".5",
            "-",
            "+1",
            "1e",
            "0x1",
            "[1e999",
            "{\"a\":1e999} x",
            "nul",
            "truefalse",
            "{\"a\":1} x",
            "[1 2]",
            "NaN",
        ] {
            assert!(matches!(read(source), Err(ReadError::Malformed(_))), "{source}");
        }
    }

    #[test]
    fn nesting_has_an_end() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(read(&nested(NESTING_MAX)).is_ok());
        assert_eq!(read(&nested(100_000)), Err(ReadError::Beyond(TOO_DEEP)));
        let inner = "[".repeat(NESTING_MAX + 1);
        for (source, is_json) in [
            (r#"{"a":[{},[1,"x",{"b":null,"c":2}]],"d":[]}"#, true),
            ("1,2", true),
            (r#"{"a":[}"#, false),
            (r#"{"a"}"#, false),
            (r#"{"a":1,}"#, false),
            (r#"[1 2]"#, false),
            ("[", false),
            ("[]]", false),
        ] {
            let read = read(&format!("{inner}{source}{}", "]".repeat(NESTING_MAX + 1)));
            assert_eq!(read == Err(ReadError::Beyond(TOO_DEEP)), is_json, "{source}: {read:?}");
        }
    }

    #[test]
    fn numbers_have_an_end() {
        for source in ["1e400", "[-1e999]", &"9".repeat(40)] {
            assert_eq!(read(source), Err(ReadError::Beyond(TOO_LARGE)), "{source}");
        }
    }
}
