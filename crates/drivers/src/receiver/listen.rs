//! The connections of one address: their limits, and their shutdown.

use std::{
    future::Future,
    pin::pin,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use hyper_util::server::graceful::GracefulConnection;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::watch,
    task::JoinSet,
    time::{sleep, timeout},
};

use crate::connections::ConnectionLimits;

/// How long to wait if the operating system has no more sockets.
const PAUSE: Duration = Duration::from_millis(100);

/// The settings of a listener. `stopped` changes when the receiver shuts down.
#[derive(Clone, Debug)]
pub(super) struct Listener {
    pub(super) connections_max: usize,
    pub(super) shutdown_timeout: Duration,
    pub(super) stopped: watch::Receiver<()>,
}

impl Listener {
    /// Accepts connections and serves each in its own task, until stopped.
    pub(super) async fn run<F>(
        mut self,
        listener: TcpListener,
        serve: impl Fn(TcpStream, watch::Receiver<()>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let limits = ConnectionLimits::new(self.connections_max);
        let mut connections = JoinSet::new();
        loop {
            tokio::select! {
                _ = self.stopped.changed() => break,
                Some(_) = connections.join_next() => {}
                accepted = listener.accept() => match accepted {
                    Ok((stream, peer)) => {
                        let Some(waiting) = limits.enter(peer.ip()) else { continue };
                        let served = serve(stream, self.stopped.clone());
                        connections.spawn(async move {
                            let _permit = waiting.served().await;
                            served.await;
                        });
                    }
                    Err(_) => sleep(PAUSE).await,
                },
            }
        }
        drop(listener);
        let ended = async { while connections.join_next().await.is_some() {} };
        if timeout(self.shutdown_timeout, ended).await.is_err() {
            connections.shutdown().await;
        }
    }
}

/// The request counts of one connection.
#[derive(Debug, Default)]
pub(super) struct RequestCounts {
    begun: AtomicU64,
    ended: AtomicU64,
}

/// How long a connection may be silent.
pub(super) struct Silence<'a> {
    pub(super) max: Duration,
    pub(super) heard: &'a RequestCounts,
}

impl RequestCounts {
    /// Counts a request, from its start to its end.
    pub(super) async fn during<T>(&self, request: impl Future<Output = T>) -> T {
        // It also counts as ended if the client disconnects earlier.
        struct Ends<'a>(&'a AtomicU64);
        impl Drop for Ends<'_> {
            fn drop(&mut self) {
                self.0.fetch_add(1, Ordering::Relaxed);
            }
        }
        self.begun.fetch_add(1, Ordering::Relaxed);
        let _ends = Ends(&self.ended);
        request.await
    }
}

/// How long a connection that is closed for silence may take to end.
const SILENT_END_MAX: Duration = Duration::from_secs(5);

/// Serves a connection to its end, or, once stopped, to the end of the active requests.
///
/// One timer checks periodically whether a request was received, instead of one timer for each request. A silent connection is
/// therefore closed after once to twice the time.
pub(super) async fn drive<C: GracefulConnection>(
    connection: C,
    mut stopped: watch::Receiver<()>,
    silence: Silence<'_>,
) -> Result<(), C::Error> {
    let mut connection = pin!(connection);
    let mut silent = pin!(was_silent(silence));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = &mut silent => {
            // An HTTP/2 client gets a GOAWAY frame, so that it sends no request that would be lost.
            connection.as_mut().graceful_shutdown();
            return timeout(SILENT_END_MAX, connection).await.unwrap_or(Ok(()));
        }
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Returns when no request was received for too long.
async fn was_silent(Silence { max, heard }: Silence<'_>) {
    let mut before = 0;
    loop {
        sleep(max).await;
        let [begun, ended] = [&heard.begun, &heard.ended].map(|it| it.load(Ordering::Relaxed));
        if begun == before && begun == ended {
            return;
        }
        before = begun;
    }
}
