//! The load: exports of a shop, encoded once, and connections that send them as fast as the receiver accepts them.

use std::{
    io::Write,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use anyhow::{Context, Result, ensure};
use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use http::{
    HeaderValue, Request,
    header::{CONTENT_ENCODING, CONTENT_TYPE, HOST, TE},
};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use model::{Key, KeyRing, Project, Timestamp, TraceId};
use opentelemetry_proto::tonic::trace::v1::TracesData;
use prost::Message;
use rustls::{ClientConfig, RootCertStore, pki_types::ServerName};
use tokio::{
    io::{AsyncRead, AsyncWrite},
    net::TcpStream,
    task::JoinSet,
};
use tokio_rustls::TlsConnector;

use crate::{decode, lang::chance::Dice};

/// Different requests, sent in turn.
pub(crate) const POOL: usize = 64;
/// Runs that the spans of `wanted` belong to.
pub(crate) const RUNS: usize = 8;
/// Spans of a foreign trace in one request.
const TRACE_SPANS: usize = 10;

/// Connections, and concurrent requests on each; HTTP/1.1 has a connection for each request.
const CONNECTIONS: usize = 2;
const UNDER_WAY: usize = 8;

const GZIP: HeaderValue = HeaderValue::from_static("gzip");
/// The bytes of a gRPC frame before its message.
const FRAME_BYTES: usize = 5;

const EXPORT: &str = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";

/// The protocol of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    Grpc,
    Http,
}

/// Requests, framed for their protocol.
#[derive(Clone)]
pub(crate) struct ExportLoad {
    way: Way,
    bodies: Arc<Vec<Bytes>>,
    is_gzip: bool,
    tls: Option<TlsConnector>,
}

/// A load that is being sent.
pub(crate) struct ActiveLoad {
    counts: Arc<LoadCounts>,
    workers: JoinSet<Result<()>>,
    _connections: JoinSet<()>,
}

#[derive(Default)]
struct LoadCounts {
    turn: AtomicUsize,
    turns_max: usize,
    sent: AtomicU64,
    refused: AtomicU64,
    is_over: AtomicBool,
}

enum Sender {
    Http1(http1::SendRequest<Full<Bytes>>),
    Http2(http2::SendRequest<Full<Bytes>>),
}

/// The keys with which our receiver generates trace ids here.
pub(crate) fn ring() -> KeyRing {
    KeyRing::new(Key::from_bytes([42; 16]), Vec::new())
}

/// Returns the trace id of a run, by its number.
pub(crate) fn trace_of(run: usize) -> TraceId {
    let at = Timestamp::from_nanos(1_780_000_000_000_000_000);
    ring().mint(&Project::default(), at, [run as u8; 5])
}

impl ExportLoad {
    /// Spans of many foreign traces.
    pub(crate) fn foreign(way: Way, spans: usize) -> Result<Self> {
        let mut dice = Dice::new(7);
        let mut id = [0; 16];
        let ids = |_, span: usize| {
            if span.is_multiple_of(TRACE_SPANS) {
                let [high, low] = [dice.next(), dice.next()];
                id = (u128::from(high) << 64 | u128::from(low)).to_be_bytes();
            }
            id
        };
        Self::new(way, spans, POOL, ids)
    }

    /// Different spans of one trace, in this many requests.
    pub(crate) fn of_trace(
        way: Way,
        spans: usize,
        requests: usize,
        trace: TraceId,
    ) -> Result<Self> {
        Self::new(way, spans, requests, |_, _| *trace.as_bytes())
    }

    /// Spans of a few runs, each request of one run.
    pub(crate) fn wanted(way: Way, spans: usize) -> Result<Self> {
        Self::new(way, spans, POOL, |request, _| *trace_of(request % RUNS).as_bytes())
    }

