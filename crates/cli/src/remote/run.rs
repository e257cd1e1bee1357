//! `run --server`: tests and suites on a server, so many at a time, told and reported as those that run here.
//!
//! The documents are kept on the server first. A suite is run by the server, its steps are followed here. Whoever stops this
//! stops what it started. Deliberately absent: what runs, which is the server's.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use hyper::Method;
use model::{Outcome, RunId, TestId, Trace};
use serde::Deserialize;
use server::config::Environment;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{ClientError, PROJECT, RemoteRun, Server, connect_as, live::RUN_MAX, traces};
use crate::{
    args,
    beside::Beside,
    discovery::{Item, Test, tests},
    documents::read,
    exit::Exit,
    reports::Reports,
    run::{self, Agenda, JOBS, Line, ProgressLevel, Signals},
    terminal::Terminal,
};

/// How often a suite's run is looked at for steps that have begun.
const SUITE_POLL: Duration = Duration::from_millis(250);
/// How long a server may take to hear that what runs is to stop.
const STOP_MAX: Duration = Duration::from_secs(5);
/// Outcomes on their way to the reports at the most.
const TOLD_MAX: usize = 64;

/// A run of a suite, as far as it is needed here.
#[derive(Debug, Deserialize)]
struct RemoteSuiteRun {
    id: RunId,
    state: String,
    steps: Vec<Step>,
}

#[derive(Debug, Deserialize)]
struct Step {
    run: Option<RunId>,
    #[serde(default)]
    reason: Option<String>,
}

/// What came of a case, and its place among all.
struct CaseOutcome {
    place: usize,
    result: Result<RemoteOutcome, ClientError>,
}

/// An outcome and the trace that it is about, where that is asked for.
struct RemoteOutcome {
    outcome: Outcome,
    /// None also where nothing was fired. An error says why it could not be had or kept.
    trace: Result<Option<Trace>, String>,
}

/// What becomes of traces.
struct Traces {
    /// Whether a report shows them.
    are_shown: bool,
    /// Where they are kept.
    folder: Option<PathBuf>,
}

/// What every item needs.
#[derive(Clone)]
struct Ground {
    server: Arc<Server>,
    /// What every run is started with, as JSON; empty for nothing, which older servers understand too.
    start: Arc<str>,
    /// What a case is called, by its place.
    names: Arc<Vec<String>>,
    /// Its test.
    tests: Arc<Vec<TestId>>,
    traces: Arc<Traces>,
    terminal: Terminal,
    telling: ProgressLevel,
    told: mpsc::Sender<CaseOutcome>,
    /// What has to be asked for to stop all that runs.
    stops: Arc<Mutex<BTreeSet<String>>>,
}

/// Runs tests and suites on a server. Reports are written also where nothing could be run.
pub(crate) async fn run(
    args: &args::RunArgs,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.output.reports, terminal)?;
    let (Ok(exit) | Err(exit)) = run_all(args, environment, terminal, &mut reports).await;
    Ok(Exit::over([exit].into_iter().chain(reports.finish().err())))
}

async fn run_all(
    args: &args::RunArgs,
    environment: &Environment,
    terminal: &Terminal,
    reports: &mut Reports<'_>,
) -> Result<Exit, Exit> {
    let mut signals = Signals::listen().map_err(|error| {
        terminal.line(&format!("error: signal handlers cannot be installed: {error}"));
        Exit::Inconclusive
    })?;
    let server = connect_as(args.server.as_deref(), &args.identity, environment, terminal)?;
    let (items, beside) = run::items(args, terminal)?;
    let cases = Agenda::new(&items, 1);
    let (names, tests): (Vec<_>, Vec<_>) =
        cases.cases().iter().map(|case| (case.name.clone(), case.test.plan.id.clone())).unzip();
    reports.expect(names.len());
    tokio::select! {
        kept = keep(&server, &items, &beside, terminal) => kept?,
        exit = signals.end() => return Ok(exit),
    }
    let (told, outcomes) = mpsc::channel(TOLD_MAX);
    let ground = Ground {
        server: Arc::new(server),
        start: start(args).into(),
        names: Arc::new(names),
        tests: Arc::new(tests),
        traces: Arc::new(Traces {
            are_shown: reports.show_traces(),
            folder: args.output.traces.clone(),
        }),
        terminal: terminal.clone(),
        telling: run::telling(args),
        told,
        stops: Arc::default(),
    };
    let mut going = RemoteRound { args, ground, reports, told: BTreeSet::new(), exits: Vec::new() };
    going.run(items, outcomes, &mut signals).await;
    Ok(Exit::over(going.exits))
}

