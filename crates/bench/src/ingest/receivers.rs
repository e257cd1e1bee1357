//! The compared receivers, each in its own process: the minimal one that tonic and hyper allow, the stock one that decodes, and
//! ours with runs that wait for their spans.

use std::{
    convert::Infallible,
    io::Read,
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll},
};

use anyhow::{Result, bail, ensure};
use bytes::{Buf, BufMut, Bytes};
use drivers::{
    append,
    inbox::{Inbox, Limits},
    receiver::{self, ReceiverSnapshot},
};
use http_body_util::{BodyExt, Full};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use model::Trace;
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
    trace_service_server::{TraceService, TraceServiceServer},
};
use prost::Message;
use tokio::{net::TcpListener, task::JoinSet};
use tonic::{
    Status,
    codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder},
    codegen::{BoxFuture, Service},
    server::{Grpc, NamedService, UnaryService},
    transport::{Server, server::TcpIncoming},
};

use super::load::{POOL, RUNS, ring, trace_of};

const MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Receives until its stdin is closed.
#[tokio::main]
pub async fn receive(kind: &str) -> Result<String> {
    match kind {
        "bytes" => bare(Look::Bytes).await,
        "decode" => bare(Look::Decode).await,
        "ours" => ours(check).await,
        "open" => ours(|_, _, _| Ok(())).await,
        _ => bail!("there is no receiver `{kind}`"),
    }
}

/// How far a bare receiver decodes a message.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Look {
    Bytes,
    Decode,
}

async fn bare(look: Look) -> Result<String> {
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let (grpc, http) = (TcpListener::bind(any).await?, TcpListener::bind(any).await?);
    say(grpc.local_addr()?.port(), http.local_addr()?.port());
    let counted = Arc::new(AtomicU64::default());
    let mut tasks = JoinSet::new();
    tasks.spawn(bare_http(http, look, Arc::clone(&counted)));
    let incoming = TcpIncoming::from(grpc).with_nodelay(Some(true));
    let mut server = Server::builder();
    let served = match look {
        Look::Bytes => server.add_service(Raw(counted)).serve_with_incoming(incoming),
        Look::Decode => {
            let stock = TraceServiceServer::new(Stock(counted));
            let stock = stock.max_decoding_message_size(MESSAGE_BYTES_MAX);
            return Ok(
                until_input_ends(server.add_service(stock).serve_with_incoming(incoming)).await
            );
        }
    };
    Ok(until_input_ends(served).await)
}

async fn until_input_ends<T>(served: impl Future<Output = T>) -> String {
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        _ = served => "it ended by itself".to_owned(),
        _ = ended => "ok".to_owned(),
    }
}

async fn bare_http(listener: TcpListener, look: Look, counted: Arc<AtomicU64>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        stream.set_nodelay(true).ok();
        let counted = Arc::clone(&counted);
        connections.spawn(async move {
            let service = service_fn(|request| answer(request, look, &counted));
            http1::Builder::new().serve_connection(TokioIo::new(stream), service).await.ok();
        });
        while connections.try_join_next().is_some() {}
    }
}

async fn answer(
    request: http::Request<Incoming>,
    look: Look,
    counted: &AtomicU64,
) -> Result<http::Response<Full<Bytes>>, Infallible> {
    let mut response = http::Response::new(Full::default());
    match (look, request.into_body().collect().await) {
        (Look::Bytes, Ok(body)) => count(counted, body.to_bytes().len()),
        (Look::Decode, Ok(body)) => match ExportTraceServiceRequest::decode(body.to_bytes()) {
            Ok(request) => count(counted, spans(&request)),
            Err(_) => *response.status_mut() = http::StatusCode::BAD_REQUEST,
        },
        (_, Err(_)) => *response.status_mut() = http::StatusCode::BAD_REQUEST,
    }
    Ok(response)
}

fn spans(request: &ExportTraceServiceRequest) -> usize {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    scopes.map(|scope| scope.spans.len()).sum()
}

fn count(counted: &AtomicU64, more: usize) {
    counted.fetch_add(more as u64, Ordering::Relaxed);
}

/// The stock service of `opentelemetry-proto`.
struct Stock(Arc<AtomicU64>);

#[tonic::async_trait]
impl TraceService for Stock {
    async fn export(
        &self,
        request: tonic::Request<ExportTraceServiceRequest>,
    ) -> Result<tonic::Response<ExportTraceServiceResponse>, Status> {
        count(&self.0, spans(request.get_ref()));
        Ok(tonic::Response::new(ExportTraceServiceResponse::default()))
    }
}

