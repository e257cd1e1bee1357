//! `cargo xtask chaos`: proof on real processes that servers lose nothing, fire nothing twice and conclude nothing wrong while their
//! parts are killed, suspended, restarted and cut off.
//!
//! Three replicas (`api`, `ingest`) behind a load balancer, three workers, three NATS nodes that sync, and Postgres serve clients
//! and a system of five services. A seeded [`schedule`] of faults happens to them. What clients, system and readers see is written to
//! a [`history`], and a [`checker`] that knows nothing of the server compares it with the database.
//!
//! The one mechanism of cutting off is a path that holds bytes (`link`): it needs no rights, and to both sides it is silence.

mod balancer;
pub mod checker;
mod excuse;
mod exporter;
pub mod history;
mod link;
mod load;
mod process;
mod readers;
mod record;
pub mod schedule;
mod target;
mod world;

use std::{
    path::{Path, PathBuf},
    sync::{Arc, atomic::Ordering},
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use tokio::{
    signal::{
        ctrl_c,
        unix::{SignalKind, signal},
    },
    task::JoinSet,
    time::{Instant, sleep, sleep_until},
};

use self::{
    checker::{ChaosFindings, Violation},
    exporter::ExportLimits,
    history::{HistoryFile, HistoryLine},
    load::RunClients,
    readers::StreamReaders,
    schedule::{PlannedFault, ScheduleForm},
    target::OrderSystem,
    world::{Installation, print},
};
use crate::{
    parts::Server,
    table::{Goal, Row},
};

/// How to call it.
pub const HELP: &str = "\
Usage: cargo xtask chaos [--seed N] [--short] [--rate RUNS] [--seconds N] [--history FILE] [--keep DIR]

  --seed N        the seed of the faults' schedule, 1 by default. It repeats the schedule, not how the faults interleave with
                  the runs: the same seed may find something or not
  --short         five faults within 20 seconds
  --rate RUNS     runs a second: 50 by default, 5 with --short
  --seconds N     how long faults happen: 600 by default
  --history FILE  where the history is written, as JSON lines: chaos-history.jsonl in the folder of temporary files by default
  --keep DIR      where the logs of all servers are copied
  --plant FAULT   plants a fault into all servers, which the checker has to find: `second-trigger` or `key-ignored`
  --check FILE    checks a history that was written before, and starts nothing
";

/// Runs before the first fault: the servers learn that each service sends spans.
const WARM_UP: (f64, Duration) = (2.0, Duration::from_secs(4));
/// How long no run may end before the remaining ones count as stuck.
const REST_MAX: Duration = Duration::from_secs(60);
/// How long readers may read after the last fault.
const READ_MAX: Duration = Duration::from_secs(240);
/// The inconclusive runs that no worker's death and no wipe explains, in percent.
const INCONCLUSIVE_PERCENT: f64 = 0.5;
/// Violations that are shown.
const SHOWN_MAX: usize = 40;

/// What to prove, and how long.
#[derive(Clone, Debug)]
pub struct ChaosOptions {
    /// The seed of the schedule.
    pub seed: u64,
    /// The form of the schedule.
    pub form: ScheduleForm,
    /// Runs a second.
    pub rate: f64,
    /// The file for the history.
    pub history: PathBuf,
    /// The folder for the logs of servers.
    pub logs: Option<PathBuf>,
    /// The planted fault of all servers.
    pub plant: Option<String>,
}

/// The result.
#[derive(Clone, Debug, Default)]
pub struct ChaosResult {
    /// What the checker found.
    pub findings: ChaosFindings,
    /// Runs that were requested in a second.
    pub rate: f64,
    /// Processes that ended although they were not killed.
    pub ended_alone: u64,
}

/// `cargo xtask chaos`.
pub async fn measure(arguments: &[String]) -> Result<String> {
    if arguments.iter().any(|word| word == "--help") {
        return Ok(HELP.to_owned());
    }
    if let [word, file] = arguments
        && word == "--check"
    {
        let findings = checker::check(&history::read(&std::fs::read_to_string(file)?)?);
        return ChaosResult { findings, ..ChaosResult::default() }.report();
    }
    let options = options(arguments)?;
    let binary = Server::binary_beside_this()?;
    let mut terminate = signal(SignalKind::terminate())?;
    // What was started ends with the proof, also if that is interrupted.
    let result = tokio::select! {
        result = play(&binary, &options) => result?,
        _ = terminate.recv() => bail!("terminated"),
        _ = ctrl_c() => bail!("interrupted"),
    };
    print(&format!("the history is in `{}`", options.history.display()));
    result.report()
}

/// Plays the schedule of a seed, and checks its history.
pub async fn play(binary: &Path, options: &ChaosOptions) -> Result<ChaosResult> {
    let history = Arc::new(HistoryFile::create(&options.history)?);
    let tests = target::tests();
    history.write(HistoryLine::Begin { seed: options.seed, tests });
    let workers = match options.form {
        // Late spans raise quiet periods to half of the timeout, 15 s: 50 runs a second then hold 750 slots, of two workers as well.
        ScheduleForm::Long(_) => "workers: {runs: 512, perHost: 2048}",
        ScheduleForm::Short => "workers: {runs: 128, perHost: 512, lease: 3s, poll: 500ms}",
    };
    let world = Arc::new(
        Installation::start(binary, workers, options.plant.as_deref(), Arc::clone(&history))
            .await?,
    );
    let played = play_on(&world, options, &history).await;
    if let Some(logs) = &options.logs {
        world.copy_logs(logs).await?;
    }
    let rate = played?;
    world.end().await?;
    let findings = checker::check(&history.finish()?);
    let ended_alone = world.ended_alone.load(Ordering::Relaxed);
    Ok(ChaosResult { findings, rate, ended_alone })
}

/// Lets clients and faults act on a started installation, and reads the database at the end.
async fn play_on(
    world: &Arc<Installation>,
    options: &ChaosOptions,
    history: &Arc<HistoryFile>,
) -> Result<f64> {
    let faults = schedule::schedule(options.seed, options.form);
    let (length_ms, timeout_s, limits) = match options.form {
        ScheduleForm::Long(length_ms) => (length_ms, 30, export_limits(10, 60)),
        ScheduleForm::Short => (18_000, 15, export_limits(2, 30)),
    };
    let length = Duration::from_millis(length_ms);
    let system = OrderSystem::start(world.balancer.otlp, limits, Arc::clone(history)).await?;
    let deadline = Instant::now() + WARM_UP.1 + length + READ_MAX;
    let readers = StreamReaders::new(world.balancer.http, Arc::clone(history), deadline)?;
    let http = world.balancer.http;
    let mut clients = RunClients::new(http, options.seed, readers, Arc::clone(history))?;
    for document in system.documents(timeout_s) {
        clients.apply(&document).await?;
    }
    clients.run(WARM_UP.0, WARM_UP.1).await?;
    let mut background = JoinSet::new();
    let watched = Arc::clone(world);
    background.spawn(async move { watched.watch().await });
    background.spawn(happen(Arc::clone(world), faults));
    let rate = clients.run(options.rate, length).await?;
    // The task that watches does not end; the one with the faults does.
    background.join_next().await.context("faults happen")???;
    world.ready().await?;
    system.flushed().await;
    ended(world).await?;
    clients.rest().await?;
    let postgres = world.postgres.lock().await;
    for record in record::read(&mut postgres.connect().await?).await? {
        history.write(HistoryLine::Record(record));
    }
    Ok(rate)
}

fn export_limits(try_s: u64, batch_s: u64) -> ExportLimits {
    let (try_max, batch_max) = (Duration::from_secs(try_s), Duration::from_secs(batch_s));
    ExportLimits { try_max, batch_max }
}

/// Lets all faults happen, each at its time, and waits until the last one is repaired.
async fn happen(world: Arc<Installation>, faults: Vec<PlannedFault>) -> Result<()> {
    let began = Instant::now();
    let mut active = JoinSet::new();
    for fault in faults {
        sleep_until(began + Duration::from_millis(fault.at_ms)).await;
        let PlannedFault { at_ms, kind, component, for_ms } = fault;
        print(&format!("{:7.1} s: {component:?} {kind} for {for_ms} ms", at_ms as f64 / 1000.0));
        let world = Arc::clone(&world);
        active.spawn(async move { world.happen(fault).await });
    }
    while let Some(repaired) = active.join_next().await {
        repaired??;
    }
    Ok(())
}

/// Waits until all runs have ended, or none has for a minute: the checker then finds those without a verdict.
async fn ended(world: &Installation) -> Result<()> {
    let postgres = world.postgres.lock().await;
    let mut connection = postgres.connect().await?;
    let (mut left, mut since) = (i64::MAX, Instant::now());
    while left > 0 && since.elapsed() < REST_MAX {
        let open = record::open(&mut connection).await?;
        if open < left {
            (left, since) = (open, Instant::now());
        }
        sleep(Duration::from_millis(200)).await;
    }
    Ok(())
}

fn options(arguments: &[String]) -> Result<ChaosOptions> {
    let (mut seed, mut is_short, mut rate, mut seconds) = (1, false, None, 600_u64);
    let mut history = std::env::temp_dir().join("chaos-history.jsonl");
    let (mut logs, mut plant) = (None, None);
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("`{word}` needs a value"));
        match word.as_str() {
            "--seed" => seed = value()?.parse()?,
            "--short" => is_short = true,
            "--rate" => rate = Some(value()?.parse()?),
            "--seconds" => seconds = value()?.parse()?,
            "--history" => history = PathBuf::from(value()?),
            "--plant" => plant = Some(value()?.clone()),
            "--keep" => logs = Some(PathBuf::from(value()?)),
            word => bail!("`{word}` is no flag\n\n{HELP}"),
        }
    }
    let (form, usual) = match is_short {
        true => (ScheduleForm::Short, 5.0),
        false => (ScheduleForm::Long(seconds * 1_000), 50.0),
    };
    let rate = rate.unwrap_or(usual);
    ensure!(rate > 0.0, "`--rate` is more than 0");
    Ok(ChaosOptions { seed, form, rate, history, logs, plant })
}

