//! The arguments of `runs`.

use std::{path::PathBuf, str::FromStr, time::Duration};

use clap::ValueEnum;
use model::{RunId, TestId, Timestamp, Verdict};

use super::{connection::Connection, format::FormatArgs, shared::ReportArgs};

/// The runs on a server: list, look at, follow, report, judge again, stop
#[derive(Debug, clap::Subcommand)]
pub(crate) enum RunsCommand {
    List(RunsList),
    View(RunView),
    Watch(RunWatch),
    Report(RunReport),
    Trace(RunTrace),
    Rejudge(RunRejudge),
    Stop(RunStop),
}

const LIST: &str = "\
Examples:
  qualitytrace runs list --verdict failed --since 2h
  qualitytrace runs list --test checkout --limit 1 --format name";

/// List runs, the newest first
#[derive(Debug, clap::Args)]
#[command(after_help = LIST)]
pub(crate) struct RunsList {
    /// Only those of this test
    #[arg(long, value_name = "ID", env = "QUALITYTRACE_RUNS_TEST")]
    pub(crate) test: Option<TestId>,
    /// Only those with this verdict
    #[arg(long, value_enum, env = "QUALITYTRACE_VERDICT")]
    pub(crate) verdict: Option<VerdictArg>,
    /// Only those that were accepted at this time or later: RFC 3339, or a duration before now such as `2h`
    #[arg(long, value_name = "TIME", env = "QUALITYTRACE_SINCE")]
    pub(crate) since: Option<Moment>,
    /// Only those that were accepted before this time
    #[arg(long, value_name = "TIME", env = "QUALITYTRACE_UNTIL")]
    pub(crate) until: Option<Moment>,
    /// The maximum number of runs
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=100_000), env = "QUALITYTRACE_LIMIT")]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show a run: its state, and what decided its verdict
///
/// Example: qualitytrace runs view 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e --events
#[derive(Debug, clap::Args)]
pub(crate) struct RunView {
    /// The id of the run
    pub(crate) run: RunId,
    /// Show its events too
    #[arg(long, env = "QUALITYTRACE_EVENTS")]
    pub(crate) events: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Follow a run live until its verdict, which is the exit code
///
/// Ctrl-C ends the command; the run goes on.
///
/// Example: qualitytrace runs watch 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e
#[derive(Debug, clap::Args)]
pub(crate) struct RunWatch {
    /// The id of the run
    pub(crate) run: RunId,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Write the report of a run or of a suite run that has ended, as `run` writes it
///
/// Example: qualitytrace runs report 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e --report junit=out.xml
#[derive(Debug, clap::Args)]
pub(crate) struct RunReport {
    /// The id of the run, or of the suite run
    pub(crate) run: RunId,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Write the trace of a run as OTLP protobuf, which `check --trace` reads
///
/// Example: qualitytrace runs trace 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e -o trace.pb
#[derive(Debug, clap::Args)]
pub(crate) struct RunTrace {
    /// The id of the run
    pub(crate) run: RunId,
    /// The file, which must not be there yet [default: stdout, unless that is a terminal]
    #[arg(long, short, value_name = "FILE", env = "QUALITYTRACE_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Judge the trace of a run again, and send nothing to the system; the verdict of the run stays
///
/// Example: qualitytrace runs rejudge 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e --document checkout.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct RunRejudge {
    /// The id of the run
    pub(crate) run: RunId,
    /// A file with the test to judge by [default: the test as the server has it now]
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_DOCUMENT", conflicts_with = "version")]
    pub(crate) document: Option<PathBuf>,
    /// The version of the test to judge by
    #[arg(long, value_name = "N", env = "QUALITYTRACE_VERSION")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) reports: ReportArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Stop runs and suite runs: a queued one does not start, an active one ends inconclusive
///
/// Example: qualitytrace runs stop 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e
#[derive(Debug, clap::Args)]
pub(crate) struct RunStop {
    /// The ids of the runs
    #[arg(required = true, value_name = "RUN")]
    pub(crate) runs: Vec<RunId>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// A verdict as a value of a flag.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum VerdictArg {
    Passed,
    Failed,
    Inconclusive,
}

impl From<VerdictArg> for Verdict {
    fn from(argument: VerdictArg) -> Self {
        match argument {
            VerdictArg::Passed => Self::Passed,
            VerdictArg::Failed => Self::Failed,
            VerdictArg::Inconclusive => Self::Inconclusive,
        }
    }
}

/// A time, as itself or as a duration before now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moment {
    At(Timestamp),
    Ago(Duration),
}

impl Moment {
    pub(crate) fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Self::At(time) => time,
            Self::Ago(duration) => now.minus(duration),
        }
    }
}

impl FromStr for Moment {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let ago = source::parse_duration(text).map(Self::Ago);
        let at = || serde_json::from_value(text.into()).map(Self::At).ok();
        let expected = "expected a time such as `2026-11-19T10:00:00Z`, or a duration such as `2h`";
        ago.or_else(at).ok_or_else(|| expected.to_owned())
    }
}
