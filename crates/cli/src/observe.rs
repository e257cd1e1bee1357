//! `telemetry plan` and `telemetry probe`: what a configuration will do, and whether it would work.

use server::config::Environment;

use crate::{args, configuration, exit::Exit, terminal::Terminal};

/// Carries out `telemetry …`.
pub(crate) fn telemetry(
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
        args::Telemetry::Probe(args) => {
            let configured = configuration::read(args, environment, terminal)?;
            let probed = server::probe(&configured.config, &server::host());
            if probed.is_empty() {
                terminal.result("no exporter is used: nothing leaves this server");
            }
            let mut exits = Vec::new();
            for probe in probed {
                terminal.result(&probe.to_string());
                exits.push(if probe.arrived() { Exit::Passed } else { Exit::Failed });
            }
            Ok(Exit::over(exits))
        }
    }
}