/// What every run is started with.
fn start(args: &args::RunArgs) -> String {
    let mut start = serde_json::Map::new();
    let variables = &args.variables.variables;
    if !variables.is_empty() {
        let values = variables.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        start.insert("variables".to_owned(), serde_json::Value::Object(values.collect()));
    }
    if !args.variable_sets.is_empty() {
        start.insert("variableSets".to_owned(), args.variable_sets.clone().into());
    }
    if let Some(revision) = &args.revision {
        start.insert("revision".to_owned(), revision.as_str().into());
    }
    if start.is_empty() { String::new() } else { serde_json::Value::Object(start).to_string() }
}

/// Keeps the documents of all items on the server, each file once: what holds for them before them, tests before the
/// suites that run them.
async fn keep(
    server: &Server,
    items: &[Item],
    beside: &Beside,
    terminal: &Terminal,
) -> Result<(), Exit> {
    let mut kept = HashSet::new();
    let files = items.iter().flat_map(|item| {
        let tests = if let Item::Suite(suite) = item { &suite.tests[..] } else { &[] };
        tests.iter().map(|test: &Test| test.file.as_path()).chain([item.file()])
    });
    for file in beside.files().chain(files) {
        if kept.insert(file) {
            let text = read(file, terminal)?;
            let applied = server.apply(&text, PROJECT).await;
            terminal.line(&applied.map_err(|error| terminal.refuse(&error))?.notices);
        }
    }
    Ok(())
}

/// Items under way.
struct RemoteRound<'a, 'r> {
    args: &'a args::RunArgs,
    ground: Ground,
    reports: &'a mut Reports<'r>,
    /// The places that were told.
    told: BTreeSet<usize>,
    exits: Vec<Exit>,
}

impl RemoteRound<'_, '_> {
    async fn run(
        &mut self,
        items: Vec<Item>,
        mut outcomes: mpsc::Receiver<CaseOutcome>,
        signals: &mut Signals,
    ) {
        let jobs = usize::from(self.args.pace.jobs.unwrap_or(JOBS));
        let mut running = JoinSet::new();
        let mut items = items.into_iter();
        let mut place = 0;
        loop {
            while running.len() < jobs && !self.is_stopped() {
                let Some(item) = items.next() else { break };
                let cases = if let Item::Suite(suite) = &item { suite.steps.len() } else { 1 };
                running.spawn(one(self.ground.clone(), item, place));
                place += cases;
            }
            if running.is_empty() {
                break;
            }
            tokio::select! {
                Some(told) = outcomes.recv() => self.tell(told),
                Some(ended) = running.join_next() => {
                    if let Err(broken) = ended {
                        self.ground.terminal.line(&format!("error: a run broke off here: {broken}"));
                        self.exits.push(Exit::Inconclusive);
                    }
                }
                exit = signals.end() => {
                    self.exits.push(exit);
                    running.shutdown().await;
                    self.stop(signals).await;
                }
            }
        }
        while let Ok(told) = outcomes.try_recv() {
            self.tell(told);
        }
        let rest = self.ground.names.len() - self.told.len();
        if rest > 0 {
            self.ground.terminal.line(&format!("not run: {}", tests(rest)));
        }
    }

    /// Whether no further item is begun.
    fn is_stopped(&self) -> bool {
        let ends = |exit: &Exit| match exit {
            Exit::Interrupted | Exit::Terminated => true,
            Exit::Passed => false,
            Exit::Failed | Exit::Refused | Exit::Inconclusive => self.args.pace.fail_fast,
        };
        self.exits.iter().any(ends)
    }

    fn tell(&mut self, CaseOutcome { place, result }: CaseOutcome) {
        let is_new = self.told.insert(place);
        match result {
            // What was told of a step stands.
            Ok(_) if !is_new => {}
            Err(error) if !is_new => {
                self.ground.terminal.line(&format!("error: {}: {error}", self.ground.names[place]));
                self.exits.push(model::Faulty::fault(&error).into());
            }
            Ok(RemoteOutcome { outcome, trace }) => {
                self.exits.push(outcome.verdict.into());
                let trace = trace.unwrap_or_else(|why| {
                    let name = &self.ground.names[place];
                    self.ground.terminal.line(&format!("error: no trace of {name}: {why}"));
                    self.exits.push(Exit::Refused);
                    None
                });
                self.reports.add_at(place, outcome, trace.as_ref());
            }
            Err(error) => {
                let name = &self.ground.names[place];
                self.ground.terminal.line(&format!("error: {name}: {error}"));
                self.reports.refuse_at(place, name, error.to_string());
                self.exits.push(model::Faulty::fault(&error).into());
            }
        }
    }

    /// Asks the server to stop what was started; one more signal, and it is left.
    async fn stop(&self, signals: &mut Signals) {
        let Ground { server, terminal, stops, .. } = &self.ground;
        terminal.line("stopping");
        let stops = std::mem::take(&mut *stops.lock().unwrap_or_else(PoisonError::into_inner));
        let mut asked = JoinSet::new();
        for path in stops {
            let server = Arc::clone(server);
            asked.spawn(async move { server.body(server.request(Method::POST, &path)).await });
        }
        let stopping = async {
            while let Some(asked) = asked.join_next().await {
                if let Ok(Err(error)) = asked {
                    terminal.line(&format!("error: a run may go on at the server: {error}"));
                }
            }
        };
        tokio::select! {
            stopped = timeout(STOP_MAX, stopping) => {
                if stopped.is_err() {
                    terminal.line("error: runs may go on at the server, which did not answer in time");
                }
            }
            _ = signals.end() => {}
        }
    }
}

