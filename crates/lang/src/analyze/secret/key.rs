//! Classifies a value as a secret by the name of its attribute, parameter or field.

/// Endings of names, in lower case with `_` between words, and the kind of the value under them.
const ENDINGS: &[(&str, &str)] = &[
    ("password", "a password"),
    ("passwd", "a password"),
    ("passphrase", "a password"),
    ("pwd", "a password"),
    ("api_key", "an API key"),
    ("apikey", "an API key"),
    ("access_key", "a key"),
    ("secret_key", "a key"),
    ("private_key", "a key"),
    ("encryption_key", "a key"),
    ("secret", "a secret"),
    ("token", "a token"),
    ("authorization", "an authorization header"),
    ("set_cookie", "a cookie"),
    ("cookie", "a cookie"),
    ("credential", "a credential"),
    ("credentials", "a credential"),
];

/// Words in front of `token` that make it a position in a list, such as a pagination cursor, and not a secret.
const HARMLESS_TOKENS: &[&str] =
    &["next", "page", "continuation", "cursor", "sync", "start", "skip", "max", "stop", "end"];

/// Values that describe a secret instead of being one.
const PLAIN_WORDS: &[&str] = &[
    "",
    "null",
    "nil",
    "none",
    "true",
    "false",
    "yes",
    "no",
    "set",
    "unset",
    "present",
    "absent",
    "missing",
    "required",
    "optional",
    "enabled",
    "disabled",
    "unknown",
    "valid",
    "invalid",
    "expired",
    "anonymous",
    "basic",
    "bearer",
    "digest",
    "undefined",
];

/// The minimum number of characters of a secret: a shorter value may be a word or a name.
const CHARS_MIN: usize = 6;
/// The maximum number of bytes of a name that are read, from its end.
const KEY_BYTES_MAX: usize = 64;

/// Returns the kind of the value under `key`, if that value must stay secret.
pub(in super::super) fn secret_key(key: &str) -> Option<&'static str> {
    let words = words(key);
    let (ending, what) = ENDINGS.iter().find(|(ending, _)| ends_with(&words, ending))?;
    let before = words[..words.len() - ending.len()].trim_end_matches('_');
    let is_harmless =
        *ending == "token" && HARMLESS_TOKENS.iter().any(|word| ends_with(before, word));
    (!is_harmless).then_some(*what)
}

/// Whether `words` is `ending`, or ends with it after a `_`.
pub(super) fn ends_with(words: &str, ending: &str) -> bool {
    words.strip_suffix(ending).is_some_and(|before| before.is_empty() || before.ends_with('_'))
}

/// Converts a name to lower case with `_` between its words: `accessToken` and `access-token` become `access_token`.
pub(super) fn words(key: &str) -> String {
    let start = key.ceil_char_boundary(key.len().saturating_sub(KEY_BYTES_MAX));
    let mut words = String::with_capacity(KEY_BYTES_MAX);
    let mut was_small = false;
    for c in key[start..].chars() {
        if !c.is_ascii_alphanumeric() {
            words.push('_');
            was_small = false;
            continue;
        }
        if c.is_ascii_uppercase() && was_small {
            words.push('_');
        }
        words.push(c.to_ascii_lowercase());
        was_small = !c.is_ascii_uppercase();
    }
    words
}

pub(super) fn is_plain_word(text: &str) -> bool {
    PLAIN_WORDS.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether a text can be a secret of the kind `what`. Sentences and paths cannot; passwords and headers have any format.
pub(super) fn fits(what: &str, text: &str) -> bool {
    match what {
        "a password" => !text.starts_with('/'),
        "an authorization header" | "a cookie" => true,
        _ => text.chars().nth(CHARS_MIN - 1).is_some() && !text.contains([' ', '/', '\n']),
    }
}
