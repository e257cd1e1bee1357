//! `run`: runs tests against a system, with only this process.
//!
//! [`Session`] has the receiver, the triggers and the system if we start it; [`schedule`] schedules the cases, [`round`] runs
//! them, N at a time. [`state`] stores the learned profile and the failed tests. Deliberately absent: the execution of a run
//! (`runner`), the formats of reports (`report`), and servers (`remote`).

mod changes;
mod environment;
mod finals;
mod look;
mod output;
mod ports;
mod probe;
mod process;
mod progress;
mod ready;
mod round;
mod schedule;
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
    time::Duration,
};

use model::{ErrorCode, World};
use runner::StartedProcesses;

use crate::{
    args,
    beside::Beside,
    discovery::{self, Item},
    exit::Exit,
    learn,
    reports::Reports,
    stores,
    terminal::Terminal,
    trust::{self, Consent},
    variables,
};
use changes::FileWatcher;
use environment::{BATCH_DELAY, environment};
pub(crate) use probe::ProbedRun;
pub(crate) use progress::{Line, ProgressLevel, words};
pub(crate) use round::JOBS;
use round::Round;
pub(crate) use schedule::Schedule;
pub(crate) use session::{Open, OpenError, Session};
pub(crate) use signals::Signals;
use state::FailedItem;
pub(crate) use system::Life;
use system::{Launch, System};
pub(crate) use traces::keep as keep_trace;
use watches::Watches;

/// The default folder of tests.
pub(crate) const FOLDER: &str = "qualitytrace";

/// Executes `run` without a server.
pub(crate) async fn run(
    args: &args::RunArgs,
    environment: Vec<(String, String)>,
    (world, consent): (World, Consent),
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    if !args.variable_sets.is_empty() {
        terminal.error(ErrorCode::Usage,
            "`--variable-set` names a set that a server stores: run there by `--server`, or read a file of \
             variables by `--vars`",
        );
        return Err(Exit::Refused);
    }
    let mut signals = Signals::listen().map_err(|error| terminal.without_signals(&error))?;
    let mut rounds = Rounds {
        args,
        environment: environment.into_iter().collect(),
        world,
        consent,
        terminal,
        session: None,
    };
    if !args.pace.watch {
        return Ok(rounds.next(&mut signals).await);
    }
    let mut changes = FileWatcher::watch(&rounds.watched()).map_err(|error| {
        terminal
            .error(ErrorCode::FileUnreadable, format_args!("the files cannot be watched: {error}"));
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

/// Consecutive rounds in one session.
struct Rounds<'a> {
    args: &'a args::RunArgs,
    environment: BTreeMap<String, String>,
    world: World,
    consent: Consent,
    terminal: &'a Terminal,
    /// None before the first round with valid documents.
    session: Option<Arc<Session>>,
}

impl Rounds<'_> {
    /// Reads the documents, runs the selected tests, and writes the reports, even if nothing could be run.
    async fn next(&mut self, signals: &mut Signals) -> Exit {
        let mut reports = match Reports::new(&self.args.output.reports, self.terminal) {
            Ok(reports) => reports,
            Err(exit) => return exit,
        };
        let (Ok(exit) | Err(exit)) = self.round(&mut reports, signals).await;
        // `Exit::over` prefers an interrupt: a report that cannot be written does not hide Ctrl-C.
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
        // A shard may be empty, which was printed.
        if items.is_empty() {
            return Ok(Exit::Passed);
        }
        let environment = self.environment.clone().into_iter().collect();
        let vars = variables::read(&args.variables, environment, terminal)?;
        let named = &args.system.stores;
        trust::check(&items, (&beside, named), &vars, (&self.consent, terminal))?;
        stores::apply(&mut items, (&beside, named), &vars, terminal)?;
        let session = match &self.session {
            Some(session) => Arc::clone(session),
            None => {
                let system = LocalSystem {
                    flags: &args.system.start,
                    life: if args.system.drain { Life::PerTest } else { Life::Shared },
                    timeout: args.pace.timeout,
                    telling: telling(args),
                    terminal,
                };
                let opened = system.open(&self.environment, world).await;
                let opened = opened.map_err(|error| terminal.refuse(&error))?;
                Arc::clone(self.session.insert(Arc::new(opened)))
            }
        };
        if let Some(exit) = check_stores(&session, &items, signals, terminal).await {
            return Ok(exit);
        }
        let mut schedule = Schedule::new(&items, args.pace.repeat.unwrap_or(1));
        reports.expect(schedule.cases().len());
        let telling = telling(args);
        let round = Round { session: &session, args, vars: &vars, telling, terminal };
        let mut ended = round.run(&mut schedule, reports, signals).await;
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
            finals::apply(&round, &schedule, &mut ended, concluded, reports);
        }
        keep(&session, &items, &ended.items(&schedule), terminal).await;
        let exit = ended.exit();
        if exit != Exit::Passed {
            show_output(&round);
        }
        Ok(exit)
    }

    /// Stops the system if we started it; a further signal kills it.
    async fn stop_system(&self, signals: &mut Signals) -> Option<Exit> {
        let session = self.session.as_ref()?;
        tokio::select! {
            () = session.stop_system() => None,
            exit = signals.end() => Some(exit),
        }
    }

    /// Returns the files and folders that start another round when they change.
    fn watched(&self) -> Vec<PathBuf> {
        let paths = paths(&self.args.paths);
        paths.into_iter().chain(self.args.variables.files.iter().cloned()).collect()
    }
}

