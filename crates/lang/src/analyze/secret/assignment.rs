//! Recognizes secrets by the name in front of them, within a text: `name=value` as in a query or a connection string,
//! and `"name": "value"` as in JSON.

use super::{
    Secret,
    key::{ends_with, secret_key, words},
    secret_by_key,
};

/// Names of parameters that hold a signature. A signature grants its holder the permission that it was made for.
const SIGNATURES: &[&str] = &["sig", "signature"];
/// The minimum number of characters of a signature.
const SIGNATURE_CHARS_MIN: usize = 16;
/// The maximum number of bytes before the separator that can be a name.
const NAME_BYTES_MAX: usize = 64;
/// The maximum number of characters of a value that are read.
const VALUE_CHARS_MAX: usize = 4096;

pub(super) fn find(text: &str) -> Option<Secret> {
    let split = |at: usize, sign: &str| (&text[..at], &text[at + sign.len()..]);
    let mut parameters = text.match_indices("=").map(|(at, sign)| split(at, sign));
    let mut fields = text.match_indices("\":").map(|(at, sign)| split(at, sign));
    parameters
        .find_map(|(before, behind)| in_parameter(before, behind))
        .or_else(|| fields.find_map(|(before, behind)| in_field(before, behind)))
}

fn in_parameter(before: &str, behind: &str) -> Option<Secret> {
    let what = meaning(name_at_end(before))?;
    // The next `=` ends a value, so the search reads no value twice. Only the length of a `=` padding is lost.
    let ends = |c: &char| c.is_whitespace() || "=&;,\"')}]".contains(*c);
    let value: String = behind.chars().take(VALUE_CHARS_MAX).take_while(|c| !ends(c)).collect();
    judged(what, &value)
}

fn in_field(before: &str, behind: &str) -> Option<Secret> {
    let what = meaning(name_at_end(before))?;
    let value = behind.trim_start().strip_prefix('"')?;
    let value: String = value.chars().take(VALUE_CHARS_MAX).take_while(|c| *c != '"').collect();
    judged(what, &value)
}

fn meaning(name: &str) -> Option<&'static str> {
    let is_signature = || SIGNATURES.iter().any(|ending| ends_with(&words(name), ending));
    secret_key(name).or_else(|| is_signature().then_some("a signature"))
}

fn judged(what: &'static str, value: &str) -> Option<Secret> {
    let secret = secret_by_key(what, value)?;
    (what != "a signature" || secret.chars >= SIGNATURE_CHARS_MIN).then_some(secret)
}

/// Returns the word at the end of a text, up to the maximum length of a name.
fn name_at_end(text: &str) -> &str {
    let text = &text[text.ceil_char_boundary(text.len().saturating_sub(NAME_BYTES_MAX))..];
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let start = text.rfind(|c| !is_part(c)).map_or(0, |at| text.ceil_char_boundary(at + 1));
    &text[start..]
}
