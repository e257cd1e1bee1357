//! The arguments of the commands that send requests to a server.

use std::{path::PathBuf, str::FromStr};

use model::{DocumentKind, TestId};

use super::{connection::Connection, format::FormatArgs};

/// Keep documents on a server: tests, suites, variable sets and the others
///
/// All documents of a file are stored, or none of them. A document with the content of the stored one changes
/// nothing.
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// YAML files with documents, and folders with files that end in .yaml or .yml
    #[arg(required = true, value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print a document that a server keeps, as it was written; secrets are hidden
#[derive(Debug, clap::Args)]
pub(crate) struct Get {
    /// tests, suites, variable-sets, stores, settle-profiles, analyzers or gates
    pub(crate) kind: DocumentKind,
    /// Its id; ID@3 is version 3 of it
    pub(crate) id: VersionedId,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// List the documents of a kind that a server keeps
#[derive(Debug, clap::Args)]
pub(crate) struct List {
    /// tests, suites, variable-sets, stores, settle-profiles, analyzers or gates
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
    /// tests, suites, variable-sets, stores, settle-profiles, analyzers or gates
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
#[derive(Debug, clap::Args)]
pub(crate) struct Delete {
    /// tests, suites, variable-sets, stores, settle-profiles, analyzers or gates
    pub(crate) kind: DocumentKind,
    /// Its id; ID@3 deletes it only where 3 is its version
    pub(crate) id: VersionedId,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Print all documents that a server keeps, as one file that `apply` takes; secrets are hidden
#[derive(Debug, clap::Args)]
pub(crate) struct Export {
    /// Only of these kinds: tests, suites, variable-sets, stores, settle-profiles, analyzers, gates
    pub(crate) kinds: Vec<DocumentKind>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Show the last runs of tests, the newest on the right
///
/// One line a test: a mark for each run, how many passed, how long they take, and whether runs of the same revision came to
/// different verdicts. `run --revision` sets the revision.
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
    pub(crate) connection: Connection,
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
