//! `run`: tests against a system, with nothing but this process.
//!
//! [`Session`] has the receiver, the triggers and the system where we start it; [`agenda`] knows what may start,
//! [`round`] runs it, so many at a time. What is learned and what failed is kept in [`state`]. Deliberately absent: what a
//! run is (`runner`), what is said of it (`report`), and servers (`remote`).

mod agenda;
mod changes;
mod environment;
mod finals;
mod look;
mod output;
mod ports;
mod process;
mod progress;
mod ready;
mod round;
mod session;
mod signals;
pub(crate) mod state;
mod system;
mod traces;
mod watches;

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
};

use model::World;
use runner::StartedProcesses;

use crate::{
    args,
    beside::Beside,
    discovery::{self, Item},
    exit::Exit,
    learn,
    reports::Reports,
    terminal::Terminal,
    variables,
};
pub(crate) use agenda::Agenda;
use changes::FileWatcher;
use environment::{BATCH_DELAY, environment};
pub(crate) use progress::{Line, ProgressLevel, words};
pub(crate) use ready::Ready;
pub(crate) use round::JOBS;
use round::Round;
pub(crate) use session::Open;
use session::Session;
pub(crate) use signals::Signals;
use state::FailedItem;
use system::{Launch, Life, System};
pub(crate) use traces::keep as keep_trace;
use watches::Watches;

/// Where tests are looked for when nobody says.
pub(crate) const FOLDER: &str = "qualitytrace";

/// Carries out `run` without a server.
pub(crate) async fn run(
    args: &args::RunArgs,
    environment: Vec<(String, String)>,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    if !args.variable_sets.is_empty() {
        terminal.line(
            "error: `--variable-set` names a set that a server stores: run there by `--server`, or read a file of \
             variables by `--vars`",
        );
        return Err(Exit::Refused);
    }
    let mut signals = Signals::listen().map_err(|error| {
        terminal.line(&format!("error: signal handlers cannot be installed: {error}"));
        Exit::Inconclusive
    })?;
    let mut rounds = Rounds {
        args,
        environment: environment.into_iter().collect(),
        world,
        terminal,
        session: None,
    };
    if !args.pace.watch {
        return Ok(rounds.next(&mut signals).await);
    }
    let mut changes = FileWatcher::watch(&rounds.watched()).map_err(|error| {
        terminal.line(&format!("error: the files cannot be watched: {error}"));
        Exit::Refused
    })?;
    loop {
        if let exit @ (Exit::Interrupted | Exit::Terminated) = rounds.next(&mut signals).await {
            return Ok(exit);
        }
        terminal.line("waiting for a file to change; Ctrl-C ends");
        tokio::select! {
            () = changes.next() => {}
            exit = signals.end() => {
                rounds.stop_system(&mut signals).await;
                return Ok(exit);
            }
        }
    }
}

/// One round after the other, in one session.
struct Rounds<'a> {
    args: &'a args::RunArgs,
    environment: BTreeMap<String, String>,
    world: World,
    terminal: &'a Terminal,
    /// None before the first round whose documents are right.
    session: Option<Arc<Session>>,
}

