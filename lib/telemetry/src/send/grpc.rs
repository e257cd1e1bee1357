//! The calls of exporters by gRPC: methods, compression, and what a status means. [`net::grpc`] has frames and statuses.

use std::{borrow::Cow, time::Duration};

use base64::{
    Engine,
    engine::general_purpose::{STANDARD_NO_PAD_INDIFFERENT, URL_SAFE_NO_PAD_INDIFFERENT},
};
use http::{HeaderMap, HeaderValue};
use net::grpc::{self, Status};

use super::{
    answer::{self, Answer, Peer},
    body,
};
use crate::plan::{Compression, Signal};

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
    grpc::add_headers(headers, timeout);
    let gzip = HeaderValue::from_static("gzip");
    // Some servers respond in the encoding of the request, even if it was not requested.
    headers.insert("grpc-accept-encoding", gzip.clone());
    headers.remove("grpc-encoding");
    if compression == Compression::Gzip {
        headers.insert("grpc-encoding", gzip);
    }
}

/// Encodes a message behind its flag and length.
pub(crate) fn frame(message: &[u8], compression: Compression) -> Vec<u8> {
    match compression {
        Compression::None => grpc::frame(message),
        Compression::Gzip => {
            let mut frame = body::gzip(vec![1, 0, 0, 0, 0], message);
            grpc::set_length(&mut frame);
            frame
        }
    }
}

/// Maps a response to an outcome.
pub(crate) fn answer(
    peer: Peer<'_>,
    head: &http::response::Parts,
    trailers: Option<&HeaderMap>,
    body: &[u8],
) -> Answer {
    match Status::of(&head.headers, trailers) {
        None => answer::not_grpc(peer, head, body),
        Some(Status { code: 0, .. }) => answer::success(peer, &message(body)),
        Some(Status { code, message, details }) => {
            let details = base64(&details).unwrap_or_default();
            answer::grpc(peer, code, &message, &details)
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
    use super::{base64, frame, message};
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
}
