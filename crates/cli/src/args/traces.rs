//! The arguments of the commands on complete traces: their shape, and their mutants.

use std::path::PathBuf;

use model::{RunId, TraceId};
use shape::Keep;

use super::{
    connection::Connection,
    format::TextFormat,
    shared::{Tests, Variables, seed},
};

const RECORD: &str = "\
Examples:
  qualitytrace run tests/checkout.yaml --traces traces
  qualitytrace shape record traces/checkout-*.pb -o golden/checkout.shape
  qualitytrace shape record --run 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e -o golden/checkout.shape

docs/golden-traces.md tells what stands in the file, and what you may write into it.";

const DIFF: &str = "\
Exit codes: 0 the same, 1 different, 2 usage or a mistake in the file.

Example:
  qualitytrace shape diff golden/checkout.shape traces/checkout-*.pb";

const ACCEPT: &str = "\
Refused where the variable CI is set: there no person has read the difference.

Example:
  qualitytrace shape accept golden/checkout.shape traces/checkout-*.pb && git diff";

const MUTATE: &str = "\
Examples:
  qualitytrace run tests --traces traces
  qualitytrace mutate tests --trace traces
  qualitytrace mutate tests --trace traces --survivors survivors.yaml --min-score 90

docs/mutation.md tells what is mutated, what is not, and what `survivors.yaml` holds.";

/// Write the shape of a trace: a readable tree without ids and times, to be committed and compared with later traces
#[derive(Debug, clap::Args)]
#[command(after_help = RECORD)]
pub(crate) struct Record {
    /// The file, which must not be there yet [default: stdout]
    #[arg(long, short, value_name = "FILE", env = "QUALITYTRACE_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    /// The attributes that are kept, with commas; `http.*` is all that begin so, `none` is none [default: what was done
    /// and how it went, such as `http.route` and `http.response.status_code`]
    #[arg(long, value_name = "KEYS", env = "QUALITYTRACE_KEEP")]
    pub(crate) keep: Option<Keep>,
    #[command(flatten)]
    pub(crate) recorded: TraceArgs,
}

/// Compare a trace with a recorded shape, and list the differences
#[derive(Debug, clap::Args)]
#[command(after_help = DIFF)]
pub(crate) struct Diff {
    /// The file that `shape record` wrote
    #[arg(value_name = "SHAPE")]
    pub(crate) golden: PathBuf,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = TextFormat::Text, env = "QUALITYTRACE_TEXT_FORMAT")]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) recorded: TraceArgs,
}

/// Bring a recorded shape up to date; ranges and notes that you wrote stay where they still hold
#[derive(Debug, clap::Args)]
#[command(after_help = ACCEPT)]
pub(crate) struct Accept {
    /// The file that `shape record` wrote
    #[arg(value_name = "SHAPE")]
    pub(crate) golden: PathBuf,
    #[command(flatten)]
    pub(crate) recorded: TraceArgs,
}

/// Test the tests: mutates recorded traces, judges each mutant offline, and lists which survived
#[derive(Debug, clap::Args)]
#[command(after_help = MUTATE)]
pub(crate) struct Mutate {
    #[command(flatten)]
    pub(crate) tests: Tests,
    /// 64 hexadecimal digits: functions such as `uuid()` give what they gave under this seed
    #[arg(long, value_name = "HEX", value_parser = seed, env = "QUALITYTRACE_SEED")]
    pub(crate) seed: Option<[u8; 32]>,
    /// Traces, as files or as folders of them, such as `run --traces` writes
    #[arg(long = "trace", value_name = "PATH", required = true, num_args = 1.., value_delimiter = ',', env = "QUALITYTRACE_MUTATE_TRACE")]
    pub(crate) traces: Vec<PathBuf>,
    /// The attributes that are taken away, with commas; `http.*` is all that begin so, `*` is all [default: those that
    /// `shape record` keeps]
    #[arg(long, value_name = "KEYS", env = "QUALITYTRACE_ATTRIBUTES")]
    pub(crate) attributes: Option<Keep>,
    /// The maximum number of mutants of a trace; of more, an even sample
    #[arg(long, value_name = "COUNT", default_value_t = 5_000, env = "QUALITYTRACE_MAX_MUTANTS")]
    pub(crate) max_mutants: usize,
    /// The file with the survivors that you accept, each with its reason: then every other survivor is exit code 1
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_SURVIVORS")]
    pub(crate) survivors: Option<PathBuf>,
    /// The minimum score, in percent: below it, exit code 1
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100), env = "QUALITYTRACE_MIN_SCORE")]
    pub(crate) min_score: Option<u8>,
    /// How the result is printed
    #[arg(long, value_enum, default_value_t = TextFormat::Text, env = "QUALITYTRACE_TEXT_FORMAT")]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) variables: Variables,
}

/// A trace, in a file or of a run.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceArgs {
    /// The trace: OTLP in protobuf or JSON, a file of the Collector, JSON of Jaeger or Tempo; `-` is stdin
    #[arg(value_name = "TRACE", required_unless_present = "run", conflicts_with = "run")]
    pub(crate) trace: Option<PathBuf>,
    /// Which trace of a file that holds several
    #[arg(long, value_name = "ID", env = "QUALITYTRACE_TRACE_ID")]
    pub(crate) trace_id: Option<TraceId>,
    /// The trace of this run, from a server
    #[arg(long, value_name = "ID", env = "QUALITYTRACE_RUN")]
    pub(crate) run: Option<RunId>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}
