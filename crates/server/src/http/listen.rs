//! The API's listener: the router over hyper, with the limits that a server needs.
//!
//! Connections are limited in total and for each peer, a peer has a limited time to send its request, and a shutdown waits for
//! active requests. With a certificate the listener accepts only TLS. Deliberately absent: HTTP/2.

use std::{net::IpAddr, time::Duration};

use axum::Router;
use drivers::connections::{ConnectionLimits, WaitingConnection};
use hyper::{
    Request,
    body::Incoming,
    server::conn::http1,
    service::{Service, service_fn},
};
use hyper_util::{
    rt::{TokioIo, TokioTimer},
    server::graceful::{GracefulShutdown, Watcher},
    service::TowerToHyperService,
};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{sleep, timeout},
};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::CancellationToken;

use crate::{access::proxies::TrustedProxies, http::write_timeout::WriteTimeout};

/// The maximum number of connections served at a time; further ones wait.
const CONNECTIONS_MAX: usize = 1024;
/// The timeout for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// The maximum duration of a connection, so that a peer that never reads its response does not hold its permit.
const CONNECTION_MAX: Duration = Duration::from_secs(10 * 60);
/// How long a peer may leave a response unread.
const UNREAD_MAX: Duration = Duration::from_secs(20);
/// How long to wait when the system has no free socket.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// Serves until the server stops, then until active requests have their responses.
pub(crate) async fn serve(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    (router, proxies): (Router, TrustedProxies),
    stop: CancellationToken,
) {
    let limits = ConnectionLimits::new(CONNECTIONS_MAX);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some((stream, peer, waiting)) = next(&listener, &limits, &stop).await {
        while connections.try_join_next().is_some() {}
        let (tls, watcher) = (tls.clone(), graceful.watcher());
        let app = (router.clone(), proxies.clone());
        let stop = stop.clone();
        connections.spawn(async move {
            let _permit = tokio::select! {
                permit = waiting.served() => permit,
                () = stop.cancelled() => return,
            };
            let served = async {
                match tls {
                    None => connection(stream, peer, app, watcher).await,
                    Some(tls) => match timeout(HEAD_MAX, tls.accept(stream)).await {
                        Ok(Ok(stream)) => connection(stream, peer, app, watcher).await,
                        Ok(Err(error)) => {
                            tracing::debug!(%error, "a caller of the API spoke no TLS");
                        }
                        Err(_) => tracing::debug!("a caller of the API did not speak in time"),
                    },
                }
            };
            if timeout(CONNECTION_MAX, served).await.is_err() {
                tracing::debug!("a connection to the API lasted too long");
            }
        });
    }
    // New connections are refused at once instead of waiting.
    drop(listener);
    graceful.shutdown().await;
}

async fn connection(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: IpAddr,
    (router, proxies): (Router, TrustedProxies),
    watcher: Watcher,
) {
    let router = TowerToHyperService::new(router);
    let service = service_fn(move |mut request: Request<Incoming>| {
        let origin = proxies.origin(peer, request.headers());
        request.extensions_mut().insert(origin);
        router.call(request)
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_MAX)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, UNREAD_MAX)), service);
    if let Err(error) = watcher.watch(connection).await {
        tracing::debug!(%error, "a connection to the API broke");
    }
}

/// Accepts the next connection; `None` after a stop.
async fn next(
    listener: &TcpListener,
    limits: &ConnectionLimits,
    stop: &CancellationToken,
) -> Option<(TcpStream, IpAddr, WaitingConnection)> {
    let accepted = async {
        loop {
            match listener.accept().await {
                Ok((stream, peer)) => {
                    let peer = peer.ip().to_canonical();
                    if let Some(waiting) = limits.enter(peer) {
                        return (stream, peer, waiting);
                    }
                    tracing::debug!(%peer, "a caller of the API has too many connections: it is closed");
                }
                Err(error) => {
                    tracing::warn!(%error, "a connection to the API could not be accepted");
                    sleep(ACCEPT_RETRY).await;
                }
            }
        }
    };
    tokio::select! {
        () = stop.cancelled() => None,
        accepted = accepted => Some(accepted),
    }
}
