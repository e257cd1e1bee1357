//! Replaces the volatile parts of a text, ids and numbers, by `{id}`.
//!
//! A text is split into words at every character except letters, digits, `-`, `_` and `.`. Detection is a heuristic on the form
//! alone, and it prefers stability: `sha-256` becomes `sha-{id}` in every run. Versions (`v1`, `1.1`) are kept.

/// The replacement of an id.
const PLACEHOLDER: &str = "{id}";
/// The minimum number of hexadecimal digits of an id.
const HEX_MIN: usize = 8;
/// The minimum number of digits of an id after a letter or a dash: `order-4711`, not `utf-8`.
const DIGITS_MIN: usize = 3;
/// The minimum number of mixed letters and digits of an id.
const MIXED_MIN: usize = 16;

/// Returns the name of a span or an event without its ids.
pub(crate) fn in_name(text: &str) -> String {
    replace(text)
}

/// Returns the text of an attribute without its ids. A short number alone is meaningful, such as a status code, and stays.
pub(crate) fn in_value(text: &str) -> String {
    let is_short = text.len() <= DIGITS_MIN && text.bytes().all(|byte| byte.is_ascii_digit());
    if is_short { text.to_owned() } else { replace(text) }
}

fn replace(text: &str) -> String {
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.');
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    while !rest.is_empty() {
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        let (word, behind) = rest.split_at(end);
        replaced.push_str(&in_word(word));
        let next = behind.find(is_word).unwrap_or(behind.len());
        replaced.push_str(&behind[..next]);
        rest = &behind[next..];
    }
    replaced
}

fn in_word(word: &str) -> String {
    let parts: Vec<&str> = word.split(['-', '_', '.']).collect();
    let is_number =
        |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if parts.iter().all(is_number) && !is_version(word, &parts) || is_uuid(&parts) {
        return PLACEHOLDER.to_owned();
    }
    let mut replaced = String::with_capacity(word.len());
    let mut at = 0;
    for part in parts {
        let is_long_number = is_number(&part) && part.len() >= DIGITS_MIN;
        replaced.push_str(if is_long_number || is_id(part) { PLACEHOLDER } else { part });
        at += part.len();
        // The separator is one byte long.
        replaced.push_str(word.get(at..at + 1).unwrap_or_default());
        at += 1;
    }
    replaced
}

/// Whether the word is a version such as `1.1` or `2.10.3`: short numbers separated by dots.
fn is_version(word: &str, parts: &[&str]) -> bool {
    let has_dots_alone = !word.contains(['-', '_']);
    has_dots_alone
        && matches!(parts.len(), 2 | 3)
        && parts.iter().all(|part| part.len() <= DIGITS_MIN)
}

fn is_uuid(parts: &[&str]) -> bool {
    let is_hex = |part: &&str| part.bytes().all(|byte| byte.is_ascii_hexdigit());
    parts.iter().all(is_hex) && parts.iter().map(|part| part.len()).eq([8, 4, 4, 4, 12])
}

fn is_id(part: &str) -> bool {
    let digits = part.bytes().filter(u8::is_ascii_digit).count();
    let hex = part.strip_prefix("0x").unwrap_or(part);
    let is_hex = hex.len() >= HEX_MIN && hex.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_mixed = part.len() >= MIXED_MIN && part.bytes().all(|byte| byte.is_ascii_alphanumeric());
    (is_hex && digits > 0) || (is_mixed && digits >= DIGITS_MIN)
}

#[cfg(test)]
mod tests {
    use super::{in_name, in_value};

    #[test]
    fn ids_are_replaced_and_words_stay() {
        let cases = [
            ("GET /orders/42", "GET /orders/{id}"),
            ("GET /orders/{id}", "GET /orders/{id}"),
            ("GET /api/v1/runs/0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e", "GET /api/v1/runs/{id}"),
            ("blob 3f9a0c1d7e", "blob {id}"),
            ("span 00f067aa0ba902b7", "span {id}"),
            ("upload 01J9ZK3V7Q8M5N2P4R6S8T0W1X", "upload {id}"),
            ("queue order-4711_a", "queue order-{id}_a"),
            ("at 2026-11-15", "at {id}"),
            ("10.0.0.7:35123", "{id}:{id}"),
            ("retry 2", "retry {id}"),
            ("HTTP/1.1", "HTTP/1.1"),
            ("s3 k8s utf-8 v2 deadbeef", "s3 k8s utf-8 v2 deadbeef"),
            ("reserve", "reserve"),
            ("日本 12", "日本 {id}"),
            ("", ""),
        ];
        for (given, expected) in cases {
            assert_eq!(in_name(given), expected, "{given}");
            assert_eq!(in_name(expected), expected, "twice");
        }
        assert_eq!(in_value("200"), "200");
        assert_eq!(in_value("2000"), "{id}");
        assert_eq!(in_value("/orders/7"), "/orders/{id}");
    }
}
