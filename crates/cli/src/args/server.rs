//! The arguments of the commands that send requests to a server.

use std::{path::PathBuf, str::FromStr};

use http::Method;
use model::{DocumentKind, TestId};

use super::{connection::Connection, format::FormatArgs};

const APPLY: &str = "\
Examples:
  qualitytrace apply tests/
  qualitytrace apply tests/ --diff --prune";

/// Keep documents on a server: tests, suites, variable sets and the others
///
/// All documents of a file are stored, or none of them. A document with the content of the stored one changes
/// nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = APPLY)]
pub(crate) struct Apply {
    /// YAML files with documents, and folders with files that end in .yaml or .yml
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    /// Store and delete nothing: show what would be
    #[arg(long, env = "QUALITYTRACE_DRY_RUN")]
    pub(crate) dry_run: bool,
    /// As --dry-run, with the lines that would change; exit code 1 if a document would
    #[arg(long, env = "QUALITYTRACE_DIFF")]
    pub(crate) diff: bool,
    /// Delete the documents of the project that were applied from these paths, named as they are here, and are not in them
    /// any more. Give each repository a project of its own: two with a folder of one name delete each other's documents
    #[arg(long, env = "QUALITYTRACE_PRUNE")]
    pub(crate) prune: bool,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print a document that a server keeps, as it was written; secrets are hidden
///
/// Example: qualitytrace get tests checkout@3
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// tests, test-suites, variable-sets, trace-stores, settle-profiles, analyzers or quality-gates
    pub(crate) kind: DocumentKind,
    /// Its id; ID@3 is version 3 of it
    pub(crate) id: VersionedId,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the documents of a kind that a server keeps
///
/// Example: qualitytrace list tests --format name
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// tests, test-suites, variable-sets, trace-stores, settle-profiles, analyzers or quality-gates
    pub(crate) kind: DocumentKind,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the versions of a document that a server keeps, the newest first
///
/// Example: qualitytrace history tests checkout
#[derive(Debug, clap::Args)]
pub(crate) struct History {
    /// tests, test-suites, variable-sets, trace-stores, settle-profiles, analyzers or quality-gates
    pub(crate) kind: DocumentKind,
    /// Its id
    pub(crate) id: TestId,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List what callers changed on a server, the newest first; for admins
///
/// Example: qualitytrace audit --limit 20
#[derive(Debug, clap::Args)]
pub(crate) struct Audit {
    /// The maximum number of entries
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=100_000), env = "QUALITYTRACE_LIMIT")]
    pub(crate) limit: u32,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Delete a document from a server; runs keep the version of the test that they started with
///
/// Example: qualitytrace delete tests checkout
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// tests, test-suites, variable-sets, trace-stores, settle-profiles, analyzers or quality-gates
    pub(crate) kind: DocumentKind,
    /// Its id; ID@3 deletes it only where 3 is its version
    pub(crate) id: VersionedId,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print all documents that a server keeps, as one file that `apply` takes; secrets are hidden
///
/// Example: qualitytrace export tests test-suites > documents.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Only of these kinds: tests, test-suites, variable-sets, trace-stores, settle-profiles, analyzers, quality-gates
    pub(crate) kinds: Vec<DocumentKind>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show the last runs of tests, the newest on the right
///
/// One line a test: a mark for each run, how many passed, how long they take, and whether runs of the same revision came to
/// different verdicts. `run --revision` sets the revision.
///
/// Example: qualitytrace trend checkout --last 50
#[derive(Debug, clap::Args)]
pub(crate) struct TrendArgs {
    /// Their ids [default: all tests of the project]
    pub(crate) tests: Vec<TestId>,
    /// How many runs are looked at
    #[arg(
        long,
        value_name = "N",
        default_value_t = 20,
        value_parser = clap::value_parser!(u16).range(1..=500),
        env = "QUALITYTRACE_LAST"
    )]
    pub(crate) last: u16,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Send any request to a server, with the token of the context, and print the body of the response
///
/// `--project` adds the parameter `project`. The exit code is 2 for a status of 400 to 499, and 3 for one from 500.
#[derive(Debug, clap::Args)]
#[command(after_help = API)]
pub(crate) struct ApiArgs {
    /// Such as GET, PUT or POST
    #[arg(value_parser = method)]
    pub(crate) method: Method,
    /// The path on the server, such as /api/v1/runs
    #[arg(value_parser = path)]
    pub(crate) path: String,
    /// A parameter of a GET, HEAD or DELETE, else a field of a JSON object that is the body; a value is a text
    #[arg(long, short, value_name = "NAME=VALUE", value_parser = field, env = "QUALITYTRACE_FIELD")]
    pub(crate) field: Vec<(String, String)>,
    /// A file with the body, JSON or YAML; `-` is stdin
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_INPUT")]
    pub(crate) input: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

const API: &str = "\
Examples:
  qualitytrace api GET /api/v1/runs -f limit=1 --project shop
  qualitytrace api PUT /api/v1/documents --input tests/checkout.yaml";

/// Show the state of a server: its version, whether it is ready, and its exporters
///
/// Exit code 0 if it is ready, 1 if it is not, 3 if it cannot be reached.
///
/// Example: qualitytrace status --ready
#[derive(Debug, clap::Args)]
pub(crate) struct Status {
    /// Only whether it is ready: for the health check of a container
    #[arg(long, env = "QUALITYTRACE_READY_ONLY")]
    pub(crate) ready: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print the address of the web page, of a test or of a run, and open it in a browser if stdout is a terminal
///
/// Example: qualitytrace open checkout
#[derive(Debug, clap::Args)]
pub(crate) struct OpenArgs {
    /// The id of a run or of a test [default: the list of tests]
    #[arg(value_name = "RUN|TEST")]
    pub(crate) what: Option<TestId>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

impl Apply {
    /// Whether nothing is stored.
    pub(crate) fn is_dry(&self) -> bool {
        self.dry_run || self.diff
    }
}

/// A document, in its current version or in this one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct VersionedId {
    pub(crate) id: TestId,
    pub(crate) version: Option<i32>,
}

impl FromStr for VersionedId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (id, version) = match text.split_once('@') {
            None => (text, None),
            Some((id, version)) => {
                let version = version.parse().ok().filter(|version| *version > 0);
                (id, Some(version.ok_or("expected a version behind `@`, such as `shop@3`")?))
            }
        };
        Ok(Self { id: id.parse().map_err(|error: model::InvalidId| error.to_string())?, version })
    }
}

fn method(text: &str) -> Result<Method, String> {
    let expected = || "expected a method such as `GET`".to_owned();
    text.to_ascii_uppercase().parse().map_err(|_| expected())
}

/// A path on the server: nothing that names another host.
fn path(text: &str) -> Result<String, String> {
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let is_plain = text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'#');
    match is_path && is_plain {
        true => Ok(text.to_owned()),
        false => Err("expected a path such as `/api/v1/runs`, with `%20` for a space".to_owned()),
    }
}

fn field(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected `NAME=VALUE`")?;
    Ok((name.to_owned(), value.to_owned()))
}