impl ChaosResult {
    /// Whether nothing was lost, fired twice, wrong or unexplained. The share of inconclusive runs is a goal of the table.
    pub fn is_right(&self) -> bool {
        self.findings.violations.is_empty() && self.ended_alone == 0
    }

    /// Returns the table; an error, with the violations, if it is not right.
    pub fn report(&self) -> Result<String> {
        let table = crate::table::render("chaos", &self.rows());
        let shown = self.findings.violations.iter().take(SHOWN_MAX);
        let shown: String = shown.map(|violation| format!("{violation:?}\n")).collect();
        ensure!(self.is_right(), "{shown}{table}");
        Ok(table)
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let found = &self.findings;
        let none = Some(Goal::AtMost(0.0));
        let row =
            |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
        let count = |name: &str, value: u64| row(name, value as f64, "", None);
        let of = |matches: fn(&Violation) -> bool| {
            found.violations.iter().filter(|violation| matches(violation)).count() as f64
        };
        let mut rows = vec![
            row("runs requested", self.rate, "/s", None),
            count("faults", found.faults.values().sum()),
            count("runs accepted", found.accepted),
            count("runs in the database", found.recorded),
            row("accepted and not in the database", of(Violation::is_loss), "runs", none),
            row("without exactly one final verdict", of(Violation::is_final), "runs", none),
            row("fired twice, or without a record", of(Violation::is_trigger), "runs", none),
            row("claims with a wrong verdict", of(Violation::is_wrong), "claims", none),
            row("inconclusive without a listed cause", of(Violation::is_unexplained), "", none),
            row("gaps in events", of(Violation::is_event), "", none),
            row("processes that ended by themselves", self.ended_alone as f64, "", none),
            row(
                "inconclusive, neither by the wipe nor without an answer",
                found.inconclusive_percent(),
                "%",
                Some(Goal::AtMost(INCONCLUSIVE_PERCENT)),
            ),
            count("inconclusive at the wipe", found.wiped),
            count("inconclusive, worker lost between attempt and response", found.unanswered),
            count("claims decided", found.decided),
            row(
                "of them by absence",
                100.0 * found.by_absence as f64 / (found.decided as f64).max(1.0),
                "%",
                None,
            ),
            count("runs that another worker continued", found.resumed),
            count("exports of a trace that were sent again", found.export_retries),
            count("exports of a trace that were given up", found.exports_lost),
            count("readers of events", found.readers),
            count("their reconnects", found.reconnects),
            row("accepted to verdict, median", self.delay(0.5), "s", None),
            row("accepted to verdict, 99 of 100", self.delay(0.99), "s", None),
        ];
        rows.extend(found.faults.iter().map(|(fault, times)| count(fault, *times)));
        let excused = found.excused.iter();
        rows.extend(excused.map(|(pair, times)| count(&format!("inconclusive: {pair}"), *times)));
        rows
    }

    fn delay(&self, share: f64) -> f64 {
        let delays = &self.findings.delays_ms;
        let at = (delays.len() as f64 * share) as usize;
        delays.get(at).map_or(f64::NAN, |delay| *delay as f64 / 1000.0)
    }
}
