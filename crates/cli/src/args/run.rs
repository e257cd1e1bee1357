//! The arguments of `run`.

use std::{ffi::OsString, net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use clap::ValueEnum;

use super::{
    connection::Connection,
    ready::Ready,
    shared::{Filter, ReportArgs, Variables},
};

/// The flags of a local run, which a run on a server does not have.
const LOCAL: [&str; 14] = [
    "command",
    "ready",
    "drain",
    "otlp",
    "stores",
    "protocol",
    "repeat",
    "retries",
    "timeout",
    "watch",
    "shard",
    "last_failed",
    "files",
    "secrets",
];

/// Run tests: here, or on a server
///
/// Receives OTLP itself, fires each test's trigger, waits until the trace is complete, and judges it. Nothing else has to be
/// installed. The command behind `--` starts the system under test: it gets an environment that makes
/// OpenTelemetry SDKs send their spans here at once. It is stopped at the end, with all processes that it started.
/// Without one, the system is expected to run already and to export to 127.0.0.1:4317 or :4318.
///
///   qualitytrace run tests/ -- npm start
///
/// Exit codes: 0 passed, 1 failed, 2 usage, configuration or document error, 3 inconclusive, 130 and 143 stopped by
/// Ctrl-C and SIGTERM.
#[derive(Debug, clap::Args)]
#[command(
    verbatim_doc_comment,
    mut_arg("server", |arg| arg.conflicts_with_all(LOCAL).help("Run on this server, such as http://127.0.0.1:11633, and not here")),
    mut_arg("context", |arg| arg.conflicts_with_all(LOCAL).help("Run on the server of this context").hide_short_help(true)),
    mut_arg("token", |arg| arg.hide_short_help(true)),
    mut_arg("project", |arg| arg.hide_short_help(true)),
    mut_arg("secrets", |arg| arg.hide_short_help(true)),
)]
pub(crate) struct RunArgs {
    /// Files, and folders with files that end in .yaml or .yml [default: the folder `qualitytrace`]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// A variable set that the server keeps, for every run there; several times for several, the later overrules
    #[arg(
        hide_short_help = true,
        long = "variable-set",
        value_name = "ID",
        env = "QUALITYTRACE_VARIABLE_SET",
        value_delimiter = ','
    )]
    pub(crate) variable_sets: Vec<String>,
    /// The state of the system that is tested, such as a commit: kept with each run on a server, for `trend`
    #[arg(hide_short_help = true, long, value_name = "WORD", env = "QUALITYTRACE_REVISION")]
    pub(crate) revision: Option<String>,
    #[command(flatten)]
    pub(crate) selection: Selection,
    #[command(flatten)]
    pub(crate) system: SystemFlags,
    #[command(flatten)]
    pub(crate) pace: Pace,
    #[command(flatten)]
    pub(crate) variables: Variables,
    #[command(flatten)]
    pub(crate) output: OutputArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl RunArgs {
    /// Whether a server runs the tests.
    pub(crate) fn is_remote(&self) -> bool {
        self.connection.address.is_given()
    }
}

/// Which of them.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Which tests")]
pub(crate) struct Selection {
    #[command(flatten)]
    pub(crate) filter: Filter,
    /// Only those that did not pass when they were last run; all where nothing is known
    #[arg(long, env = "QUALITYTRACE_LAST_FAILED")]
    pub(crate) last_failed: bool,
    /// Only the i-th of n parts, such as 2/5; the parts of the same files are always the same, and together they are all
    #[arg(hide_short_help = true, long, value_name = "I/N", env = "QUALITYTRACE_SHARD")]
    pub(crate) shard: Option<Shard>,
}

/// What is tested.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The system under test")]
pub(crate) struct SystemFlags {
    #[command(flatten)]
    pub(crate) start: StartFlags,
    /// Start the command anew for each test, and stop it after the answer: what it sends as it ends is all there is
    #[arg(
        hide_short_help = true,
        long,
        requires = "command",
        conflicts_with = "jobs",
        env = "QUALITYTRACE_DRAIN"
    )]
    pub(crate) drain: bool,
    /// A trace store to query for every trace, by id or name; its document is among FILES; several times for several
    /// [default: what a test names, else the default store]
    #[arg(
        hide_short_help = true,
        long = "store",
        value_name = "NAME",
        env = "QUALITYTRACE_STORE",
        value_delimiter = ','
    )]
    pub(crate) stores: Vec<String>,
}

