//! Real servers for the tests: installed, started, located and stopped, one set per checkout.
//!
//! A [`Service`] only describes itself; this module starts, awaits, records and stops all of them in the same way. [`Programs`]
//! are only installed, and each test starts them itself. The data of a service is deleted when it stops: every start begins
//! empty. Its log stays until the next start. Linux only, because `/proc` shows whether a process is still the one that was
//! started.

mod clickhouse;
mod collector;
mod contract;
pub(crate) mod golang;
mod jaeger;
mod keycloak;
mod linters;
mod maven;
mod nats;
mod ports;
mod postgres;
mod process;
mod prometheus;
mod record;
mod sdks;
mod search;
mod tempo;
mod zipkin;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{cache, machine::Machine, spawn};
pub(crate) use linters::linters;
use process::Process;
use record::Record;

/// A kind of server. Implementations own no state: all of it is in the folder that they receive.
pub(crate) trait Service {
    fn name(&self) -> &'static str;

    /// Installs the server's program on this machine. The first time may take minutes, which it then reports.
    fn install(&self, machine: &Machine) -> Result<()>;

    /// Whether commands that do not name the service use it. A server with a very long installation returns false until it is
    /// installed, and a user installs it by its name.
    fn is_used_unnamed(&self, _: &Machine) -> bool {
        true
    }

    /// Returns the folder for the server's data: created empty before each start, removed after each stop.
    fn data(&self, machine: &Machine) -> PathBuf;

    /// Describes one start, on currently free ports. The program MUST stay in the foreground.
    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch>;

    /// Returns the timeout for readiness.
    fn ready_within(&self) -> Duration {
        READY_WITHIN
    }

    /// Returns the signal that requests an orderly and quick shutdown.
    fn stop_signal(&self) -> &'static str {
        "TERM"
    }
}

/// Programs that tests do not share.
pub(crate) struct Programs {
    name: &'static str,
    /// Installs them on this machine, and returns their paths.
    install: fn(&Machine) -> Result<ServiceVariables>,
    /// Returns their paths, if all of them are installed on this machine.
    installed: fn(&Machine) -> Option<ServiceVariables>,
}

