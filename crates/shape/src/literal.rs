//! Renders text from untrusted senders in a shape: bare if it parses back to the same text, else in quotes.

use std::fmt;

use model::trace::ValueRef;

use crate::volatile;

/// The maximum number of characters of a name or a value; a longer one is truncated with `…`.
const CHARS_MAX: usize = 200;
/// The maximum number of list elements to show.
const ELEMENTS_MAX: usize = 16;

/// The value of an attribute.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Literal {
    /// `*`: a person allows any value.
    Any,
    /// A number, a boolean, or an empty value.
    Plain(String),
    /// A text, or a value rendered as text.
    Text(String),
}

impl Literal {
    /// Returns the stable part of a value.
    pub(crate) fn of(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Empty => Self::Plain("none".to_owned()),
            ValueRef::Bool(value) => Self::Plain(value.to_string()),
            ValueRef::Int(value) => Self::Plain(value.to_string()),
            ValueRef::Double(value) => Self::Plain(format!("{value:?}")),
            ValueRef::Str(value) => Self::Text(shorten(&volatile::in_value(value))),
            ValueRef::Bytes(_) => Self::Text("{bytes}".to_owned()),
            ValueRef::Array(values) => {
                let shown: Vec<_> = values.iter().take(ELEMENTS_MAX).map(element).collect();
                let more = if values.len() > ELEMENTS_MAX { ", …" } else { "" };
                Self::Text(shorten(&format!("[{}{more}]", shown.join(", "))))
            }
            ValueRef::Map(_) => Self::Text("{map}".to_owned()),
        }
    }

    /// Parses a word of a shape; `None` if its quote is not closed.
    pub(crate) fn parse(word: &str) -> Option<Self> {
        match word {
            "*" => Some(Self::Any),
            _ if word.starts_with('"') => unquoted(word).map(Self::Text),
            _ if is_plain(word) => Some(Self::Plain(word.to_owned())),
            _ => Some(Self::Text(word.to_owned())),
        }
    }

    /// Whether it allows the other value.
    pub(crate) fn allows(&self, other: &Self) -> bool {
        *self == Self::Any || self == other
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("*"),
            Self::Plain(word) => f.write_str(word),
            Self::Text(text) if is_plain(text) || text == "*" => f.write_str(&quoted(text)),
            Self::Text(text) => f.write_str(&bare_or_quoted(text, "\"[],=")),
        }
    }
}

/// Renders one element of a list; nested lists are not expanded.
fn element(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Array(_) => "{list}".to_owned(),
        other => match Literal::of(other) {
            Literal::Text(text) => text,
            other => other.to_string(),
        },
    }
}

/// Whether a bare word is a number, a boolean or an empty value.
fn is_plain(word: &str) -> bool {
    let begins_number = word.trim_start_matches('-').starts_with(|c: char| c.is_ascii_digit());
    matches!(word, "true" | "false" | "none" | "NaN" | "inf" | "-inf")
        || begins_number && word.parse::<f64>().is_ok()
}

/// Returns the text as it is, or in quotes if it contains one of these characters, is invisible, or does not parse back.
pub(crate) fn bare_or_quoted(text: &str, refused: &str) -> String {
    let is_fine =
        |c: char| !refused.contains(c) && !is_hidden(c) && (!c.is_whitespace() || c == ' ');
    let is_tight = !text.is_empty() && text.trim() == text && !text.contains("  ");
    if is_tight && text.chars().all(is_fine) { text.to_owned() } else { quoted(text) }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c if is_hidden(c) || (c.is_whitespace() && c != ' ') => {
                quoted.extend(c.escape_unicode());
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// Decodes a quoted text, if the word consists only of it.
pub(crate) fn unquoted(word: &str) -> Option<String> {
    let end = quoted_end(word)?;
    if end != word.len() {
        return None;
    }
    let mut text = String::new();
    let mut rest = word[1..end - 1].chars();
    while let Some(c) = rest.next() {
        if c != '\\' {
            text.push(c);
            continue;
        }
        match rest.next()? {
            'n' => text.push('\n'),
            't' => text.push('\t'),
            'u' => {
                let escape = rest.as_str().strip_prefix('{')?;
                let (digits, behind) = escape.split_once('}')?;
                text.push(char::from_u32(u32::from_str_radix(digits, 16).ok()?)?);
                rest = behind.chars();
            }
            c @ ('"' | '\\') => text.push(c),
            _ => return None,
        }
    }
    Some(text)
}

/// Returns the end of the quoted text at the start of a text.
pub(crate) fn quoted_end(text: &str) -> Option<usize> {
    let mut is_escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            '"' => return Some(at + 1),
            _ => {}
        }
    }
    None
}

/// Truncates a text that is too long for a line.
pub(crate) fn shorten(text: &str) -> String {
    match text.char_indices().nth(CHARS_MAX) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Whether a character is invisible, or changes how other characters are displayed.
fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{ffff}' | '\u{e0000}'..='\u{e007f}')
}
