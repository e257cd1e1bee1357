//! The arguments of `token`.

use model::{Project, Role, RunId};

use super::{
    connection::{Connection, ServerAddress},
    format::FormatArgs,
    shared::Configuration,
};

const CREATE: &str = "\
Examples:
  qualitytrace token create --config quality-trace-config.yaml
  qualitytrace token create --context work --role editor --name ci --days 30";

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

/// Create a token, and print it; it is shown once
///
/// With `--server` or `--context` the server creates it, for an admin. Otherwise it is written to the database that the
/// configuration names, with the password that is there, and no server is needed: it is how the first admin gets in.
#[derive(Debug, clap::Args)]
#[command(after_help = CREATE)]
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
    #[command(flatten)]
    pub(crate) address: ServerAddress,
}

/// The sessions of people on a server: one's own, and for admins those of all
#[derive(Debug, clap::Subcommand)]
pub(crate) enum SessionCommand {
    List(SessionList),
    End(SessionEnd),
}

/// List the sessions of people who logged in: one's own, which a token has none of
///
/// Example: qualitytrace session list --all
#[derive(Debug, clap::Args)]
pub(crate) struct SessionList {
    /// Those of all people; for admins
    #[arg(long, env = "QUALITYTRACE_ALL")]
    pub(crate) all: bool,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// End sessions: their browsers have to log in again
///
/// Example: qualitytrace session end 0192f0c1-6d3e-7c4a-9b1e-3f0a2b4c5d6e
#[derive(Debug, clap::Args)]
pub(crate) struct SessionEnd {
    /// Their ids, as `session list` has them
    #[arg(required = true, value_name = "SESSION_ID")]
    pub(crate) sessions: Vec<RunId>,
    #[command(flatten)]
    pub(crate) connection: Connection,
}
