//! Systems under test that send exactly the spans that a figure needs: a big trace in small requests, or many services with their
//! own exporters.

use std::{net::SocketAddr, str::FromStr, sync::Arc, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use axum::{Router, extract::State, http::HeaderMap, routing::get};
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value},
    resource::v1::Resource,
    trace::v1::{ResourceSpans, ScopeSpans, Span, span::SpanKind},
};
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::mpsc,
    task::JoinSet,
    time::{interval, sleep},
};

use crate::parts::unix_nanos;

/// Spans of a request, as a batching SDK sends them.
const REQUEST_SPANS: usize = 512;
/// The capacity of a service's exporter queue.
const WAITING_MAX: usize = 1024;

/// `run:system KIND SIZE HTTP OTLP`: serves `GET /` on the port HTTP and exports its spans by OTLP on the port OTLP.
pub async fn serve(kind: &str, rest: &[String]) -> Result<String> {
    let [size, http, otlp] = rest else { bail!("run:system KIND SIZE HTTP OTLP") };
    let (size, otlp): (usize, u16) = (size.parse()?, otlp.parse()?);
    let listener = TcpListener::bind(SocketAddr::from_str(&format!("127.0.0.1:{http}"))?).await?;
    let router = match kind {
        "big" => Router::new().route("/", get(big)).with_state((size, otlp)),
        "services" => {
            let services = Arc::new(Services::start(size, otlp));
            Router::new().route("/", get(chain)).with_state(services)
        }
        "batch" => {
            let services = Arc::new(Services::batch(Duration::from_millis(size as u64), otlp));
            Router::new().route("/", get(chain)).with_state(services)
        }
        other => bail!("there is no system `{other}`"),
    };
    axum::serve(listener, router).await?;
    Ok(String::new())
}

/// Returns the trace context of one request: 16 bytes of trace id, and the parent of the first span.
pub(crate) fn context(headers: &HeaderMap) -> Option<(Vec<u8>, Vec<u8>)> {
    let header = headers.get("traceparent")?.to_str().ok()?;
    let mut parts = header.split('-').skip(1);
    Some((bytes(parts.next()?)?, bytes(parts.next()?)?))
}

fn bytes(hex: &str) -> Option<Vec<u8>> {
    let pairs = hex.as_bytes().chunks(2);
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

/// Sends a trace of this many spans in small requests before it responds, so that the response marks the end of the last one.
async fn big(State((size, otlp)): State<(usize, u16)>, headers: HeaderMap) -> String {
    match send_big(size, otlp, &headers).await {
        Ok(()) => "sent".to_owned(),
        Err(error) => format!("not sent: {error:#}"),
    }
}

async fn send_big(size: usize, otlp: u16, headers: &HeaderMap) -> Result<()> {
    let (trace, parent) = context(headers).context("no traceparent")?;
    let mut connection = Connection::open(otlp).await?;
    let began = unix_nanos();
    for first in (0..size).step_by(REQUEST_SPANS) {
        let spans = (first..size.min(first + REQUEST_SPANS)).map(|number| {
            let above = if number == 0 { parent.clone() } else { id((number - 1) / 8) };
            let name =
                if number == 0 { "GET /".to_owned() } else { format!("step {}", number % 97) };
            let kind = if number == 0 { SpanKind::Server } else { SpanKind::Internal };
            span(&trace, (id(number), above), &name, kind, began)
        });
        connection.export(&request("big", spans.collect())).await?;
    }
    Ok(())
}

/// Services that call each other in a chain, each with its own exporter.
struct Services {
    exporters: Vec<mpsc::Sender<(u64, Span)>>,
    _tasks: JoinSet<()>,
}

impl Services {
    fn start(size: usize, otlp: u16) -> Self {
        let mut tasks = JoinSet::new();
        let exporters = (0..size).map(|number| {
            let (sender, receiver) = mpsc::channel(WAITING_MAX);
            tasks.spawn(export(number, otlp, receiver));
            sender
        });
        Self { exporters: exporters.collect(), _tasks: tasks }
    }

    /// Starts two services that export at a fixed interval, as the batch processor of an SDK does.
    fn batch(delay: Duration, otlp: u16) -> Self {
        let mut tasks = JoinSet::new();
        let exporters = (0..2).map(|number| {
            let (sender, receiver) = mpsc::channel(WAITING_MAX);
            tasks.spawn(export_batches(number, delay, otlp, receiver));
            sender
        });
        Self { exporters: exporters.collect(), _tasks: tasks }
    }
}

/// Sends the spans of a service in batches, each service with its own delay, none faster than the receiver.
async fn export(number: usize, otlp: u16, mut spans: mpsc::Receiver<(u64, Span)>) {
    let delay = Duration::from_millis(2 + 3 * number as u64);
    let mut connection = None;
    let mut waiting = Vec::new();
    while let Some((_, first)) = spans.recv().await {
        waiting.push(first);
        sleep(delay).await;
        while let Ok((_, more)) = spans.try_recv() {
            waiting.push(more);
        }
        deliver(number, std::mem::take(&mut waiting), otlp, &mut connection).await;
    }
}

/// Sends the spans of a service at a fixed interval.
async fn export_batches(
    number: usize,
    delay: Duration,
    otlp: u16,
    mut spans: mpsc::Receiver<(u64, Span)>,
) {
    let mut connection = None;
    let mut waiting = Vec::new();
    let mut ticks = interval(delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => if !waiting.is_empty() {
                deliver(number, std::mem::take(&mut waiting), otlp, &mut connection).await;
            },
            span = spans.recv() => match span {
                Some((_, span)) => waiting.push(span),
                None => return,
            },
        }
    }
}

