//! The chaos relay: it receives the exports of processes, and forwards them late, in parts, in another order, twice or never.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use drivers::{
    Batch,
    receiver::{self, LostSignal, Receiver, Sender, Sink, SinkError},
};
use model::TraceId;
use opentelemetry_proto::tonic::{
    collector::trace::v1::ExportTraceServiceRequest,
    trace::v1::{ResourceSpans, ScopeSpans, Span},
};
use prost::Message;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    task::JoinSet,
    time::sleep,
};

use super::super::{
    chance::{Dice, between, percent},
    travel::Weather,
};
use crate::parts::unix_nanos;

/// Spans that were acknowledged together.
#[derive(Clone, Debug)]
pub(super) struct AcknowledgedSpans {
    pub(super) at_ns: u64,
    pub(super) ids: Vec<u64>,
}

/// The transport of the spans of one trace.
#[derive(Debug, Default)]
pub(super) struct RelayWay {
    pub(super) heard: Vec<AcknowledgedSpans>,
    pub(super) withheld: HashSet<u64>,
}

/// The relay; dropping it cancels its pending requests.
pub(super) struct SpanRelay {
    chaos: Arc<Chaos>,
    receiver: Receiver,
}

struct Chaos {
    target: SocketAddr,
    traces: Mutex<HashMap<TraceId, Trace>>,
    sending: Mutex<JoinSet<()>>,
}

struct Trace {
    weather: Weather,
    dice: Dice,
    way: Arc<Mutex<RelayWay>>,
}

impl SpanRelay {
    /// Starts a relay that forwards to this receiver.
    pub(super) async fn start(target: SocketAddr) -> Result<Self> {
        let (traces, sending) = (Mutex::default(), Mutex::default());
        let chaos = Arc::new(Chaos { target, traces, sending });
        let config = receiver::Config::new(vec!["127.0.0.1:0".parse()?]);
        let receiver = receiver::start(config, Arc::clone(&chaos)).await?;
        Ok(Self { chaos, receiver })
    }

    pub(super) fn port(&self) -> u16 {
        self.receiver.addresses().first().map_or(0, SocketAddr::port)
    }

    /// Sets the chaos for a trace.
    pub(super) fn expect(&self, trace: TraceId, weather: Weather, dice: Dice) {
        let way = Arc::default();
        locked(&self.chaos.traces).insert(trace, Trace { weather, dice, way });
    }

    /// Returns the transport of a trace so far.
    pub(super) fn end(&self, trace: &TraceId) -> RelayWay {
        let known = locked(&self.chaos.traces).remove(trace);
        known.map(|trace| std::mem::take(&mut *locked(&trace.way))).unwrap_or_default()
    }
}

impl Sink for Chaos {
    fn wants(&self, _trace: &TraceId, _: &Sender) -> bool {
        true
    }

    async fn accept(&self, batches: Vec<Batch>, _: &Sender) -> Result<(), SinkError> {
        for batch in batches {
            // Spans of a discarded run are ignored.
            if let Some(trace) = locked(&self.traces).get_mut(&batch.trace_id) {
                let mut sending = locked(&self.sending);
                while sending.try_join_next().is_some() {}
                for (delay, part) in trace.parts(&batch.bytes) {
                    let (target, way) = (self.target, Arc::clone(&trace.way));
                    sending.spawn(async move {
                        sleep(delay).await;
                        let ids = ids(&part);
                        if post(target, &part.encode_to_vec()).await.is_ok() {
                            locked(&way).heard.push(AcknowledgedSpans { at_ns: unix_nanos(), ids });
                        }
                    });
                }
            }
        }
        Ok(())
    }

    fn lost(&self, _trace: &TraceId, _: &Sender) {}

    fn lost_unread(&self, _: &Sender, _: LostSignal) {}

    fn logged(&self, _: &TraceId, _: &Sender) {}
}

impl Trace {
    /// Returns the parts of an export to forward, with their delays.
    fn parts(&mut self, bytes: &[u8]) -> Vec<(Duration, ExportTraceServiceRequest)> {
        let Ok(request) = ExportTraceServiceRequest::decode(bytes) else { return Vec::new() };
        let mut sent = Vec::new();
        for part in self.split(request) {
            let delay = match (self.weather, self.dice.below(40)) {
                (Weather::Calm, _) => 0,
                (_, 0) => between(&mut self.dice, 0, 300),
                (_, 1..8) => between(&mut self.dice, 0, 60),
                _ => between(&mut self.dice, 0, 10),
            };
            if self.weather == Weather::Withholding && percent(&mut self.dice, 12) {
                locked(&self.way).withheld.extend(ids(&part));
                if percent(&mut self.dice, 50) {
                    continue;
                }
                let late = between(&mut self.dice, 300, 2_000);
                sent.push((Duration::from_millis(late), part));
                continue;
            }
            if self.weather != Weather::Calm && percent(&mut self.dice, 10) {
                let again = delay + between(&mut self.dice, 0, 200);
                sent.push((Duration::from_millis(again), part.clone()));
            }
            sent.push((Duration::from_millis(delay), part));
        }
        sent
    }

    /// Distributes the spans of an export over several.
    fn split(&mut self, request: ExportTraceServiceRequest) -> Vec<ExportTraceServiceRequest> {
        if self.weather == Weather::Calm || percent(&mut self.dice, 50) {
            return vec![request];
        }
        let mut parts = vec![ExportTraceServiceRequest::default(); 2 + self.dice.below(2)];
        for resource in request.resource_spans {
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            for span in spans {
                let part = self.dice.below(parts.len());
                let scope_spans = ScopeSpans { spans: vec![span], ..ScopeSpans::default() };
                parts[part].resource_spans.push(ResourceSpans {
                    resource: resource.resource.clone(),
                    scope_spans: vec![scope_spans],
                    ..ResourceSpans::default()
                });
            }
        }
        parts.retain(|part| !part.resource_spans.is_empty());
        parts
    }
}

fn ids(request: &ExportTraceServiceRequest) -> Vec<u64> {
    let scopes = request.resource_spans.iter().flat_map(|resource| &resource.scope_spans);
    let id = |span: &Span| span.span_id.first_chunk().map(|id| u64::from_be_bytes(*id));
    scopes.flat_map(|scope| &scope.spans).filter_map(id).collect()
}

/// Sends an export over HTTP, and waits for its acknowledgement.
async fn post(target: SocketAddr, body: &[u8]) -> Result<()> {
    let head = format!(
        "POST /v1/traces HTTP/1.1\r\nhost: {target}\r\ncontent-type: application/x-protobuf\r\n\
         connection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let mut stream = TcpStream::connect(target).await?;
    stream.write_all(&[head.as_bytes(), body].concat()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let is_ok = answer.starts_with(b"HTTP/1.1 200");
    is_ok.then_some(()).context("the receiver did not take it")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
