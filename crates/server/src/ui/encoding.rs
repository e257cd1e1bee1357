//! The choice between a file and its compressed copies, by the `Accept-Encoding` of a request (RFC 9110).

use axum::http::{HeaderMap, header};
use web::WebFile;

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

/// Whether the headers accept an encoding: by name, or else by `*`, with a quality that is not zero.
fn is_accepted(headers: &HeaderMap, name: &str) -> bool {
    let values = headers.get_all(header::ACCEPT_ENCODING).iter();
    let ranges = values.filter_map(|value| value.to_str().ok()).flat_map(|text| text.split(','));
    let mut any = false;
    for range in ranges {
        let mut parts = range.split(';').map(str::trim);
        let coding = parts.next().unwrap_or_default();
        let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
        let is_accepted = quality.is_ok_and(|quality: f32| quality > 0.0);
        if coding.eq_ignore_ascii_case(name) {
            return is_accepted;
        }
        any |= coding == "*" && is_accepted;
    }
    any
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
