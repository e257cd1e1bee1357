//! What can be typed.

use std::{net::SocketAddr, path::PathBuf};

use clap::{Parser, Subcommand};

use crate::reports::Target;

/// Trace-based testing for distributed systems.
///
/// Exit codes: 0 passed, 1 failed, 2 usage, configuration or document error, 3 inconclusive.
#[derive(Debug, Parser)]
#[command(name = "qualitytrace", version)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Run(Run),
    Apply(Apply),
    Serve(Serve),
    #[command(subcommand)]
    Telemetry(Telemetry),
}

/// Run the tests of a file: here, or on a server
///
/// Here: receives OTLP itself, fires each test's trigger, waits until the trace is whole, judges it.
#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// A YAML file with one or more tests
    pub(crate) file: PathBuf,
    /// Run on this server instead, such as http://127.0.0.1:11633
    #[arg(long, value_name = "URL", env = "QUALITYTRACE_SERVER")]
    pub(crate) server: Option<String>,
    #[command(flatten)]
    pub(crate) reports: Reports,
    /// Where a local run receives OTLP by gRPC
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4317",
        env = "QUALITYTRACE_OTLP_GRPC"
    )]
    pub(crate) otlp_grpc: SocketAddr,
    /// Where a local run receives OTLP by HTTP
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value = "127.0.0.1:4318",
        env = "QUALITYTRACE_OTLP_HTTP"
    )]
    pub(crate) otlp_http: SocketAddr,
}

/// Keep the tests of a file on a server
#[derive(Debug, clap::Args)]
pub(crate) struct Apply {
    /// A YAML file with one or more tests
    pub(crate) file: PathBuf,
    /// The server
    #[arg(
        long,
        value_name = "URL",
        default_value = "http://127.0.0.1:11633",
        env = "QUALITYTRACE_SERVER"
    )]
    pub(crate) server: String,
}

/// Run the server
#[derive(Debug, clap::Args)]
pub(crate) struct Serve {
    #[command(flatten)]
    pub(crate) configuration: Configuration,
    /// Where the API listens; loopback only [default: 127.0.0.1 and `server.httpPort`]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_HTTP")]
    pub(crate) http: Option<SocketAddr>,
    /// Where OTLP is received by gRPC; loopback only [default: 127.0.0.1:4317]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_OTLP_GRPC")]
    pub(crate) otlp_grpc: Option<SocketAddr>,
    /// Where OTLP is received by HTTP; loopback only [default: 127.0.0.1:4318]
    #[arg(long, value_name = "ADDRESS", env = "QUALITYTRACE_OTLP_HTTP")]
    pub(crate) otlp_http: Option<SocketAddr>,
}

/// Where the server's own telemetry goes
#[derive(Debug, Subcommand)]
pub(crate) enum Telemetry {
    /// Print what a configuration will do, secrets hidden, without doing it
    Plan(Configuration),
    /// Send one span, log and metric to each destination, and say what came of it
    Probe(Configuration),
}

/// Which configuration is meant.
#[derive(Debug, clap::Args)]
pub(crate) struct Configuration {
    /// The configuration file, YAML or TOML by its extension [default: `quality-trace-config.{yaml,yml,toml}` or
    /// `tracetest-config.yaml`, in the working folder, the user's or the system's configuration folder]
    #[arg(long, value_name = "FILE", env = "QUALITYTRACE_CONFIG")]
    pub(crate) config: Option<PathBuf>,
}

/// How and where outcomes are written.
#[derive(Debug, clap::Args)]
pub(crate) struct Reports {
    /// FORMAT or FORMAT=FILE, several times; `-` is stdout. Formats: pretty, plain, json, ndjson, junit, tap, markdown,
    /// github [default: pretty]
    #[arg(
        long = "report",
        value_name = "FORMAT[=FILE]",
        env = "QUALITYTRACE_REPORT",
        value_delimiter = ','
    )]
    pub(crate) targets: Vec<Target>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::Args;

    #[test]
    fn the_server_knows_every_flag_that_has_a_variable() {
        let mut variables = Vec::new();
        let mut commands = vec![Args::command()];
        while let Some(command) = commands.pop() {
            commands.extend(command.get_subcommands().cloned());
            let named = command.get_arguments().filter_map(|argument| argument.get_env());
            variables.extend(named.filter_map(|name| name.to_str()).map(str::to_owned));
        }
        variables.sort_unstable();
        variables.dedup();
        assert_eq!(variables, server::config::FLAGS);
    }
}
