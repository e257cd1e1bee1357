//! `demo`: runs a small instrumented shop as an example, until a signal stops it.

use std::{env, io, net::SocketAddr};

use ::demo::{Config, Fault, Program};
use model::{ErrorCode, World};
use telemetry::config::Environment;
use tokio::signal::unix::{Signal, SignalKind, signal};

use crate::{exit::Exit, terminal::Terminal};

/// Start a small instrumented shop to try things on
///
/// Five services (gateway, orders, stock, payments, shipping) with a queue and a pretend database. They export to
/// 127.0.0.1:4317, where `qualitytrace run` receives; they also work if nothing listens there.
///
/// Example: qualitytrace demo
#[derive(Debug, clap::Args)]
pub(crate) struct DemoArgs {
    /// Where the gateway listens
    #[arg(long, value_name = "ADDRESS", default_value_t = ::demo::HTTP, env = "QUALITYTRACE_DEMO_HTTP")]
    http: SocketAddr,
    /// Where spans go, by OTLP over gRPC [default: OpenTelemetry's variables, then http://127.0.0.1:4317]
    #[arg(long, value_name = "URL", env = "QUALITYTRACE_DEMO_OTLP")]
    otlp: Option<String>,
    /// What is wrong with the shop, several times: n-plus-one, lost-context, retry-storm, slow-database, late-spans
    #[arg(
        long = "fault",
        value_name = "NAME",
        env = "QUALITYTRACE_DEMO_FAULT",
        value_delimiter = ','
    )]
    faults: Vec<Fault>,
    /// Each service in a process of its own
    #[arg(long, env = "QUALITYTRACE_DEMO_PROCESSES")]
    processes: bool,
}

/// One service of the shop, for `demo --processes`
#[derive(Debug, clap::Args)]
pub(crate) struct Service {
    /// Which one, for people who look at a list of processes
    _name: String,
}

/// The subcommand that starts the program as one service of the shop.
pub(crate) const SERVICE: &str = "demo-service";

/// Runs one service of the shop for `demo --processes`, until its input ends or SIGTERM.
pub(crate) async fn service(world: World, terminal: &Terminal) -> Result<Exit, Exit> {
    let (mut terminate, _interrupt) = signals(terminal)?;
    // Ctrl-C reaches the complete process group. So this process ignores SIGINT, and the parent shuts the shop down in order.
    let told = async {
        terminate.recv().await;
    };
    let served = ::demo::serve_one(tokio::io::stdin(), tokio::io::stdout(), world, told).await;
    served.map(|()| Exit::Passed).map_err(|error| terminal.refuse(&error))
}

fn signals(terminal: &Terminal) -> Result<(Signal, Signal), Exit> {
    let heard = |kind| signal(kind).map_err(|error| terminal.without_signals(&error));
    Ok((heard(SignalKind::terminate())?, heard(SignalKind::interrupt())?))
}

/// Runs the shop until SIGTERM or SIGINT.
pub(crate) async fn demo(
    args: &DemoArgs,
    environment: Environment,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let (mut terminate, mut interrupt) = signals(terminal)?;
    let config = Config {
        http: args.http,
        otlp: args.otlp.clone(),
        faults: args.faults.clone(),
        environment,
        processes: args.processes.then(itself).transpose().map_err(|error| {
            terminal.error(
                ErrorCode::Internal,
                format_args!("this program cannot be found again: {error}"),
            );
            Exit::Refused
        })?,
    };
    let shop = ::demo::start(config, world).await.map_err(|error| terminal.refuse(&error))?;
    terminal.report(&welcome(args, shop.http()));
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tokio::select! {
        () = shop.shutdown() => Ok(Exit::Passed),
        _ = terminate.recv() => Err(Exit::Inconclusive),
        _ = interrupt.recv() => Err(Exit::Inconclusive),
    }
}

/// Returns the command by which this program starts itself as one service.
fn itself() -> io::Result<Program> {
    Ok(Program { path: env::current_exe()?, arguments: vec![SERVICE.into()] })
}

/// Returns the text for a new user: the address of the shop, and the next commands.
fn welcome(args: &DemoArgs, http: SocketAddr) -> String {
    let mut text =
        format!("the shop is open at http://{http}: gateway, orders, stock, payments, shipping\n");
    for fault in &args.faults {
        text.push_str(&format!("wrong with it: {} ({fault})\n", fault.about()));
    }
    text.push_str(&format!(
        "
  qualitytrace init                          writes a first test
  qualitytrace run                           runs it
  curl http://{http}/products
  curl http://{http}/orders --json '{ORDER}'

Ctrl-C or SIGTERM closes it.
"
    ));
    text
}

/// An order that the shop accepts.
pub(crate) const ORDER: &str =
    r#"{"customer":"ada","lines":[{"sku":"tea","quantity":2},{"sku":"mug","quantity":1}]}"#;
