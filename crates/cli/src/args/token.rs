//! The arguments of `token`.

use model::{Project, Role};

use super::shared::Configuration;

/// The tokens of a server, for operators who have its configuration
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    Create(Create),
}

/// Create a token in the database that the configuration names, and print it; it is shown once
///
/// This needs the configuration with the record's password, and no server: it is how the first admin gets in. Further tokens
/// are made by the API.
#[derive(Debug, clap::Args)]
pub(crate) struct Create {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// What people call it
    #[arg(long, default_value = "admin", env = "QUALITYTRACE_TOKEN_NAME")]
    pub(crate) name: String,
    /// What its bearer may do: ingest (send spans and nothing else), viewer, editor or admin
    #[arg(long, default_value = "admin", env = "QUALITYTRACE_TOKEN_ROLE")]
    pub(crate) role: Role,
    /// Only in this project; several times for several
    #[arg(long, value_name = "PROJECT", value_delimiter = ',', env = "QUALITYTRACE_TOKEN_PROJECT")]
    pub(crate) project: Vec<Project>,
    /// For how many days it is good
    #[arg(
        long,
        default_value_t = 90,
        value_parser = clap::value_parser!(u16).range(1..=3660),
        env = "QUALITYTRACE_TOKEN_DAYS"
    )]
    pub(crate) days: u16,
}
