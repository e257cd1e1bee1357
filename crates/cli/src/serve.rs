//! Runs the server in the foreground, until a signal stops it.

use std::{
    path::Path,
    pin::pin,
    sync::Arc,
    time::{Duration, SystemTime},
};

use crate::{
    args,
    configuration::{self, LoadedConfig},
    demo_hook,
    exit::Exit,
    log,
    notify::ServiceManager,
    terminal::Terminal,
};
use model::{ErrorCode, World};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use server::{
    Telemetry,
    config::{Config, Environment, Listen, Log, LogFormat},
};
use tokio::{
    runtime,
    signal::unix::{Signal, SignalKind, signal},
    time::sleep,
};

/// The polling interval for the configuration file.
const FILE_POLL: Duration = Duration::from_secs(1);

/// The resources of the process around the server.
pub(crate) struct Outside {
    pub(crate) environment: Environment,
    pub(crate) world: World,
    /// The runtime for all work that a full telemetry buffer may block.
    pub(crate) work: runtime::Handle,
}

/// Raises the limit of open files to the maximum: each connection is one, and 1,024 is a usual default.
fn raise_open_files() {
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    // If it cannot be raised, connections beyond it wait to be accepted.
    if current != maximum
        && let Err(error) = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
    {
        tracing::debug!(%error, "the limit of open files stays as it is");
    }
}

/// Serves until SIGTERM or SIGINT, then shuts down in order. Runs on the control runtime.
pub(crate) async fn serve(
    args: &args::Serve,
    outside: Outside,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let Outside { environment, world, work } = outside;
    let LoadedConfig { config, path, modified: mut seen } =
        configuration::read(&args.configuration, &environment, terminal)?;
    if config.log.format == LogFormat::Json {
        terminal.log_as(log::of_message);
    }
    for note in &config.telemetry.plan.notes {
        terminal.line(&format!("note: {note}"));
    }
    let config = overruled(config, args);
    raise_open_files();
    let mut signals = ServerSignals::listen().map_err(|error| terminal.without_signals(&error))?;
    #[cfg(feature = "planted")]
    if let Some(name) = environment.get("QUALITYTRACE_TEST_PLANT") {
        terminal.line(&format!("planted: {name}: {}", server::plant(name)));
    }
    let (telemetry, levels) = start_telemetry(&config, terminal)?;
    let demo = Some(demo_hook::HOOK);
    let beside = work.clone();
    let handle = server::start(config.clone(), Arc::clone(&telemetry), world, work, demo).await;
    let mut handle = handle.map_err(|error| terminal.refuse(&error))?;
    let addresses = handle.addresses();
    let where_to = where_to(&config, addresses);
    let mut waits = handle.waits_for();
    let manager = Arc::new(ServiceManager::new(&environment, terminal));
    let alive = beside.spawn(Arc::clone(&manager).keep_alive());
    tell_ready(&telemetry, terminal, &where_to, waits.as_deref());
    manager.started(waits.as_deref());
    let mut ready = pin!(handle.ready());
    let mut running = config;
    let exit = loop {
        tokio::select! {
            _ = signals.terminate.recv() => break Exit::Passed,
            _ = signals.interrupt.recv() => break Exit::Passed,
            why = handle.ended() => {
                terminal.error(ErrorCode::Unavailable, format_args!("the server cannot go on: {why}"));
                break Exit::Inconclusive;
            }
            () = &mut ready, if waits.is_some() => {
                waits = None;
                tell_ready(&telemetry, terminal, &where_to, None);
                manager.status(None);
                continue;
            }
            _ = signals.hang_up.recv() => {}
            () = changed(&path, seen) => {}
        }
        seen = configuration::modified(&path);
        manager.reloading();
        let again =
            configuration::read_at(&path, &environment, terminal).map(|it| overruled(it, args));
        let again = again.and_then(|it| reloaded(it, addresses, (&telemetry, &levels), terminal));
        running = taken_over(running, again, terminal);
        manager.reloaded();
    };
    manager.stopping();
    terminal.line(
        "stopping: runs in flight may end, queued telemetry is sent; ask again to stop at once",
    );
    let report = tokio::select! {
        report = handle.shutdown() => report,
        _ = signals.terminate.recv() => return Err(Exit::Inconclusive),
        _ = signals.interrupt.recv() => return Err(Exit::Inconclusive),
    };
    alive.abort();
    tell_undelivered(&report, terminal);
    Ok(exit)
}

