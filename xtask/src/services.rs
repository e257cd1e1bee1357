//! Real servers for the tests: installed, started, found and stopped, one set per checkout.
//!
//! A [`Service`] only describes itself; starting, waiting, remembering and stopping are done here, alike for all.
//! [`Programs`] are only installed, and each test starts them as it likes.
//! What a service keeps is thrown away when it stops: every start is from nothing. Its log stays until the next start.
//! Linux only, because `/proc` tells whether a process is still the one that was started.

mod collector;
mod contract;
mod golang;
mod jaeger;
mod keycloak;
mod ports;
mod postgres;
mod process;
mod prometheus;
mod record;
mod sdks;

use std::{
    fs,
    os::unix::process::CommandExt,
    path::{Path, PathBuf},
    process::Command,
    time::Duration,
};

use anyhow::{Context, Result, bail};

use crate::{cache, machine::Machine, spawn};
use process::Process;
use record::Record;

/// One kind of server. Implementations own no state: all of it is in the folder that they are given.
pub(crate) trait Service {
    fn name(&self) -> &'static str;

    /// Makes sure that the server's program is on this machine. May take minutes the first time, and then says so.
    fn install(&self, machine: &Machine) -> Result<()>;

    /// Whether commands that do not name it use it. A server whose installation takes too long says no until it is
    /// installed, and a person has it installed by its name.
    fn is_used_unnamed(&self, _: &Machine) -> bool {
        true
    }

    /// The folder for what the server keeps: made empty before each start, removed after each stop.
    fn data(&self, machine: &Machine) -> PathBuf;

    /// Describes one start, on ports that are free now. The program MUST stay in the foreground.
    fn launch(&self, machine: &Machine, data: &Path) -> Result<Launch>;

    /// How long it may take to be ready.
    fn ready_within(&self) -> Duration {
        READY_WITHIN
    }

    /// The signal that asks for an orderly and quick end.
    fn stop_signal(&self) -> &'static str {
        "TERM"
    }
}

/// Programs that no test shares with another.
pub(crate) struct Programs {
    name: &'static str,
    /// Makes sure that they are on this machine, and says where.
    install: fn(&Machine) -> Result<ServiceVariables>,
    /// Where they are, if all of them are on this machine.
    installed: fn(&Machine) -> Option<ServiceVariables>,
}

/// What can be named on the command line and by a step of `ci`.
#[derive(Clone, Copy)]
enum Part {
    Service(&'static dyn Service),
    Programs(&'static Programs),
}

/// How tests reach the services: names and values for their environment.
pub(crate) type Variables = [(String, String)];

/// The variables of one part, as it tells them.
type ServiceVariables = Vec<(&'static str, String)>;

/// One start of a service.
pub(crate) struct Launch {
    command: Command,
    ready: Box<dyn Fn() -> bool>,
    /// Where it listens first of all.
    address: String,
    /// How a person reaches it.
    connect: String,
    /// How the tests reach it.
    variables: ServiceVariables,
}

const ALL: &[Part] = &[
    Part::Service(&postgres::Postgres),
    Part::Service(&collector::Collector),
    Part::Service(&keycloak::Keycloak),
    Part::Service(&jaeger::Jaeger),
    Part::Programs(&sdks::SDKS),
    Part::Programs(&contract::CONTRACT),
    Part::Programs(&prometheus::PROMETHEUS),
];

/// A free port can be taken by someone else before the server binds it; then others are tried.
const START_ATTEMPTS_MAX: u32 = 3;

const READY_WITHIN: Duration = Duration::from_secs(30);

const STOPPED_WITHIN: Duration = Duration::from_secs(10);

pub(crate) fn help() -> String {
    let names: Vec<_> = ALL.iter().map(|part| format!("  {}\n", part.name())).collect();
    format!(
        "Services (where none is named all of them, jaeger only if it is installed):\n{}",
        names.concat()
    )
}

/// `services up`: starts what is not running, installs what is only installed.
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

/// `services down`: stops what this checkout started.
pub(crate) fn down(machine: &Machine, names: &[&str]) -> Result<()> {
    for part in chosen(names)? {
        // Programs have nothing to stop: the tests that started them did.
        if let Part::Service(service) = part {
            let how = if stop(machine, service)? { "stopped" } else { "was not running" };
            println!("{}: {how}", part.name());
        }
    }
    Ok(())
}

/// `services env`: the variables of those that run or are installed, as a shell takes them.
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

/// `services status`: a table.
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

    /// What it is when it can be used.
    fn state(self) -> &'static str {
        match self {
            Self::Service(_) => "running",
            Self::Programs(_) => "installed",
        }
    }

    /// Its variables, if it can be used now.
    fn variables(self, machine: &Machine) -> Option<Vec<(String, String)>> {
        match self {
            Self::Service(service) => running(machine, service).map(|record| record.variables),
            Self::Programs(programs) => (programs.installed)(machine).map(owned),
        }
    }
}

/// Does `work` with these services up, handing it their variables; stops afterwards those that it had to start. Nobody
/// named them on the command line: one that is only installed by its name is skipped, by its name, where it is not.
pub(crate) fn with(
    machine: &Machine,
    names: &[&str],
    work: impl FnOnce(&Variables) -> Result<()>,
) -> Result<()> {
    let mut ours = Vec::new();
    let result = (|| {
        let mut variables = Vec::new();
        // No name means no service here: the caller says what its work needs.
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

/// Whether a service is left out where nobody named it; says so.
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

/// The running service, started now if it was not; and whether it was started now.
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
    // A group of its own, so that an interrupt at the terminal does not reach it.
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

/// Stops the service if this checkout's one is running, and says whether it was.
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

/// What is remembered, if it is still true.
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

/// A value as one word of a shell.
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
