//! A small shop with the official SDK, and all faults that a system may have. `run -- COMMAND` starts it.
//!
//! `GET /cart` creates a SERVER span with a CLIENT span below; some faults call a second service, `stock`, on a port of its
//! own. A fault that cannot occur for real in one process, such as a wrong clock, has a comment about it.

use std::{
    collections::HashMap,
    io::{Write as _, stdout},
    net::{Ipv4Addr, SocketAddr},
    time::{Duration, SystemTime},
};

use anyhow::{Context as _, Result};
use axum::{
    Router,
    extract::State,
    http::{HeaderMap, HeaderName, StatusCode},
    response::IntoResponse,
    routing::get,
};
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator},
    trace::{
        Link, Span, SpanContext, SpanId, SpanKind, TraceContextExt, TraceState, Tracer,
        TracerProvider,
    },
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, Sampler, SdkTracer, SdkTracerProvider},
};
use tokio::net::{TcpListener, TcpStream};

/// The line that the system prints when it listens.
pub(crate) const LISTENING: &str = "the shop is open";

/// How far the clock of a fault is behind.
const BEHIND: Duration = Duration::from_secs(90);

/// A fault of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    None,
    /// No SDK.
    Uninstrumented,
    /// The exporter's path is one that a receiver does not have.
    WrongPath,
    /// The SDK is configured in code: with its own resource, batch delay and sampler.
    SetUpInCode,
    /// A sampler in code that drops every span, and a response header that reports it.
    SampledAway,
    /// Spans in the format and at the path of Zipkin.
    Zipkin,
    /// OTLP with the content type of another format.
    WrongType,
    /// TLS to a port without TLS.
    Tls,
    /// A request body that is larger than a receiver accepts.
    TooLarge,
    /// Metrics only.
    MetricsOnly,
    /// `traceparent` is not extracted.
    ContextIgnored,
    /// `stock` is called without `traceparent`.
    ContextNotSent,
    /// Work is queued without its context.
    ContextNotKept,
    /// `stock` is called, and has no SDK.
    StockUninstrumented,
    /// A proxy before the shop takes part in the trace and exports no spans.
    Mesh,
    /// The SERVER span does not end.
    Unended,
    /// The clock is behind. The clock of one process cannot be changed here, so the times of its spans are shifted.
    ClockBehind,
    /// The same for `stock`, which is called with its context.
    StockClockBehind,
    /// A consumer starts a trace of its own for each message, with a link to the producer.
    Linked,
    /// The connection is closed without a response.
    NoAnswer,
}

impl Fault {
    pub(crate) fn parse(name: &str) -> Option<Self> {
        ALL.into_iter().find(|fault| format!("{fault:?}") == name)
    }
}

const ALL: [Fault; 20] = [
    Fault::None,
    Fault::Uninstrumented,
    Fault::WrongPath,
    Fault::SetUpInCode,
    Fault::SampledAway,
    Fault::Zipkin,
    Fault::WrongType,
    Fault::Tls,
    Fault::TooLarge,
    Fault::MetricsOnly,
    Fault::ContextIgnored,
    Fault::ContextNotSent,
    Fault::ContextNotKept,
    Fault::StockUninstrumented,
    Fault::Mesh,
    Fault::Unended,
    Fault::ClockBehind,
    Fault::StockClockBehind,
    Fault::Linked,
    Fault::NoAnswer,
];

#[derive(Clone)]
struct Shop {
    fault: Fault,
    /// The OTLP endpoint of the environment variables.
    otlp: String,
    tracer: Option<SdkTracer>,
    stock: SocketAddr,
}

/// Serves until it is killed.
pub(crate) fn serve(fault: Fault, port: u16, otlp: &str) -> Result<()> {
    // HTTP exporters have a runtime of their own and must be created outside of any other.
    let is_silent = matches!(
        fault,
        Fault::Uninstrumented
            | Fault::Zipkin
            | Fault::WrongType
            | Fault::Tls
            | Fault::TooLarge
            | Fault::MetricsOnly
    );
    let shop = if is_silent { None } else { Some(provider("shop", fault, otlp)?) };
    let stock = match fault {
        Fault::StockUninstrumented => None,
        _ => Some(provider("stock", Fault::None, otlp)?),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        let late = if fault == Fault::StockClockBehind { BEHIND } else { Duration::ZERO };
        let tracer = stock.as_ref().map(|provider| (provider.tracer("stock"), late));
        let stock =
            axum::serve(listener, Router::new().route("/stock", get(count)).with_state(tracer));
        let tracer = shop.as_ref().map(|provider| provider.tracer("shop"));
        let state = Shop { fault, otlp: otlp.to_owned(), tracer, stock: address };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port)).await?;
        writeln!(stdout(), "{LISTENING}")?;
        if fault == Fault::NoAnswer {
            // The first connection is only the check whether the port accepts connections.
            loop {
                drop(listener.accept().await?);
            }
        }
        let shop = axum::serve(listener, Router::new().route("/cart", get(cart)).with_state(state));
        tokio::try_join!(async { stock.await }, async { shop.await })?;
        Ok(())
    })
}

