//! The choice between a file and its compressed copies, by the `Accept-Encoding` of a request.

use axum::http::HeaderMap;
use web::WebFile;

use crate::http::compression::is_accepted;

/// The encoding of a compressed copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Brotli,
    Gzip,
}

impl Encoding {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Brotli => "br",
            Self::Gzip => "gzip",
        }
    }

    /// Returns the smallest content that the sender of these headers accepts, with its encoding.
    pub(super) fn choose(file: &WebFile, headers: &HeaderMap) -> (Option<Self>, &'static [u8]) {
        let copies = [(Self::Brotli, file.brotli), (Self::Gzip, file.gzip)];
        let accepted = |encoding: &Self| is_accepted(headers, encoding.as_str());
        copies
            .into_iter()
            .filter(|(encoding, _)| accepted(encoding))
            .find_map(|(encoding, copy)| Some((Some(encoding), copy?)))
            .unwrap_or((None, file.plain))
    }
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderMap, HeaderValue, header};
    use web::WebFile;

    use super::Encoding;

    #[test]
    fn the_smallest_accepted_copy_is_chosen() {
        let both = WebFile { name: "a", plain: b"plain", brotli: Some(b"br"), gzip: Some(b"gz") };
        let none = WebFile { brotli: None, gzip: None, ..both };
        let cases: [(&[&str], &[u8]); 12] = [
            (&[], b"plain"),
            (&[""], b"plain"),
            (&["gzip, deflate, br, zstd"], b"br"),
            (&["gzip", "br"], b"br"),
            (&["GZIP"], b"gz"),
            (&["br;q=0, gzip"], b"gz"),
            (&["br;q=0, *"], b"gz"),
            (&["br; q=0.1"], b"br"),
            (&["*"], b"br"),
            (&["*;q=0"], b"plain"),
            (&["br;q=nonsense"], b"plain"),
            (&["identity"], b"plain"),
        ];
        for (accepted, expected) in cases {
            let mut headers = HeaderMap::new();
            for value in accepted {
                headers.append(header::ACCEPT_ENCODING, HeaderValue::from_static(value));
            }
            assert_eq!(Encoding::choose(&both, &headers).1, expected, "{accepted:?}");
            assert_eq!(Encoding::choose(&none, &headers), (None, none.plain), "{accepted:?}");
        }
    }
}
