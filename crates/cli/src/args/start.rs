//! The arguments of `init`, `new` and `login`.

use std::{net::SocketAddr, path::PathBuf};

use super::shared::Identity;

/// Write a first test, for the shop that `qualitytrace demo` opens
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

/// Keep a token for a server, in the user's configuration folder
///
/// The token is that of `--token` or of QUALITYTRACE_TOKEN, else the first line of stdin. Commands with the same `--server`, or
/// none, then show it.
#[derive(Debug, clap::Args)]
pub(crate) struct LoginArgs {
    /// The server [default: http://127.0.0.1:11633]
    #[arg(long, value_name = "URL", env = "QUALITYTRACE_SERVER")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) identity: Identity,
}
