//! One connection, from its first byte to its last: TLS or not, HTTP/1.1 or HTTP/2.
//!
//! The first bytes decide which version it is, whatever ALPN negotiated: every HTTP/2 client starts with the same preface.
//! Deliberately absent: an upgrade from HTTP/1.1 to HTTP/2, which no exporter requests.

use std::{
    convert::Infallible,
    future::Future,
    io,
    net::{IpAddr, Ipv4Addr},
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use http::{Request, Response, Version};
use hyper::{
    body::Incoming,
    rt::Executor,
    server::conn::{http1, http2},
    service::service_fn,
};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
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

/// The connection preface of every HTTP/2 client.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The response to a client that uses another protocol.
const GARBAGE: &[u8] =
    b"HTTP/1.1 400 Bad Request\r\nconnection: close\r\ncontent-type: text/plain\r\n\
    content-length: 62\r\n\r\nthis port takes OTLP over gRPC and HTTP, and this was neither\n";

/// The first byte of a TLS client.
const TLS_HANDSHAKE: u8 = 0x16;

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

/// The protocol that the first bytes of a connection indicate.
enum Greeting {
    Http1,
    Http2,
    Tls,
    Garbage,
}

/// A stream from which some bytes were already read.
struct Replay<T> {
    said: [u8; PREFACE.len()],
    at: usize,
    len: usize,
    stream: T,
}

/// The tasks of one connection's streams.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

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
        let mut stream = Replay { said: [0; PREFACE.len()], at: 0, len: 0, stream };
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
                refuse(stream.stream).await;
            }
            Ok(Some(Greeting::Garbage)) => {
                self.intake.not_understood("a client spoke neither HTTP nor gRPC");
                refuse(stream.stream).await;
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
        let streams = Streams::default();
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

impl<T: AsyncRead + Unpin> Replay<T> {
    /// Reads until the protocol is clear, which hyper would wait for without end. Returns none if the client sends nothing.
    async fn greeting(&mut self) -> Option<Greeting> {
        while self.len < PREFACE.len() && self.said[..self.len] == PREFACE[..self.len] {
            match self.stream.read(&mut self.said[self.len..]).await {
                Ok(more) if more > 0 => self.len += more,
                _ => return None,
            }
        }
        Some(match self.said {
            said if said == *PREFACE => Greeting::Http2,
            [TLS_HANDSHAKE, ..] => Greeting::Tls,
            // Every HTTP method in use is written in capital letters.
            [first, ..] if first.is_ascii_uppercase() => Greeting::Http1,
            _ => Greeting::Garbage,
        })
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Replay<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.at == self.len {
            return Pin::new(&mut self.stream).poll_read(context, into);
        }
        let end = self.len.min(self.at + into.remaining());
        into.put_slice(&self.said[self.at..end]);
        self.at = end;
        Poll::Ready(Ok(()))
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Replay<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        pieces: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(context, pieces)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

impl Streams {
    async fn join(self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        while tasks.join_next().await.is_some() {}
    }

    fn lock(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.lock();
        // Removes finished tasks here; otherwise a long connection would keep all of them.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            stream.await;
        });
    }
}
