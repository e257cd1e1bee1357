//! OTLP over gRPC, in HTTP/2 without TLS.
//!
//! Messages stay bytes: [`otlp::split`] reads them as they stand on the wire.

use std::{
    convert::Infallible,
    future::Future,
    io::Cursor,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use bytes::{Buf, BufMut, Bytes};
use http::{Request, Response};
use hyper::{body::Incoming, rt::Executor, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt},
    net::TcpStream,
    sync::watch,
    task::JoinSet,
    time::timeout,
};
use tonic::{
    Code, Status,
    body::Body,
    codec::{Codec, CompressionEncoding, DecodeBuf, Decoder, EncodeBuf, Encoder},
    server::{Grpc, UnaryService},
};

use super::{
    Sink,
    intake::{Intake, NotTaken, Signal},
    listen::drive,
};

/// What every HTTP/2 client says first.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// What a client of the wrong port is told. Senders of OTLP over HTTP that mistake the port are common.
const WRONG_PORT: &[u8] = b"HTTP/1.1 505 HTTP Version Not Supported\r\nconnection: close\r\n\
    content-type: text/plain\r\ncontent-length: 82\r\n\r\n\
    this port takes OTLP over gRPC; OTLP over HTTP has a port of its own, usually 4318";

/// Exports under way on one connection.
const STREAMS_MAX: u32 = 32;

/// How often a silent peer is asked whether it is there, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(30);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// The tasks of one connection's streams.
#[derive(Clone, Default)]
struct Streams(Arc<Mutex<JoinSet<()>>>);

/// Messages as bytes, in both directions.
#[derive(Clone, Copy)]
struct Raw;

/// The one method of the three services.
struct Export<S> {
    intake: Arc<Intake<S>>,
    signal: Signal,
}

/// Serves one connection.
pub(super) async fn serve<S: Sink>(
    stream: TcpStream,
    header_timeout: Duration,
    intake: Arc<Intake<S>>,
    mut stopped: watch::Receiver<()>,
) {
    let stream = tokio::select! {
        _ = stopped.changed() => return,
        greeted = timeout(header_timeout, greet(stream)) => match greeted {
            Ok(Some(stream)) => stream,
            Ok(None) | Err(_) => return,
        },
    };
    let streams = Streams::default();
    let service = service_fn(move |request| {
        let intake = Arc::clone(&intake);
        async move { Ok::<_, Infallible>(respond(intake, request).await) }
    });
    let connection = http2::Builder::new(streams.clone())
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS_MAX)
        .keep_alive_interval(PING_INTERVAL)
        .keep_alive_timeout(PING_TIMEOUT)
        .serve_connection(TokioIo::new(stream), service);
    drive(connection, stopped).await;
    streams.join().await;
}

/// Reads what a client says first, which hyper would wait for without end, and gives it back to be read again.
async fn greet(mut stream: TcpStream) -> Option<impl AsyncRead + AsyncWrite + Unpin> {
    let mut said = [0; PREFACE.len()];
    let mut len = 0;
    while len < said.len() && said[..len] == PREFACE[..len] {
        match stream.read(&mut said[len..]).await {
            Ok(more) if more > 0 => len += more,
            _ => return None,
        }
    }
    if said != *PREFACE {
        stream.write_all(WRONG_PORT).await.ok()?;
        stream.shutdown().await.ok()?;
        // What the client still sends is read, or its system would discard our words.
        tokio::io::copy(&mut stream, &mut tokio::io::sink()).await.ok();
        return None;
    }
    let (read, write) = stream.into_split();
    Some(tokio::io::join(AsyncReadExt::chain(Cursor::new(said), read), write))
}

async fn respond<S: Sink>(intake: Arc<Intake<S>>, request: Request<Incoming>) -> Response<Body> {
    let signal = match request.uri().path() {
        "/opentelemetry.proto.collector.trace.v1.TraceService/Export" => Signal::Traces,
        "/opentelemetry.proto.collector.logs.v1.LogsService/Export" => Signal::Logs,
        "/opentelemetry.proto.collector.metrics.v1.MetricsService/Export" => Signal::Metrics,
        other => return Status::unimplemented(format!("nothing is at `{other}`")).into_http(),
    };
    let bytes_max = intake.message_bytes_max;
    let mut grpc = Grpc::new(Raw)
        .accept_compressed(CompressionEncoding::Gzip)
        .max_decoding_message_size(bytes_max);
    let export = Export { intake: Arc::clone(&intake), signal };
    match intake.admit(grpc.unary(export, request)).await {
        Ok(response) if is_too_large(&response) => {
            Status::from(NotTaken::TooLarge(bytes_max)).into_http()
        }
        Ok(response) => response,
        Err(late) => Status::from(late).into_http(),
    }
}

/// Whether tonic found the message too large. It has two codes for that, and we use neither for anything else.
fn is_too_large(response: &Response<Body>) -> bool {
    let code = response.extensions().get::<Status>().map(Status::code);
    matches!(code, Some(Code::OutOfRange | Code::ResourceExhausted))
}

impl<S: Sink> UnaryService<Bytes> for Export<S> {
    type Response = Bytes;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Bytes>, Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        let (intake, signal) = (Arc::clone(&self.intake), self.signal);
        Box::pin(async move {
            let answer = intake.take(signal, request.get_ref()).await;
            answer.map(tonic::Response::new).map_err(Status::from)
        })
    }
}

impl From<NotTaken> for Status {
    fn from(error: NotTaken) -> Self {
        let code = match error {
            NotTaken::Undecodable(_) => Code::InvalidArgument,
            NotTaken::TooLarge(_) => Code::ResourceExhausted,
            NotTaken::Refused(_) | NotTaken::Late(_) => Code::Unavailable,
        };
        Self::new(code, error.to_string())
    }
}

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        *self
    }

    fn decoder(&mut self) -> Self {
        *self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

impl Streams {
    async fn join(self) {
        let mut tasks = std::mem::take(&mut *self.lock());
        while tasks.join_next().await.is_some() {}
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, JoinSet<()>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<F> Executor<F> for Streams
where
    F: Future + Send + 'static,
{
    fn execute(&self, stream: F) {
        let mut tasks = self.lock();
        // Those that have ended are let go here, or a long connection would keep them all.
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            stream.await;
        });
    }
}
