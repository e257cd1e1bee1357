//! One request and its response on its own connection.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use hyper::{
    body::Incoming,
    client::conn::{http1, http2},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use tokio::{task::JoinSet, time::Instant};

use crate::dial::Connection;

/// The error of an HTTP connection.
pub type HttpError = hyper::Error;

/// A response whose head was received. Its connection is open until this is dropped.
#[derive(Debug)]
pub struct Exchange {
    /// The response, with its body unread.
    pub response: Response<Incoming>,
    /// When the request was sent.
    pub sent_at: Instant,
    _connection: AbortOnDrop,
}

/// Sends a request, and returns when the head of the response is received.
pub async fn exchange(
    connection: Connection,
    request: Request<Full<Bytes>>,
) -> Result<Exchange, HttpError> {
    let tasks = Tasks::default();
    let _connection = AbortOnDrop(tasks.clone());
    // A server may close the connection right after its response, which can still be read. The exchange reports why a
    // connection ended.
    let (response, sent_at) = match connection {
        Connection::Http1(stream) | Connection::Forwarding(stream) => {
            let (mut sender, driver) = http1::handshake(TokioIo::new(stream)).await?;
            tasks.execute(async { drop(driver.await) });
            let sent_at = Instant::now();
            (sender.send_request(request).await?, sent_at)
        }
        Connection::Http2(stream) => {
            let (mut sender, driver) =
                http2::handshake(tasks.clone(), TokioIo::new(stream)).await?;
            tasks.execute(async { drop(driver.await) });
            let sent_at = Instant::now();
            (sender.send_request(request).await?, sent_at)
        }
    };
    Ok(Exchange { response, sent_at, _connection })
}

/// The background tasks of a connection.
#[derive(Clone, Debug, Default)]
struct Tasks(Arc<Mutex<JoinSet<()>>>);

/// Aborts the tasks on drop, even if they are shared.
#[derive(Debug)]
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