impl Rounds<'_> {
    /// Reads the documents, runs what is meant, and tells of it, also where nothing could be run.
    async fn next(&mut self, signals: &mut Signals) -> Exit {
        let mut reports = match Reports::new(&self.args.output.reports, self.terminal) {
            Ok(reports) => reports,
            Err(exit) => return exit,
        };
        let (Ok(exit) | Err(exit)) = self.round(&mut reports, signals).await;
        // A report that cannot be written is no reason to go on after Ctrl-C.
        Exit::over([exit].into_iter().chain(reports.finish().err()))
    }

    async fn round(
        &mut self,
        reports: &mut Reports<'_>,
        signals: &mut Signals,
    ) -> Result<Exit, Exit> {
        let Self { args, world, terminal, .. } = *self;
        let (mut items, beside) = items(args, terminal)?;
        discovery::hold(&mut items, &beside, terminal)?;
        // A part may be empty, which was told.
        if items.is_empty() {
            return Ok(Exit::Passed);
        }
        let environment = self.environment.clone().into_iter().collect();
        let vars = variables::read(&args.variables, environment, terminal)?;
        let session = match &self.session {
            Some(session) => Arc::clone(session),
            None => {
                let opened = Arc::new(open(args, &self.environment, world, terminal).await?);
                Arc::clone(self.session.insert(opened))
            }
        };
        let mut agenda = Agenda::new(&items, args.pace.repeat.unwrap_or(1));
        reports.expect(agenda.cases().len());
        let telling = telling(args);
        let round = Round { session: &session, args, vars: &vars, telling, terminal };
        let mut ended = round.run(&mut agenda, reports, signals).await;
        if !ended.is_interrupted() {
            ended.exits.extend(linger(&mut ended.watches, telling, terminal, signals).await);
        }
        if !args.pace.watch || ended.is_interrupted() {
            ended.exits.extend(self.stop_system(signals).await);
        }
        let watches = std::mem::take(&mut ended.watches);
        if ended.is_interrupted() {
            finals::interrupt(&watches.abort().await, &mut ended, reports);
        } else {
            let concluded = watches.end().await;
            finals::apply(&round, &agenda, &mut ended, concluded, reports);
        }
        keep(&session, &items, &ended.items(&agenda), terminal).await;
        let exit = ended.exit();
        if exit != Exit::Passed {
            show_output(&round);
        }
        Ok(exit)
    }

    /// Stops the system where we started it; one more signal, and it is killed.
    async fn stop_system(&self, signals: &mut Signals) -> Option<Exit> {
        let session = self.session.as_ref()?;
        tokio::select! {
            () = session.stop_system() => None,
            exit = signals.end() => Some(exit),
        }
    }

    /// The files and folders whose change asks for another round.
    fn watched(&self) -> Vec<PathBuf> {
        let paths = paths(self.args);
        paths.into_iter().chain(self.args.variables.files.iter().cloned()).collect()
    }
}

/// Waits until every verdict is final: spans that come late count. Another signal ends it.
async fn linger(
    watches: &mut Watches,
    telling: ProgressLevel,
    terminal: &Terminal,
    signals: &mut Signals,
) -> Option<Exit> {
    let is_seen = terminal.bars().is_some();
    let _line =
        is_seen.then(|| Line::of("listening", "for spans that come late", terminal, telling));
    tokio::select! {
        () = watches.ready() => None,
        exit = signals.end() => Some(exit),
    }
}

/// Keeps what was learned, and what did not pass.
async fn keep(session: &Session, items: &[Item], ran: &BTreeMap<usize, bool>, terminal: &Terminal) {
    let seen = session.take_seen();
    if seen.is_none() && ran.is_empty() {
        return;
    }
    let _lock = state::lock().await;
    if let Some(seen) = seen {
        let mut learned = state::learned(terminal);
        learned.observe(&seen);
        state::keep_learned(learned, terminal);
    }
    if ran.is_empty() {
        return;
    }
    let ended: Vec<_> =
        ran.iter().map(|(at, passed)| (FailedItem::new(&items[*at]), *passed)).collect();
    let mut failed = state::failed(terminal).unwrap_or_default();
    failed.retain(|before| ended.iter().all(|(now, _)| now != before));
    failed.extend(ended.into_iter().filter(|(_, passed)| !passed).map(|(now, _)| now));
    state::keep_failed(failed, terminal);
}

/// What the command wrote last, for whoever asks why something failed; unless it was shown as it came.
fn show_output(round: &Round<'_>) {
    let Round { args, terminal, session, .. } = *round;
    let Some(running) = session.system.as_ref().and_then(System::last) else { return };
    let lines = running.last_lines();
    if !args.output.verbose && !lines.is_empty() {
        terminal.line(&format!("the last lines that `{}` wrote:", running.name()));
        terminal.line(&lines.join("\n"));
    }
}

/// The files and folders that are meant.
fn paths(args: &args::RunArgs) -> Vec<PathBuf> {
    if args.paths.is_empty() { vec![PathBuf::from(FOLDER)] } else { args.paths.clone() }
}

