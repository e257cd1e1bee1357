//! The end of every measured pipeline: an OTLP receiver that counts exactly.
//!
//! It responds only after it has counted, so an acknowledgement through a Collector without a queue means that the span is here.
//! Deliberately absent: the content of the spans.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{SystemTime, UNIX_EPOCH},
};

use anyhow::Result;
use axum::{
    Router,
    body::Bytes,
    extract::{DefaultBodyLimit, State},
    http::StatusCode,
    routing::post,
};
use opentelemetry_proto::tonic::{
    collector::{
        logs::v1::ExportLogsServiceRequest, metrics::v1::ExportMetricsServiceRequest,
        trace::v1::ExportTraceServiceRequest,
    },
    metrics::v1::{Metric, metric::Data},
};
use prost::Message;
use tokio::{net::TcpListener, task::JoinSet};

/// The id of a span in its OTLP encoding.
pub type SpanId = [u8; 8];

/// A receiver on its own port, until it is dropped.
#[derive(Debug)]
pub struct Sink {
    /// The port that receives OTLP over HTTP.
    pub port: u16,
    received: Arc<Mutex<SinkData>>,
    // Aborts the receiver with the sink.
    _tasks: JoinSet<()>,
}

/// The received telemetry.
#[derive(Clone, Debug, Default)]
pub struct SinkData {
    /// When each span arrived first, in nanoseconds since the epoch.
    pub spans: HashMap<SpanId, u64>,
    /// Spans, including repeated ones.
    pub spans_total: u64,
    /// Log records.
    pub logs: u64,
    /// Data points of metrics.
    pub data_points: u64,
}

type SinkState = State<Arc<Mutex<SinkData>>>;

impl Sink {
    /// Starts a sink.
    pub async fn start() -> Result<Self> {
        let received = Arc::new(Mutex::new(SinkData::default()));
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/logs", post(logs))
            .route("/v1/metrics", post(metrics))
            .layer(DefaultBodyLimit::disable())
            .with_state(Arc::clone(&received));
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let port = listener.local_addr()?.port();
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            // It ends with the sink; until then an error shows as spans that do not arrive.
            let _ended = axum::serve(listener, router).await;
        });
        Ok(Self { port, received, _tasks: tasks })
    }

    /// Returns the telemetry so far; nothing is counted while the guard is held.
    pub fn received(&self) -> MutexGuard<'_, SinkData> {
        locked(&self.received)
    }
}

impl SinkData {
    /// Returns the number of repeated spans.
    pub fn repeated(&self) -> u64 {
        self.spans_total - self.spans.len() as u64
    }
}

async fn traces(State(received): SinkState, body: Bytes) -> (StatusCode, Vec<u8>) {
    let Ok(request) = ExportTraceServiceRequest::decode(body) else { return refused() };
    let now = unix_nanos();
    let mut received = locked(&received);
    let spans = request.resource_spans.into_iter().flat_map(|resource| resource.scope_spans);
    for span in spans.flat_map(|scope| scope.spans) {
        let Ok(id) = SpanId::try_from(span.span_id) else { return refused() };
        received.spans_total += 1;
        received.spans.entry(id).or_insert(now);
    }
    accepted()
}

async fn logs(State(received): SinkState, body: Bytes) -> (StatusCode, Vec<u8>) {
    let Ok(request) = ExportLogsServiceRequest::decode(body) else { return refused() };
    let scopes = request.resource_logs.iter().flat_map(|resource| &resource.scope_logs);
    locked(&received).logs += scopes.map(|scope| scope.log_records.len() as u64).sum::<u64>();
    accepted()
}

async fn metrics(State(received): SinkState, body: Bytes) -> (StatusCode, Vec<u8>) {
    let Ok(request) = ExportMetricsServiceRequest::decode(body) else { return refused() };
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    let points = scopes.flat_map(|scope| &scope.metrics).map(data_points).sum::<usize>();
    locked(&received).data_points += points as u64;
    accepted()
}

