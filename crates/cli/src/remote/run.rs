//! `run --server`: runs tests and suites on a server, N at a time, with the same progress and reports as local runs.
//!
//! The client stores the documents on the server first. The server runs a suite, and the client follows its steps. When the
//! client is stopped, it stops the runs that it started. Deliberately absent: the execution, which is the server's task.

use std::{
    collections::{BTreeSet, HashSet},
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use http::Method;
use model::{ErrorCode, Outcome, RunId, TestId, Trace};
use server::config::Environment;
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, timeout},
};

use super::{
    client::{ENDED, RemoteRun, RemoteSuiteRun, Server, connect},
    error::{ClientError, RUN_MAX},
    live::may_wait,
    traces,
};
use crate::{
    args,
    beside::Beside,
    discovery::{Item, Test, tests},
    documents::read,
    exit::Exit,
    reports::Reports,
    run::{self, JOBS, Line, ProgressLevel, Schedule, Signals},
    terminal::Terminal,
};

/// The polling interval for new steps of a suite run.
const SUITE_POLL: Duration = Duration::from_millis(250);
/// The timeout for the requests that stop active runs.
const STOP_MAX: Duration = Duration::from_secs(5);
/// The upper bound for outcomes queued for the reports.
const TOLD_MAX: usize = 64;

/// The result of a case, and its index among all.
struct CaseOutcome {
    place: usize,
    result: Result<RemoteOutcome, ClientError>,
}

/// An outcome and its trace, if that is requested.
struct RemoteOutcome {
    outcome: Outcome,
    /// None also if no trigger was fired. The error is the reason why the trace could not be fetched or written.
    trace: Result<Option<Trace>, String>,
}

/// The use of traces.
struct Traces {
    /// Whether a report shows them.
    are_shown: bool,
    /// The folder that they are written to.
    folder: Option<PathBuf>,
}

/// The shared state of all items.
#[derive(Clone)]
struct Ground {
    server: Arc<Server>,
    /// The start parameters of every run, as JSON; empty without parameters, which older servers support too.
    start: Arc<str>,
    /// The names of the cases, by index.
    names: Arc<Vec<String>>,
    /// The tests of the cases, by index.
    tests: Arc<Vec<TestId>>,
    traces: Arc<Traces>,
    terminal: Terminal,
    telling: ProgressLevel,
    told: mpsc::Sender<CaseOutcome>,
    /// The paths of the requests that stop all active runs.
    stops: Arc<Mutex<BTreeSet<String>>>,
}

/// Runs tests and suites on a server. Writes the reports even if nothing could be run.
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
    let mut signals = Signals::listen().map_err(|error| terminal.without_signals(&error))?;
    let server = connect(&args.connection, environment, terminal)?;
    let (items, beside) = run::items(args, terminal)?;
    let cases = Schedule::new(&items, 1);
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

/// Returns the start parameters of every run.
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

/// Stores the documents of all items on the server, each file once: documents that apply to all first, tests before the
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
            let applied = server.apply(&text, false).await;
            terminal.line(&applied.map_err(|error| terminal.refuse(&error))?.notices);
        }
    }
    Ok(())
}

/// The active items.
struct RemoteRound<'a, 'r> {
    args: &'a args::RunArgs,
    ground: Ground,
    reports: &'a mut Reports<'r>,
    /// The indexes of the reported cases.
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
                        self.ground.terminal.error(ErrorCode::Internal, format_args!("a run broke off here: {broken}"));
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

    /// Whether no further item may start.
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
            // The reported outcome of a step stays.
            Ok(_) if !is_new => {}
            Err(error) if !is_new => {
                self.exits.push(self.ground.terminal.refuse_for(&self.ground.names[place], &error));
            }
            Ok(RemoteOutcome { outcome, trace }) => {
                self.exits.push(outcome.verdict.into());
                let trace = trace.unwrap_or_else(|why| {
                    let name = &self.ground.names[place];
                    self.ground
                        .terminal
                        .error(ErrorCode::TraceInvalid, format_args!("no trace of {name}: {why}"));
                    self.exits.push(Exit::Refused);
                    None
                });
                self.reports.add_at(place, outcome, trace.as_ref());
            }
            Err(error) => {
                let name = &self.ground.names[place];
                self.exits.push(self.ground.terminal.refuse_for(name, &error));
                self.reports.refuse_at(place, name, error.to_string());
            }
        }
    }

    /// Requests the server to stop the started runs; a second signal aborts the wait.
    async fn stop(&self, signals: &mut Signals) {
        let Ground { server, terminal, stops, .. } = &self.ground;
        terminal.line("stopping");
        let stops = std::mem::take(&mut *stops.lock().unwrap_or_else(PoisonError::into_inner));
        let mut asked = JoinSet::new();
        for path in stops {
            let server = Arc::clone(server);
            asked.spawn(async move {
                server.body(server.request_in_project(Method::POST, &path)).await
            });
        }
        let stopping = async {
            while let Some(asked) = asked.join_next().await {
                if let Ok(Err(error)) = asked {
                    terminal.error(
                        ErrorCode::RunActive,
                        format_args!("a run may go on at the server: {error}"),
                    );
                }
            }
        };
        tokio::select! {
            stopped = timeout(STOP_MAX, stopping) => {
                if stopped.is_err() {
                    terminal.error(ErrorCode::RunActive, "runs may go on at the server, which did not answer in time");
                }
            }
            _ = signals.end() => {}
        }
    }
}

/// Runs one item; `place` is the index of its first case.
async fn one(ground: Ground, item: Item, place: usize) {
    match item {
        Item::Test(test) => {
            let result = ground.test(&test.plan.id, place).await;
            ground.tell(place, result).await;
        }
        Item::Suite(suite) => {
            let places = place..place + suite.steps.len();
            if let Err(error) = ground.suite(&suite.id, place).await {
                // The reported outcomes stay; the other steps are unknown.
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
        let start =
            self.server.request_in_project(Method::POST, &format!("/api/v1/tests/{test}/runs"));
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

    /// Returns the outcome of a case that did not run, with the reason.
    fn open(&self, place: usize, why: String) -> RemoteOutcome {
        RemoteOutcome { outcome: Outcome::open(self.names[place].clone(), why), trace: Ok(None) }
    }

    /// Runs a suite; `first` is the index of its first step. Reports each step that it followed.
    async fn suite(&self, suite: &TestId, first: usize) -> Result<(), ClientError> {
        let start = self
            .server
            .request_in_project(Method::POST, &format!("/api/v1/test-suites/{suite}/runs"));
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
            if suite_run.state == ENDED {
                break;
            }
            if began.elapsed() > RUN_MAX {
                return Err(ClientError::TooLong { run: suite_run.id });
            }
            sleep(SUITE_POLL).await;
            match self.server.send(self.server.request_in_project(Method::GET, &path)).await {
                Ok(read) => {
                    suite_run = read;
                    heard = Instant::now();
                }
                Err(error) if may_wait(&error, heard) => {}
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
        // The receiver outlives all senders, except after a signal, when nothing receives any more.
        self.told.send(CaseOutcome { place, result }).await.ok();
    }

    fn note(&self, change: impl FnOnce(&mut BTreeSet<String>) -> bool) {
        change(&mut self.stops.lock().unwrap_or_else(PoisonError::into_inner));
    }
}
