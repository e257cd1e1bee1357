//! What is to be done, fully resolved: the form into which every front end of the configuration is compiled.
//!
//! Nothing in here is optional that the pipeline has to decide: defaults, environment and endpoint rules are applied
//! before. Deliberately absent: how a plan is written down (`config`), and how it is carried out.

use std::{fmt, path::PathBuf, time::Duration};

/// How many items make a batch full.
pub const BATCH_ITEMS_MAX: u64 = 512;
/// How many bytes make a batch full, before compression.
pub const BATCH_BYTES_MAX: usize = 1024 * 1024;

/// How many exporters a program may use.
pub const EXPORTERS_MAX: usize = 32;

/// The exporters of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Plan {
    /// In the order of the text, names unique.
    pub exporters: Vec<Exporter>,
    /// Whether the program serves its metrics to Prometheus.
    pub prometheus: bool,
    /// Whether `OTEL_SDK_DISABLED` turns everything off.
    pub disabled: bool,
    /// Attributes of the resource beside `service.name`.
    pub resource: Vec<(String, String)>,
    /// The names of exporters without an `endpoint`: they send to OpenTelemetry's default on this machine.
    pub by_default: Vec<String>,
    /// What is not wrong, but worth knowing: an ignored path, two exporters with one destination.
    pub notes: Vec<String>,
}

/// Which exporters of a plan a program uses for what, by their names in the plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Roles {
    /// Carries the program's own spans, logs and metrics, as far as it has these signals. Exporters that are always
    /// active (tracers, the metrics push) need no role.
    pub own: Option<String>,
    /// Get only what is emitted to them by name.
    pub others: Vec<String>,
}

/// One named exporter.
#[derive(Clone, Debug, PartialEq)]
pub struct Exporter {
    /// The key that made it, its kind included: `tracer.otel`, `telemetry.exporters.collector`.
    pub name: String,
    /// `service.name` of its resource.
    pub service_name: String,
    /// Whether it has all of the program's own signals by its kind (a tracer, the metrics push), or only by a role that
    /// names it.
    pub always: bool,
    /// What it carries.
    pub signals: Signals,
    /// The share of traces that it receives, in percent.
    pub sampling: f64,
    /// The least severe level that it receives; without one, every span there is, and logs from [`Level::Info`] on. A span that
    /// failed, and those around it, are received whatever their level.
    pub level: Option<Level>,
    /// How long to wait before the next batch that is not full.
    pub throttle: Duration,
    /// Whether a full queue drops (and counts) or holds the producer.
    pub lossy: bool,
    /// What is kept until it is delivered.
    pub buffer: Buffer,
    /// Where it goes.
    pub destination: Destination,
}

/// What an exporter carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Signals {
    /// Finished spans.
    pub spans: bool,
    /// Log records.
    pub logs: bool,
    /// Metrics, pushed this often.
    pub metrics: Option<Duration>,
}

/// Severity, least severe first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// The finest.
    Trace,
    /// For those who debug.
    Debug,
    /// What spans without a level count as.
    Info,
    /// Something is odd.
    Warn,
    /// Something failed.
    Error,
}

impl Level {
    pub(crate) const COUNT: usize = Self::Error as usize + 1;

    /// The word for it.
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

/// What is kept until it is delivered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Bytes in memory.
    pub memory: u64,
    /// Bytes on disk.
    pub disk: u64,
    /// Where; without one, memory alone. Each exporter has a folder of its own in it.
    pub directory: Option<PathBuf>,
    /// What survives what.
    pub durability: Durability,
    /// How long a full buffer that is not lossy holds the producer; `None` is for as long as it takes.
    pub hold: Option<Duration>,
}

/// What survives what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Durability {
    /// Nothing is written but for lack of memory, and at shutdown.
    Memory,
    /// A killed process loses at most some milliseconds.
    Process,
    /// A killed process loses nothing: written before the span's end returns.
    WriteThrough,
    /// A killed machine loses at most some hundred milliseconds.
    Host,
}

