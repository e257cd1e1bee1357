//! The cookie of a person who has logged in.

use axum::http::{HeaderMap, header};

/// The cookie's name where there is TLS: a browser takes it from this host alone, and sends it by TLS alone.
pub(crate) const COOKIE_TLS: &str = "__Host-qualitytrace_session";
/// Its name where there is none.
pub(crate) const COOKIE: &str = "qualitytrace_session";

/// The session that a request shows.
pub(crate) fn cookie(headers: &HeaderMap) -> Option<&str> {
    value(headers, COOKIE_TLS).or_else(|| value(headers, COOKIE))
}

/// The value of a cookie.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
