//! Which compression the sender of a request accepts, by `Accept-Encoding` (RFC 9110).

use std::io::{self, Write};

use axum::http::{HeaderMap, header};
use flate2::write::GzEncoder;

/// How a body that is stored with zstd is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compression {
    /// As it is stored.
    Zstd,
    /// Compressed again: browsers accept zstd over TLS only.
    Gzip,
    /// Not compressed.
    Plain,
}

impl Compression {
    /// Returns the value of `Content-Encoding`; none where it is not set.
    pub(crate) fn name(self) -> Option<&'static str> {
        match self {
            Self::Zstd => Some("zstd"),
            Self::Gzip => Some("gzip"),
            Self::Plain => None,
        }
    }

    /// Returns the first of these that the headers accept.
    pub(crate) fn choose(offered: &[Self], headers: &HeaderMap) -> Self {
        let is_accepted = |it: &&Self| it.name().is_some_and(|name| is_accepted(headers, name));
        offered.iter().find(is_accepted).copied().unwrap_or(Self::Plain)
    }
}

/// Compresses with gzip, fast.
pub(crate) fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Whether the headers accept an encoding: by name, or else by `*`, with a quality that is not zero.
pub(crate) fn is_accepted(headers: &HeaderMap, name: &str) -> bool {
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
    use std::io::Read;

    use axum::http::{HeaderMap, HeaderValue, header};

    use super::{Compression, gzip};

    #[test]
    fn the_first_that_is_accepted_is_chosen() {
        use Compression::{Gzip, Plain, Zstd};
        let cases = [
            ("", Plain, Plain),
            ("gzip, deflate, br, zstd", Zstd, Zstd),
            ("gzip, deflate", Gzip, Plain),
            ("zstd;q=0, *", Gzip, Plain),
            ("*", Zstd, Zstd),
            ("identity", Plain, Plain),
        ];
        for (accepted, of_all, of_zstd) in cases {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT_ENCODING, HeaderValue::from_static(accepted));
            let choose = |offered: &[Compression]| Compression::choose(offered, &headers);
            assert_eq!((choose(&[Zstd, Gzip]), choose(&[Zstd])), (of_all, of_zstd), "{accepted}");
        }
    }

    #[test]
    fn what_is_compressed_comes_back() {
        let bytes = b"spans ".repeat(1000);
        let packed = gzip(&bytes).expect("compressed");
        let mut back = Vec::new();
        flate2::read::GzDecoder::new(&*packed).read_to_end(&mut back).expect("gzip");
        assert!(packed.len() < 200 && back == bytes);
    }
}
