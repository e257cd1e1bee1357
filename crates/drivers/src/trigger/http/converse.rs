//! One request and its response on its own connection.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use http::{Request, Response, response::Parts};
use http_body_util::{BodyExt, Full};
use hyper::{
    body::{Body as _, Incoming},
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use tokio::{task::JoinSet, time::Instant};

use super::{
    HttpError,
    connect::{Peer, Target},
};
use crate::trigger::AnswerHold;

/// A response, and its times.
pub(super) struct TimedResponse {
    pub(super) head: Parts,
    pub(super) body: Vec<u8>,
    pub(super) sent_at: Instant,
    pub(super) ended_at: Instant,
}

/// Sends a request and reads the complete response, or only its head if `leads_on` returns true for it.
pub(super) async fn converse(
    peer: Peer,
    request: Request<Full<Bytes>>,
    (target, bytes_max, hold): (&Target, usize, &AnswerHold),
    leads_on: &(dyn Fn(&Parts) -> bool + Sync),
) -> Result<TimedResponse, HttpError> {
    let broken = |error: hyper::Error| broken(target, &error);
    let listen = async |answer: Response<Incoming>, sent_at: Instant| {
        let (head, body) = answer.into_parts();
        let body = match leads_on(&head) {
            true => Vec::new(),
            false => read(target, body, bytes_max, hold).await?,
        };
        Ok(TimedResponse { head, body, sent_at, ended_at: Instant::now() })
    };
    // A server may close the connection right after its response, which must still be read. The exchange reports why a
    // connection ended.
    match peer {
        Peer::Http1(stream) | Peer::Forwarding(stream) => {
            let (mut sender, connection) =
                http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
            let sent_at = Instant::now();
            let exchange = async {
                listen(sender.send_request(request).await.map_err(broken)?, sent_at).await
            };
            let mut exchange = std::pin::pin!(exchange);
            tokio::select! {
                biased;
                said = exchange.as_mut() => said,
                _ = connection => exchange.await,
            }
        }
        Peer::Http2(stream) => {
            let tasks = Tasks::default();
            let _ended_with_this = AbortOnDrop(tasks.clone());
            let (mut sender, connection) =
                http2::handshake(tasks, TokioIo::new(stream)).await.map_err(broken)?;
            let sent_at = Instant::now();
            let exchange = async {
                listen(sender.send_request(request).await.map_err(broken)?, sent_at).await
            };
            let mut exchange = std::pin::pin!(exchange);
            tokio::select! {
                biased;
                said = exchange.as_mut() => said,
                _ = connection => exchange.await,
            }
        }
    }
}

async fn read(
    target: &Target,
    mut body: Incoming,
    bytes_max: usize,
    hold: &AnswerHold,
) -> Result<Vec<u8>, HttpError> {
    // A body that is announced as too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(HttpError::TooLarge(bytes_max));
    }
    // Into one buffer: a peer may send a body byte by byte.
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(|error| broken(target, &error))?.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(HttpError::TooLarge(bytes_max));
        }
        hold.grow(whole.len() + data.len()).await;
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

fn broken(target: &Target, error: &(dyn Error + 'static)) -> HttpError {
    let head_too_large = error.downcast_ref().is_some_and(hyper::Error::is_parse_too_large);
    if head_too_large {
        return HttpError::HeadTooLarge;
    }
    let mut reason = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        reason = format!("{reason}: {error}");
        cause = error.source();
    }
    HttpError::Broken { target: target.clone(), reason }
}

/// The background tasks of an HTTP/2 connection.
#[derive(Clone, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Aborts the tasks on drop, even if they are shared.
struct AbortOnDrop(Tasks);

impl<F: Future<Output = ()> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).spawn(task);
    }
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        let Tasks(tasks) = &self.0;
        tasks.lock().unwrap_or_else(PoisonError::into_inner).abort_all();
    }
}