/// Sends spans, and reconnects to a receiver that was restarted.
async fn deliver(number: usize, spans: Vec<Span>, otlp: u16, connection: &mut Option<Connection>) {
    let message = request(&format!("service-{number}"), spans);
    for _ in 0..100 {
        if connection.is_none() {
            *connection = Connection::open(otlp).await.ok();
        }
        if let Some(open) = connection
            && open.export(&message).await.is_ok()
        {
            break;
        }
        *connection = None;
        sleep(Duration::from_millis(20)).await;
    }
}

/// Handles a request that passes through all services: a SERVER span in each, and a CLIENT span below it for the next.
async fn chain(State(services): State<Arc<Services>>, headers: HeaderMap) -> String {
    let Some((trace, mut parent)) = context(&headers) else { return "no traceparent".to_owned() };
    let count = services.exporters.len();
    let unique = unix_nanos() as usize;
    for (number, exporter) in services.exporters.iter().enumerate() {
        let now = unix_nanos();
        let (server, client) = (id(unique + 2 * number), id(unique + 2 * number + 1));
        let mut own = vec![span(&trace, (server.clone(), parent), "serve", SpanKind::Server, now)];
        if number + 1 < count {
            let mut call = span(&trace, (client.clone(), server), "call", SpanKind::Client, now);
            call.attributes.push(text("peer.service", &format!("service-{}", number + 1)));
            own.push(call);
        }
        parent = client;
        for span in own {
            if exporter.send((now, span)).await.is_err() {
                return "an exporter has ended".to_owned();
            }
        }
    }
    "served".to_owned()
}

pub(crate) fn id(number: usize) -> Vec<u8> {
    (number as u64 + 1).to_be_bytes().to_vec()
}

pub(crate) fn span(
    trace: &[u8],
    (own, parent): (Vec<u8>, Vec<u8>),
    name: &str,
    kind: SpanKind,
    at: u64,
) -> Span {
    Span {
        trace_id: trace.to_vec(),
        span_id: own,
        parent_span_id: parent,
        name: name.to_owned(),
        kind: kind.into(),
        start_time_unix_nano: at,
        end_time_unix_nano: at + 1_000,
        attributes: vec![text("code.function.name", "shop.orders.place"), text("tenant", "a")],
        flags: 1,
        ..Span::default()
    }
}

fn text(key: &str, value: &str) -> KeyValue {
    let value = AnyValue { value: Some(any_value::Value::StringValue(value.to_owned())) };
    KeyValue { key: key.to_owned(), value: Some(value), ..KeyValue::default() }
}

pub(crate) fn request(service: &str, spans: Vec<Span>) -> Vec<u8> {
    let attributes =
        vec![text("service.name", service), text("service.instance.id", &format!("{service}-0"))];
    let scope =
        InstrumentationScope { name: "bench".to_owned(), ..InstrumentationScope::default() };
    let scope_spans = vec![ScopeSpans { scope: Some(scope), spans, ..ScopeSpans::default() }];
    let resource = Some(Resource { attributes, ..Resource::default() });
    let all = ResourceSpans { resource, scope_spans, ..ResourceSpans::default() };
    ExportTraceServiceRequest { resource_spans: vec![all] }.encode_to_vec()
}

/// A connection that sends exports one after the other, over HTTP/1.1.
pub(crate) struct Connection {
    stream: TcpStream,
}

impl Connection {
    pub(crate) async fn open(port: u16) -> Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port)).await?;
        stream.set_nodelay(true)?;
        Ok(Self { stream })
    }

    pub(crate) async fn export(&mut self, message: &[u8]) -> Result<()> {
        let status = self.post("/v1/traces", "application/x-protobuf", message).await?;
        ensure!(status == 200, "the receiver answered {status}");
        Ok(())
    }

    /// Sends a request, reads the complete response, and returns its status.
    async fn post(&mut self, path: &str, content_type: &str, body: &[u8]) -> Result<u16> {
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\ncontent-type: {content_type}\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        self.stream.write_all(&[head.as_bytes(), body].concat()).await?;
        let mut answer = Vec::new();
        loop {
            if let Some(end) = answer.windows(4).position(|it| it == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&answer[..end]).to_ascii_lowercase();
                let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
                let length: usize = length.map_or(Ok(0), |length| length.trim().parse())?;
                if answer.len() >= end + 4 + length {
                    let status = head.split_whitespace().nth(1).context("a status")?;
                    return Ok(status.parse()?);
                }
            }
            let mut more = [0; 4096];
            let read = self.stream.read(&mut more).await?;
            ensure!(read > 0, "the peer closed the connection");
            answer.extend_from_slice(&more[..read]);
        }
    }
}

/// Sends one bare request on its own connection.
pub(super) async fn post(port: u16, path: &str, content_type: &str, body: &[u8]) -> Result<()> {
    let status = Connection::open(port).await?.post(path, content_type, body).await?;
    ensure!(status < 300, "the shop answered {status}");
    Ok(())
}

/// A system that never responds.
pub(super) struct Silent {
    pub(super) url: String,
    _tasks: JoinSet<()>,
}

impl Silent {
    pub(super) async fn listen() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}/", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut held = Vec::new();
            while let Ok((stream, _)) = listener.accept().await {
                held.push(stream);
            }
        });
        Ok(Self { url, _tasks: tasks })
    }
}
