//! The API's listener: the router over hyper, with the limits that a server needs.
//!
//! Connections are limited in total and for each peer, a peer has a limited time to send its request, and a shutdown waits for
//! active requests. With a certificate the listener accepts only TLS. The first bytes decide between HTTP/1.1 and HTTP/2.
//! Deliberately absent: an upgrade from HTTP/1.1 to HTTP/2.

use std::{convert::Infallible, net::IpAddr, time::Duration};

use axum::{
    Router,
    http::{HeaderValue, header},
};
use drivers::{
    connections::{self, ConnectionLimits, WaitingConnection},
    greeting::{Greeting, Replay, StreamTasks},
    shares::Shares,
};
use hyper::{
    Request, Version,
    body::Incoming,
    server::conn::{http1, http2},
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
use tokio_util::sync::CancellationToken;

use crate::{
    access::proxies::TrustedProxies,
    http::{stall::Stalls, tls::TlsAcceptor, write_timeout::WriteTimeout},
};

/// The maximum number of connections served at a time; further ones wait.
const CONNECTIONS_MAX: usize = 1024;
/// The timeout for the head of a request.
const HEAD_MAX: Duration = Duration::from_secs(10);
/// The maximum duration of a connection, so that a peer that never reads its response does not hold its permit.
const CONNECTION_MAX: Duration = Duration::from_secs(10 * 60);
/// How long a peer may leave a response unread.
const UNREAD_MAX: Duration = Duration::from_secs(20);
/// The maximum number of concurrent requests on one HTTP/2 connection.
const STREAMS_MAX: u32 = 32;
/// How many bytes of request bodies an HTTP/2 peer may send before they are read: of one request, and of a connection.
const STREAM_WINDOW: u32 = 64 * 1024;
const CONNECTION_WINDOW: u32 = 256 * 1024;
/// The interval of keep-alive pings on an HTTP/2 connection, and the timeout of their acknowledgement.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);
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
    // Requests over HTTP/2 are as many as connections could be, so that they hold no more memory.
    let requests = Shares::new(CONNECTIONS_MAX);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    while let Some((stream, peer, waiting)) = next(&listener, &limits, &stop).await {
        while connections.try_join_next().is_some() {}
        let (tls, watcher) = (tls.clone(), graceful.watcher());
        let app = (router.clone(), proxies.clone(), requests.clone());
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
    (router, proxies, requests): (Router, TrustedProxies, Shares<IpAddr>),
    watcher: Watcher,
) {
    let mut stream = Replay::new(WriteTimeout::new(stream, UNREAD_MAX));
    let Ok(Some(greeting)) = timeout(HEAD_MAX, stream.greeting()).await else { return };
    let router = TowerToHyperService::new(router);
    let respond = move |mut request: Request<Incoming>| {
        name_host(&mut request);
        let origin = proxies.origin(peer, request.headers());
        request.extensions_mut().insert(origin);
        router.call(request)
    };
    let ended = match greeting {
        Greeting::Http2 => {
            let stalls = Stalls::default();
            let watched = stalls.clone();
            let service = service_fn(move |request| {
                let (respond, stalls, requests) =
                    (respond.clone(), watched.clone(), requests.clone());
                async move {
                    let permit = requests.acquire(&connections::peer(peer)).await;
                    let response = respond(request).await?;
                    Ok::<_, Infallible>(response.map(|body| stalls.watch(body, permit)))
                }
            });
            let connection = http2::Builder::new(StreamTasks::default())
                .timer(TokioTimer::new())
                .max_concurrent_streams(STREAMS_MAX)
                .initial_stream_window_size(STREAM_WINDOW)
                .initial_connection_window_size(CONNECTION_WINDOW)
                .keep_alive_interval(PING_INTERVAL)
                .keep_alive_timeout(PING_TIMEOUT)
                .serve_connection(TokioIo::new(stream), service);
            tokio::select! {
                ended = watcher.watch(connection) => ended,
                () = stalls.exceeded(UNREAD_MAX) => {
                    tracing::debug!("a caller of the API does not read a response");
                    Ok(())
                }
            }
        }
        // hyper refuses what is no HTTP.
        Greeting::Http1 | Greeting::Tls | Greeting::Garbage => {
            let connection = http1::Builder::new()
                .timer(TokioTimer::new())
                .header_read_timeout(HEAD_MAX)
                .serve_connection(TokioIo::new(stream), service_fn(respond));
            watcher.watch(connection).await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection to the API broke");
    }
}

/// Sets the `Host` header of an HTTP/2 request, which has its host in the URI: all checks read the header.
fn name_host(request: &mut Request<Incoming>) {
    if request.version() == Version::HTTP_2 {
        let authority = request.uri().authority().map(|it| HeaderValue::from_str(it.as_str()));
        match authority {
            Some(Ok(authority)) => drop(request.headers_mut().insert(header::HOST, authority)),
            _ => drop(request.headers_mut().remove(header::HOST)),
        }
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

#[cfg(test)]
mod tests {
    use std::{
        net::Ipv4Addr,
        pin::Pin,
        task::{Context, Poll, ready},
        time::Duration,
    };

    use axum::{Router, body::Body, routing::get};
    use bytes::Bytes;
    use http_body_util::{BodyExt, Empty};
    use hyper::{
        Request,
        body::{Frame, Incoming},
        client::conn::http2,
    };
    use hyper_util::{
        rt::{TokioExecutor, TokioIo},
        server::graceful::GracefulShutdown,
    };
    use tokio::{
        io::duplex,
        task::JoinSet,
        time::{Instant, Sleep, sleep, timeout},
    };

    use super::{Shares, UNREAD_MAX, connection};
    use crate::access::proxies::TrustedProxies;

    /// More than a window of HTTP/2 holds.
    const LARGE: usize = 4 << 20;

    /// A body that sends its first byte long after the head of the response, as a live stream may.
    struct LateBody(Option<Pin<Box<Sleep>>>);

    impl hyper::body::Body for LateBody {
        type Data = Bytes;
        type Error = axum::Error;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
            let Some(timer) = &mut self.0 else { return Poll::Ready(None) };
            ready!(timer.as_mut().poll(context));
            self.0 = None;
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"late")))))
        }
    }

    /// Both ends of a connection.
    struct Ends {
        server: JoinSet<()>,
        _client: JoinSet<()>,
        _sender: http2::SendRequest<Empty<Bytes>>,
    }

    /// Serves a connection over HTTP/2, requests `path`, and returns both ends with the body of the response.
    async fn request(path: &str) -> (Ends, Incoming) {
        // The clock of the tests is paused: the body is late at once.
        let late = || async { Body::new(LateBody(Some(Box::pin(sleep(3 * UNREAD_MAX))))) };
        let router = Router::new()
            .route("/large", get(|| async { vec![7_u8; LARGE] }))
            .route("/late", get(late));
        let (ours, theirs) = duplex(64 * 1024);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let graceful = GracefulShutdown::new();
            let app = (router, TrustedProxies::new(&[]), Shares::new(2));
            connection(theirs, Ipv4Addr::LOCALHOST.into(), app, graceful.watcher()).await;
        });
        let client = http2::handshake(TokioExecutor::new(), TokioIo::new(ours));
        let (mut sender, client) = client.await.expect("a handshake");
        let client = async move { client.await.unwrap_or_default() };
        let request = Request::get(format!("http://localhost{path}")).body(Empty::<Bytes>::new());
        let mut clients = JoinSet::new();
        clients.spawn(client);
        let response = sender.send_request(request.expect("a request")).await;
        (
            Ends { server: tasks, _client: clients, _sender: sender },
            response.expect("a response").into_body(),
        )
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_not_read_ends_its_connection() {
        let began = Instant::now();
        let (mut ends, body) = request("/large").await;
        ends.server.join_next().await;
        let lived = began.elapsed();
        assert!(lived >= UNREAD_MAX && lived < 2 * UNREAD_MAX, "{lived:?}");
        drop(body);
    }

    #[tokio::test(start_paused = true)]
    async fn a_response_that_is_read_is_complete() {
        let (_ends, body) = request("/large").await;
        assert_eq!(body.collect().await.expect("a body").to_bytes().len(), LARGE);
        // The server has nothing to send for longer than a peer may leave a response unread.
        let (_ends, body) = request("/late").await;
        let body = timeout(Duration::from_secs(3600), body.collect()).await.expect("an end");
        assert_eq!(body.expect("a body").to_bytes(), "late");
    }
}
