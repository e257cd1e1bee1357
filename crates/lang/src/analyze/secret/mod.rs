//! Detects secrets in attributes: by the key, or by the format of the value.
//!
//! A finding names the kind and the length of a secret, never its characters. A masked value is not a secret. A value that could
//! be a word, an id or a placeholder is not a secret either: users disable a rule that reports false positives.
//!
//! Deliberately absent: measures of randomness. They match ids as often as keys.

mod assignment;
mod card;
mod key;
mod shape;

pub(super) use key::secret_key;

/// The maximum number of bytes of a value that are searched.
const VALUE_BYTES_MAX: usize = 64 * 1024;

/// A description of a secret that does not contain the secret.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Secret {
    /// The kind of secret, such as `a password`.
    pub(super) what: &'static str,
    /// The number of characters.
    pub(super) chars: usize,
}

/// Returns the first secret within a text that is recognized by its format.
pub(super) fn secret_within(text: &str) -> Option<Secret> {
    let text = &text[..text.floor_char_boundary(VALUE_BYTES_MAX)];
    shape::find(text).or_else(|| assignment::find(text))
}

/// Returns the first payment card number within a text.
pub(super) fn card_within(text: &str) -> Option<Secret> {
    card::find(&text[..text.floor_char_boundary(VALUE_BYTES_MAX)])
}

/// Returns the secret in a text under a key that marks it as `what`, unless the text is masked or a plain word.
pub(super) fn secret_by_key(what: &'static str, text: &str) -> Option<Secret> {
    let text = text.trim();
    let is_secret = !is_masked(text) && !key::is_plain_word(text) && key::fits(what, text);
    is_secret.then(|| Secret { what, chars: text.chars().count() })
}

/// Whether a mask or a placeholder replaces the secret.
fn is_masked(text: &str) -> bool {
    let lower = text.get(..text.floor_char_boundary(256)).unwrap_or_default().to_ascii_lowercase();
    let says = |word: &str| lower.contains(word);
    let first = text.chars().next();
    let is_one_char = text.chars().all(|c| Some(c) == first);
    let is_placeholder = text.starts_with(['<', '{', '$', '?', ':', '%', '@', '['])
        && text.chars().count() <= 40
        && !text.contains(' ');
    is_one_char
        || is_placeholder
        || ["***", "redacted", "filtered", "masked", "hidden", "xxxx", "•••", "scrubbed"]
            .iter()
            .any(|word| says(word))
}

#[cfg(test)]
mod tests {
    use super::{card_within, secret_by_key, secret_key, secret_within};

    fn found(text: &str) -> Option<&'static str> {
        secret_within(text).or_else(|| card_within(text)).map(|secret| secret.what)
    }

    #[test]
    fn secrets_are_seen_by_how_they_look() {
        let token = "a1B2c3D4e5F6g7H8i9J0";
        let cases = [
            (format!("Bearer {token}"), "a bearer token"),
            (format!("authorization: bearer {token}"), "a bearer token"),
            ("Basic dXNlcjpwYXNzd29yZDE=".to_owned(), "a basic credential"),
            (format!("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.{token}"), "a JSON web token"),
            ("key AKIAABCDEFGHIJKLMNOP!".to_owned(), "an AWS access key"),
            (format!("ghp_{token}{token}"), "a GitHub token"),
            (format!("glpat-{token}"), "a GitLab token"),
            (format!("sk_live_{token}{token}"), "a Stripe key"),
            (format!("xoxb-{token}"), "a Slack token"),
            ("-----BEGIN RSA PRIVATE KEY-----\nMIIE".to_owned(), "a private key"),
            ("-----BEGIN PRIVATE KEY-----".to_owned(), "a private key"),
            ("postgres://app:s3cretly@db.test/shop".to_owned(), "a password"),
            (format!("https://x.test/?a=1&access_token={token}"), "a token"),
            ("Server=db;Password=s3cretly;".to_owned(), "a password"),
            ("{\"user\": \"a\", \"password\": \"s3cretly\"}".to_owned(), "a password"),
            (format!("https://x.test/?sig={token}"), "a signature"),
            ("paid with 4111 1111 1111 1111.".to_owned(), "a card number"),
            ("4111-1111-1111-1111".to_owned(), "a card number"),
            ("3782 822463 10005".to_owned(), "a card number"),
            ("5555555555554444".to_owned(), "a card number"),
        ];
        for (text, what) in cases {
            assert_eq!(found(&text), Some(what), "{text}");
        }
    }

    #[test]
    fn what_only_resembles_a_secret_is_none() {
        let cases = [
            "Bearer of bad news and good",
            "the bearer token is missing",
            "Basic authentication failed",
            "Bearer ********************",
            "eyJ",
            "eyJhbGciOiJIUzI1NiJ9",
            "AKIA is short",
            "XAKIAABCDEFGHIJKLMNOP",
            "-----BEGIN PUBLIC KEY-----",
            "https://REDACTED:REDACTED@x.test/",
            "https://user@x.test/a:b@c",
            "https://x.test/?access_token=REDACTED&sig=REDACTED",
            "UPDATE users SET password = ? WHERE token=$1",
            "{\"password\": \"***\", \"token\": null}",
            "https://x.test/?page_token=a1B2c3D4e5F6g7H8i9J0",
            "4111111111111112",
            "1760000000001000000",
            "41111111-1111-1111-1111-111111111111",
            "0004111111111111111",
            "4111 1111 1111 1111 1111",
            "call +49 4111 111111",
            "grüße:größe=straße",
            "",
        ];
        for text in cases {
            assert_eq!(found(text), None, "{text}");
        }
    }

    #[test]
    fn secrets_are_seen_by_their_keys() {
        let by_key = |key: &str, text: &str| {
            secret_key(key).and_then(|what| secret_by_key(what, text)).map(|secret| secret.what)
        };
        let cases = [
            ("user.password", "hunter22", Some("a password")),
            ("userPassword", "hunter22", Some("a password")),
            ("http.request.header.authorization", "Digest abc", Some("an authorization header")),
            ("http.request.header.x-api-key", "abcdef123", Some("an API key")),
            ("http.request.header.cookie", "sid=1", Some("a cookie")),
            ("APIKey", "abcdef123", Some("an API key")),
            ("oauth.client_secret", "abcdef123", Some("a secret")),
            ("session.accessToken", "abcdef123", Some("a token")),
            ("user.password", "", None),
            ("user.password", "********", None),
            ("user.password", "[Filtered]", None),
            ("user.password.length", "12", None),
            ("gen_ai.usage.input_tokens", "123456789", None),
            ("page.next_token", "abcdef123", None),
            ("auth.token", "none", None),
            ("auth.token", "the token is old", None),
            ("k8s.secret.name", "db-login", None),
            ("token_count", "123456789", None),
            ("http.request.header.authorization", "Bearer", None),
        ];
        for (key, text, expected) in cases {
            assert_eq!(by_key(key, text), expected, "{key}: {text}");
        }
    }
}
