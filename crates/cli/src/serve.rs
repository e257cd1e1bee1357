//! The server in the foreground, until it is told to stop.

use model::World;
use server::config;
use tokio::signal::unix::{SignalKind, signal};

use crate::{args, documents, exit::Exit, terminal::Terminal};

/// Serves until SIGTERM or SIGINT, then shuts down in order.
pub(crate) async fn serve(
    args: &args::Serve,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    tracing_subscriber::fmt()
        .with_writer(std::io::stderr)
        .with_target(false)
        .with_max_level(tracing::Level::WARN)
        .init();
    let text = documents::read(&args.config, terminal)?;
    let (config, diagnostics) = config::read(&text);
    terminal.diagnostics(&diagnostics);
    let mut config = config.ok_or(Exit::Refused)?;
    let listen = &mut config.listen;
    listen.http = args.http.unwrap_or(listen.http);
    listen.otlp_grpc = args.otlp_grpc.unwrap_or(listen.otlp_grpc);
    listen.otlp_http = args.otlp_http.unwrap_or(listen.otlp_http);
    let (mut terminated, mut interrupted) =
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminated), Ok(interrupted)) => (terminated, interrupted),
            (Err(error), _) | (_, Err(error)) => {
                terminal.line(&format!("error: signals cannot be heard: {error}"));
                return Err(Exit::Inconclusive);
            }
        };
    let handle = server::start(config, world).await;
    let mut handle = handle.map_err(|error| terminal.refuse(&error))?;
    let addresses = handle.addresses();
    terminal.result(&format!(
        "ready: API http://{}, OTLP {} (gRPC) and {} (HTTP)",
        addresses.http, addresses.otlp_grpc, addresses.otlp_http
    ));
    let mut asked_to_stop = async || {
        tokio::select! {
            _ = terminated.recv() => {}
            _ = interrupted.recv() => {}
        }
    };
    let exit = tokio::select! {
        () = asked_to_stop() => Exit::Passed,
        why = handle.ended() => {
            terminal.line(&format!("error: the server cannot go on: {why}"));
            Exit::Inconclusive
        }
    };
    terminal.line(
        "stopping: runs in flight may end, queued telemetry is sent; ask again to stop at once",
    );
    tokio::select! {
        () = handle.shutdown() => Ok(exit),
        () = asked_to_stop() => Err(Exit::Inconclusive),
    }
}
