//! The server in the foreground, until it is told to stop.

use model::{Faulty, World};
use server::config;
use tokio::signal::unix::{SignalKind, signal};

use crate::{args, documents, exit::Exit, terminal::Terminal};

/// Serves until SIGTERM or SIGINT, then shuts down in order.
pub(crate) async fn serve(args: &args::Serve, world: World, terminal: &Terminal) -> Exit {
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_target(false).init();
    let text = match documents::read(&args.config, terminal) {
        Ok(text) => text,
        Err(exit) => return exit,
    };
    let (config, diagnostics) = config::read(&text);
    terminal.diagnostics(&diagnostics);
    let Some(mut config) = config else { return Exit::Refused };
    let listen = &mut config.listen;
    listen.http = args.http.unwrap_or(listen.http);
    listen.otlp_grpc = args.otlp_grpc.unwrap_or(listen.otlp_grpc);
    listen.otlp_http = args.otlp_http.unwrap_or(listen.otlp_http);
    let (mut terminated, mut interrupted) =
        match (signal(SignalKind::terminate()), signal(SignalKind::interrupt())) {
            (Ok(terminated), Ok(interrupted)) => (terminated, interrupted),
            (Err(error), _) | (_, Err(error)) => {
                terminal.err(&format!("error: signals cannot be heard: {error}"));
                return Exit::Inconclusive;
            }
        };
    let handle = match server::start(config, world).await {
        Ok(handle) => handle,
        Err(error) => {
            terminal.err(&format!("error: {error}"));
            return error.fault().into();
        }
    };
    let addresses = handle.addresses();
    terminal.out(&format!(
        "ready: API http://{}, OTLP {} (gRPC) and {} (HTTP)",
        addresses.http, addresses.otlp_grpc, addresses.otlp_http
    ));
    tokio::select! {
        _ = terminated.recv() => {}
        _ = interrupted.recv() => {}
    }
    terminal.err("stopping: runs in flight may end, queued telemetry is sent");
    handle.shutdown().await;
    Exit::Passed
}
