//! A small instrumented system under test: the official SDK, a real HTTP server, a request counter.

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Result;
use axum::{
    Router,
    extract::{Query, State},
    http::{HeaderMap, StatusCode},
    routing::get,
};
use opentelemetry::{
    Context, KeyValue,
    propagation::{Extractor, TextMapPropagator},
    trace::{Span, SpanKind, Status, TraceContextExt, Tracer, TracerProvider},
};
use opentelemetry_otlp::WithExportConfig;
use opentelemetry_sdk::{
    Resource,
    propagation::TraceContextPropagator,
    trace::{BatchConfigBuilder, BatchSpanProcessor, SdkTracer, SdkTracerProvider},
};
use tokio::{net::TcpListener, task::JoinSet, time::sleep};

/// The response time of `/slow`.
const SLOW: Duration = Duration::from_secs(3);

/// A system under test that runs until it is dropped.
///
/// `GET /cart` responds at once, or after the milliseconds of `?wait=`; `GET /slow` after three seconds. Each creates a SERVER
/// span with a CLIENT span below. With `?late=`, unannounced work fails that many milliseconds after the response. Requests are
/// counted, and those with a `?run=` by its value.
#[derive(Debug)]
pub struct Target {
    /// The URL of its server.
    pub url: String,
    requests: Arc<AtomicU64>,
    runs: Arc<Mutex<BTreeMap<String, u64>>>,
    // Flushes queued spans when it is dropped.
    _provider: Option<SdkTracerProvider>,
    // Aborts the server with the target.
    _tasks: JoinSet<()>,
}

#[derive(Clone)]
struct ShopState {
    requests: Arc<AtomicU64>,
    runs: Arc<Mutex<BTreeMap<String, u64>>>,
    tracer: Option<SdkTracer>,
    /// Work that continues after its response.
    late: Arc<Mutex<JoinSet<()>>>,
}

/// A test with runs that end at once: its variable has no value, so that no trigger is fired.
pub const TEST_THAT_FIRES_NOTHING: &str = "type: Test
spec:
  id: cheap
  name: ends at once
  trigger: {type: http, httpRequest: {method: GET, url: '${var:nowhere}'}}
  specs: [{selector: 'span[]', assertions: ['attr:name = \"x\"']}]
";

impl Target {
    /// Returns a test of `GET /cart` that passes, with this `settle.flush`.
    pub fn test(&self, flush: Duration) -> String {
        let (url, flush) = (&self.url, flush.as_millis());
        format!(
            "type: Test
spec:
  id: cart
  name: the cart answers
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  settle: {{flush: {flush}ms}}
  specs:
    - selector: span[name=\"GET /cart\"]
      assertions: ['attr:http.response.status_code = 200']
"
        )
    }

    /// Starts a target that exports by gRPC to this port; without a port it has no telemetry.
    pub async fn start(otlp_grpc: Option<u16>) -> Result<Self> {
        let provider = otlp_grpc.map(provider).transpose()?;
        let requests = Arc::new(AtomicU64::new(0));
        let tracer = provider.as_ref().map(|provider| provider.tracer("shop"));
        let runs = Arc::default();
        let shop = ShopState {
            requests: Arc::clone(&requests),
            runs: Arc::clone(&runs),
            tracer,
            late: Arc::default(),
        };
        let router =
            Router::new().route("/cart", get(cart)).route("/slow", get(slow)).with_state(shop);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with the target; until then an error shows as a test without a response.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { url, requests, runs, _provider: provider, _tasks: tasks })
    }

    /// Returns the number of requests.
    pub fn requests(&self) -> u64 {
        self.requests.load(Ordering::SeqCst)
    }

    /// Returns the number of requests, by the value of `run` in their query.
    pub fn requests_of_runs(&self) -> BTreeMap<String, u64> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct CartRequest {
    run: Option<String>,
    /// Milliseconds.
    wait: u64,
    /// Milliseconds.
    late: Option<u64>,
}

fn provider(port: u16) -> Result<SdkTracerProvider> {
    let exporter = opentelemetry_otlp::SpanExporter::builder()
        .with_tonic()
        .with_endpoint(format!("http://127.0.0.1:{port}"))
        .build()?;
    let batch =
        BatchConfigBuilder::default().with_scheduled_delay(Duration::from_millis(20)).build();
    let processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
    let resource = Resource::builder_empty().with_service_name("shop").build();
    Ok(SdkTracerProvider::builder().with_span_processor(processor).with_resource(resource).build())
}

async fn cart(
    State(shop): State<ShopState>,
    Query(asked): Query<CartRequest>,
    headers: HeaderMap,
) -> (StatusCode, &'static str) {
    shop.requests.fetch_add(1, Ordering::SeqCst);
    if let Some(run) = asked.run {
        *shop.runs.lock().unwrap_or_else(PoisonError::into_inner).entry(run).or_default() += 1;
    }
    sleep(Duration::from_millis(asked.wait)).await;
    let within = shop.observe("/cart", &headers);
    if let (Some(late), Some(within)) = (asked.late, within) {
        shop.fail_late(Duration::from_millis(late), within);
    }
    (StatusCode::OK, "{\"items\": 3}")
}

async fn slow(State(shop): State<ShopState>, headers: HeaderMap) -> (StatusCode, &'static str) {
    shop.requests.fetch_add(1, Ordering::SeqCst);
    sleep(SLOW).await;
    shop.observe("/slow", &headers);
    (StatusCode::OK, "{}")
}

impl ShopState {
    /// Records the span of a request, and returns the context for its child spans.
    fn observe(&self, route: &'static str, headers: &HeaderMap) -> Option<Context> {
        let tracer = self.tracer.as_ref()?;
        let parent = TraceContextPropagator::new().extract(&Headers(headers));
        let server = tracer
            .span_builder(format!("GET {route}"))
            .with_kind(SpanKind::Server)
            .with_attributes([
                KeyValue::new("http.route", route),
                KeyValue::new("http.response.status_code", 200),
                KeyValue::new("cart.items", 3),
            ])
            .start_with_context(tracer, &parent);
        let within = Context::new().with_span(server);
        let mut query = tracer
            .span_builder("select items")
            .with_kind(SpanKind::Client)
            .with_attributes([KeyValue::new("db.system.name", "postgresql")])
            .start_with_context(tracer, &within);
        query.end();
        within.span().end();
        Some(within)
    }

    /// Starts work that fails some time after the response, and that no span announces.
    fn fail_late(&self, late: Duration, within: Context) {
        let Some(tracer) = self.tracer.clone() else { return };
        let work = async move {
            sleep(late).await;
            let mut span = tracer.start_with_context("late work", &within);
            span.set_status(Status::error("it was too late"));
            span.end();
        };
        let mut all = self.late.lock().unwrap_or_else(PoisonError::into_inner);
        while all.try_join_next().is_some() {}
        all.spawn(work);
    }
}

struct Headers<'a>(&'a HeaderMap);

impl Extractor for Headers<'_> {
    fn get(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(|value| value.to_str().ok())
    }

    fn keys(&self) -> Vec<&str> {
        self.0.keys().map(axum::http::HeaderName::as_str).collect()
    }
}