fn data_points(metric: &Metric) -> usize {
    match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points.len(),
        Some(Data::Sum(sum)) => sum.data_points.len(),
        Some(Data::Histogram(histogram)) => histogram.data_points.len(),
        Some(Data::ExponentialHistogram(histogram)) => histogram.data_points.len(),
        Some(Data::Summary(summary)) => summary.data_points.len(),
        None => 0,
    }
}

/// An empty message is the OTLP response for complete success.
fn accepted() -> (StatusCode, Vec<u8>) {
    (StatusCode::OK, Vec::new())
}

fn refused() -> (StatusCode, Vec<u8>) {
    (StatusCode::BAD_REQUEST, Vec::new())
}

fn locked(received: &Mutex<SinkData>) -> MutexGuard<'_, SinkData> {
    received.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the system's clock, which emitters in other processes share.
#[expect(clippy::disallowed_methods, reason = "what is measured is measured by the real clock")]
pub fn unix_nanos() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
        metrics::v1::{Gauge, NumberDataPoint, ResourceMetrics, ScopeMetrics},
        trace::v1::{ResourceSpans, ScopeSpans, Span},
    };
    use tokio::{
        io::{AsyncReadExt, AsyncWriteExt},
        net::TcpStream,
    };

    use super::*;

    #[tokio::test]
    async fn spans_are_counted_once_each_and_all_signals_are_counted() {
        let sink = Sink::start().await.unwrap();
        for ids in [[1, 2], [2, 3]] {
            assert_eq!(post(&sink, "traces", spans(&ids)).await, "200");
        }
        let scope_logs =
            ScopeLogs { log_records: vec![LogRecord::default(); 4], ..ScopeLogs::default() };
        let resource_logs =
            ResourceLogs { scope_logs: vec![scope_logs], ..ResourceLogs::default() };
        let logs = ExportLogsServiceRequest { resource_logs: vec![resource_logs] };
        assert_eq!(post(&sink, "logs", logs).await, "200");
        assert_eq!(post(&sink, "metrics", gauge()).await, "200");

        let received = sink.received();
        assert_eq!(received.spans.len(), 3);
        assert_eq!(received.repeated(), 1);
        assert_eq!((received.logs, received.data_points), (4, 5));
    }

    #[tokio::test]
    async fn a_span_without_an_id_is_refused() {
        let sink = Sink::start().await.unwrap();
        let mut request = spans(&[1]);
        request.resource_spans[0].scope_spans[0].spans[0].span_id.clear();
        assert_eq!(post(&sink, "traces", request).await, "400");
    }

    fn spans(ids: &[u8]) -> ExportTraceServiceRequest {
        let span = |id: &u8| Span { span_id: vec![*id; 8], ..Span::default() };
        let spans = ids.iter().map(span).collect();
        let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
        let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
        ExportTraceServiceRequest { resource_spans }
    }

    fn gauge() -> ExportMetricsServiceRequest {
        let data = Data::Gauge(Gauge { data_points: vec![NumberDataPoint::default(); 5] });
        let metrics = vec![Metric { data: Some(data), ..Metric::default() }];
        let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
        let resource_metrics =
            vec![ResourceMetrics { scope_metrics, ..ResourceMetrics::default() }];
        ExportMetricsServiceRequest { resource_metrics }
    }

    /// Sends a request, and returns the status line of the response.
    async fn post(sink: &Sink, signal: &str, request: impl Message) -> String {
        let body = request.encode_to_vec();
        let head = format!(
            "POST /v1/{signal} HTTP/1.1\r\nhost: sink\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
            body.len()
        );
        let mut stream = TcpStream::connect(("127.0.0.1", sink.port)).await.unwrap();
        stream.write_all(&[head.as_bytes(), &body].concat()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        answer.split(' ').nth(1).unwrap().to_owned()
    }
}
