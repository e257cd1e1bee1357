//! What is measured: the stock exporters as they come, the same tuned, and ours.

use std::{fmt, path::PathBuf};

use serde::{Deserialize, Serialize};

/// One way to get spans out of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subject {
    /// Whose.
    pub kind: ExporterKind,
    /// How it speaks to the Collector.
    pub transport: Transport,
}

/// Whose exporter it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ExporterKind {
    /// The SDK's batch processor and exporter, as they come.
    Stock,
    /// The same with a queue and patience for an hour: what its users are told to do about losses.
    StockTuned,
    /// `lib/telemetry`.
    Ours(Durability),
}

/// What of ours survives what. All but `Memory` have a directory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Durability {
    /// Memory alone.
    Memory,
    /// A killed process loses some milliseconds.
    Process,
    /// A killed process loses nothing.
    WriteThrough,
}

/// How the Collector is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Transport {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP.
    Http,
}

/// What an emitter is to do; it reaches the process as JSON.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmitterOrder {
    /// By which exporter.
    pub subject: Subject,
    /// The port of the Collector.
    pub port: u16,
    /// Where each ended span is written down.
    pub ended: PathBuf,
    /// Where ours keeps what is not delivered.
    pub directory: PathBuf,
    /// What to emit.
    pub load: EmitterLoad,
    /// What the emitter's main thread runs in.
    pub within: Within,
    /// The port of another Collector, and after how many milliseconds to change to it.
    pub change: Option<(u16, u64)>,
    /// How long the shutdown of ours may take.
    pub shutdown_ms: u64,
    /// How long ours waits before a batch that is not full.
    pub throttle_ms: u64,
    /// Whether ours compresses what it sends.
    pub gzip: bool,
    /// Whether a full queue of ours drops.
    pub lossy: bool,
}

/// What an emitter emits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EmitterLoad {
    /// Nothing: it only delivers what an earlier one left.
    Nothing,
    /// So many spans at once.
    Spans(u64),
    /// So many spans in a second, for so many milliseconds.
    Steady(u64, u64),
}

/// What the emitter's main thread runs in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Within {
    /// Nothing; for stock, a runtime with threads stands beside it, since its gRPC exporter asks for one.
    Thread,
    /// A task of a `current_thread` runtime.
    CurrentThread,
}

/// What an emitter that came to its end says.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct EmitterOutcome {
    /// Spans that ended.
    pub emitted: u64,
    /// What the shutdown returned, in its own words.
    pub shutdown: String,
    /// How long it took.
    pub shutdown_ms: u64,
    /// Undelivered spans that it told of.
    pub told: u64,
    /// The counts of ours.
    pub counts: Option<SpanCounts>,
    /// `VmHWM` before the exporter was made, in bytes.
    pub memory_before: u64,
    /// `VmHWM` at the end, in bytes.
    pub memory: u64,
    /// When the change of the endpoint was asked for, in nanoseconds since the epoch.
    pub changed_at: Option<u64>,
}

/// Where the spans are that ours accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SpanCounts {
    /// All of them, those of earlier processes included.
    pub accepted: u64,
    /// The Collector has them.
    pub delivered: u64,
    /// They wait for the next start.
    pub queued: u64,
    /// The Collector refused them for good.
    pub rejected: u64,
    /// They are gone.
    pub dropped: u64,
}

impl Subject {
    /// The SDK's own, as it comes.
    pub fn stock(transport: Transport) -> Self {
        Self { kind: ExporterKind::Stock, transport }
    }

    /// The SDK's own with a long queue and much patience.
    pub fn tuned(transport: Transport) -> Self {
        Self { kind: ExporterKind::StockTuned, transport }
    }

    /// Ours.
    pub fn ours(durability: Durability, transport: Transport) -> Self {
        Self { kind: ExporterKind::Ours(durability), transport }
    }

    /// Whether goals are set for it.
    pub fn is_ours(self) -> bool {
        matches!(self.kind, ExporterKind::Ours(_))
    }
}

impl Transport {
    /// Both.
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