    fn new(
        way: Way,
        spans: usize,
        requests: usize,
        mut trace_id: impl FnMut(usize, usize) -> [u8; 16],
    ) -> Result<Self> {
        let mut dice = Dice::new(11);
        let mut bodies = Vec::new();
        let bytes = decode::request(0, spans as u64);
        let mut data = TracesData::decode(bytes.as_slice())?;
        for request in 0..requests {
            let scopes = data.resource_spans.iter_mut().flat_map(|it| &mut it.scope_spans);
            let mut parent = Vec::new();
            for (number, span) in scopes.flat_map(|scope| &mut scope.spans).enumerate() {
                span.trace_id = trace_id(request, number).to_vec();
                span.span_id = dice.next().to_be_bytes().to_vec();
                span.parent_span_id = std::mem::replace(&mut parent, span.span_id.clone());
            }
            bodies.push(framed(way, &data.encode_to_vec(), u8::from(false)));
        }
        Ok(Self { way, bodies: Arc::new(bodies), is_gzip: false, tls: None })
    }

    /// The same requests, compressed.
    pub(crate) fn gzipped(&self) -> Result<Self> {
        let mut bodies = Vec::new();
        for body in self.bodies.iter() {
            let message = match self.way {
                Way::Http => &body[..],
                Way::Grpc => &body[FRAME_BYTES..],
            };
            let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
            gzip.write_all(message)?;
            bodies.push(framed(self.way, &gzip.finish()?, u8::from(true)));
        }
        Ok(Self { bodies: Arc::new(bodies), is_gzip: true, ..self.clone() })
    }

    /// The same requests, over TLS to `localhost`, whose certificate is among these.
    pub(crate) fn over_tls(&self, roots: RootCertStore) -> Self {
        let mut config =
            ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
        config.alpn_protocols = match self.way {
            Way::Http => vec![b"http/1.1".to_vec()],
            Way::Grpc => vec![b"h2".to_vec()],
        };
        Self { tls: Some(TlsConnector::from(Arc::new(config))), ..self.clone() }
    }

    /// Returns the mean size of a request's body.
    pub(crate) fn body_bytes(&self) -> f64 {
        self.bodies.iter().map(Bytes::len).sum::<usize>() as f64 / self.bodies.len() as f64
    }
}

fn framed(way: Way, message: &[u8], is_compressed: u8) -> Bytes {
    match way {
        Way::Http => Bytes::copy_from_slice(message),
        Way::Grpc => {
            let mut body = vec![is_compressed];
            body.extend((message.len() as u32).to_be_bytes());
            body.extend_from_slice(message);
            body.into()
        }
    }
}

/// Starts to send.
pub(crate) async fn start(port: u16, load: &ExportLoad) -> Result<ActiveLoad> {
    begin(port, load, usize::MAX).await
}

/// Sends this many requests, and waits until all of them are accepted.
pub(crate) async fn send(port: u16, load: &ExportLoad, requests: usize) -> Result<()> {
    let mut active = begin(port, load, requests).await?;
    while let Some(ended) = active.workers.join_next().await {
        ended??;
    }
    ensure!(active.sent() == requests as u64, "{} of {requests} were accepted", active.sent());
    Ok(())
}

async fn begin(port: u16, load: &ExportLoad, turns_max: usize) -> Result<ActiveLoad> {
    let counts = Arc::new(LoadCounts { turns_max, ..LoadCounts::default() });
    let (mut workers, mut connections) = (JoinSet::new(), JoinSet::new());
    for _ in 0..CONNECTIONS {
        let mut shared = None;
        for _ in 0..UNDER_WAY {
            let sender = match (load.way, &shared) {
                (Way::Http, _) => Sender::Http1(load.connect_http1(port, &mut connections).await?),
                (Way::Grpc, Some(shared)) => Sender::Http2(http2::SendRequest::clone(shared)),
                (Way::Grpc, None) => {
                    let new = load.connect_http2(port, &mut connections).await?;
                    Sender::Http2(shared.insert(new).clone())
                }
            };
            workers.spawn(work(sender, port, load.clone(), Arc::clone(&counts)));
        }
    }
    Ok(ActiveLoad { counts, workers, _connections: connections })
}

impl ActiveLoad {
    /// Returns the number of requests accepted so far.
    pub(crate) fn sent(&self) -> u64 {
        self.counts.sent.load(Ordering::Relaxed)
    }

    /// Stops sending, and returns how many requests were refused.
    pub(crate) async fn stop(mut self) -> Result<u64> {
        self.counts.is_over.store(true, Ordering::Relaxed);
        while let Some(ended) = self.workers.join_next().await {
            ended??;
        }
        Ok(self.counts.refused.load(Ordering::Relaxed))
    }
}

