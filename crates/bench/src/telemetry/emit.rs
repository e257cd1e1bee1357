//! The emitter: its own process that emits spans at a steady rate and writes each ended span to a file.
//!
//! It may be killed at any moment; the spans in its file are the expected ones. At its end, it prints an
//! [`EmitterOutcome`](super::Outcome) as JSON.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use opentelemetry::{
    KeyValue,
    trace::{Span, SpanKind, Tracer, TracerProvider},
};
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::{Builder, Runtime};

use super::{
    ended::{EndedSpan, Writer},
    ours::Ours,
    stock,
    subject::{EmitterLoad, EmitterOrder, EmitterOutcome, SpanCounts, Within},
};
use crate::parts::unix_nanos;

/// The interval at which a steady load emits the due spans.
const TICK: Duration = Duration::from_millis(1);

/// Executes an order given as JSON, and returns the outcome as JSON.
pub fn run(order: &str) -> Result<String> {
    let order: EmitterOrder = serde_json::from_str(order).context("the order is not one")?;
    let outcome = match order.within {
        Within::Thread if order.subject.is_ours() => emit(&order)?,
        Within::Thread => {
            let runtime = Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
            let entered = runtime.enter();
            let outcome = emit(&order)?;
            drop(entered);
            leave(runtime);
            outcome
        }
        Within::CurrentThread => {
            let runtime = Builder::new_current_thread().enable_all().build()?;
            let outcome = runtime.block_on(async { emit(&order) })?;
            leave(runtime);
            outcome
        }
    };
    Ok(serde_json::to_string(&outcome)?)
}

/// Does not wait for tasks that a stock exporter left behind in its runtime.
fn leave(runtime: Runtime) {
    runtime.shutdown_background();
}

fn emit(order: &EmitterOrder) -> Result<EmitterOutcome> {
    let memory_before = peak_memory()?;
    let pipeline = EmitPipeline::start(order)?;
    let tracer = pipeline.provider().tracer("emitter");
    let mut ended = Writer::create(&order.ended)?;
    let mut changed_at = None;
    match order.load {
        EmitterLoad::Nothing => {}
        EmitterLoad::Spans(count) => {
            for _ in 0..count {
                one(&tracer, &mut ended)?;
            }
        }
        EmitterLoad::Steady(rate, millis) => {
            changed_at = steady(order, &pipeline, &mut ended, (rate, millis))?;
        }
    }
    let began = unix_nanos();
    let (shutdown, told, counts) = pipeline.shutdown(order)?;
    Ok(EmitterOutcome {
        emitted: ended.written(),
        shutdown,
        shutdown_ms: (unix_nanos() - began) / 1_000_000,
        told,
        counts,
        memory_before,
        memory: peak_memory()?,
        changed_at,
    })
}

/// Emits the due spans, tick by tick; returns when the endpoint was changed.
fn steady(
    order: &EmitterOrder,
    pipeline: &EmitPipeline,
    ended: &mut Writer,
    (rate, millis): (u64, u64),
) -> Result<Option<u64>> {
    let tracer = pipeline.provider().tracer("emitter");
    let began = unix_nanos();
    let mut change = order.change;
    let mut changed_at = None;
    loop {
        let elapsed = unix_nanos() - began;
        if elapsed >= millis * 1_000_000 {
            return Ok(changed_at);
        }
        if let Some((port, _)) = change.take_if(|(_, after)| elapsed >= *after * 1_000_000) {
            changed_at = Some(unix_nanos());
            pipeline.change(order, port)?;
        }
        let due = elapsed as u128 * u128::from(rate) / 1_000_000_000;
        while u128::from(ended.written()) < due {
            one(&tracer, ended)?;
        }
        pause();
    }
}

/// Emits one span as an HTTP server creates it, with four attributes.
fn one(tracer: &SdkTracer, ended: &mut Writer) -> Result<()> {
    let attributes = [
        KeyValue::new("http.request.method", "GET"),
        KeyValue::new("http.route", "/items/{item}"),
        KeyValue::new("number", ended.written() as i64),
        KeyValue::new("cached", true),
    ];
    let builder = tracer.span_builder("GET /items/{item}").with_kind(SpanKind::Server);
    let mut span = builder.with_attributes(attributes).start(tracer);
    let id = span.span_context().span_id().to_bytes();
    span.end();
    ended.push(EndedSpan { id, at: unix_nanos() })
}

enum EmitPipeline {
    Stock(SdkTracerProvider),
    Ours(Ours),
}

impl EmitPipeline {
    fn start(order: &EmitterOrder) -> Result<Self> {
        if order.subject.is_ours() {
            Ours::start(order, order.port).map(Self::Ours)
        } else {
            stock::provider(order.subject, order.port).map(Self::Stock)
        }
    }

    fn provider(&self) -> &SdkTracerProvider {
        match self {
            Self::Stock(provider) => provider,
            Self::Ours(ours) => ours.provider(),
        }
    }

    fn change(&self, order: &EmitterOrder, port: u16) -> Result<()> {
        match self {
            Self::Stock(_) => anyhow::bail!("the stock exporters cannot change their endpoint"),
            Self::Ours(ours) => ours.change(order, port),
        }
    }

    /// Returns the result of the shutdown, the number of undelivered spans that it reports, and the counts.
    fn shutdown(self, order: &EmitterOrder) -> Result<(String, u64, Option<SpanCounts>)> {
        Ok(match self {
            Self::Stock(provider) => {
                let said = provider.shutdown();
                (said.map_or_else(|error| format!("{error}"), |()| "Ok(())".to_owned()), 0, None)
            }
            Self::Ours(ours) => {
                let counts = ours.shutdown(Duration::from_millis(order.shutdown_ms))?;
                let told = counts.queued + counts.rejected + counts.dropped;
                (format!("{counts:?}"), told, Some(counts))
            }
        })
    }
}

#[expect(clippy::disallowed_methods, reason = "the pace of the load is the real clock's")]
fn pause() {
    std::thread::sleep(TICK);
}

/// Returns the peak memory of this process, in bytes.
pub(crate) fn peak_memory() -> Result<u64> {
    status("VmHWM:")
}

/// Returns the same without memory that is mapped from files: the code of an unoptimized program is large, and the part of it
/// that was used so far is unrelated to buffers.
pub(crate) fn peak_memory_beside_files() -> Result<u64> {
    Ok(status("VmHWM:")?.saturating_sub(status("RssFile:")?))
}

/// Returns a size from the process status of this process.
fn status(name: &str) -> Result<u64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with(name)).context("a size")?;
    let kibibytes: u64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kibibytes * 1024)
}
