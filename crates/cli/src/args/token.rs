//! The arguments of `token`.

use model::{Project, Role, RunId};

use super::{connection::Connection, format::FormatArgs, shared::Configuration};

/// The tokens of a server
#[derive(Debug, clap::Subcommand)]
pub(crate) enum TokenCommand {
    Create(TokenCreate),
    List(TokenList),
    Revoke(TokenRevoke),
}

/// List the tokens of a server, without the tokens themselves; for admins
///
/// Example: qualitytrace token list --format json
#[derive(Debug, clap::Args)]
pub(crate) struct TokenList {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Revoke tokens of a server: from now on they are refused; for admins
///
/// Example: qualitytrace token revoke 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e
#[derive(Debug, clap::Args)]
pub(crate) struct TokenRevoke {
    /// Their ids, as `token list` has them
    #[arg(required = true, value_name = "TOKEN_ID")]
    pub(crate) tokens: Vec<RunId>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Create a token in the database that the configuration names, and print it; it is shown once
///
/// This needs the configuration with the record's password, and no server: it is how the first admin gets in. Further tokens
/// are made by the API.
#[derive(Debug, clap::Args)]
pub(crate) struct TokenCreate {
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