/// Reloads telemetry and the log's level by a configuration.
fn reloaded(
    again: Config,
    addresses: Listen,
    (telemetry, levels): (&Telemetry, &log::Levels),
    terminal: &Terminal,
) -> Result<Config, Exit> {
    telemetry.reload(&again, addresses).map_err(|error| terminal.refuse(&error))?;
    // It fails only after the subscriber is dropped, which happens at the end of the process.
    let _ended = levels.reload(log::targets(again.log.level));
    tell_not_sending(telemetry, terminal);
    telemetry.tell_reloaded();
    Ok(again)
}

/// Returns the listen addresses as text.
fn where_to(config: &Config, addresses: Listen) -> String {
    let scheme = if config.tls.api.is_some() { "https" } else { "http" };
    let Listen { http, otlp_grpc, otlp_http, probes } = addresses;
    let probes = probes.map(|probes| format!(", probes http://{probes}")).unwrap_or_default();
    let otlp = match config.roles.ingest {
        true => format!(", OTLP {otlp_grpc} (gRPC) and {otlp_http} (HTTP)"),
        false => String::new(),
    };
    let api = if config.roles.api { "API" } else { "probes and metrics" };
    format!("{api} {scheme}://{http}{otlp}{probes}")
}

/// Starts the server's own telemetry and its log.
fn start_telemetry(
    config: &Config,
    terminal: &Terminal,
) -> Result<(Arc<Telemetry>, log::Levels), Exit> {
    let telemetry = Telemetry::start(config, server::host());
    let telemetry = Arc::new(telemetry.map_err(|error| terminal.refuse(&error))?);
    let levels = log::start(config.log, &telemetry);
    tell_not_sending(&telemetry, terminal);
    Ok((telemetry, levels))
}

/// Prints and logs where the server listens, and whether it is ready.
fn tell_ready(telemetry: &Telemetry, terminal: &Terminal, where_to: &str, waits: Option<&str>) {
    terminal.result(&match waits {
        None => format!("ready: {where_to}"),
        Some(why) => format!("started: {where_to}, not ready: {why}"),
    });
    telemetry.tell_ready(waits);
}

/// Prints which exporters do not send, and how to configure them so that they do.
fn tell_not_sending(telemetry: &Telemetry, terminal: &Terminal) {
    for own in telemetry.not_sending() {
        terminal.line(&format!("warning: {own}"));
    }
}

/// Prints the telemetry that did not reach its destination.
fn tell_undelivered(report: &telemetry::Report, terminal: &Terminal) {
    for counts in report.exporters.iter().filter(|counts| counts.delivered < counts.accepted) {
        terminal.line(&format!(
            "telemetry: `{}` delivered {} of {}; {} wait on disk for the next start, {} were refused, {} dropped{}",
            counts.exporter,
            counts.delivered,
            counts.accepted,
            counts.queued,
            counts.rejected,
            counts.dropped,
            counts.trouble.as_ref().map(|why| format!(" ({why})")).unwrap_or_default(),
        ));
    }
}

/// Returns the configuration with the overrides of the flags.
fn overruled(mut config: Config, args: &args::Serve) -> Config {
    config.roles = args.roles.unwrap_or(config.roles);
    let listen = &mut config.listen;
    listen.http = args.http.unwrap_or(listen.http);
    listen.otlp_grpc = args.otlp_grpc.unwrap_or(listen.otlp_grpc);
    listen.otlp_http = args.otlp_http.unwrap_or(listen.otlp_http);
    config
}

/// Returns the configuration that applies from now on. Only telemetry and the log level change while the server runs; an
/// invalid configuration changes nothing.
fn taken_over(running: Config, again: Result<Config, Exit>, terminal: &Terminal) -> Config {
    let Ok(again) = again else {
        terminal
            .line("the configuration is not taken over: the server goes on with the last good one");
        return running;
    };
    let level = running.log.level;
    let same_rest = Config {
        telemetry: running.telemetry.clone(),
        log: Log { level, ..again.log },
        ..again.clone()
    };
    terminal.line(if same_rest == running {
        "the configuration was taken over"
    } else {
        "of the configuration, telemetry and the log's level were taken over; the rest needs a restart"
    });
    again
}

/// Waits until the file has changed. A file that is missing for a moment is being written.
async fn changed(path: &Path, seen: Option<SystemTime>) {
    loop {
        sleep(FILE_POLL).await;
        let now = configuration::modified(path);
        if now.is_some() && now != seen {
            return;
        }
    }
}

/// The signals that control the server.
struct ServerSignals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl ServerSignals {
    fn listen() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }
}
