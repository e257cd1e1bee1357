//! Sends one request on its own connection, and reads the response within its limits.

use bytes::Bytes;
use http::{Request, response::Parts};
use http_body_util::{BodyExt, Full};
use net::{
    Body as _, Incoming,
    dial::{Connection, Target},
    error_chain, exchange,
};
use tokio::time::Instant;

use super::HttpError;
use crate::trigger::AnswerHold;

/// A response, and its times.
pub(super) struct TimedResponse {
    pub(super) head: Parts,
    pub(super) body: Vec<u8>,
    pub(super) sent_at: Instant,
    pub(super) ended_at: Instant,
}

/// Why a response cannot be read.
enum ReadError {
    Broken(net::HttpError),
    TooLarge,
}

/// Sends a request and reads the complete response, or only its head if `leads_on` returns true for it.
pub(super) async fn send(
    connection: Connection,
    request: Request<Full<Bytes>>,
    (target, bytes_max, hold): (&Target, usize, &AnswerHold),
    leads_on: &(dyn Fn(&Parts) -> bool + Sync),
) -> Result<TimedResponse, HttpError> {
    let read = async {
        let exchange = exchange(connection, request).await?;
        let sent_at = exchange.sent_at;
        let (head, body) = exchange.response.into_parts();
        let body = match leads_on(&head) {
            true => Vec::new(),
            false => read(body, bytes_max, hold).await?,
        };
        Ok(TimedResponse { head, body, sent_at, ended_at: Instant::now() })
    };
    read.await.map_err(|error| match error {
        ReadError::TooLarge => HttpError::TooLarge(bytes_max),
        ReadError::Broken(error) if error.is_parse_too_large() => HttpError::HeadTooLarge,
        ReadError::Broken(error) => {
            HttpError::Broken { target: target.clone(), reason: error_chain(&error) }
        }
    })
}

async fn read(
    mut body: Incoming,
    bytes_max: usize,
    hold: &AnswerHold,
) -> Result<Vec<u8>, ReadError> {
    // A body that is announced as too large is not read at all.
    if body.size_hint().lower() > bytes_max as u64 {
        return Err(ReadError::TooLarge);
    }
    // Into one buffer: a peer may send a body byte by byte.
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame?.into_data() else { continue };
        if whole.len() + data.len() > bytes_max {
            return Err(ReadError::TooLarge);
        }
        hold.grow(whole.len() + data.len()).await;
        whole.extend_from_slice(&data);
    }
    Ok(whole)
}

impl From<net::HttpError> for ReadError {
    fn from(error: net::HttpError) -> Self {
        Self::Broken(error)
    }
}
