//! The arguments that several commands have.

use std::path::PathBuf;

use model::TraceId;

use super::report::{self, Target};

/// Which tests are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Tests {
    /// Files, and folders with files that end in .yaml or .yml
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) filter: Filter,
}

/// Which of several tests are meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Filter {
    /// Only the tests with one of these ids or names
    #[arg(long = "test", value_name = "ID", env = "QUALITYTRACE_TEST", value_delimiter = ',')]
    pub(crate) tests: Vec<String>,
    /// Only the tests with one of these tags
    #[arg(long = "tag", value_name = "TAG", env = "QUALITYTRACE_TAG", value_delimiter = ',')]
    pub(crate) tags: Vec<String>,
}

impl Filter {
    /// Whether all are meant.
    pub(crate) fn is_empty(&self) -> bool {
        self.tests.is_empty() && self.tags.is_empty()
    }
}

/// The values of `${var:…}` and `${env:…}`.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Variables")]
pub(crate) struct Variables {
    /// A file with a document of type `VariableSet`
    #[arg(long = "vars", value_name = "FILE", env = "QUALITYTRACE_VARS", value_delimiter = ',')]
    pub(crate) files: Vec<PathBuf>,
    /// A variable of its own, before those of files
    #[arg(
        long = "set",
        visible_alias = "var",
        value_name = "NAME=VALUE",
        value_parser = assignment,
        env = "QUALITYTRACE_SET",
        value_delimiter = ';'
    )]
    pub(crate) variables: Vec<(String, String)>,
    /// A variable whose value no report shows
    #[arg(
        long = "secret",
        value_name = "NAME",
        env = "QUALITYTRACE_SECRET",
        value_delimiter = ','
    )]
    pub(crate) secrets: Vec<String>,
}

/// A trace in a file.
#[derive(Debug, clap::Args)]
pub(crate) struct TraceFileArgs {
    /// The trace: OTLP in protobuf or JSON, a file of the Collector, JSON of Jaeger or Tempo; `-` is stdin
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_TRACE")]
    pub(crate) trace: PathBuf,
    /// Which trace of a file that holds several
    #[arg(long, value_name = "ID", env = "QUALITYTRACE_TRACE_ID")]
    pub(crate) trace_id: Option<TraceId>,
}

/// How and where outcomes are written.
#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    #[arg(
        long = "report",
        help = report::help(),
        value_name = "FORMAT[=FILE]",
        env = "QUALITYTRACE_REPORT",
        value_delimiter = ','
    )]
    pub(crate) targets: Vec<Target>,
}

/// Which configuration is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Configuration {
    /// The configuration file, YAML or TOML by its extension [default: `quality-trace-config.{yaml,yml,toml}` or
    /// `tracetest-config.yaml`, in the working folder, the user's or the system's configuration folder]
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

fn assignment(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, value)) if !name.is_empty() => Ok((name.to_owned(), value.to_owned())),
        _ => Err("expected `NAME=VALUE`".to_owned()),
    }
}

pub(super) fn seed(text: &str) -> Result<[u8; 32], String> {
    let refused = || "expected 64 hexadecimal digits".to_owned();
    let mut seed = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return Err(refused());
    }
    for (at, byte) in seed.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).map_err(|_| refused())?;
    }
    Ok(seed)
}
