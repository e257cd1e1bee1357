//! One connection, from its first byte to its last: TLS or not, HTTP/1.1 or HTTP/2.
//!
//! The first bytes decide which version it is, whatever ALPN negotiated: every HTTP/2 client starts with the same preface.
//! Deliberately absent: an upgrade from HTTP/1.1 to HTTP/2, which no exporter requests.

use std::{
    convert::Infallible,
    io,
    net::{IpAddr, Ipv4Addr},
    sync::Arc,
    time::Duration,
};

use http::{Request, Response, Version};
use hyper::{
    body::Incoming,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    time::timeout,
};
use tokio_rustls::TlsAcceptor;

use super::{
    Sink,
    body::Reply,
    grpc, http as over_http,
    intake::Intake,
    listen::{RequestCounts, Silence, drive},
    stats::add,
};
use crate::greeting::{Greeting, Replay, StreamTasks};

/// The response to a client that uses another protocol.
const GARBAGE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n\
    content-length: 62\r\n\r\nthis port takes OTLP over gRPC and HTTP, and this was neither\n";

/// The maximum number of concurrent exports on one connection.
const STREAMS_MAX: u32 = 32;

/// The maximum size of an HTTP/2 frame. Large frames save copies on both sides.
const FRAME_BYTES_MAX: u32 = 256 * 1024;

/// The interval of keep-alive pings on a silent connection, and the timeout of their acknowledgement.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// How long the rest of a refused request is read, so that the client can receive the response.
pub(super) const LISTEN_ON: Duration = Duration::from_secs(1);

/// The state that connections share.
pub(super) struct Server<S> {
    pub(super) intake: Arc<Intake<S>>,
    pub(super) tls: Option<TlsAcceptor>,
}

impl<S: Sink> Server<S> {
    /// Serves one connection.
    pub(super) async fn serve(self: Arc<Self>, stream: TcpStream, stopped: watch::Receiver<()>) {
        add(&self.intake.watch.connections, 1);
        // Responses are small, and no data follows for which they could wait.
        stream.set_nodelay(true).ok();
        let peer = stream.peer_addr().map_or(Ipv4Addr::UNSPECIFIED.into(), |peer| peer.ip());
        let Some(tls) = &self.tls else { return self.greet(stream, peer, stopped).await };
        let mut stop = stopped.clone();
        let accepted = tokio::select! {
            _ = stop.changed() => return,
            accepted = timeout(self.intake.header_timeout, tls.accept(stream)) => accepted,
        };
        match accepted {
            Ok(Ok(stream)) => self.greet(stream, peer, stopped).await,
            // A client that only probes whether the port is open is not reported.
            Ok(Err(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {}
            Ok(Err(error)) => {
                self.intake.not_understood(&format!("no TLS session with a client: {error}"));
            }
            Err(_) => {}
        }
    }

    async fn greet<T>(&self, stream: T, peer: IpAddr, mut stopped: watch::Receiver<()>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let mut stream = Replay::new(stream);
        let greeting = tokio::select! {
            _ = stopped.changed() => return,
            greeting = timeout(self.intake.header_timeout, stream.greeting()) => greeting,
        };
        match greeting {
            Ok(Some(Greeting::Http1)) => self.http1(stream, peer, stopped).await,
            Ok(Some(Greeting::Http2)) => self.http2(stream, peer, stopped).await,
            Ok(Some(Greeting::Tls)) => {
                self.intake.not_understood(
                    "a client spoke TLS to a port without; send to `http://`, not `https://`",
                );
                refuse(stream.into_inner()).await;
            }
            Ok(Some(Greeting::Garbage)) => {
                self.intake.not_understood("a client spoke neither HTTP nor gRPC");
                refuse(stream.into_inner()).await;
            }
            Ok(None) | Err(_) => {}
        }
    }

    async fn http1<T>(&self, stream: Replay<T>, peer: IpAddr, stopped: watch::Receiver<()>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let heard = RequestCounts::default();
        let service = service_fn(|request| async {
            Ok::<_, Infallible>(heard.during(respond(&self.intake, peer, request)).await)
        });
        let silence = Silence { max: self.intake.header_timeout, heard: &heard };
        let connection = http1::Builder::new()
            .header_read_timeout(None)
            .serve_connection(TokioIo::new(stream), service);
        if let Err(error) = drive(connection, stopped, silence).await
            && error.is_parse()
        {
            self.intake.not_understood(&format!("a request that is not HTTP/1.1: {error}"));
        }
    }

    async fn http2<T>(&self, stream: Replay<T>, peer: IpAddr, stopped: watch::Receiver<()>)
    where
        T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let streams = StreamTasks::default();
        // A stream has its own task, which may outlive this one.
        let heard = Arc::new(RequestCounts::default());
        let (intake, hearing) = (Arc::clone(&self.intake), Arc::clone(&heard));
        let service = service_fn(move |request| {
            let (intake, heard) = (Arc::clone(&intake), Arc::clone(&hearing));
            async move { Ok::<_, Infallible>(heard.during(respond(&intake, peer, request)).await) }
        });
        let silence = Silence { max: self.intake.header_timeout, heard: &heard };
        let connection = http2::Builder::new(streams.clone())
            .timer(TokioTimer::new())
            .max_concurrent_streams(STREAMS_MAX)
            .max_frame_size(FRAME_BYTES_MAX)
            .keep_alive_interval(PING_INTERVAL)
            .keep_alive_timeout(PING_TIMEOUT)
            .serve_connection(TokioIo::new(stream), service);
        // How a connection ends is not reported.
        drive(connection, stopped, silence).await.ok();
        streams.join().await;
    }
}

/// Responds to a request, by its version and content type.
async fn respond<S: Sink>(
    intake: &Intake<S>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> Response<Reply> {
    add(&intake.watch.requests, 1);
    if request.version() == Version::HTTP_2 && grpc::is_call(request.headers()) {
        grpc::respond(intake, peer, request).await
    } else {
        over_http::respond(intake, peer, request).await
    }
}

/// Sends the response for an unknown protocol.
async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin) {
    let told = async {
        stream.write_all(GARBAGE).await?;
        stream.shutdown().await?;
        // Reads the rest of the client's data; otherwise its system would discard our response.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
    };
    timeout(LISTEN_ON, told).await.ok();
}
