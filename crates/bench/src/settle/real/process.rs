//! A process of a generated system: it receives the spans and their end times, and exports them like any program.

use std::{
    io::{BufRead, Write, stdin, stdout},
    path::PathBuf,
    process::Stdio,
    sync::Arc,
    time::{Duration, UNIX_EPOCH},
};

use anyhow::{Context, Result};
use opentelemetry::{
    InstrumentationScope, KeyValue, SpanId, TraceFlags, TraceId,
    trace::{Event, Link, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_otlp::{SpanExporter, WithExportConfig};
use opentelemetry_sdk::{
    Resource,
    trace::{
        BatchConfigBuilder, BatchSpanProcessor, SpanData, SpanEvents, SpanLinks, SpanProcessor,
    },
};
use serde::{Deserialize, Serialize};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    process::{Child, Command},
    runtime::Builder,
    sync::Mutex,
    task::JoinSet,
    time::sleep,
};

use super::super::{
    play::{Parent, SimulatedRun},
    system::System,
    wire::{AttributeValue, each_of_resource, each_of_span},
};
use crate::parts::unix_nanos;

/// The message of a process that is ready for work.
const READY: &[u8] = b"ready\n";

/// The startup parameters of a process.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct ProcessOrder {
    port: u16,
    is_grpc: bool,
    delay_ns: u64,
    resource: Vec<(String, OrderedValue)>,
}

/// The task of a process for one run: spans, and when the trigger was fired.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Task {
    trace: [u8; 16],
    fired_ns: u64,
    skew_ns: i64,
    spans: Vec<OrderedSpan>,
}

/// A span; its times are nanoseconds since the trigger was fired.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct OrderedSpan {
    id: u64,
    parent: [u8; 8],
    link: Option<u64>,
    name: String,
    kind: i32,
    is_entry: bool,
    attributes: Vec<(String, OrderedValue)>,
    is_error: bool,
    has_exception: bool,
    start: u64,
    end: u64,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
enum OrderedValue {
    Text(String),
    Int(i64),
}

impl From<AttributeValue<'_>> for OrderedValue {
    fn from(given: AttributeValue<'_>) -> Self {
        match given {
            AttributeValue::Text(text) => Self::Text(text.to_owned()),
            AttributeValue::Int(number) => Self::Int(number),
        }
    }
}

/// The processes of one system, which are killed with it.
pub(super) struct Children {
    program: PathBuf,
    orders: Vec<ProcessOrder>,
    running: Mutex<Vec<Child>>,
}

impl Children {
    pub(super) async fn start(
        program: &std::path::Path,
        port: u16,
        system: &System,
    ) -> Result<Self> {
        let order = |process: usize| {
            let mut resource = Vec::new();
            each_of_resource(system, process, |key, value| {
                resource.push((key.to_owned(), value.into()));
            });
            let delay_ns = system.processes[process].batch.delay;
            ProcessOrder { port, is_grpc: process.is_multiple_of(2), delay_ns, resource }
        };
        let orders: Vec<_> = (0..system.processes.len()).map(order).collect();
        let running = Mutex::new(Vec::new());
        let children = Self { program: program.to_owned(), orders, running };
        for process in 0..children.orders.len() {
            let child = children.spawn(process).await?;
            children.running.lock().await.push(child);
        }
        Ok(children)
    }

