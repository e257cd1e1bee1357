//! The subset of gRPC that a unary call needs: a frame of five bytes, some headers, and a status in the trailers.
//!
//! Implemented here instead of with a gRPC library: the library panics on a malformed trailer of a peer, and whether it
//! allows another connector for TLS depends on features that any crate of the program may enable. Deliberately absent:
//! streams, services and generated code.

use std::{borrow::Cow, time::Duration};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD_INDIFFERENT, URL_SAFE_NO_PAD_INDIFFERENT},
};
use http::{HeaderMap, HeaderName, HeaderValue, header};

use super::{
    answer::{self, Answer, Peer},
    body,
};
use crate::plan::{Compression, Signal};

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");
/// The maximum size of a decompressed response.
const ANSWER_BYTES_MAX: u64 = 64 * 1024;

/// Returns the method path of a signal.
pub(crate) fn path(signal: Signal) -> &'static str {
    match signal {
        Signal::Spans => "/opentelemetry.proto.collector.trace.v1.TraceService/Export",
        Signal::Logs => "/opentelemetry.proto.collector.logs.v1.LogsService/Export",
        Signal::Metrics => "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export",
    }
}

/// Adds the headers of a gRPC call.
pub(crate) fn add_headers(headers: &mut HeaderMap, compression: Compression, timeout: Duration) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    let gzip = HeaderValue::from_static("gzip");
    // Some servers respond in the encoding of the request, even if it was not requested.
    headers.insert("grpc-accept-encoding", gzip.clone());
    headers.remove("grpc-encoding");
    if compression == Compression::Gzip {
        headers.insert("grpc-encoding", gzip);
    }
    // gRPC allows at most eight digits; a timeout with more digits in milliseconds is longer than a day.
    let millis = timeout.as_millis().clamp(1, 99_999_999) as u64;
    let value = HeaderValue::from_str(&format!("{millis}m")).expect("digits and a letter");
    headers.insert("grpc-timeout", value);
}

/// Encodes a message behind its flag and length.
pub(crate) fn frame(message: &[u8], compression: Compression) -> Vec<u8> {
    let mut out = Vec::with_capacity(5 + message.len());
    out.push(u8::from(compression == Compression::Gzip));
    out.extend_from_slice(&[0; 4]);
    let mut out = match compression {
        Compression::Gzip => body::gzip(out, message),
        Compression::None => {
            out.extend_from_slice(message);
            out
        }
    };
    // A message that is longer than gRPC can represent is far over every server's limit, and is rejected as such.
    let length = u32::try_from(out.len() - 5).unwrap_or(u32::MAX);
    out[1..5].copy_from_slice(&length.to_be_bytes());
    out
}

/// Maps a response to an outcome.
pub(crate) fn answer(
    peer: Peer<'_>,
    head: &http::response::Parts,
    trailers: Option<&HeaderMap>,
    body: &[u8],
) -> Answer {
    // A rejection may have its status in the headers alone.
    let status = trailers.filter(|it| it.contains_key(STATUS)).unwrap_or(&head.headers);
    let code = status.get(STATUS).and_then(|code| code.to_str().ok()?.trim().parse::<i32>().ok());
    let text = |name| status.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
    match code {
        None => answer::not_grpc(peer, head, body),
        Some(0) => answer::success(peer, &message(body)),
        Some(code) => {
            let details = base64(text(DETAILS)).unwrap_or_default();
            answer::grpc(peer, code, &percent_decoded(text(MESSAGE)), &details)
        }
    }
}

/// Returns the message of a response; empty if it cannot be read, because the status is sufficient.
fn message(body: &[u8]) -> Cow<'_, [u8]> {
    match body.split_first_chunk::<5>() {
        Some(([0, ..], message)) => Cow::Borrowed(message),
        Some((_, message)) => {
            Cow::Owned(body::gunzip(message, ANSWER_BYTES_MAX).unwrap_or_default())
        }
        None => Cow::Borrowed(&[]),
    }
}

fn percent_decoded(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((byte, behind)) = rest.split_first() {
        let digits = behind.get(..2).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(decoded) if *byte == b'%' => {
                out.push(decoded);
                rest = &behind[2..];
            }
            _ => {
                out.push(*byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// Decodes base64 with or without padding; returns `None` for anything else.
fn base64(text: &[u8]) -> Option<Vec<u8>> {
    let text = text.trim_ascii_end();
    let engine = if text.iter().any(|byte| b"-_".contains(byte)) {
        URL_SAFE_NO_PAD_INDIFFERENT
    } else {
        STANDARD_NO_PAD_INDIFFERENT
    };
    engine.decode(text).ok()
}

#[cfg(test)]
mod tests {
    use super::{base64, frame, message, percent_decoded};
    use crate::plan::Compression;

    #[test]
    fn a_frame_is_read_back_compressed_or_not() {
        for compression in [Compression::Gzip, Compression::None] {
            assert_eq!(*message(&frame(b"hello", compression)), *b"hello");
        }
        for odd in [&b""[..], &[1, 0, 0, 0, 1, 7], &[0, 0]] {
            assert_eq!(*message(odd), *b"");
        }
    }

    #[test]
    fn base64_is_read() {
        let cases: [(&str, Option<&[u8]>); 7] = [
            ("", Some(b"")),
            ("Zg", Some(b"f")),
            ("Zg==", Some(b"f")),
            ("Zm8=", Some(b"fo")),
            ("Zm9v", Some(b"foo")),
            ("Zm9vYg", Some(b"foob")),
            ("Zm9v!", None),
        ];
        for (text, bytes) in cases {
            assert_eq!(base64(text.as_bytes()).as_deref(), bytes, "{text}");
        }
    }

    #[test]
    fn a_message_is_read() {
        let cases = [("a%20b", "a b"), ("100%", "100%"), ("%zz", "%zz"), ("%C3%A9", "é"), ("", "")];
        for (text, message) in cases {
            assert_eq!(percent_decoded(text.as_bytes()), message);
        }
    }
}
