//! The arguments of `init`, `new`, `doctor` and `login`.

use std::{net::SocketAddr, path::PathBuf, str::FromStr, time::Duration};

use url::Url;

use super::{
    connection::Connection,
    format::FormatArgs,
    run::{StartFlags, duration},
};

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

/// The arguments of `doctor` about a system, which a server does not have.
const OF_SYSTEM: [&str; 7] =
    ["url", "command", "ready", "ready_timeout", "otlp", "protocol", "timeout"];

/// The help of `--ready`, where there is no test.
const READY: &str = "When the command is ready: an http:// URL that answers below 400, tcp:HOST:PORT that accepts a connection, or \
                     log:REGEX that a line of its output matches [default: the host and port of the URL accept a connection]";

/// Look for what keeps tests from working: on this machine, with a URL or COMMAND in a system under test, with --server or --context
/// between this machine and a server
///
/// With a URL it sends one GET request, as a trigger of a test does, receives the spans, and states what is missing of the trace and
/// why. COMMAND starts the system as `run` does; without a URL, the port on which COMMAND listens is found.
///
/// Prints what is wrong first, each with what to do and a page about it. Stores nothing, and shows no secret. Exit code 1 if something
/// is wrong, else 0.
///
/// Example: qualitytrace doctor http://127.0.0.1:8080/cart -- npm start
#[derive(Debug, clap::Args)]
#[command(
    mut_arg("server", |arg| arg.conflicts_with_all(OF_SYSTEM)),
    mut_arg("context", |arg| arg.conflicts_with_all(OF_SYSTEM)),
    // Not `mut_arg`, which moves an argument behind all others.
    mut_args(|arg| if arg.get_id() == "ready" { arg.help(READY) } else { arg }),
)]
pub(crate) struct DoctorArgs {
    /// Where the system under test is requested, once, by GET [default: with COMMAND, the URL of `--ready`, else `/` of the port on which
    /// COMMAND listens]
    #[arg(value_name = "URL", value_parser = TargetUrl::from_str)]
    pub(crate) url: Option<TargetUrl>,
    #[command(flatten)]
    pub(crate) system: StartFlags,
    /// How long the trace may take, from the response until it is complete
    #[arg(
        long,
        value_name = "TIME",
        value_parser = duration,
        default_value = "15s",
        env = "QUALITYTRACE_TIMEOUT"
    )]
    pub(crate) timeout: Duration,
    /// Write what a bug report needs into this file, as JSON to read before it is sent: the findings, this version and system, names of
    /// variables, keys of the project file; no secrets, no headers, no output of COMMAND
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_BUNDLE")]
    pub(crate) bundle: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) output: FormatArgs,
    #[command(flatten)]
    pub(crate) connection: Connection,
}

/// The URL of a request. It may contain secrets: a password, a query.
#[derive(Clone)]
pub(crate) struct TargetUrl(pub(crate) Url);

impl FromStr for TargetUrl {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match Url::parse(text) {
            Ok(url) if matches!(url.scheme(), "http" | "https") && url.has_host() => Ok(Self(url)),
            _ => Err("expected an `http://` or `https://` URL, such as `http://127.0.0.1:8080/`"),
        }
    }
}

impl TargetUrl {
    /// Returns the URL without what may be secret.
    pub(crate) fn shown(&self) -> String {
        let mut url = self.0.clone();
        url.set_query(None);
        url.set_fragment(None);
        // Every URL with a host can have a user, and so can have none.
        let _none = url.set_username("").and_then(|()| url.set_password(None));
        url.to_string()
    }
}

/// Shows no secret.
impl std::fmt::Debug for TargetUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.shown())
    }
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
