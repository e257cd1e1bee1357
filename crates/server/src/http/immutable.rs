//! Bodies that never change: a client that has one checks with `If-None-Match` that it may still read it (RFC 9110).

use axum::{
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};

/// A cache may store the body, and asks the server before each use, which checks the access.
const PRIVATE: &str = "private, no-cache";

/// The weak ETag of a body, in quotes: the same for each compression of it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WeakTag(pub(crate) &'static str);

impl WeakTag {
    /// Whether the client has the body already.
    pub(crate) fn is_in(self, headers: &HeaderMap) -> bool {
        let values = headers.get_all(header::IF_NONE_MATCH).iter();
        let tags = values.filter_map(|value| value.to_str().ok()).flat_map(|it| it.split(','));
        let mut tags = tags.map(str::trim);
        tags.any(|tag| tag == "*" || opaque(tag) == opaque(self.0))
    }

    /// Returns the response to a client that has the body.
    pub(crate) fn not_modified(self) -> Response {
        self.on(StatusCode::NOT_MODIFIED)
    }

    /// Sets the headers of a response with the body.
    pub(crate) fn on(self, response: impl IntoResponse) -> Response {
        let mut response = response.into_response();
        for (name, value) in [
            (header::ETAG, self.0),
            (header::CACHE_CONTROL, PRIVATE),
            (header::VARY, "accept-encoding"),
        ] {
            response.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        response
    }
}

/// Returns what the comparison of weak tags compares.
fn opaque(tag: &str) -> &str {
    tag.strip_prefix("W/").unwrap_or(tag)
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};

    use super::WeakTag;

    #[test]
    fn a_tag_is_found_however_it_is_written() {
        let cases = [
            ("W/\"a\"", true),
            ("\"a\"", true),
            ("\"b\", W/\"a\"", true),
            ("*", true),
            ("W/\"b\"", false),
            ("a", false),
            ("", false),
        ];
        for (value, expected) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::IF_NONE_MATCH, HeaderValue::from_static(value));
            assert_eq!(WeakTag("W/\"a\"").is_in(&headers), expected, "{value}");
        }
        assert!(!WeakTag("W/\"a\"").is_in(&HeaderMap::new()));
    }
}