fn provider(service: &'static str, fault: Fault, otlp: &str) -> Result<SdkTracerProvider> {
    let exporter = match fault {
        Fault::WrongPath => SpanExporter::builder()
            .with_http()
            .with_endpoint(format!("{otlp}/otlp/v1/traces"))
            .build()?,
        // Configured by the environment variables.
        _ => SpanExporter::builder().build()?,
    };
    let builder = SdkTracerProvider::builder();
    let builder = match fault {
        Fault::SetUpInCode => {
            let batch = BatchConfigBuilder::default();
            let batch = batch.with_scheduled_delay(Duration::from_millis(50)).build();
            let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
            let resource = Resource::builder_empty().with_service_name(service).build();
            builder.with_span_processor(processor).with_resource(resource)
        }
        _ => {
            let resource = Resource::builder().with_service_name(service).build();
            builder.with_batch_exporter(exporter).with_resource(resource)
        }
    };
    Ok(match fault {
        Fault::SampledAway => builder.with_sampler(Sampler::AlwaysOff).build(),
        _ => builder.build(),
    })
}

async fn cart(State(shop): State<Shop>, headers: HeaderMap) -> impl IntoResponse {
    let mut answer = HeaderMap::new();
    match &shop.tracer {
        Some(tracer) => {
            let context = shop.answer_in(tracer, &headers).await;
            if shop.fault == Fault::SampledAway
                && let Ok(value) = told(&context).parse()
            {
                answer.insert(HeaderName::from_static("traceresponse"), value);
            }
        }
        None => shop.send_oddly().await,
    }
    (StatusCode::OK, answer, "{\"items\": 3}")
}

/// Formats a context for the `traceresponse` header.
fn told(context: &SpanContext) -> String {
    let (trace, span) = (context.trace_id(), context.span_id());
    format!("00-{trace}-{span}-{:02x}", context.trace_flags().to_u8())
}

/// Handles a request to `stock`.
async fn count(
    State(instrumented): State<Option<(SdkTracer, Duration)>>,
    headers: HeaderMap,
) -> &'static str {
    if let Some((tracer, late)) = &instrumented {
        let parent = TraceContextPropagator::new().extract(&Headers(&headers));
        let span = tracer.span_builder("GET /stock").with_kind(SpanKind::Server);
        let span = span.with_attributes([KeyValue::new("url.path", "/stock")]);
        let span = span.with_start_time(now() - *late);
        span.start_with_context(tracer, &parent).end_with_timestamp(now() - *late);
    }
    "3"
}

impl Shop {
    /// Processes a request within spans.
    async fn answer_in(&self, tracer: &SdkTracer, headers: &HeaderMap) -> SpanContext {
        let parent = match self.fault {
            Fault::ContextIgnored => Context::new(),
            _ => TraceContextPropagator::new().extract(&Headers(headers)),
        };
        let parent = match self.fault {
            Fault::Mesh => behind_proxy(&parent),
            _ => parent,
        };
        let late = if self.fault == Fault::ClockBehind { BEHIND } else { Duration::ZERO };
        let now = || now() - late;
        let server = tracer
            .span_builder("GET /cart")
            .with_kind(SpanKind::Server)
            .with_start_time(now())
            .with_attributes([
                KeyValue::new("cart.items", 3),
                KeyValue::new("http.request.method", "GET"),
                KeyValue::new("url.path", "/cart"),
            ])
            .start_with_context(tracer, &parent);
        let told = server.span_context().clone();
        let within = Context::new().with_span(server);
        match self.fault {
            Fault::ContextNotSent | Fault::StockUninstrumented | Fault::StockClockBehind => {
                self.call_stock(tracer, &within).await;
            }
            Fault::Linked => publish(tracer, &within),
            Fault::ContextNotKept => {
                let queued = tracer.clone();
                let work = move || {
                    queued.span_builder("audit").start_with_context(&queued, &Context::new()).end();
                };
                // A task without the context, such as one from a hand-written queue.
                let _done = tokio::task::spawn_blocking(work).await;
            }
            _ => {
                let query = tracer.span_builder("select items").with_kind(SpanKind::Client);
                let query = query.with_attributes([KeyValue::new("db.system.name", "postgresql")]);
                let mut query = query.with_start_time(now()).start_with_context(tracer, &within);
                query.end_with_timestamp(now());
            }
        }
        match self.fault {
            Fault::Unended => std::mem::forget(within),
            _ => within.span().end_with_timestamp(now()),
        }
        told
    }

