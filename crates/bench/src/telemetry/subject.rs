//! The measured subjects: the stock exporters with defaults, the same tuned, and ours.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

/// An exporter and its transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// The exporter.
    pub kind: ExporterKind,
    /// The transport to the Collector.
    pub transport: Transport,
}

/// The implementation of an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExporterKind {
    /// The SDK's batch processor and exporter, with defaults.
    Stock,
    /// The same with a queue and retries for an hour: the usual advice against losses.
    StockTuned,
    /// `lib/telemetry`.
    Ours(Durability),
}

/// The durability of ours. All but `Memory` have a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Memory only.
    Memory,
    /// A killed process loses some milliseconds.
    Process,
    /// A killed process loses nothing.
    WriteThrough,
}

/// The transport to the Collector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP.
    Http,
}

/// The order of an emitter; it is passed as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmitterOrder {
    /// The exporter.
    pub subject: Subject,
    /// The port of the Collector.
    pub port: u16,
    /// The file to which each ended span is written.
    pub ended: PathBuf,
    /// The directory in which ours stores undelivered spans.
    pub directory: PathBuf,
    /// The spans to emit.
    pub load: EmitterLoad,
    /// The runtime of the emitter's main thread.
    pub within: Within,
    /// The port of another Collector, and the milliseconds until the change to it.
    pub change: Option<(u16, u64)>,
    /// The timeout of our shutdown.
    pub shutdown_ms: u64,
    /// How long ours waits before it sends a batch that is not full.
    pub throttle_ms: u64,
    /// Whether ours compresses its requests.
    pub gzip: bool,
    /// Whether ours drops spans when its queue is full.
    pub lossy: bool,
}

/// The load of an emitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmitterLoad {
    /// None: it only delivers the spans that an earlier emitter left.
    Nothing,
    /// This many spans at once.
    Spans(u64),
    /// Spans per second, and the duration in milliseconds.
    Steady(u64, u64),
}

/// The runtime of the emitter's main thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// None; for stock, a multi-threaded runtime runs beside it, since its gRPC exporter requires one.
    Thread,
    /// A task of a `current_thread` runtime.
    CurrentThread,
}

/// The outcome of an emitter that ended by itself.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EmitterOutcome {
    /// Ended spans.
    pub emitted: u64,
    /// The result of the shutdown, as text.
    pub shutdown: String,
    /// The duration of the shutdown.
    pub shutdown_ms: u64,
    /// Undelivered spans that the shutdown reported.
    pub told: u64,
    /// The counts of ours.
    pub counts: Option<SpanCounts>,
    /// `VmHWM` before the exporter was created, in bytes.
    pub memory_before: u64,
    /// `VmHWM` at the end, in bytes.
    pub memory: u64,
    /// When the change of the endpoint was requested, in nanoseconds since the epoch.
    pub changed_at: Option<u64>,
}

/// The counts of the spans that ours accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanCounts {
    /// All accepted spans, including those of earlier processes.
    pub accepted: u64,
    /// Spans that the Collector acknowledged.
    pub delivered: u64,
    /// Spans that wait for the next start.
    pub queued: u64,
    /// Spans that the Collector rejected permanently.
    pub rejected: u64,
    /// Spans that were dropped.
    pub dropped: u64,
}

impl Subject {
    /// The SDK's exporter with defaults.
    pub fn stock(transport: Transport) -> Self {
        Self { kind: ExporterKind::Stock, transport }
    }

    /// The SDK's exporter with a long queue and many retries.
    pub fn tuned(transport: Transport) -> Self {
        Self { kind: ExporterKind::StockTuned, transport }
    }

    /// Our exporter.
    pub fn ours(durability: Durability, transport: Transport) -> Self {
        Self { kind: ExporterKind::Ours(durability), transport }
    }

    /// Whether it has goals.
    pub fn is_ours(self) -> bool {
        matches!(self.kind, ExporterKind::Ours(_))
    }
}

impl Transport {
    /// Both transports.
    pub const ALL: [Self; 2] = [Self::Grpc, Self::Http];
}

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match self.kind {
            ExporterKind::Stock => "stock",
            ExporterKind::StockTuned => "stock tuned",
            ExporterKind::Ours(Durability::Memory) => "ours (memory)",
            ExporterKind::Ours(Durability::Process) => "ours (process)",
            ExporterKind::Ours(Durability::WriteThrough) => "ours (write-through)",
        };
        let transport = match self.transport {
            Transport::Grpc => "gRPC",
            Transport::Http => "HTTP",
        };
        write!(f, "{kind}, {transport}")
    }
}
