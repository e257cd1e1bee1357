//! The arguments of all commands that send requests to a server.

use std::path::PathBuf;

use model::Secret;

/// The server, the identity of the caller, and the project.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct Connection {
    #[command(flatten)]
    pub(crate) address: ServerAddress,
    /// The project [default: that of the context, else `default`]
    #[arg(long, value_name = "NAME", env = "QUALITYTRACE_PROJECT")]
    pub(crate) project: Option<String>,
}

/// The server, and the identity of the caller.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerAddress {
    /// The server [default: that of the context, else http://127.0.0.1:11633]
    #[arg(long, value_name = "URL", env = "QUALITYTRACE_SERVER")]
    pub(crate) server: Option<String>,
    /// A context that `qualitytrace login` stored: a server, and the token for it [default: the current one]
    #[arg(long, value_name = "NAME", env = "QUALITYTRACE_CONTEXT")]
    pub(crate) context: Option<String>,
    /// The token that is sent to the server [default: that of the context with this server]
    #[arg(long, value_name = "TOKEN", value_parser = secret, env = "QUALITYTRACE_TOKEN", hide_env_values = true)]
    pub(crate) token: Option<Secret>,
    /// A file with the authorities that an https:// server is trusted by, in PEM form [default: those of this machine]
    #[arg(long, hide_short_help = true, value_name = "FILE", env = "QUALITYTRACE_CA")]
    pub(crate) ca: Option<PathBuf>,
    /// Send the token to another machine without TLS too, where the network between is trusted
    #[arg(id = "plain-http", long, hide_short_help = true, env = "QUALITYTRACE_PLAIN_HTTP")]
    pub(crate) plain_http: bool,
}

impl ServerAddress {
    /// Whether it names a server.
    pub(crate) fn is_given(&self) -> bool {
        self.server.is_some() || self.context.is_some()
    }
}

fn secret(text: &str) -> Result<Secret, std::convert::Infallible> {
    Ok(Secret::new(text))
}