    /// Calls `stock`; its context is lost or has no receiver.
    async fn call_stock(&self, tracer: &SdkTracer, within: &Context) {
        let url = format!("http://{}/stock", self.stock);
        let call = tracer
            .span_builder("GET")
            .with_kind(SpanKind::Client)
            .with_attributes([
                KeyValue::new("url.full", url.clone()),
                KeyValue::new("server.address", "stock"),
            ])
            .start_with_context(tracer, within);
        // During the call: only the clocks could show which of the two comes first.
        tracer.span_builder("audit").start_with_context(tracer, within).end();
        let mut headers = HashMap::new();
        let calling = Context::new().with_span(call);
        if self.fault != Fault::ContextNotSent {
            TraceContextPropagator::new().inject_context(&calling, &mut headers);
        }
        let mut request = reqwest::Client::new().get(url);
        for (name, value) in headers {
            request = request.header(name, value);
        }
        // The test does not check the response of `stock`.
        let _answer = request.send().await;
        calling.span().end();
    }

    /// Sends data to the OTLP endpoint that is no OTLP, or contains no spans.
    async fn send_oddly(&self) {
        let post = |path: &str, kind: &str, body: Vec<u8>| {
            let url = format!("{}{path}", self.otlp);
            reqwest::Client::new().post(url).header("content-type", kind).body(body).send()
        };
        let protobuf = "application/x-protobuf";
        let zipkin =
            b"[{\"traceId\":\"0123456789abcdef\",\"id\":\"0123456789abcdef\",\"name\":\"get\"}]";
        // The test checks the responses at the receiver.
        let _answer = match self.fault {
            Fault::Zipkin => {
                post("/api/v2/spans", "application/json", zipkin.to_vec()).await.map(drop)
            }
            Fault::WrongType => post("/v1/traces", "text/plain", Vec::new()).await.map(drop),
            Fault::TooLarge => post("/v1/traces", protobuf, vec![0; 17 << 20]).await.map(drop),
            Fault::MetricsOnly => post("/v1/metrics", protobuf, Vec::new()).await.map(drop),
            Fault::Tls => {
                let _refused = greet_in_tls(&self.otlp).await;
                Ok(())
            }
            _ => Ok(()),
        };
    }
}

/// Sends a message, and consumes it in a trace of its own.
fn publish(tracer: &SdkTracer, within: &Context) {
    let queue = || [KeyValue::new("messaging.destination.name", "orders")];
    let sent = tracer.span_builder("orders publish").with_kind(SpanKind::Producer);
    let mut sent = sent.with_attributes(queue()).start_with_context(tracer, within);
    let link = Link::with_context(sent.span_context().clone());
    sent.end();
    let taken = tracer.span_builder("orders process").with_kind(SpanKind::Consumer);
    let taken = taken.with_attributes(queue()).with_links(vec![link]);
    taken.start_with_context(tracer, &Context::new()).end();
}

/// Returns the same trace with a parent span that is never exported.
fn behind_proxy(parent: &Context) -> Context {
    let (trace, flags) = {
        let span = parent.span();
        (span.span_context().trace_id(), span.span_context().trace_flags())
    };
    let proxy = SpanId::from_bytes([0xfe; 8]);
    let context = SpanContext::new(trace, proxy, flags, true, TraceState::default());
    Context::new().with_remote_span_context(context)
}

async fn greet_in_tls(otlp: &str) -> Result<()> {
    let address = otlp.strip_prefix("http://").context("an address")?;
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let config = tokio_rustls::rustls::ClientConfig::builder_with_provider(provider.into())
        .with_safe_default_protocol_versions()?
        .with_root_certificates(tokio_rustls::rustls::RootCertStore::empty())
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    connector.connect("localhost".try_into()?, TcpStream::connect(address).await?).await?;
    Ok(())
}

#[expect(clippy::disallowed_methods, reason = "a system under test has a clock of its own")]
fn now() -> SystemTime {
    SystemTime::now()
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(HeaderName::as_str).collect()
    }
}
