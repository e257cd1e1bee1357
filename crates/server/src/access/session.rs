//! The cookie of a person who has logged in.

use axum::http::{HeaderMap, header};

/// The cookie's name where there is TLS: a browser takes it from this host alone, and sends it by TLS alone.
pub(crate) const COOKIE_TLS: &str = "__Host-qualitytrace_session";
/// Its name where there is none.
pub(crate) const COOKIE: &str = "qualitytrace_session";

/// The session that a request shows. Where there is TLS the name of a cookie is what protects it, so that no other one counts.
pub(crate) fn cookie(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    value(headers, if is_tls { COOKIE_TLS } else { COOKIE })
}

/// The value of a cookie.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