/// Runs one item, whose first case has this place.
async fn one(ground: Ground, item: Item, place: usize) {
    match item {
        Item::Test(test) => {
            let result = ground.test(&test.plan.id, place).await;
            ground.tell(place, result).await;
        }
        Item::Suite(suite) => {
            let places = place..place + suite.steps.len();
            if let Err(error) = ground.suite(&suite.id, place).await {
                // What was told stands; nothing is known of the others.
                let why = error.to_string();
                ground.tell(place, Err(error)).await;
                for place in places.skip(1) {
                    ground.tell(place, Ok(ground.open(place, why.clone()))).await;
                }
            }
        }
    }
}

impl Ground {
    async fn test(&self, test: &TestId, place: usize) -> Result<RemoteOutcome, ClientError> {
        let line = self.line(place);
        let start = self.server.request(Method::POST, &format!("/api/v1/tests/{test}/runs"));
        let start = start.body(self.start.to_string());
        let id = self.server.send::<RemoteRun>(start).await?.id;
        self.follow(id, place, &line).await
    }

    async fn follow(
        &self,
        run: RunId,
        place: usize,
        line: &Line,
    ) -> Result<RemoteOutcome, ClientError> {
        let stop = format!("/api/v1/runs/{run}/stop");
        self.note(|stops| stops.insert(stop.clone()));
        let result = self.server.follow(run, line).await;
        self.note(|stops| stops.remove(&stop));
        let mut outcome = result?;
        outcome.test.clone_from(&self.names[place]);
        let Traces { are_shown, folder } = &*self.traces;
        let trace = match *are_shown || folder.is_some() {
            true => traces::kept(&self.server, run, &self.tests[place], folder.as_deref()).await,
            false => Ok(None),
        };
        Ok(RemoteOutcome { outcome, trace })
    }

    /// A case that did not run, and why.
    fn open(&self, place: usize, why: String) -> RemoteOutcome {
        RemoteOutcome { outcome: Outcome::open(self.names[place].clone(), why), trace: Ok(None) }
    }

    /// Runs a suite, whose first step has this place. Steps that were followed are told here.
    async fn suite(&self, suite: &TestId, first: usize) -> Result<(), ClientError> {
        let start = self.server.request(Method::POST, &format!("/api/v1/test-suites/{suite}/runs"));
        let start = start.body(self.start.to_string());
        let mut suite_run: RemoteSuiteRun = self.server.send(start).await?;
        let path = format!("/api/v1/suite-runs/{}", suite_run.id);
        self.note(|stops| stops.insert(format!("{path}/stop")));
        let began = Instant::now();
        let mut heard = began;
        let mut steps = JoinSet::new();
        let mut followed = HashSet::new();
        loop {
            for (at, step) in suite_run.steps.iter().enumerate() {
                if let Some(run) = step.run.filter(|run| followed.insert(*run)) {
                    let (ground, place) = (self.clone(), first + at);
                    steps.spawn(async move {
                        let line = ground.line(place);
                        let result = ground.follow(run, place, &line).await;
                        drop(line);
                        ground.tell(place, result).await;
                    });
                }
            }
            if suite_run.state == "ended" {
                break;
            }
            if began.elapsed() > RUN_MAX {
                return Err(ClientError::TooLong { run: suite_run.id });
            }
            sleep(SUITE_POLL).await;
            match self.server.send(self.server.request(Method::GET, &path)).await {
                Ok(read) => {
                    suite_run = read;
                    heard = Instant::now();
                }
                Err(error) if super::may_wait(&error, heard) => {}
                Err(error) => return Err(error),
            }
        }
        while steps.join_next().await.is_some() {}
        self.note(|stops| stops.remove(&format!("{path}/stop")));
        for (at, step) in suite_run.steps.iter().enumerate().filter(|(_, step)| step.run.is_none())
        {
            let why = step.reason.clone().unwrap_or_else(|| "it did not start".to_owned());
            self.tell(first + at, Ok(self.open(first + at, why))).await;
        }
        Ok(())
    }

    fn line(&self, place: usize) -> Line {
        let doing = format!("running on {}", self.server.url);
        Line::of(&self.names[place], &doing, &self.terminal, self.telling)
    }

    async fn tell(&self, place: usize, result: Result<RemoteOutcome, ClientError>) {
        // The receiver outlives all who send, but for a signal, after which nobody listens.
        self.told.send(CaseOutcome { place, result }).await.ok();
    }

    fn note(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) {
        change(&mut self.stops.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
