//! Responses that a peer does not read, over HTTP/2: a peer that grants a stream no window holds the response, and its permit, while
//! the connection itself stays alive. `write_timeout` cannot see that.
//!
//! A response is sent in small pieces, each a copy: otherwise the queue of the stream would hold all of it.

use std::{
    collections::HashMap,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, ready},
    time::Duration,
};

use axum::body::{Body, Bytes, HttpBody};
use drivers::shares::Permit;
use hyper::body::{Frame, SizeHint};
use tokio::time::{Instant, sleep};

/// The size of a piece.
const PIECE: usize = 16 * 1024;

/// The responses of one connection of which a frame waits for the peer, with when it began to wait.
#[derive(Clone, Debug, Default)]
pub(super) struct Stalls {
    waiting: Arc<Mutex<HashMap<u64, Instant>>>,
    next: Arc<AtomicU64>,
}

/// A response body that registers when its peer has to read before it can continue.
#[derive(Debug)]
pub(super) struct WatchedBody {
    body: Body,
    /// The rest of the last frame.
    rest: Bytes,
    id: u64,
    stalls: Stalls,
    /// The permit of the request.
    _permit: Permit,
}

impl Stalls {
    /// Watches a body until it is dropped.
    pub(super) fn watch(&self, body: Body, permit: Permit) -> WatchedBody {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        WatchedBody { body, rest: Bytes::new(), id, stalls: self.clone(), _permit: permit }
    }

    /// Completes when the peer has left a frame unread for `max`.
    pub(super) async fn exceeded(&self, max: Duration) {
        loop {
            sleep(max / 4).await;
            if self.lock().values().any(|since| since.elapsed() >= max) {
                return;
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<u64, Instant>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl HttpBody for WatchedBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        if self.rest.is_empty() {
            // The connection polls for the next frame once the previous one is sent.
            self.stalls.lock().remove(&self.id);
            match ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(data) => self.rest = data,
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                ended => return Poll::Ready(ended),
            }
        }
        let length = self.rest.len().min(PIECE);
        let piece = Bytes::copy_from_slice(&self.rest.split_to(length));
        self.stalls.lock().insert(self.id, Instant::now());
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let rest = self.rest.len() as u64;
        let of_body = self.body.size_hint();
        let mut hint = SizeHint::new();
        hint.set_lower(of_body.lower() + rest);
        if let Some(upper) = of_body.upper() {
            hint.set_upper(upper + rest);
        }
        hint
    }
}

impl Drop for WatchedBody {
    fn drop(&mut self) {
        self.stalls.lock().remove(&self.id);
    }
}
