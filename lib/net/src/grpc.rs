//! The part of gRPC that a client needs: a frame of five bytes, some headers, and a status in the trailers.
//!
//! Implemented here instead of with a gRPC library: the library panics on a malformed trailer of a peer, and whether it allows
//! another connector for TLS depends on features that any crate of the program may enable. Deliberately absent: services,
//! generated code, and compression, which the caller adds to a frame if it wants it.

use std::time::Duration;

use bytes::{Buf, Bytes};
use http::{HeaderMap, HeaderName, HeaderValue, header};
use thiserror::Error;

const STATUS: HeaderName = HeaderName::from_static("grpc-status");
const MESSAGE: HeaderName = HeaderName::from_static("grpc-message");
const DETAILS: HeaderName = HeaderName::from_static("grpc-status-details-bin");

/// The bytes in front of a message: a flag and its length.
pub const FRAME_HEAD_BYTES: usize = 5;

/// How a call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// The code; 0 for success.
    pub code: i32,
    /// The message of the server.
    pub message: String,
    /// The value of `grpc-status-details-bin`, as it was sent.
    pub details: Vec<u8>,
}

/// Why the frames of a response cannot be read.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum FrameError {
    /// The last message is not complete.
    #[error("the last message of the response is cut off")]
    Cut,
    /// A message is compressed, which was not requested.
    #[error("a message of the response is compressed")]
    Compressed,
}

/// Adds the headers of a call.
pub fn add_headers(headers: &mut HeaderMap, timeout: Duration) {
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    // gRPC allows at most eight digits; a timeout with more digits in milliseconds is longer than a day.
    let millis = timeout.as_millis().clamp(1, 99_999_999) as u64;
    let value = HeaderValue::from_str(&format!("{millis}m")).expect("digits and a letter");
    headers.insert("grpc-timeout", value);
}

/// Encodes a message behind its flag and length.
pub fn frame(message: &[u8]) -> Vec<u8> {
    let mut frame = Vec::with_capacity(FRAME_HEAD_BYTES + message.len());
    frame.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
    frame.extend_from_slice(message);
    set_length(&mut frame);
    frame
}

/// Sets the length of the message in a frame.
pub fn set_length(frame: &mut [u8]) {
    // A message that is longer than gRPC can represent is far over every server's limit, and is rejected as such.
    let length = u32::try_from(frame.len() - FRAME_HEAD_BYTES).unwrap_or(u32::MAX);
    frame[1..FRAME_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

/// Splits the body of a response into its messages.
pub fn messages(mut body: Bytes) -> Result<Vec<Bytes>, FrameError> {
    let mut messages = Vec::new();
    while let Some(head) = body.first_chunk::<FRAME_HEAD_BYTES>().copied() {
        let [flag, length @ ..] = head;
        let length = u32::from_be_bytes(length) as usize;
        body.advance(FRAME_HEAD_BYTES);
        if flag != 0 {
            return Err(FrameError::Compressed);
        }
        if body.len() < length {
            return Err(FrameError::Cut);
        }
        messages.push(body.split_to(length));
    }
    if body.is_empty() { Ok(messages) } else { Err(FrameError::Cut) }
}

impl Status {
    /// Reads the status of a response from its trailers, or from its headers if it has no message. None if it has none.
    pub fn of(headers: &HeaderMap, trailers: Option<&HeaderMap>) -> Option<Self> {
        let status = trailers.filter(|it| it.contains_key(STATUS)).unwrap_or(headers);
        let code = status.get(STATUS)?.to_str().ok()?.trim().parse().ok()?;
        let text = |name| status.get(name).map(HeaderValue::as_bytes).unwrap_or_default();
        let (message, details) = (percent_decoded(text(MESSAGE)), text(DETAILS).to_vec());
        Some(Self { code, message, details })
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_frames_of_a_stream_are_read_and_a_cut_one_is_not() {
        let stream = [frame(b"hello"), frame(b""), frame(b"world")].concat();
        let read = messages(Bytes::from(stream.clone())).expect("three messages");
        assert_eq!(read, ["hello", "", "world"].map(Bytes::from));
        let ends = [0, 10, 15];
        for length in 0..stream.len() {
            let read = messages(Bytes::copy_from_slice(&stream[..length]));
            assert_eq!(read.is_ok(), ends.contains(&length), "{length}: {read:?}");
        }
        assert_eq!(messages(Bytes::from_static(&[1, 0, 0, 0, 1, 7])), Err(FrameError::Compressed));
    }

    #[test]
    fn a_status_is_read_from_the_trailers_or_the_headers() {
        let map = |code: &'static str| {
            let mut map = HeaderMap::new();
            map.insert(STATUS, HeaderValue::from_static(code));
            map.insert(MESSAGE, HeaderValue::from_static("no%20such"));
            map
        };
        let none = HeaderMap::new();
        let cases = [
            (none.clone(), Some(map("5")), Some(5)),
            (map("16"), Some(none.clone()), Some(16)),
            (map("16"), None, Some(16)),
            (map("five"), None, None),
            (none, None, None),
        ];
        for (headers, trailers, expected) in cases {
            let status = Status::of(&headers, trailers.as_ref());
            assert_eq!(status.map(|status| status.code), expected, "{headers:?} {trailers:?}");
        }
        assert_eq!(Status::of(&map("5"), None).expect("a status").message, "no such");
    }

    #[test]
    fn a_message_is_read() {
        let cases = [("a%20b", "a b"), ("100%", "100%"), ("%zz", "%zz"), ("%C3%A9", "é"), ("", "")];
        for (text, message) in cases {
            assert_eq!(percent_decoded(text.as_bytes()), message);
        }
    }
}
