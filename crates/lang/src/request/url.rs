//! The URL functions that building a request needs.

/// Splits a URL into its scheme and the rest; `None` if the `://` belongs to a later part of the URL.
pub(crate) fn split_scheme(url: &str) -> Option<(&str, &str)> {
    let (scheme, rest) = url.split_once("://")?;
    scheme
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"+-.".contains(&b))
        .then_some((scheme, rest))
}

/// Returns the port of the URL if it is invalid. A port that contains a `${…}` is not known yet.
pub(crate) fn wrong_port(rest: &str, is_all: bool) -> Option<&str> {
    let authority = match rest.split_once(['/', '?', '#']) {
        Some((authority, _)) => authority,
        None if is_all => rest,
        None => return None,
    };
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    let (_, port) = host.rsplit_once(']').unwrap_or(("", host)).1.rsplit_once(':')?;
    let is_port = port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    (!is_port && !port.is_empty()).then_some(port)
}

/// Adds a query parameter to the URL, before the fragment.
pub(super) fn with_query(url: &str, key: &str, value: &str) -> String {
    let (head, fragment) = match url.split_once('#') {
        Some((head, fragment)) => (head, format!("#{fragment}")),
        None => (url, String::new()),
    };
    let joint = match head.split_once('?') {
        None => "?",
        Some((_, query)) if query.is_empty() || query.ends_with('&') => "",
        Some(_) => "&",
    };
    format!("{head}{joint}{}={}{fragment}", escaped(key), escaped(value))
}

/// Percent-encodes a query value: all bytes except the unreserved characters.
pub(super) fn escaped(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parameter_joins_a_query() {
        for (url, expected) in [
            ("http://x", "http://x?k%20=a%26b"),
            ("http://x/?", "http://x/?k%20=a%26b"),
            ("http://x/?a=1", "http://x/?a=1&k%20=a%26b"),
            ("http://x/?a=1&#top", "http://x/?a=1&k%20=a%26b#top"),
        ] {
            assert_eq!(with_query(url, "k ", "a&b"), expected);
        }
    }
}
