//! The fully resolved configuration: the form into which every front end of the configuration is compiled.
//!
//! No value that the pipeline needs is optional here: defaults, environment and endpoint rules are already applied.
//! Deliberately absent: the file format of a plan (`config`), and its execution.

use std::{fmt, path::PathBuf, time::Duration};

/// The number of items of a full batch.
pub const BATCH_ITEMS_MAX: u64 = 512;
/// The number of bytes of a full batch, before compression.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// The maximum number of exporters of a program.
pub const EXPORTERS_MAX: usize = 32;

/// The exporters of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the text, with unique names.
    pub exporters: Vec<Exporter>,
    /// Whether the program serves its metrics to Prometheus.
    pub prometheus: bool,
    /// Whether `OTEL_SDK_DISABLED` turns everything off.
    pub disabled: bool,
    /// Attributes of the resource beside `service.name`.
    pub resource: Vec<(String, String)>,
    /// The names of exporters without an `endpoint`: they send to OpenTelemetry's default on this machine.
    pub by_default: Vec<String>,
    /// Notes that are not errors: an ignored path, two exporters with one destination.
    pub notes: Vec<String>,
}

/// The roles of a plan's exporters in a program, by their names in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// The exporter that carries the program's own spans, logs and metrics, as far as it has these signals. Exporters
    /// that are always active (tracers, the metrics push) need no role.
    pub own: Option<String>,
    /// Exporters that only receive spans that are emitted to them by name.
    pub others: Vec<String>,
}

/// One named exporter.
#[derive(Clone, Debug, PartialEq)]
pub struct Exporter {
    /// The key that defines it, with its kind: `tracer.otel`, `telemetry.exporters.collector`.
    pub name: String,
    /// `service.name` of its resource.
    pub service_name: String,
    /// Whether its kind makes it carry all of the program's own signals (a tracer, the metrics push), or only a role
    /// that names it.
    pub always: bool,
    /// The signals that it carries.
    pub signals: Signals,
    /// The share of traces that it receives, in percent.
    pub sampling: f64,
    /// The least severe level that it receives; without one, every span that is created, and logs from [`Level::Info`]
    /// on. A failed span, and those around it, are received regardless of their level.
    pub level: Option<Level>,
    /// How long a batch that is not full waits.
    pub throttle: Duration,
    /// Whether a full queue drops (and counts) items or blocks the producer.
    pub lossy: bool,
    /// The buffer for items until they are delivered.
    pub buffer: Buffer,
    /// The destination.
    pub destination: Destination,
}

/// The signals that an exporter carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Finished spans.
    pub spans: bool,
    /// Log records.
    pub logs: bool,
    /// Metrics, pushed at this interval.
    pub metrics: Option<Duration>,
}

/// Severity, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The most detailed level.
    Trace,
    /// Details for debugging.
    Debug,
    /// The default level of spans without a level.
    Info,
    /// An unexpected condition.
    Warn,
    /// A failure.
    Error,
}

impl Level {
    pub(crate) const COUNT: usize = Self::Error as usize + 1;

    /// The name of the level.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Trace => "trace",
            Self::Debug => "debug",
            Self::Info => "info",
            Self::Warn => "warn",
            Self::Error => "error",
        }
    }
}

/// The buffer for items until they are delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// The maximum bytes in memory.
    pub memory: u64,
    /// The maximum bytes on disk.
    pub disk: u64,
    /// The directory; without one, the buffer is in memory only. Each exporter has its own folder in it.
    pub directory: Option<PathBuf>,
    /// Which failures the buffered items survive.
    pub durability: Durability,
    /// How long a full buffer that is not lossy blocks the producer; `None` means without a limit.
    pub hold: Option<Duration>,
}

/// Which failures the buffered items survive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Items are written to disk only when memory runs out, and at shutdown.
    Memory,
    /// A killed process loses at most the items of some milliseconds.
    Process,
    /// A killed process loses no item: it is written before the end of the span returns.
    WriteThrough,
    /// A machine failure loses at most the items of some hundred milliseconds.
    Host,
}

/// The destination of an exporter.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::large_enum_variant, reason = "a program has a handful of them")]
pub enum Destination {
    /// An OTLP endpoint.
    Otlp(Otlp),
    /// A line for each item on standard output.
    Stdout,
    /// A line for each item, appended to this file.
    Log(PathBuf),
}

