//! The cookies of a person who has logged in: of a session by an identity provider, or a token that the person pasted.

use axum::http::{HeaderMap, header};

/// The cookie's name with TLS: a browser accepts it only from this host, and sends it only over TLS.
pub(crate) const COOKIE_TLS: &str = "__Host-qualitytrace_session";
/// The cookie's name without TLS.
pub(crate) const COOKIE: &str = "qualitytrace_session";
/// The name of the cookie with a pasted token, with TLS.
pub(crate) const TOKEN_COOKIE_TLS: &str = "__Host-qualitytrace_token";
/// The same without TLS.
pub(crate) const TOKEN_COOKIE: &str = "qualitytrace_token";

/// Returns the session of a request. With TLS, the `__Host-` prefix of the name protects the cookie, so only that name counts.
pub(crate) fn cookie(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    value(headers, if is_tls { COOKIE_TLS } else { COOKIE })
}

/// Returns the pasted token of a request. A removed cookie may come back empty.
pub(crate) fn token_cookie(headers: &HeaderMap, is_tls: bool) -> Option<&str> {
    let token = value(headers, if is_tls { TOKEN_COOKIE_TLS } else { TOKEN_COOKIE });
    token.filter(|token| !token.is_empty())
}

/// Returns the value of a cookie.
pub(crate) fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let pairs = headers.get_all(header::COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs =
        pairs.flat_map(|text| text.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(known, _)| *known == name).map(|(_, value)| value)
}
