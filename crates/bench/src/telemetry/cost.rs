//! The cost of a span for the producing thread: start and end with four attributes, relative to no processor at all.
//!
//! Every pipeline gets the same bursts in turn, in one process, and is drained between them. Two lengths are measured: a stream
//! of spans as fast as a thread can produce them, as in the published table of the stock exporter, which drops the spans beyond
//! its queue; and a burst that fits that queue. Ours accepts both completely. Only the producer's cost is compared, so the work
//! behind it is kept small on both sides: the stock batch processor is in front of an exporter that does nothing, ours sends,
//! uncompressed, to a peer that accepts and discards.

use std::{
    path::Path,
    process::Stdio,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::{Router, body::Bytes, extract::DefaultBodyLimit, http::StatusCode};
use opentelemetry::{
    KeyValue,
    trace::{Span, Tracer, TracerProvider},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{
        BatchSpanProcessor, SdkTracerProvider, Span as SdkSpan, SpanData, SpanExporter,
        SpanProcessor,
    },
};
use serde::{Deserialize, Serialize};
use tokio::{net::TcpListener, process::Command, task::JoinSet};

use super::{
    ours::Ours,
    stand::TelemetryStand,
    subject::{Durability, EmitterLoad, EmitterOrder, Subject, Transport},
};
use crate::{
    parts::unix_nanos,
    table::{Goal, Row, median},
};

/// Spans of a stream: a few milliseconds of one thread, and less than our default memory bound.
const STREAM: u64 = 20_000;
/// Spans of a burst: the default capacity of the stock queue, and full batches on either side.
const BURST: u64 = 2048;
/// Bursts that are not counted.
const WARM_UP: usize = 20;
/// The upper bound relative to the stock processor's addition.
const MEMORY_RATIO_MAX: f64 = 0.5;
const PROCESS_RATIO_MAX: f64 = 0.7;
/// The delay between batches that are not full: bursts follow each other without the default second of ours.
const THROTTLE_MS: u64 = 20;
/// The timeout for ours to deliver a burst.
const DRAIN_NANOS_MAX: u64 = 20_000_000_000;

/// Nanoseconds for one span, start and end.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct EmitCost {
    /// With no processor.
    pub none: f64,
    /// With a processor that does nothing: the SDK's own cost for any processor.
    pub idle: f64,
    /// With the stock batch processor.
    pub stock: f64,
    /// With ours, in memory.
    pub memory: f64,
    /// With ours, written so that a kill loses some milliseconds.
    pub process: f64,
}

/// The cost over all bursts.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Costs {
    /// The median: the figure that counts.
    pub median: EmitCost,
    /// The 10th percentile: nearly undisturbed by other load of the machine.
    pub quiet: EmitCost,
    /// The share of spans that the stock processor dropped; ours never drops.
    pub dropped: f64,
}

/// Returns the rows of this group.
pub(crate) async fn rows(program: &Path, short: bool) -> Result<Vec<Row>> {
    let (streams, bursts) = if short { (30, 60) } else { (200, 400) };
    let mut rows = rows_of("stream", &run(program, STREAM, streams).await?, true);
    rows.extend(rows_of("burst", &run(program, BURST, bursts).await?, false));
    Ok(rows)
}

fn rows_of(what: &str, costs: &Costs, with_goals: bool) -> Vec<Row> {
    let row = |name: &str, value: f64, unit, goal: Option<f64>| Row {
        name: format!("a span with 4 attributes, {what}: {name}"),
        value,
        unit,
        goal: goal.filter(|_| with_goals).map(Goal::AtMost),
    };
    let mut rows = vec![row("stock batch dropped", costs.dropped * 100.0, "%", None)];
    for (of, cost) in [("", costs.median), (", quiet tenth", costs.quiet)] {
        let added =
            [cost.idle, cost.stock, cost.memory, cost.process].map(|value| value - cost.none);
        let names =
            ["a processor that does nothing", "stock batch", "ours (memory)", "ours (process)"];
        rows.push(row(&format!("no processor{of}"), cost.none, "ns", None));
        for (name, added) in names.iter().zip(added) {
            rows.push(row(&format!("{name} adds{of}"), added, "ns", None));
        }
    }
    let EmitCost { none, stock, memory, process, .. } = costs.median;
    let ratio = |value: f64| (value - none) / (stock - none);
    let memory = ("ours (memory) over stock batch", ratio(memory), MEMORY_RATIO_MAX);
    let process = ("ours (process) over stock batch", ratio(process), PROCESS_RATIO_MAX);
    rows.extend([memory, process].map(|(name, value, goal)| row(name, value, "ratio", Some(goal))));
    rows
}

