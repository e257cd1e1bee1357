//! An address: its connections, how many, and how they end.

use std::{
    future::Future,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use hyper_util::server::graceful::GracefulConnection;
use tokio::{
    net::{TcpListener, TcpStream},
    sync::{Semaphore, watch},
    task::JoinSet,
    time::{sleep, timeout},
};

/// How long to wait when the system has no more sockets for us.
const PAUSE: Duration = Duration::from_millis(100);

/// How to listen. `stopped` ends when the receiver is told to stop.
#[derive(Clone, Debug)]
pub(super) struct Listening {
    pub(super) connections_max: usize,
    pub(super) shutdown_timeout: Duration,
    pub(super) stopped: watch::Receiver<()>,
}

impl Listening {
    /// Accepts connections and serves each in a task of its own, until stopped.
    pub(super) async fn run<F>(
        mut self,
        listener: TcpListener,
        serve: impl Fn(TcpStream, watch::Receiver<()>) -> F,
    ) where
        F: Future<Output = ()> + Send + 'static,
    {
        let places = Arc::new(Semaphore::new(self.connections_max.min(Semaphore::MAX_PERMITS)));
        let mut connections = JoinSet::new();
        loop {
            let accept = async {
                let place = Arc::clone(&places).acquire_owned().await;
                listener.accept().await.map(|(stream, _)| (stream, place))
            };
            tokio::select! {
                _ = self.stopped.changed() => break,
                Some(_) = connections.join_next() => {}
                accepted = accept => match accepted {
                    Ok((stream, place)) => {
                        let served = serve(stream, self.stopped.clone());
                        connections.spawn(async move {
                            served.await;
                            drop(place);
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

/// How long a connection may be silent.
pub(super) struct Silence<'a> {
    pub(super) max: Duration,
    /// Requests that began and requests that ended, together: an odd number says that one is under way.
    pub(super) heard: &'a AtomicU64,
}

/// Serves a connection to its end, or, once stopped, to the end of what is under way.
///
/// One timer looks now and then whether anything was heard, instead of one for each request, so a silent connection is
/// let go after once to twice the time.
pub(super) async fn drive<C: GracefulConnection>(
    connection: C,
    mut stopped: watch::Receiver<()>,
    silence: Option<Silence<'_>>,
) -> Result<(), C::Error> {
    let mut connection = pin!(connection);
    let mut silent = pin!(was_silent(silence));
    tokio::select! {
        biased;
        ended = connection.as_mut() => return ended,
        () = &mut silent => return Ok(()),
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}

/// Ends when nothing was heard for too long.
async fn was_silent(silence: Option<Silence<'_>>) {
    let Some(Silence { max, heard }) = silence else { return std::future::pending().await };
    let mut before = 0;
    loop {
        sleep(max).await;
        let now = heard.load(Ordering::Relaxed);
        if now == before && now.is_multiple_of(2) {
            return;
        }
        before = now;
    }
}