/// How the system under test is started, and where its spans are received.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "The system under test")]
pub(crate) struct StartFlags {
    /// The command that starts it, and its arguments
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
    /// When COMMAND is ready: an http:// URL, tcp:HOST:PORT or log:REGEX.
    ///
    /// The URL answers below 400, the port accepts a connection, or a line of its output matches [default: the host and port of
    /// the first test accept a connection]
    #[arg(long, value_name = "WHAT", requires = "command", env = "QUALITYTRACE_READY")]
    pub(crate) ready: Option<Ready>,
    /// How long the command may take to be ready
    #[arg(
        hide_short_help = true,
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "60s",
        env = "QUALITYTRACE_READY_TIMEOUT"
    )]
    pub(crate) ready_timeout: Duration,
    /// Where OTLP is received, by gRPC and HTTP on each.
    ///
    /// [default: 127.0.0.1:4317 and 127.0.0.1:4318; with COMMAND a free port, which COMMAND gets in its environment]
    #[arg(
        long,
        value_name = "ADDRESS",
        value_parser = address,
        env = "QUALITYTRACE_OTLP",
        value_delimiter = ','
    )]
    pub(crate) otlp: Vec<SocketAddr>,
    /// The protocol by which COMMAND exports [default: its OTEL_EXPORTER_OTLP_PROTOCOL, else http/protobuf]
    #[arg(
        hide_short_help = true,
        long,
        value_enum,
        requires = "command",
        env = "QUALITYTRACE_PROTOCOL"
    )]
    pub(crate) protocol: Option<Protocol>,
}

/// How many at a time, how often, how long.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "How often and how long")]
pub(crate) struct Pace {
    /// Tests at a time, 256 at the most [default: 4; with `--drain` 1]
    #[arg(long, short, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=256), env = "QUALITYTRACE_JOBS")]
    pub(crate) jobs: Option<u16>,
    /// Run each test so many times, and report every run
    #[arg(hide_short_help = true, long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..), env = "QUALITYTRACE_REPEAT")]
    pub(crate) repeat: Option<u32>,
    /// Run a test that did not pass again, up to so many times; one that then passes is reported as flaky
    #[arg(long, value_name = "N", conflicts_with = "repeat", env = "QUALITYTRACE_RETRIES")]
    pub(crate) retries: Option<u32>,
    /// Start no further test once one has not passed
    #[arg(hide_short_help = true, long, env = "QUALITYTRACE_FAIL_FAST")]
    pub(crate) fail_fast: bool,
    /// The longest that a test may take, from firing to its first verdict; then it is judged by what there is
    #[arg(long, value_name = "TIME", value_parser = duration, env = "QUALITYTRACE_TIMEOUT")]
    pub(crate) timeout: Option<Duration>,
    /// Run again whenever one of the files changes, until Ctrl-C; COMMAND goes on all the while
    #[arg(long, env = "QUALITYTRACE_WATCH")]
    pub(crate) watch: bool,
}

/// The output, and where it goes.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    /// Keep the trace of each run in this folder, as OTLP, for `check --trace`
    #[arg(long, value_name = "DIR", env = "QUALITYTRACE_TRACES")]
    pub(crate) traces: Option<PathBuf>,
    /// Show no progress, only errors and results
    #[arg(
        hide_short_help = true,
        long,
        short,
        conflicts_with = "verbose",
        env = "QUALITYTRACE_QUIET"
    )]
    pub(crate) quiet: bool,
    /// Show COMMAND's output as it comes, and each step of each test
    #[arg(long, short, env = "QUALITYTRACE_VERBOSE")]
    pub(crate) verbose: bool,
}

/// One of several parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shard {
    /// From 1.
    pub(crate) part: u32,
    pub(crate) of: u32,
}

/// How OTLP is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Protocol {
    /// gRPC
    #[value(name = "grpc")]
    Grpc,
    /// Protobuf over HTTP
    #[value(name = "http/protobuf")]
    HttpProtobuf,
    /// JSON over HTTP
    #[value(name = "http/json")]
    HttpJson,
}

impl Protocol {
    /// As SDKs know it.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Grpc => "grpc",
            Self::HttpProtobuf => "http/protobuf",
            Self::HttpJson => "http/json",
        }
    }
}

impl FromStr for Shard {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let refused = "expected I/N with I from 1 to N, such as 2/5";
        let (part, of) = text.split_once('/').ok_or(refused)?;
        let (part, of) = (part.parse().map_err(|_| refused)?, of.parse().map_err(|_| refused)?);
        if part == 0 || part > of { Err(refused) } else { Ok(Self { part, of }) }
    }
}

/// An address to listen on. A name could be several.
pub(crate) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    text.parse().map_err(|_| "expected an IP address and a port, such as `127.0.0.1:4317`")
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let duration = source::parse_duration(text).filter(|duration| !duration.is_zero());
    duration.ok_or_else(|| "expected a time such as `500ms`, `30s` or `2m`".to_owned())
}
