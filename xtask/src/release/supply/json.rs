//! JSON, only written: the few forms that a bill of materials needs, in the order in which they are given.

use std::fmt::Write;

/// A value of JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Json {
    Text(String),
    Number(u64),
    List(Vec<Json>),
    Map(Vec<(&'static str, Json)>),
}

impl Json {
    /// Returns a text.
    pub(super) fn text(text: impl Into<String>) -> Self {
        Self::Text(text.into())
    }

    /// Returns the value as a document, indented by two spaces, with a line feed at its end.
    pub(super) fn document(&self) -> String {
        let mut out = String::new();
        self.write(&mut out, 0);
        out.push('\n');
        out
    }

    fn write(&self, out: &mut String, depth: usize) {
        match self {
            Self::Text(text) => write_text(out, text),
            Self::Number(number) => out.push_str(&number.to_string()),
            Self::List(values) => {
                write_members(out, ['[', ']'], depth, values, |out, value| {
                    value.write(out, depth + 1);
                });
            }
            Self::Map(members) => {
                write_members(out, ['{', '}'], depth, members, |out, (name, value)| {
                    write_text(out, name);
                    out.push_str(": ");
                    value.write(out, depth + 1);
                });
            }
        }
    }
}

fn write_members<T>(
    out: &mut String,
    [open, close]: [char; 2],
    depth: usize,
    members: &[T],
    mut write: impl FnMut(&mut String, &T),
) {
    out.push(open);
    for (index, member) in members.iter().enumerate() {
        out.push_str(if index == 0 { "\n" } else { ",\n" });
        out.push_str(&"  ".repeat(depth + 1));
        write(out, member);
    }
    if !members.is_empty() {
        out.push('\n');
        out.push_str(&"  ".repeat(depth));
    }
    out.push(close);
}

/// Writes a text in quotes. RFC 8259 demands that quotes, backslashes and control characters are escaped, and nothing else.
fn write_text(out: &mut String, text: &str) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => {
                // Writing to a string cannot fail.
                write!(out, "\\u{:04x}", u32::from(character)).ok();
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_escaped_where_the_standard_demands_it() {
        let cases = [
            ("plain", r#""plain""#),
            (r#"say "hi""#, r#""say \"hi\"""#),
            (r"C:\n", r#""C:\\n""#),
            ("a\nb\r\tc", r#""a\nb\r\tc""#),
            ("\u{1}\u{1f}\u{7f}", "\"\\u0001\\u001f\u{7f}\""),
            ("Grüße 📦 \u{2028}", "\"Grüße 📦 \u{2028}\""),
        ];
        for (text, expected) in cases {
            assert_eq!(Json::text(text).document().trim_end(), expected);
        }
    }

    #[test]
    fn members_keep_their_order_and_empty_ones_stay_on_a_line() {
        let value = Json::Map(vec![
            ("b", Json::Number(1)),
            ("a", Json::List(vec![Json::text("x"), Json::List(vec![])])),
            ("c", Json::Map(vec![])),
        ]);
        let expected = "{\n  \"b\": 1,\n  \"a\": [\n    \"x\",\n    []\n  ],\n  \"c\": {}\n}\n";
        assert_eq!(value.document(), expected);
    }
}