/// Where an exporter sends.
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
    /// How it is spoken to.
    pub transport: Transport,
    /// Where each signal goes: absolute URLs. For gRPC only scheme, host and port are used.
    pub endpoints: Endpoints,
    /// Sent with every request.
    pub headers: Vec<Header>,
    /// What the peer is believed by, and how it knows us. Used where an endpoint is `https`.
    pub tls: Tls,
    /// How long one request may take.
    pub timeout: Duration,
    /// Whether bodies are compressed.
    pub compression: Compression,
    /// Waiting between attempts.
    pub retry: Retry,
    /// How many requests may be under way at once.
    pub concurrency: usize,
}

/// Where each signal goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Endpoints {
    /// Spans.
    pub traces: http::Uri,
    /// Log records.
    pub logs: http::Uri,
    /// Metrics.
    pub metrics: http::Uri,
}

/// How an endpoint is spoken to.
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
    /// In lower case.
    pub name: http::HeaderName,
    /// Printed nowhere.
    pub value: Secret,
}

/// A text that prints as `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

/// What the peer is believed by, and how it knows us. All files are PEM.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tls {
    /// Certificates that are trusted instead of the system's.
    pub ca_file: Option<PathBuf>,
    /// Our certificate, for peers that ask for one.
    pub cert_file: Option<PathBuf>,
    /// Its key.
    pub key_file: Option<PathBuf>,
}

/// Whether bodies are compressed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// By gzip.
    Gzip,
    /// Not at all.
    None,
}

/// Waiting between attempts: doubled from `initial` to `max`, with jitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// Before the second attempt.
    pub initial: Duration,
    /// Between later ones.
    pub max: Duration,
}

impl Plan {
    /// The exporters that have something to carry: by their kind, or by a role.
    pub fn active(&self, roles: &Roles) -> impl Iterator<Item = &Exporter> {
        let is_active = |exporter: &&Exporter| {
            !self.disabled && (exporter.is_own(roles) || roles.others.contains(&exporter.name))
        };
        self.exporters.iter().filter(is_active)
    }
}

impl Signals {
    /// The signals that are carried.
    pub fn carried(self) -> impl Iterator<Item = Signal> {
        let Self { spans, logs, metrics } = self;
        let all =
            [(spans, Signal::Spans), (logs, Signal::Logs), (metrics.is_some(), Signal::Metrics)];
        all.into_iter().filter_map(|(is_carried, signal)| is_carried.then_some(signal))
    }
}

impl Exporter {
    /// Whether it carries the program's own signals.
    pub(crate) fn is_own(&self, roles: &Roles) -> bool {
        self.always || roles.own.as_ref() == Some(&self.name)
    }
}

impl Secret {
    /// Keeps a text from being printed.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The text itself, for the wire.
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
    /// As messages name it: without secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Otlp(otlp) => f.write_str(&shown(&otlp.endpoints.traces)),
            Self::Stdout => f.write_str("standard output"),
            Self::Log(path) => write!(f, "{}", path.display()),
        }
    }
}

impl Destination {
    /// Where this signal goes, as messages name it.
    pub(crate) fn of(&self, signal: Signal) -> String {
        match self {
            Self::Otlp(otlp) => shown(otlp.endpoint(signal)),
            Self::Stdout | Self::Log(_) => self.to_string(),
        }
    }
}

impl Otlp {
    /// Where this signal goes.
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
    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Spans, Self::Logs, Self::Metrics];

    /// The word for it in messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Spans => "spans",
            Self::Logs => "logs",
            Self::Metrics => "metrics",
        }
    }
}

/// An endpoint as messages name it: without user, password and query, which may be secrets.
pub fn shown(endpoint: &http::Uri) -> String {
    let scheme = endpoint.scheme_str().unwrap_or("http");
    let host = endpoint.host().unwrap_or_default();
    let port = endpoint.port().map(|port| format!(":{port}")).unwrap_or_default();
    format!("{scheme}://{host}{port}{}", endpoint.path())
}
