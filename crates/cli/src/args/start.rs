//! The arguments of `init`, `new` and `login`.

use std::{net::SocketAddr, path::PathBuf};

use super::{connection::Connection, format::FormatArgs};

/// Write a first test, for the shop that `qualitytrace demo` opens
///
/// Example: qualitytrace init
#[derive(Debug, clap::Args)]
pub(crate) struct InitArgs {
    /// Where the shop's gateway listens
    #[arg(long, value_name = "ADDRESS", default_value_t = ::demo::HTTP, env = "QUALITYTRACE_DEMO_HTTP")]
    pub(crate) http: SocketAddr,
}

/// Make a test from a curl command: runs it once and proposes specs from the trace it got
///
/// What is proposed has held once and is likely to hold again: answers, services, counts, generous bounds. Ids and times
/// are left out.
///
/// Example: qualitytrace new --output tests/cart.yaml -- curl http://127.0.0.1:8080/cart
#[derive(Debug, clap::Args)]
pub(crate) struct NewArgs {
    /// Where the test is written [default: by method and path, in the folder `qualitytrace`]
    #[arg(long, short, value_name = "FILE", env = "QUALITYTRACE_OUTPUT")]
    pub(crate) output: Option<PathBuf>,
    /// Where OTLP is received, by gRPC and HTTP on each [default: 127.0.0.1:4317 and 127.0.0.1:4318]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_OTLP", value_delimiter = ',')]
    pub(crate) otlp: Vec<SocketAddr>,
    /// The command, such as `curl http://127.0.0.1:11634/products`
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

const LOGIN: &str = "\
Example:
  qualitytrace login --server https://quality.example.com --context work --project shop";

/// Forget a context and its token, the current one by default
///
/// The token stays valid: `token revoke` ends it.
///
/// Example: qualitytrace logout --context work
#[derive(Debug, clap::Args)]
pub(crate) struct LogoutArgs {
    /// The context [default: the current one]
    #[arg(long, value_name = "NAME", env = "QUALITYTRACE_CONTEXT")]
    pub(crate) context: Option<String>,
}

/// Show the caller whom the server knows by the token, and what the token may do
///
/// Example: qualitytrace whoami --format json
#[derive(Debug, clap::Args)]
pub(crate) struct WhoamiArgs {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// Look for what keeps tests from working: on this machine, or with --server or --context between it and a server
///
/// Prints what is wrong first, each with what to do. Changes nothing, and shows no secret. Exit code 1 if something is wrong, else 0.
///
/// Example: qualitytrace doctor --context staging
#[derive(Debug, clap::Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// The contexts that `login` stored: servers, tokens and projects
#[derive(Debug, clap::Subcommand)]
pub(crate) enum ContextCommand {
    /// List the contexts, without their tokens
    ///
    /// Example: qualitytrace context list
    List(FormatArgs),
    /// Make a context the current one, which commands without `--server` and `--context` use
    ///
    /// Example: qualitytrace context use work
    Use {
        /// Its name
        name: String,
    },
    /// Remove a context and its token
    ///
    /// Example: qualitytrace context remove work
    Remove {
        /// Its name
        name: String,
    },
}

/// Store a token for a server in the user's configuration folder, as a context
///
/// The token is that of `--token` or of QUALITYTRACE_TOKEN, else the first line of stdin. The context becomes the current one: commands
/// with the same `--server`, or none, then send its token. `--project` is stored with it.
#[derive(Debug, clap::Args)]
#[command(after_help = LOGIN)]
pub(crate) struct LoginArgs {
    #[command(flatten)]
    pub(crate) connection: Connection,
}