/// A name on the command line or in a step of `ci`.
#[derive(Clone, Copy)]
enum Part {
    Service(&'static dyn Service),
    Programs(&'static Programs),
}

/// The environment variables by which tests reach the services: names and values.
pub(crate) type Variables = [(String, String)];

/// The variables of one part.
type ServiceVariables = Vec<(&'static str, String)>;

/// One start of a service.
pub(crate) struct Launch {
    command: Command,
    ready: Box<dyn Fn() -> bool>,
    /// The first address that it listens on.
    address: String,
    /// How a user connects to it.
    connect: String,
    /// How the tests connect to it.
    variables: ServiceVariables,
}

const ALL: &[Part] = &[
    Part::Service(&postgres::Postgres),
    Part::Service(&collector::Collector),
    Part::Service(&keycloak::Keycloak),
    Part::Service(&jaeger::Jaeger),
    Part::Service(&tempo::Tempo),
    Part::Service(&search::OPENSEARCH),
    Part::Service(&search::ELASTICSEARCH),
    Part::Service(&clickhouse::ClickHouse),
    Part::Service(&zipkin::Zipkin),
    Part::Programs(&sdks::SDKS),
    Part::Programs(&contract::CONTRACT),
    Part::Programs(&prometheus::PROMETHEUS),
    Part::Programs(&nats::NATS),
    Part::Programs(&linters::LINTERS),
];

/// Another process can bind a free port before the server does; then the start tries other ports.
const START_ATTEMPTS_MAX: u32 = 3;

const READY_WITHIN: Duration = Duration::from_secs(30);

const STOPPED_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn help() -> String {
    let names: Vec<_> = ALL.iter().map(|part| format!("  {}\n", part.name())).collect();
    format!(
        "Services (where none is named all of them; trace stores only if they are installed):\n{}",
        names.concat()
    )
}

/// `services up`: starts stopped services, and installs programs.
pub(crate) fn up(machine: &Machine, names: &[&str]) -> Result<()> {
    for part in chosen(names)? {
        match part {
            Part::Service(service) if names.is_empty() && is_skipped(machine, service) => {}
            Part::Service(service) => {
                let (record, new) = ensure(machine, service)?;
                let how = if new { "started" } else { "already running" };
                let Record { process, connect, .. } = record;
                println!("{}: {how}, process {}: {connect}", part.name(), process.pid);
            }
            Part::Programs(programs) => {
                for (_, path) in (programs.install)(machine)? {
                    println!("{}: installed: {path}", part.name());
                }
            }
        }
    }
    println!("tests find them by: eval \"$(cargo xtask services env)\"");
    Ok(())
}

/// `services down`: stops the services that this checkout started.
pub(crate) fn down(machine: &Machine, names: &[&str]) -> Result<()> {
    for part in chosen(names)? {
        // Programs have nothing to stop: the tests that started them stop them.
        if let Part::Service(service) = part {
            let how = if stop(machine, service)? { "stopped" } else { "was not running" };
            println!("{}: {how}", part.name());
        }
    }
    Ok(())
}

/// `services env`: prints the variables of running services and installed programs, for a shell.
pub(crate) fn env(machine: &Machine, names: &[&str]) -> Result<()> {
    let mut any = false;
    for part in chosen(names)? {
        match part.variables(machine) {
            Some(variables) => {
                any = true;
                for (name, value) in variables {
                    println!("export {name}={}", quoted(&value));
                }
            }
            None if names.is_empty() => {}
            None => bail!(
                "`{0}` is not {1}; see to it with `cargo xtask services up {0}`",
                part.name(),
                part.state()
            ),
        }
    }
    if !any {
        bail!("no service is running; start them with `cargo xtask services up`");
    }
    Ok(())
}

/// `services status`: prints a table.
pub(crate) fn status(machine: &Machine, names: &[&str]) -> Result<()> {
    println!("{:<12} {:<9} {:>8}  {:<22} LOG", "NAME", "STATE", "PID", "ADDRESS");
    for part in chosen(names)? {
        let (record, log) = match part {
            Part::Service(service) => (running(machine, service), Some(log(machine, service))),
            Part::Programs(_) => (None, None),
        };
        let up = part.variables(machine).is_some();
        let state = match part {
            _ if up => part.state(),
            Part::Service(_) => "stopped",
            Part::Programs(_) => "absent",
        };
        let none = || "-".to_owned();
        let pid = record.as_ref().map_or_else(none, |record| record.process.pid.to_string());
        let address = record.map_or_else(none, |record| record.address);
        let log = log.filter(|log| log.exists()).map_or_else(none, |log| log.display().to_string());
        println!("{:<12} {state:<9} {pid:>8}  {address:<22} {log}", part.name());
    }
    Ok(())
}

impl Part {
    fn name(self) -> &'static str {
        match self {
            Self::Service(service) => service.name(),
            Self::Programs(programs) => programs.name,
        }
    }

    /// Returns the name of its usable state.
    fn state(self) -> &'static str {
        match self {
            Self::Service(_) => "running",
            Self::Programs(_) => "installed",
        }
    }

    /// Returns its variables, if it is usable now.
    fn variables(self, machine: &Machine) -> Option<Vec<(String, String)>> {
        match self {
            Self::Service(service) => running(machine, service).map(|record| record.variables),
            Self::Programs(programs) => (programs.installed)(machine).map(owned),
        }
    }
}

/// Runs `work` with these services up, and passes it their variables; stops afterwards the services that it started. The user did
/// not name them on the command line: a service that is only installed by its name is skipped, with a message, if it is missing.
pub(crate) fn with(
    machine: &Machine,
    names: &[&str],
    work: impl FnOnce(&Variables) -> Result<()>,
) -> Result<()> {
    let mut ours = Vec::new();
    let result = (|| {
        let mut variables = Vec::new();
        // No name means no service here: the caller names the services that its work needs.
        for part in if names.is_empty() { Vec::new() } else { chosen(names)? } {
            match part {
                Part::Service(service) if is_skipped(machine, service) => {}
                Part::Service(service) => {
                    let (record, new) = ensure(machine, service)?;
                    if new {
                        ours.push(service);
                    }
                    variables.extend(record.variables);
                }
                Part::Programs(programs) => variables.extend(owned((programs.install)(machine)?)),
            }
        }
        work(&variables)
    })();
    for service in ours {
        if let Err(error) = stop(machine, service) {
            eprintln!("warning: {} could not be stopped: {error:#}", service.name());
        }
    }
    result
}

/// Whether a service is skipped unless the user names it; prints that.
fn is_skipped(machine: &Machine, service: &dyn Service) -> bool {
    let is_used = service.is_used_unnamed(machine);
    if !is_used {
        let name = service.name();
        eprintln!(
            "{name}: skipped, because it is not installed; `cargo xtask services up {name}` installs it"
        );
    }
    !is_used
}

fn chosen(names: &[&str]) -> Result<Vec<Part>> {
    if let Some(unknown) = names.iter().find(|name| ALL.iter().all(|part| part.name() != **name)) {
        bail!("`{unknown}` is not a service; `cargo xtask --help` lists them");
    }
    Ok(ALL
        .iter()
        .copied()
        .filter(|part| names.is_empty() || names.contains(&part.name()))
        .collect())
}

/// Returns the running service, and starts it if necessary; and whether this call started it.
fn ensure(machine: &Machine, service: &'static dyn Service) -> Result<(Record, bool)> {
    let _lock = lock(machine)?;
    if let Some(record) = running(machine, service) {
        return Ok((record, false));
    }
    service.install(machine)?;
    let mut attempt = 1;
    loop {
        match start(machine, service) {
            Ok(record) => return Ok((record, true)),
            Err(error) if attempt == START_ATTEMPTS_MAX => return Err(error),
            Err(_) => attempt += 1,
        }
    }
}

fn start(machine: &Machine, service: &dyn Service) -> Result<Record> {
    let name = service.name();
    let (data, log) = (service.data(machine), log(machine, service));
    cache::remove(&data)?;
    fs::create_dir_all(&data).with_context(|| format!("`{}` cannot be made", data.display()))?;
    if log.exists() {
        fs::remove_file(&log)?;
    }
    let Launch { mut command, ready, address, connect, variables } =
        service.launch(machine, &data)?;
    // In its own process group, so that an interrupt at the terminal does not reach it.
    let mut child = spawn::logged(&mut command, &log)?.process_group(0).spawn();
    let child =
        child.as_mut().map_err(|error| anyhow::anyhow!("{name} cannot be started: {error}"))?;
    let process = Process::of(child.id())
        .with_context(|| format!("{name} ended at once; {}", spawn::last_lines(&log)))?;
    let began = (machine.clock.now)();
    while !ready() {
        if !process.is_alive() {
            bail!("{name} ended before it was ready; {}", spawn::last_lines(&log));
        }
        let within = service.ready_within();
        if (machine.clock.now)() - began > within {
            process.stop(&machine.clock, "KILL", STOPPED_WITHIN)?;
            bail!("{name} was not ready within {within:?}; {}", spawn::last_lines(&log));
        }
        (machine.clock.sleep)(Duration::from_millis(20));
    }
    let record = Record { process, address, connect, variables: owned(variables) };
    record.write(&file(machine, service)).or_else(|error| {
        process.stop(&machine.clock, "KILL", STOPPED_WITHIN)?;
        Err(error)
    })?;
    Ok(record)
}

/// Stops the service of this checkout if it is running, and returns whether it was.
fn stop(machine: &Machine, service: &dyn Service) -> Result<bool> {
    let _lock = lock(machine)?;
    let record = running(machine, service);
    if let Some(record) = &record {
        record.process.stop(&machine.clock, service.stop_signal(), STOPPED_WITHIN)?;
    }
    Record::forget(&file(machine, service))?;
    cache::remove(&service.data(machine))?;
    Ok(record.is_some())
}

/// Returns the stored record, if its process is still alive.
fn running(machine: &Machine, service: &dyn Service) -> Option<Record> {
    Record::read(&file(machine, service)).filter(|record| record.process.is_alive())
}

fn lock(machine: &Machine) -> Result<fs::File> {
    let waiting =
        "services: another command of this checkout starts or stops them; waiting for that";
    cache::lock(&machine.state().join("lock"), waiting)
}

fn file(machine: &Machine, service: &dyn Service) -> PathBuf {
    machine.state().join(format!("{}.running", service.name()))
}

fn log(machine: &Machine, service: &dyn Service) -> PathBuf {
    machine.state().join(format!("{}.log", service.name()))
}

fn owned(variables: ServiceVariables) -> Vec<(String, String)> {
    variables.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// Quotes a value as one word of a shell.
fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/:@.,_-+=%".contains(c);
    if value.chars().all(plain) {
        value.to_owned()
    } else {
        format!("'{}'", value.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests;
