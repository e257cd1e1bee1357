//! The session cookie of a person who has logged in.

use axum::http::{HeaderMap, header};

/// The cookie's name with TLS: a browser accepts it only from this host, and sends it only over TLS.
pub(crate) const COOKIE_TLS: &str = "__Host-qualitytrace_session";
/// The cookie's name without TLS.
pub(crate) const COOKIE: &str = "qualitytrace_session";

/// Returns the session of a request. With TLS, the `__Host-` prefix of the name protects the cookie, so only that name counts.
pub(crate) fn cookie(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    value(headers, if is_tls { COOKIE_TLS } else { COOKIE })
}

/// Returns the value of a cookie.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
