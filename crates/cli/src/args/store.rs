//! The arguments of `store`.

use std::path::PathBuf;

use super::shared::Variables;

/// The trace stores of files and folders
#[derive(Debug, clap::Subcommand)]
pub(crate) enum StoreCommand {
    Test(StoreTest),
}

/// Try out a trace store: its address, a connection, a query, its lag
///
/// Each step is shown with what was found, or with what to do; the first that fails is the last. Exit codes: 0 it can be queried,
/// 2 it cannot.
///
/// Example: qualitytrace store test jaeger stores.yaml
#[derive(Debug, clap::Args)]
pub(crate) struct StoreTest {
    /// The id or the name of its document
    pub(crate) name: String,
    /// Files, and folders with files that end in .yaml or .yml [default: the folder `qualitytrace`]
    #[arg(value_name = "PATH")]
    pub(crate) paths: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) variables: Variables,
}
