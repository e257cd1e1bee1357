//! Recognizes secrets by their format, anywhere in a text.
//!
//! Each search scans the text once: it reads the characters after a candidate only where a candidate begins.

use super::{Secret, is_masked};

/// Prefixes of the keys of well-known vendors, and the minimum number of characters that follow.
const PREFIXES: &[(&str, usize, &str)] = &[
    ("AKIA", 16, "an AWS access key"),
    ("ASIA", 16, "an AWS access key"),
    ("ghp_", 36, "a GitHub token"),
    ("gho_", 36, "a GitHub token"),
    ("ghu_", 36, "a GitHub token"),
    ("ghs_", 36, "a GitHub token"),
    ("ghr_", 36, "a GitHub token"),
    ("github_pat_", 36, "a GitHub token"),
    ("glpat-", 20, "a GitLab token"),
    ("xoxb-", 20, "a Slack token"),
    ("xoxp-", 20, "a Slack token"),
    ("sk_live_", 24, "a Stripe key"),
    ("rk_live_", 24, "a Stripe key"),
    ("AIza", 35, "a Google key"),
];

/// The minimum number of bytes of such a key, prefix included, and of a JSON web token.
const TOKEN_BYTES_MIN: usize = 20;
/// The minimum number of characters of a token after `Bearer` or `Basic`.
const CREDENTIAL_CHARS_MIN: usize = 16;
/// `{\"` in base 64: the start of a part of a JSON web token.
const JWT_PREFIX: &str = "eyJ";
/// The minimum number of characters of each part of a JSON web token.
const JWT_CHARS_MIN: usize = 10;
/// The maximum number of bytes of the first line of a private key.
const KEY_LINE_BYTES_MAX: usize = 48;
/// The maximum number of characters of `user:password` in a URL that are read.
const USER_CHARS_MAX: usize = 256;

pub(super) fn find(text: &str) -> Option<Secret> {
    // No secret is shorter.
    if text.len() < 8 {
        return None;
    }
    private_key(text)
        .or_else(|| known_token(text))
        .or_else(|| credential(text, "earer ", "a bearer token"))
        .or_else(|| credential(text, "asic ", "a basic credential"))
        .or_else(|| in_url(text))
}

fn private_key(text: &str) -> Option<Secret> {
    text.match_indices("-----BEGIN ").find_map(|(start, _)| {
        let rest = &text[start..];
        let line = &rest[..rest.floor_char_boundary(KEY_LINE_BYTES_MAX)];
        let is_private = line.contains("PRIVATE KEY-----");
        is_private.then(|| Secret { what: "a private key", chars: rest.chars().count() })
    })
}

fn known_token(text: &str) -> Option<Secret> {
    // Nearly all texts contain none of these prefixes, and a substring search is much faster than splitting into tokens.
    if text.len() < TOKEN_BYTES_MIN {
        return None;
    }
    let mut beginnings = PREFIXES.iter().map(|(prefix, ..)| *prefix).chain([JWT_PREFIX]);
    if !beginnings.any(|beginning| text.contains(beginning)) {
        return None;
    }
    tokens(text).find_map(|token| web_token(token).or_else(|| prefixed(token)))
}

/// Returns the rest of `text` from the start of each token on.
fn tokens(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches(|c| !is_token_char(c));
        let token = rest;
        rest = &rest[token_len(rest)..];
        (!token.is_empty()).then_some(token)
    })
}

/// Recognizes a JSON web token: two parts that are JSON, and a signature.
fn web_token(text: &str) -> Option<Secret> {
    let header = token_len(text.starts_with(JWT_PREFIX).then_some(text)?);
    let payload =
        text[header..].strip_prefix('.').filter(|payload| payload.starts_with(JWT_PREFIX))?;
    let payload_len = token_len(payload);
    let signature = payload[payload_len..].strip_prefix('.')?;
    let is_token = header >= JWT_CHARS_MIN && payload_len >= JWT_CHARS_MIN;
    let chars = header + 1 + payload_len + 1 + token_len(signature);
    is_token.then_some(Secret { what: "a JSON web token", chars })
}

fn prefixed(text: &str) -> Option<Secret> {
    let (prefix, more_min, what) = PREFIXES.iter().find(|(it, ..)| text.starts_with(it))?;
    let chars = token_len(text);
    let is_key = chars >= prefix.len() + more_min && !is_masked(&text[..chars]);
    is_key.then_some(Secret { what, chars })
}

fn token_len(text: &str) -> usize {
    text.bytes().take_while(|byte| is_token_char(char::from(*byte))).count()
}

fn is_token_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '_')
}

/// Finds an authorization scheme (`Bearer` or `Basic`) with a credential after it. In a sentence, plain words follow; a
/// credential contains a digit, or one of the signs `+`, `/` and `=`.
fn credential(text: &str, word_end: &str, what: &'static str) -> Option<Secret> {
    text.match_indices(word_end).find_map(|(at, _)| {
        let is_word = text[..at].ends_with(['b', 'B']);
        let rest = text[at + word_end.len()..].trim_start();
        let is_part = |byte: &u8| {
            byte.is_ascii_alphanumeric()
                || matches!(byte, b'-' | b'_' | b'.' | b'~' | b'+' | b'/' | b'=')
        };
        let chars = rest.bytes().take_while(is_part).count();
        let token = &rest[..chars];
        let is_text = token.contains(|c: char| c.is_ascii_digit() || matches!(c, '+' | '/' | '='));
        let is_credential =
            is_word && is_text && chars >= CREDENTIAL_CHARS_MIN && !is_masked(token);
        is_credential.then_some(Secret { what, chars })
    })
}

/// Finds the password in `scheme://user:password@host`.
fn in_url(text: &str) -> Option<Secret> {
    text.match_indices("://").find_map(|(at, sign)| {
        let rest = &text[at + sign.len()..];
        let rest = &rest[..rest.floor_char_boundary(USER_CHARS_MAX)];
        let ends = |byte: u8| byte.is_ascii_whitespace() || b"/?#\"'<>".contains(&byte);
        let authority = &rest[..rest.bytes().position(ends).unwrap_or(rest.len())];
        let (user, _) = authority.rsplit_once('@')?;
        let (_, password) = user.split_once(':')?;
        let is_secret = !password.is_empty() && !is_masked(password);
        let chars = password.chars().count();
        is_secret.then_some(Secret { what: "a password", chars })
    })
}
