//! An address: its connections, how many, and how they end.

use std::{future::Future, pin::pin, sync::Arc, time::Duration};

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

/// Serves a connection to its end, or, once stopped, to the end of what is under way.
pub(super) async fn drive<C: GracefulConnection>(
    connection: C,
    mut stopped: watch::Receiver<()>,
) -> Result<(), C::Error> {
    let mut connection = pin!(connection);
    tokio::select! {
        ended = connection.as_mut() => return ended,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    connection.await
}
