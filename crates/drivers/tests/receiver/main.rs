//! The OTLP receiver, tested with real exporters, and with clients that send faulty requests over raw sockets.

mod gate;
mod grpc;
mod http;
mod json;
mod lifecycle;
mod protocols;
mod sdk;
mod seen;
mod tls;

use std::{
    net::{Ipv4Addr, SocketAddr},
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use drivers::{
    Batch,
    receiver::{Config, LostSignal, Receiver, Sender, Sink, SinkError, start},
};
use model::TraceId;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData};
use prost::Message;
use tokio::sync::Semaphore;

/// The trace that the sink wants.
const WANTED: [u8; 16] = [7; 16];

/// A sink that accepts or refuses as configured, and waits until the test releases it.
#[derive(Debug)]
struct Told {
    taken: Mutex<Vec<Batch>>,
    lost: Mutex<Vec<TraceId>>,
    unread: AtomicU64,
    unread_logs: AtomicU64,
    refuses: bool,
    go: Semaphore,
}

impl Sink for Told {
    fn wants(&self, trace_id: &TraceId, _: &Sender) -> bool {
        *trace_id.as_bytes() == WANTED
    }

    async fn accept(&self, batches: Vec<Batch>, _: &Sender) -> Result<(), SinkError> {
        self.go.acquire().await.expect("never closed").forget();
        if self.refuses {
            return Err(SinkError::Full("full".to_owned()));
        }
        self.taken.lock().expect("no panic").extend(batches);
        Ok(())
    }

    fn lost(&self, trace_id: &TraceId, _: &Sender) {
        self.lost.lock().expect("no panic").push(*trace_id);
    }

    fn lost_unread(&self, _: &Sender, what: LostSignal) {
        let unread = match what {
            LostSignal::Spans => &self.unread,
            LostSignal::Logs => &self.unread_logs,
        };
        unread.fetch_add(1, Ordering::SeqCst);
    }

    fn logged(&self, _: &TraceId, _: &Sender) {}
}

fn told(refuses: bool, go: usize) -> Arc<Told> {
    Arc::new(Told {
        taken: Mutex::default(),
        lost: Mutex::default(),
        unread: AtomicU64::default(),
        unread_logs: AtomicU64::default(),
        refuses,
        go: Semaphore::new(go),
    })
}

fn any_port() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 0))
}

fn config() -> Config {
    Config { message_bytes_max: 10_000, ..Config::new(vec![any_port(), any_port()]) }
}

async fn receiver(sink: &Arc<Told>) -> Receiver {
    start(config(), Arc::clone(sink)).await.expect("started")
}

/// Encodes a request with one span of each of these traces.
fn request(trace_ids: &[&[u8]]) -> Vec<u8> {
    let ids = trace_ids.iter().map(|trace_id| [*trace_id, &[1; 8], &[]]);
    request_of(ids)
}

/// Encodes a request with spans that have these ids: trace id, span id and parent id.
fn request_of<'a>(ids: impl IntoIterator<Item = [&'a [u8]; 3]>) -> Vec<u8> {
    let span = |[trace_id, span_id, parent_span_id]: [&[u8]; 3]| Span {
        trace_id: trace_id.to_vec(),
        span_id: span_id.to_vec(),
        parent_span_id: parent_span_id.to_vec(),
        ..Span::default()
    };
    let spans = ids.into_iter().map(span).collect();
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    let resource_spans = vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }];
    TracesData { resource_spans }.encode_to_vec()
}