/// An OTLP endpoint.
#[derive(Clone, Debug, PartialEq)]
pub struct Otlp {
    /// The transport protocol.
    pub transport: Transport,
    /// The endpoint of each signal: absolute URLs. For gRPC only scheme, host and port are used.
    pub endpoints: Endpoints,
    /// The headers of every request.
    pub headers: Vec<Header>,
    /// The trusted certificates, and the client certificate. Used if an endpoint is `https`.
    pub tls: Tls,
    /// The timeout of one request.
    pub timeout: Duration,
    /// Whether bodies are compressed.
    pub compression: Compression,
    /// The pauses between attempts.
    pub retry: Retry,
    /// The maximum number of concurrent requests.
    pub concurrency: usize,
}

/// The endpoint of each signal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Spans.
    pub traces: http::Uri,
    /// Log records.
    pub logs: http::Uri,
    /// Metrics.
    pub metrics: http::Uri,
}

/// The transport protocol of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// OTLP over gRPC.
    Grpc,
    /// OTLP over HTTP with protobuf bodies.
    Http,
}

/// A header with its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// The name, in lower case.
    pub name: http::HeaderName,
    /// The value, which is never printed.
    pub value: Secret,
}

/// A text that prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// The trusted certificates, and the client certificate. All files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// The client certificate, for peers that request one.
    pub cert_file: Option<PathBuf>,
    /// The key of the client certificate.
    pub key_file: Option<PathBuf>,
}

/// Whether bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Compressed by gzip.
    Gzip,
    /// Not compressed.
    None,
}

/// The pauses between attempts: doubled from `initial` to `max`, with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The pause before the second attempt.
    pub initial: Duration,
    /// The maximum pause between later attempts.
    pub max: Duration,
}

impl Plan {
    /// Returns the exporters that carry a signal: by their kind, or by a role.
    pub fn active(&self, roles: &Roles) -> impl Iterator<Item = &Exporter> {
        let is_active = |exporter: &&Exporter| {
            !self.disabled && (exporter.is_own(roles) || roles.others.contains(&exporter.name))
        };
        self.exporters.iter().filter(is_active)
    }
}

impl Signals {
    /// Returns the signals that are carried.
    pub fn carried(self) -> impl Iterator<Item = Signal> {
        let Self { spans, logs, metrics } = self;
        let all =
            [(spans, Signal::Spans), (logs, Signal::Logs), (metrics.is_some(), Signal::Metrics)];
        all.into_iter().filter_map(|(is_carried, signal)| is_carried.then_some(signal))
    }
}

impl Exporter {
    /// Returns whether it carries the program's own signals.
    pub(crate) fn is_own(&self, roles: &Roles) -> bool {
        self.always || roles.own.as_ref() == Some(&self.name)
    }
}

impl Secret {
    /// Wraps a text so that it is not printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text itself, for the wire.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Default for Buffer {
    fn default() -> Self {
        Self {
            memory: 32 * 1024 * 1024,
            disk: 1024 * 1024 * 1024,
            directory: None,
            durability: Durability::Memory,
            hold: None,
        }
    }
}

impl Default for Retry {
    fn default() -> Self {
        Self { initial: Duration::from_millis(100), max: Duration::from_secs(2) }
    }
}

impl fmt::Display for Destination {
    /// Formats the destination for messages: without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Otlp(otlp) => f.write_str(&shown(&otlp.endpoints.traces)),
            Self::Stdout => f.write_str("standard output"),
            Self::Log(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Destination {
    /// Formats the destination of this signal for messages.
    pub(crate) fn of(&self, signal: Signal) -> String {
        match self {
            Self::Otlp(otlp) => shown(otlp.endpoint(signal)),
            Self::Stdout | Self::Log(_) => self.to_string(),
        }
    }
}

impl Otlp {
    /// Returns the endpoint of this signal.
    pub fn endpoint(&self, signal: Signal) -> &http::Uri {
        match signal {
            Signal::Spans => &self.endpoints.traces,
            Signal::Logs => &self.endpoints.logs,
            Signal::Metrics => &self.endpoints.metrics,
        }
    }
}

/// The three kinds of telemetry.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Finished spans.
    Spans,
    /// Log records.
    Logs,
    /// Metrics.
    Metrics,
}

impl Signal {
    /// All signals, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Spans, Self::Logs, Self::Metrics];

    /// The name of the signal in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }
}

/// Formats an endpoint for messages: without user, password and query, which may be secrets.
pub fn shown(endpoint: &http::Uri) -> String {
    let scheme = endpoint.scheme_str().unwrap_or("http");
    let host = endpoint.host().unwrap_or_default();
    let port = endpoint.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", endpoint.path())
}