    /// Starts a process, and waits until it is ready for work.
    async fn spawn(&self, process: usize) -> Result<Child> {
        let order = serde_json::to_string(&self.orders[process])?;
        let mut command = Command::new(&self.program);
        command.args(["settle:process", &order]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.kill_on_drop(true).spawn()?;
        let output = child.stdout.as_mut().context("a process has no output")?;
        output.read_exact(&mut [0; READY.len()]).await.context("a process did not start")?;
        Ok(child)
    }

    /// Sends a task to a process.
    pub(super) async fn tell(&self, process: usize, task: &Task) -> Result<()> {
        let line = format!("{}\n", serde_json::to_string(task)?);
        let mut running = self.running.lock().await;
        let input = running[process].stdin.as_mut().context("a process has no input")?;
        input.write_all(line.as_bytes()).await?;
        Ok(input.flush().await?)
    }

    /// Kills a process like a crash.
    pub(super) async fn kill(&self, process: usize) -> Result<()> {
        Ok(self.running.lock().await[process].kill().await?)
    }

    /// Restarts a process.
    pub(super) async fn restart(&self, process: usize) -> Result<()> {
        let child = self.spawn(process).await?;
        self.running.lock().await[process] = child;
        Ok(())
    }
}

impl Task {
    /// Returns the task of a process in a run; none where it has no spans.
    pub(super) fn of(
        system: &System,
        process: usize,
        played: &SimulatedRun<'_>,
        (trace, trigger): ([u8; 16], [u8; 8]),
        fired_ns: u64,
    ) -> Option<Self> {
        let id = |number: usize| played.spans[number].id;
        let told = played.spans.iter().filter(|span| span.process == process).filter_map(|span| {
            let mut attributes = Vec::new();
            each_of_span(system, span, |key, value| {
                attributes.push((key.to_owned(), value.into()));
            });
            Some(OrderedSpan {
                id: span.id,
                parent: match span.parent {
                    Parent::Trigger => trigger,
                    Parent::Span(parent) => id(parent).to_be_bytes(),
                    Parent::Absent(id) => id.to_be_bytes(),
                    // Real processes lose no contexts.
                    Parent::Lost(_) => [0; 8],
                },
                link: span.link.map(id),
                name: span.name.to_owned(),
                kind: span.kind.number(),
                is_entry: span.is_entry(),
                attributes,
                is_error: span.is_error,
                has_exception: span.has_exception,
                start: span.start,
                end: span.end?,
            })
        });
        let mut spans: Vec<_> = told.collect();
        spans.sort_by_key(|span| span.end);
        let skew_ns = system.processes[process].skew;
        (!spans.is_empty()).then_some(Self { trace, fired_ns, skew_ns, spans })
    }
}

/// Runs as such a process: with an order as its argument and a task on each line of stdin, until stdin is closed.
pub fn child(order: &str) -> Result<String> {
    let order: ProcessOrder = serde_json::from_str(order).context("the order is not one")?;
    let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let _entered = runtime.enter();
    let processor = Arc::new(processor(&order)?);
    stdout().write_all(READY)?;
    stdout().flush()?;
    let mut tasks = JoinSet::new();
    for line in stdin().lock().lines() {
        let task: Task = serde_json::from_str(&line?).context("the task is not one")?;
        let processor = Arc::clone(&processor);
        tasks.spawn_on(work(task, processor), runtime.handle());
    }
    runtime.shutdown_background();
    Ok(String::new())
}

/// Ends each span at its time.
async fn work(task: Task, processor: Arc<BatchSpanProcessor>) {
    for span in &task.spans {
        let end = task.fired_ns + span.end;
        sleep(Duration::from_nanos(end.saturating_sub(unix_nanos()))).await;
        processor.on_end(ended(span, &task));
    }
}

fn processor(order: &ProcessOrder) -> Result<BatchSpanProcessor> {
    let exporter = match order.is_grpc {
        true => {
            let endpoint = format!("http://127.0.0.1:{}", order.port);
            SpanExporter::builder().with_tonic().with_endpoint(endpoint).build()?
        }
        false => {
            let endpoint = format!("http://127.0.0.1:{}/v1/traces", order.port);
            SpanExporter::builder().with_http().with_endpoint(endpoint).build()?
        }
    };
    let delay = Duration::from_nanos(order.delay_ns);
    let batch = BatchConfigBuilder::default().with_scheduled_delay(delay).build();
    let mut processor = BatchSpanProcessor::builder(exporter).with_batch_config(batch).build();
    let resource = Resource::builder_empty().with_attributes(pairs(&order.resource)).build();
    processor.set_resource(&resource);
    Ok(processor)
}

fn ended(span: &OrderedSpan, task: &Task) -> SpanData {
    let trace = TraceId::from_bytes(task.trace);
    let context = |id: [u8; 8]| {
        let state = TraceState::default();
        SpanContext::new(trace, SpanId::from_bytes(id), TraceFlags::SAMPLED, true, state)
    };
    let clock = |at: u64| {
        UNIX_EPOCH + Duration::from_nanos((task.fired_ns + at).saturating_add_signed(task.skew_ns))
    };
    let mut links = SpanLinks::default();
    let link = span.link.map(|id| Link::new(context(id.to_be_bytes()), Vec::new(), 0));
    links.links.extend(link);
    let mut events = SpanEvents::default();
    let exception = || Event::new("exception", clock(span.end), Vec::new(), 0);
    events.events.extend(span.has_exception.then(exception));
    SpanData {
        span_context: context(span.id.to_be_bytes()),
        parent_span_id: SpanId::from_bytes(span.parent),
        parent_span_is_remote: span.is_entry,
        span_kind: match span.kind {
            2 => SpanKind::Server,
            3 => SpanKind::Client,
            4 => SpanKind::Producer,
            5 => SpanKind::Consumer,
            _ => SpanKind::Internal,
        },
        name: span.name.clone().into(),
        start_time: clock(span.start),
        end_time: clock(span.end),
        attributes: pairs(&span.attributes),
        dropped_attributes_count: 0,
        events,
        links,
        status: if span.is_error { Status::error("drawn") } else { Status::Unset },
        instrumentation_scope: InstrumentationScope::default(),
    }
}

fn pairs(attributes: &[(String, OrderedValue)]) -> Vec<KeyValue> {
    let pair = |(key, value): &(String, OrderedValue)| match value {
        OrderedValue::Text(text) => KeyValue::new(key.clone(), text.clone()),
        OrderedValue::Int(number) => KeyValue::new(key.clone(), *number),
    };
    attributes.iter().map(pair).collect()
}