async fn work(
    mut sender: Sender,
    port: u16,
    load: ExportLoad,
    counts: Arc<LoadCounts>,
) -> Result<()> {
    while !counts.is_over.load(Ordering::Relaxed) {
        let turn = counts.turn.fetch_add(1, Ordering::Relaxed);
        if turn >= counts.turns_max {
            break;
        }
        let body = load.bodies[turn % load.bodies.len()].clone();
        let is_taken = sender.send(port, body, load.is_gzip).await.context("sending")?;
        let counter = if is_taken { &counts.sent } else { &counts.refused };
        counter.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

impl ExportLoad {
    async fn connect_http1(
        &self,
        port: u16,
        connections: &mut JoinSet<()>,
    ) -> Result<http1::SendRequest<Full<Bytes>>> {
        match &self.tls {
            None => connect_http1(port, connections).await,
            Some(tls) => {
                let stream = tls.connect(localhost()?, dial(port).await?).await?;
                http1_over(stream, connections).await
            }
        }
    }

    async fn connect_http2(
        &self,
        port: u16,
        connections: &mut JoinSet<()>,
    ) -> Result<http2::SendRequest<Full<Bytes>>> {
        match &self.tls {
            None => connect_http2(port, connections).await,
            Some(tls) => {
                let stream = tls.connect(localhost()?, dial(port).await?).await?;
                http2_over(stream, connections).await
            }
        }
    }
}

pub(crate) async fn connect_http1(
    port: u16,
    connections: &mut JoinSet<()>,
) -> Result<http1::SendRequest<Full<Bytes>>> {
    http1_over(dial(port).await?, connections).await
}

pub(crate) async fn connect_http2(
    port: u16,
    connections: &mut JoinSet<()>,
) -> Result<http2::SendRequest<Full<Bytes>>> {
    http2_over(dial(port).await?, connections).await
}

async fn http1_over<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    connections: &mut JoinSet<()>,
) -> Result<http1::SendRequest<Full<Bytes>>> {
    let (sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    connections.spawn(async { drop(connection.await) });
    Ok(sender)
}

async fn http2_over<S: AsyncRead + AsyncWrite + Send + Unpin + 'static>(
    stream: S,
    connections: &mut JoinSet<()>,
) -> Result<http2::SendRequest<Full<Bytes>>> {
    let io = TokioIo::new(stream);
    let (sender, connection) = http2::handshake(TokioExecutor::new(), io).await?;
    connections.spawn(async { drop(connection.await) });
    Ok(sender)
}

async fn dial(port: u16) -> Result<TcpStream> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

fn localhost() -> Result<ServerName<'static>> {
    Ok(ServerName::try_from("localhost")?)
}

impl Sender {
    /// Sends a request. Returns whether the receiver accepted it.
    async fn send(&mut self, port: u16, body: Bytes, is_gzip: bool) -> Result<bool> {
        let body = Full::new(body);
        match self {
            Self::Http1(sender) => {
                let mut request = Request::post("/v1/traces")
                    .header(HOST, "127.0.0.1")
                    .header(CONTENT_TYPE, "application/x-protobuf")
                    .body(body)?;
                if is_gzip {
                    request.headers_mut().insert(CONTENT_ENCODING, GZIP);
                }
                sender.ready().await?;
                let response = sender.send_request(request).await?;
                let is_taken = response.status().is_success();
                response.into_body().collect().await?;
                Ok(is_taken)
            }
            Self::Http2(sender) => {
                let mut request = Request::post(format!("http://127.0.0.1:{port}{EXPORT}"))
                    .header(CONTENT_TYPE, "application/grpc")
                    .header(TE, "trailers")
                    .body(body)?;
                if is_gzip {
                    request.headers_mut().insert("grpc-encoding", GZIP);
                }
                sender.ready().await?;
                let (head, body) = sender.send_request(request).await?.into_parts();
                let trailers = body.collect().await?.trailers().cloned().unwrap_or_default();
                let status = head.headers.get("grpc-status").or(trailers.get("grpc-status"));
                Ok(status.is_some_and(|status| status == "0"))
            }
        }
    }
}
