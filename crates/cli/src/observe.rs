//! `config check`, `telemetry plan`, `telemetry probe` and `telemetry status`: whether a configuration is valid, what it
//! would do, whether its destinations accept data, and the status of a running server.

use server::config::Environment;

use crate::{args, configuration, exit::Exit, remote, terminal::Terminal};

/// Runs `config …`.
pub(crate) fn config(
    args: &args::Config,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let args::Config::Check(args) = args;
    let configured = configuration::read(args, environment, terminal)?;
    server::validate(&configured.config).map_err(|error| terminal.refuse(&error))?;
    for note in &configured.config.telemetry.plan.notes {
        terminal.line(&format!("note: {note}"));
    }
    for own in server::not_sending(&configured.config.telemetry, configured.config.listen) {
        terminal.line(&format!("warning: {own}"));
    }
    terminal.result(&format!("`{}` is right", configured.path.display()));
    Ok(Exit::Passed)
}

/// Runs `telemetry …`.
pub(crate) async fn telemetry(
    args: &args::Telemetry,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    match args {
        args::Telemetry::Plan(args) => {
            let configured = configuration::read(args, environment, terminal)?;
            terminal.result(server::describe(&configured.config).trim_end());
            Ok(Exit::Passed)
        }
        args::Telemetry::Status(args) => remote::exporters(args, environment, terminal).await,
        args::Telemetry::Probe(args) => {
            let configured = configuration::read(args, environment, terminal)?;
            let (probed, not_sending) = server::probe(&configured.config, &server::host());
            if probed.is_empty() {
                terminal.result("no exporter sends: nothing leaves this server");
            }
            let mut exits = Vec::new();
            for own in not_sending {
                terminal.result(&format!("not sending: {own}"));
                exits.push(Exit::Failed);
            }
            for probe in probed {
                terminal.result(&probe.to_string());
                exits.push(if probe.arrived() { Exit::Passed } else { Exit::Failed });
            }
            Ok(Exit::over(exits))
        }
    }
}