/// Waits until every verdict is final, so that late spans count. Another signal aborts the wait.
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

/// Stores the learned profile, and the tests that did not pass.
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

/// Prints the last output of the command, to explain a failure; unless it was shown live.
fn show_output(round: &Round<'_>) {
    let Round { args, terminal, session, .. } = *round;
    let Some(running) = session.system.as_ref().and_then(System::last) else { return };
    let lines = running.last_lines();
    if !args.output.verbose && !lines.is_empty() {
        terminal.line(&format!("the last lines that `{}` wrote:", running.name()));
        terminal.line(&lines.join("\n"));
    }
}

/// Returns the given files and folders, or the default folder.
pub(crate) fn paths(given: &[PathBuf]) -> Vec<PathBuf> {
    if given.is_empty() { vec![PathBuf::from(FOLDER)] } else { given.to_vec() }
}

/// Returns the tests and suites that the flags select.
pub(crate) fn items(
    args: &args::RunArgs,
    terminal: &Terminal,
) -> Result<(Vec<Item>, Beside), Exit> {
    let paths = paths(&args.paths);
    if args.paths.is_empty() && !paths[0].is_dir() {
        terminal.error(ErrorCode::NoTests, format_args!(
            "no tests are named, and there is no folder `{FOLDER}` here: name files or folders, or let \
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
        items = schedule::shard(items, part);
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

/// Returns the OTLP address, as a Collector's configuration would contain it.
fn receiver(args: &args::RunArgs) -> String {
    let server = args.connection.address.server.as_deref().and_then(|url| url.split("://").nth(1));
    let host = server.and_then(|rest| rest.split(['/', ':']).next());
    match (host, args.system.start.otlp.first()) {
        (Some(host), _) => format!("{host}:4317"),
        (None, Some(address)) => address.to_string(),
        (None, None) => discovery::RECEIVER.to_owned(),
    }
}

/// Returns the items that did not pass in their last run; all if there are none.
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

/// Checks that the stores of the tests can be read; returns how the command ends otherwise.
async fn check_stores(
    session: &Session,
    items: &[Item],
    signals: &mut Signals,
    terminal: &Terminal,
) -> Option<Exit> {
    let plans = items.iter().flat_map(Item::tests).map(|test| &*test.plan);
    let checked = tokio::select! {
        checked = session.check_stores(plans) => checked,
        exit = signals.end() => return Some(exit),
    };
    let error = checked.err()?;
    terminal.error(ErrorCode::StoreInvalid, format_args!(
        "{error}; no test was run. Correct its document, start it, or choose another by `--store`"
    ));
    Some(Exit::Refused)
}

/// A system under test, and how its runs are shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalSystem<'a> {
    pub(crate) flags: &'a args::StartFlags,
    pub(crate) life: Life,
    /// The upper bound for the duration of a test.
    pub(crate) timeout: Option<Duration>,
    pub(crate) telling: ProgressLevel,
    pub(crate) terminal: &'a Terminal,
}

impl LocalSystem<'_> {
    /// Starts the receiver, and prepares the system if we start it.
    pub(crate) async fn open(
        &self,
        ours: &BTreeMap<String, String>,
        world: World,
    ) -> Result<Session, OpenError> {
        let Self { flags, life, timeout, telling, terminal } = *self;
        let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let addresses = match (flags.otlp.is_empty(), flags.command.is_empty()) {
            (false, _) => flags.otlp.clone(),
            (true, true) => vec![loopback(4317), loopback(4318)],
            (true, false) => vec![loopback(0)],
        };
        let learned = learn::known(terminal);
        let ours_as_list = ours.clone().into_iter().collect();
        let open = Open::listen(addresses, learned, ours_as_list, world).await?;
        let open = open.with_timeout(timeout);
        let addresses = open.addresses();
        if telling != ProgressLevel::Quiet {
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
            life,
            live: (telling == ProgressLevel::Steps).then(|| terminal.clone()),
            terminal: terminal.clone(),
            telling,
        };
        Ok(open.with_system(System::new(launch), started))
    }
}

/// Returns the progress level of the flags.
pub(crate) fn telling(args: &args::RunArgs) -> ProgressLevel {
    match (args.output.quiet, args.output.verbose) {
        (true, _) => ProgressLevel::Quiet,
        (false, true) => ProgressLevel::Steps,
        (false, false) => ProgressLevel::Tests,
    }
}