/// Measures in its own process, with `rounds` rounds of `spans` spans for each.
pub async fn run(program: &Path, spans: u64, rounds: usize) -> Result<Costs> {
    let stand =
        TelemetryStand::new(program, Subject::ours(Durability::Memory, Transport::Http)).await?;
    let peer = TcpListener::bind("127.0.0.1:0").await?;
    let port = peer.local_addr()?.port();
    let order = EmitterOrder {
        port,
        throttle_ms: THROTTLE_MS,
        gzip: false,
        ..stand.order(EmitterLoad::Nothing)
    };
    let forget = Router::new().fallback(async |_: Bytes| StatusCode::OK);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move { axum::serve(peer, forget.layer(DefaultBodyLimit::disable())).await });
    let order = serde_json::to_string(&(order, spans, rounds))?;
    let mut command = Command::new(program);
    command.arg("telemetry:cost").arg(order).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.kill_on_drop(true).output().await?;
    ensure!(output.status.success(), "the process that measures the cost failed");
    Ok(serde_json::from_slice(&output.stdout)?)
}

/// Measures in this process; order and cost are JSON.
pub fn measure(order: &str) -> Result<String> {
    let (order, spans, rounds): (EmitterOrder, u64, usize) =
        serde_json::from_str(order).context("the order is not one")?;
    let exported = Arc::new(AtomicU64::new(0));
    let stock = BatchSpanProcessor::builder(Nowhere(Arc::clone(&exported))).build();
    let ours = |durability| {
        let subject = Subject::ours(durability, order.subject.transport);
        Ours::start(&EmitterOrder { subject, ..order.clone() }, order.port)
    };
    let pipelines = [
        CostPipeline::Bare(SdkTracerProvider::builder().build()),
        CostPipeline::Bare(SdkTracerProvider::builder().with_span_processor(Idle).build()),
        CostPipeline::Bare(SdkTracerProvider::builder().with_span_processor(stock).build()),
        CostPipeline::Ours(ours(Durability::Memory)?),
        CostPipeline::Ours(ours(Durability::Process)?),
    ];
    let mut nanos = [const { Vec::new() }; 5];
    for round in 0..WARM_UP + rounds {
        for turn in 0..pipelines.len() {
            // The order rotates, so that no pipeline always follows the same one.
            let at = (round + turn) % pipelines.len();
            let took = pipelines[at].burst(spans);
            pipelines[at].drain()?;
            if round >= WARM_UP {
                nanos[at].push(took);
            }
        }
    }
    let emitted = spans * (WARM_UP + rounds) as u64;
    let exported = exported.load(Ordering::SeqCst);
    let dropped = 1.0 - exported as f64 / emitted as f64;
    for pipeline in pipelines {
        pipeline.end(emitted)?;
    }
    let of = |[none, idle, stock, memory, process]: [f64; 5]| EmitCost {
        none,
        idle,
        stock,
        memory,
        process,
    };
    let quiet = of(nanos.each_mut().map(|values| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 10]
    }));
    Ok(serde_json::to_string(&Costs { median: of(nanos.map(median)), quiet, dropped })?)
}

enum CostPipeline {
    Bare(SdkTracerProvider),
    Ours(Ours),
}

impl CostPipeline {
    fn provider(&self) -> &SdkTracerProvider {
        match self {
            Self::Bare(provider) => provider,
            Self::Ours(ours) => ours.provider(),
        }
    }

    /// Returns the nanoseconds for one span of a burst.
    fn burst(&self, spans: u64) -> f64 {
        let tracer = self.provider().tracer("cost");
        let began = unix_nanos();
        for number in 0..spans {
            let attributes = [
                KeyValue::new("http.request.method", "GET"),
                KeyValue::new("http.route", "/items/{item}"),
                KeyValue::new("number", number as i64),
                KeyValue::new("cached", true),
            ];
            let builder = tracer.span_builder("GET /items/{item}").with_attributes(attributes);
            builder.start(&tracer).end();
        }
        (unix_nanos() - began) as f64 / spans as f64
    }

    fn drain(&self) -> Result<()> {
        self.provider().force_flush()?;
        if let Self::Ours(ours) = self {
            let began = unix_nanos();
            while ours.queued() > 0 {
                ensure!(unix_nanos() - began < DRAIN_NANOS_MAX, "a burst is not delivered");
                pause();
            }
        }
        Ok(())
    }

    fn end(self, emitted: u64) -> Result<()> {
        match self {
            Self::Bare(provider) => provider.shutdown()?,
            Self::Ours(ours) => {
                let counts = ours.shutdown(Duration::from_secs(10))?;
                ensure!(counts.delivered == emitted, "of {emitted} spans: {counts:?}");
            }
        }
        Ok(())
    }
}

/// A processor that does nothing.
#[derive(Debug)]
struct Idle;

impl SpanProcessor for Idle {
    fn on_start(&self, _: &mut SdkSpan, _: &opentelemetry::Context) {}

    fn on_end(&self, _: SpanData) {}

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _: Duration) -> OTelSdkResult {
        Ok(())
    }
}

/// An exporter that counts spans, and does nothing else.
#[derive(Debug)]
struct Nowhere(Arc<AtomicU64>);

impl SpanExporter for Nowhere {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.fetch_add(batch.len() as u64, Ordering::SeqCst);
        Ok(())
    }
}

#[expect(clippy::disallowed_methods, reason = "a thread without a runtime waits for a delivery")]
fn pause() {
    std::thread::sleep(Duration::from_millis(1));
}