/// A service that accepts messages as bytes and counts them.
#[derive(Clone)]
struct Raw(Arc<AtomicU64>);

impl NamedService for Raw {
    const NAME: &'static str = "opentelemetry.proto.collector.trace.v1.TraceService";
}

impl Service<http::Request<tonic::body::Body>> for Raw {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let call = RawCall(Arc::clone(&self.0));
        Box::pin(async move {
            let mut grpc = Grpc::new(RawCodec).max_decoding_message_size(MESSAGE_BYTES_MAX);
            Ok(grpc.unary(call, request).await)
        })
    }
}

struct RawCall(Arc<AtomicU64>);

impl UnaryService<Bytes> for RawCall {
    type Response = Bytes;
    type Future = std::future::Ready<Result<tonic::Response<Bytes>, Status>>;

    fn call(&mut self, request: tonic::Request<Bytes>) -> Self::Future {
        count(&self.0, request.get_ref().len());
        std::future::ready(Ok(tonic::Response::new(Bytes::new())))
    }
}

#[derive(Clone, Copy)]
struct RawCodec;

impl Codec for RawCodec {
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

impl Encoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, message: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put(message);
        Ok(())
    }
}

impl Decoder for RawCodec {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, message: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(message.copy_to_bytes(message.remaining())))
    }
}

/// Our receiver with its default limits, and runs that read their spans into their traces.
async fn ours(check: fn(&ReceiverSnapshot, &Inbox, u64) -> Result<()>) -> Result<String> {
    let panics = Arc::new(AtomicU64::default());
    count_panics(Arc::clone(&panics));
    // A run of the benchmark receives more spans than one of a test, and for longer.
    let endless = usize::MAX / 4;
    let limits = Limits { trace_bytes_max: endless, bytes_max: endless, ..Limits::default() };
    let inbox = Arc::new(Inbox::new(ring(), limits));
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let config = receiver::Config::new(vec![any]);
    let receiver = receiver::start(config, Arc::clone(&inbox)).await?;
    let port = receiver.addresses()[0].port();
    let read = Arc::new(AtomicU64::default());
    let mut runs = JoinSet::new();
    for run in 0..RUNS {
        runs.spawn(read_run(Arc::clone(&inbox), run, Arc::clone(&read)));
    }
    say(port, port);
    until_input_ends(std::future::pending::<()>()).await;
    let seen = ReceiverSnapshot { counts: receiver.counts(), ..receiver.seen() };
    receiver.shutdown().await;
    check(&seen, &inbox, read.load(Ordering::Relaxed))?;
    let panics = panics.load(Ordering::Relaxed);
    ensure!(panics == 0, "{panics} panics");
    Ok("ok".to_owned())
}

/// Checks that every valid span arrived where it should.
fn check(seen: &ReceiverSnapshot, inbox: &Inbox, read: u64) -> Result<()> {
    let counts = seen.counts;
    ensure!(counts.refused == 0 && counts.invalid == 0, "{counts:?}");
    ensure!(seen.refusals.is_empty(), "{:?}", seen.refusals);
    ensure!((0..RUNS).all(|run| inbox.refused(trace_of(run)) == 0), "a run lost spans");
    // Concurrent requests overtake each other, so a new trace may start with a few spans of the last turn.
    ensure!(read as f64 >= counts.kept as f64 * 0.9, "{} kept, {read} read", counts.kept);
    Ok(())
}

/// Counts panics: the runtime catches panics of its tasks, so they would stay unnoticed.
fn count_panics(panics: Arc<AtomicU64>) {
    let told = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |panic| {
        panics.fetch_add(1, Ordering::Relaxed);
        told(panic);
    }));
}

/// Reads the spans of a run into a trace, and starts a new trace for each turn of the load, since a span counts once in a trace.
async fn read_run(inbox: Arc<Inbox>, run: usize, read: Arc<AtomicU64>) {
    let mut arrivals = inbox.expect(trace_of(run));
    loop {
        let mut trace = Trace::new(trace_of(run));
        for _ in 0..POOL / RUNS {
            let Some(arrival) = arrivals.next().await else { return };
            // Arrived spans can be read; spans without room in a trace are not counted, and are missing in the end.
            let Some(bytes) = arrival.spans() else { continue };
            append(&mut trace, &bytes).ok();
        }
        count(&read, trace.len());
    }
}

#[expect(clippy::print_stdout, reason = "this is how the bench learns where it listens")]
fn say(grpc: u16, http: u16) {
    println!("{grpc} {http}");
}
