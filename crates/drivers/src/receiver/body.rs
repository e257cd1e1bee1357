//! Bodies of requests, read within limits, and bodies of responses.

use std::{
    convert::Infallible,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderMap;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};

use tokio::time::timeout;

use super::{connection::LISTEN_ON, error::ExportError, room::Room};

/// The maximum memory that is reserved for a message by its announced length alone.
const RESERVE_BYTES_MAX: usize = 256 * 1024;

/// The body of a response: some bytes, and optional gRPC trailers.
#[derive(Debug, Default)]
pub(super) struct Reply {
    data: Option<Bytes>,
    trailers: Option<Box<HeaderMap>>,
}

/// The limits for reading a body.
pub(super) struct Limit<'a, 'r> {
    pub(super) bytes_max: usize,
    /// Bytes that precede the message and do not count toward its limit.
    pub(super) head_bytes: usize,
    pub(super) room: &'a mut Room<'r>,
}

/// Reads a body to its end. A body in one chunk is not copied.
///
/// `announced` computes the expected length from the first chunk; it is only a hint.
pub(super) async fn read(
    mut body: Incoming,
    limit: Limit<'_, '_>,
    announced: impl FnOnce(&[u8]) -> usize,
) -> Result<Bytes, ExportError> {
    let Limit { bytes_max, head_bytes, room } = limit;
    // A body that is announced as too large is not buffered at all.
    if body.size_hint().lower() > (bytes_max + head_bytes) as u64 {
        listen_on(&mut body).await;
        return Err(ExportError::TooLarge(bytes_max));
    }
    let Some(first) = next(&mut body).await? else { return Ok(Bytes::new()) };
    room.grow(first.len())?;
    let mut len = first.len();
    let mut whole = Vec::new();
    let mut announced = Some((first, announced));
    while len <= bytes_max + head_bytes {
        if body.is_end_stream() {
            break;
        }
        let Some(more) = next(&mut body).await? else { break };
        room.grow(more.len())?;
        len += more.len();
        if let Some((first, announced)) = announced.take() {
            whole.reserve(announced(&first).min(RESERVE_BYTES_MAX).max(len));
            whole.extend_from_slice(&first);
        }
        whole.extend_from_slice(&more);
    }
    if len > bytes_max + head_bytes {
        listen_on(&mut body).await;
        return Err(ExportError::TooLarge(bytes_max));
    }
    Ok(announced.map_or(whole.into(), |(only, _)| only))
}

/// Reads and discards a body, unless it is too large.
pub(super) async fn pass_over(mut body: Incoming, bytes_max: usize) -> Result<(), ExportError> {
    let mut len = 0;
    while body.size_hint().lower() <= bytes_max as u64
        && len <= bytes_max
        && let Some(more) = next(&mut body).await?
    {
        len += more.len();
    }
    Ok(())
}

/// Reads the rest of a refused request for a while; otherwise the client's system would discard our response.
async fn listen_on(body: &mut Incoming) {
    let passing = async { while matches!(next(body).await, Ok(Some(_))) {} };
    timeout(LISTEN_ON, passing).await.ok();
}

/// Returns the next non-empty chunk, if there is one.
async fn next(body: &mut Incoming) -> Result<Option<Bytes>, ExportError> {
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| ExportError::Broken(error.to_string()))?;
        if let Ok(data) = frame.into_data()
            && !data.is_empty()
        {
            return Ok(Some(data));
        }
    }
    Ok(None)
}

impl Reply {
    pub(super) fn new(data: Bytes) -> Self {
        Self { data: Some(data).filter(|data| !data.is_empty()), trailers: None }
    }

    pub(super) fn with_trailers(data: Bytes, trailers: HeaderMap) -> Self {
        Self { trailers: Some(Box::new(trailers)), ..Self::new(data) }
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let data = self.data.take().map(Frame::data);
        let frame = data.or_else(|| self.trailers.take().map(|it| Frame::trailers(*it)));
        Poll::Ready(frame.map(Ok))
    }

    fn is_end_stream(&self) -> bool {
        self.data.is_none() && self.trailers.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.data.as_ref().map_or(0, |data| data.len() as u64))
    }
}