pub(crate) fn items(
    args: &args::RunArgs,
    terminal: &Terminal,
/// The tests and suites that the flags mean.
) -> Result<(Vec<Item>, Beside), Exit> {
    let paths = paths(args);
    if args.paths.is_empty() && !paths[0].is_dir() {
        terminal.line(&format!(
            "error: no tests are named, and there is no folder `{FOLDER}` here: name files or folders, or let \
             `qualitytrace init` write a first test"
        ));
        return Err(Exit::Refused);
    }
    let filter = &args.selection.filter;
    let (mut items, beside) = discovery::items(&paths, filter, &receiver(args), terminal)?;
    if args.selection.last_failed {
        items = last_failed(items, terminal);
    }
    if let Some(part) = args.selection.shard {
        let all = items.len();
        items = agenda::shard(items, part);
        if items.is_empty() {
            terminal.line(&format!(
                "nothing to run: there are {} parts, and only {}",
                part.of,
                discovery::tests(all)
            ));
        }
    }
    Ok((items, beside))
}

/// Where OTLP is received, as a Collector would be told.
fn receiver(args: &args::RunArgs) -> String {
    let server = args.server.as_deref().and_then(|url| url.split("://").nth(1));
    let host = server.and_then(|rest| rest.split(['/', ':']).next());
    match (host, args.system.otlp.first()) {
        (Some(host), _) => format!("{host}:4317"),
        (None, Some(address)) => address.to_string(),
        (None, None) => discovery::RECEIVER.to_owned(),
    }
}

/// Those that did not pass when they were last run; all where that is none.
fn last_failed(items: Vec<Item>, terminal: &Terminal) -> Vec<Item> {
    let failed = state::failed(terminal).unwrap_or_default();
    let (chosen, others): (Vec<_>, Vec<_>) =
        items.into_iter().partition(|item| failed.contains(&FailedItem::new(item)));
    if chosen.is_empty() {
        terminal.line("none of these is known to have failed when it was last run: running all");
        return others;
    }
    chosen
}

/// Starts to receive, and prepares the system where we start it.
async fn open(
    args: &args::RunArgs,
    ours: &BTreeMap<String, String>,
    world: World,
    terminal: &Terminal,
) -> Result<Session, Exit> {
    let flags = &args.system;
    let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let addresses = match (flags.otlp.is_empty(), flags.command.is_empty()) {
        (false, _) => flags.otlp.clone(),
        (true, true) => vec![loopback(4317), loopback(4318)],
        (true, false) => vec![loopback(0)],
    };
    let mut learned = state::learned(terminal);
    learned.merge(&learn::committed(terminal));
    let open = Open::listen(addresses, learned, ours.clone().into_iter().collect(), world).await;
    let open = open.map_err(|error| terminal.refuse(&error))?.with_timeout(args.pace.timeout);
    let addresses = open.addresses();
    if telling(args) != ProgressLevel::Quiet {
        let shown: Vec<_> = addresses.iter().map(ToString::to_string).collect();
        terminal.line(&format!("receiving OTLP on {}", shown.join(" and ")));
    }
    if flags.command.is_empty() {
        return Ok(open.session());
    }
    let marker: [u8; 8] = world.random();
    let marker = marker.iter().map(|byte| format!("{byte:02x}")).collect();
    let started = StartedProcesses { marker, batch_delay: BATCH_DELAY };
    let receiver = addresses.first().copied().unwrap_or(loopback(4318));
    let launch = Launch {
        command: flags.command.clone(),
        environment: environment(ours, receiver, flags.protocol, &started),
        ready: flags.ready.clone(),
        ready_timeout: flags.ready_timeout,
        life: if flags.drain { Life::PerTest } else { Life::Shared },
        live: args.output.verbose.then(|| terminal.clone()),
        terminal: terminal.clone(),
        telling: telling(args),
    };
    Ok(open.with_system(System::new(launch), started))
}

/// How much is told while tests run.
pub(crate) fn telling(args: &args::RunArgs) -> ProgressLevel {
    match (args.output.quiet, args.output.verbose) {
        (true, _) => ProgressLevel::Quiet,
        (false, true) => ProgressLevel::Steps,
        (false, false) => ProgressLevel::Tests,
    }
}
