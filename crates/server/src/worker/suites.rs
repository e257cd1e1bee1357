//! Suites, as durable as runs: the owner of a suite's run starts the runs of its steps and ends it with one verdict.
//!
//! It is owned under a lease and an epoch, like a run. The steps that may start are a pure function of the ended steps
//! (`runner::suite`), and those are in the database, so any server can continue where another one stopped. A step has one
//! run, whichever server starts it. Deliberately absent: the execution of runs, which is in the workers.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
    time::Duration,
};

use bus::{Bus, Hints};
use db::{
    DbError, NewRun, RunVars, SecretValues, Starter, StepOutcome, StepRun, SuiteLease, SuiteOutcome,
};
use lang::{Reference, Step};
use model::{Faulty, Place, RunId, Verdict};
use runner::suite::{needed, next};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

use crate::{
    subjects,
    telemetry::{events, log_context::within, traceparent::TraceParent},
    worker::state::Worker,
};

/// The maximum number of active suite runs.
const SUITES_MAX: usize = 64;
/// The reason of a step that did not start because the suite was stopped.
const STOPPED: &str = "stopped: the suite was cancelled before the step began";

/// Leases suite runs and executes them until the server stops; then releases the rest.
pub(crate) async fn work(worker: Arc<Worker>, stop: CancellationToken) {
    let mut suites = JoinSet::new();
    let mut hints = worker.bus.hints();
    while !stop.is_cancelled() {
        let places = SUITES_MAX - suites.len().min(SUITES_MAX);
        if places > 0 {
            let asked = Instant::now();
            match worker.db.take_suites(&worker.name, worker.config.lease, places).await {
                Ok(taken) => {
                    for suite in taken {
                        let place = suite.traceparent.as_deref();
                        let place = place.and_then(TraceParent::from_stored);
                        let run = one(Arc::clone(&worker), suite, stop.clone());
                        match place {
                            Some(place) => suites.spawn(within(place, run)),
                            None => suites.spawn(run),
                        };
                    }
                }
                Err(error) if worker.was_held_since(asked) => {
                    tracing::debug!(%error, "cannot lease suite runs while telemetry blocks the server");
                }
                Err(error) => tracing::warn!(%error, "cannot lease suite runs; trying again"),
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = waiting(&mut hints) => {}
            Some(ended) = suites.join_next(), if !suites.is_empty() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "internal error in a suite run; it is leased again when its lease has expired");
                }
            }
            () = sleep(worker.config.poll) => {}
        }
    }
    while suites.join_next().await.is_some() {}
}

/// Waits for the notification of a queued suite run.
async fn waiting(hints: &mut Hints) {
    while let Some(subject) = hints.next().await {
        if subject == subjects::suites_waiting() {
            return;
        }
    }
    std::future::pending::<()>().await;
}

/// Executes one suite run, as long as its lease is held.
async fn one(worker: Arc<Worker>, suite: SuiteLease, stop: CancellationToken) {
    let (id, epoch, lease) = (suite.id, suite.epoch, worker.config.lease);
    let mut hints = worker.bus.hints();
    let mut going = ActiveSuiteRun::new(&worker, &suite);
    loop {
        let began = Instant::now();
        match going.go_on().await {
            Ok(true) => return,
            Ok(false) => {}
            Err(error) if error.fault().is_transient() => match worker.was_held_since(began) {
                true => tracing::debug!(suite = %id, %error, "a suite run waits for telemetry"),
                false => tracing::warn!(suite = %id, %error, "a suite run waits for the database"),
            },
            Err(error) => {
                return tracing::warn!(suite = %id, epoch, %error, "a suite was given up here");
            }
        }
        tokio::select! {
            () = stop.cancelled() => {
                // The next owner need not wait for the lease to expire.
                if let Err(error) = worker.db.renew_suite(id, epoch, Duration::ZERO).await {
                    tracing::warn!(suite = %id, %error, "a suite could not be given back");
                }
                return;
            }
            () = going.news(&mut hints) => {}
            () = sleep(worker.config.poll.min(lease / 3)) => {}
        }
        match worker.db.renew_suite(id, epoch, lease).await {
            Ok(stop_at) => going.is_stopped |= stop_at.is_some(),
            Err(error) if error.fault().is_transient() => {}
            Err(error) => {
                return tracing::warn!(suite = %id, epoch, %error, "a suite was given up here");
            }
        }
    }
}

/// An active suite run.
struct ActiveSuiteRun<'a> {
    worker: &'a Worker,
    suite: &'a SuiteLease,
    steps: Vec<Step>,
    /// Steps that cannot have a run, with the reason.
    refused: BTreeMap<usize, String>,
    is_stopped: bool,
    /// The bus subjects with possible news.
    awaited: BTreeSet<String>,
}

impl<'a> ActiveSuiteRun<'a> {
    fn new(worker: &'a Worker, suite: &'a SuiteLease) -> Self {
        let place = Place { file: String::new(), line: 0, column: 0 };
        let step = |step: &db::SuiteStep| Step {
            name: step.name.clone(),
            test: Reference::Id(step.test.to_string()),
            needs: step.needs.clone(),
            place: place.clone(),
        };
        Self {
            worker,
            suite,
            steps: suite.steps.iter().map(step).collect(),
            refused: BTreeMap::new(),
            is_stopped: suite.stop_at.is_some(),
            awaited: BTreeSet::new(),
        }
    }

    /// Starts the steps that may start, or ends the suite's run. Returns true if it has ended.
    async fn go_on(&mut self) -> Result<bool, DbError> {
        let SuiteLease { id, epoch, .. } = *self.suite;
        let runs = self.worker.db.step_runs(id).await?;
        let is_begun = |step: usize| runs.iter().any(|run| run.step == step);
        let mut ended = vec![None; self.steps.len()];
        for run in &runs {
            if let (Some(place), Some(outcome)) = (ended.get_mut(run.step), &run.outcome) {
                *place = Some(outcome.verdict);
            }
        }
        for step in self.refused.keys() {
            ended[*step] = Some(Verdict::Inconclusive);
        }
        let ready = next(&self.steps, &ended).ready;
        self.awaited =
            runs.iter().filter(|run| run.outcome.is_none()).map(|run| news_of(run.run)).collect();
        self.awaited.insert(news_of(id));
        let is_over = match self.is_stopped {
            true => runs.iter().all(|run| run.outcome.is_some()),
            false => ready.is_empty(),
        };
        if is_over {
            let outcome = self.outcome(&runs, &ended);
            self.worker.db.finish_suite(id, epoch, &outcome).await?;
            self.worker.bus.hint(subjects::run_news(id));
            return Ok(true);
        }
        if !self.is_stopped {
            for step in ready.into_iter().filter(|step| !is_begun(*step)) {
                self.start(step, &runs).await?;
            }
        }
        Ok(false)
    }

    async fn start(&mut self, step: usize, runs: &[StepRun]) -> Result<(), DbError> {
        let SuiteLease { id, epoch, project, .. } = self.suite;
        let world = self.worker.world;
        let accepted_at = world.now();
        let (vars, secrets) = self.vars(step, runs);
        if let Some((name, _)) = secrets.iter().find(|(_, value)| value.is_none()) {
            let why = format!(
                "the output `{name}` of a step that it needs holds a secret, which a server hands on only sealed: set `secrets.keys`"
            );
            self.refused.insert(step, why);
            // The steps that need it are checked at once.
            self.worker.bus.hint(subjects::run_news(*id));
            return Ok(());
        }
        let run = NewRun {
            id: RunId::new(accepted_at, world.random()),
            project: project.clone(),
            test: self.suite.steps[step].test.clone(),
            accepted_at,
            traceparent: self.suite.traceparent.clone(),
            vars,
            timeout: None,
            key: None,
            starter: Starter::Suite,
        };
        match self.worker.db.start_step((*id, *epoch), step, (&run, &secrets)).await {
            Ok(_) => {
                events::run_accepted(run.id, &run.project, &run.test);
                self.awaited.insert(news_of(run.id));
                self.worker.bus.hint_one(subjects::runs_waiting());
                Ok(())
            }
            Err(error @ DbError::NoSuchTest { .. }) => {
                self.refused.insert(step, error.to_string());
                // The steps that need it are checked at once.
                self.worker.bus.hint(subjects::run_news(*id));
                Ok(())
            }
            Err(error) => Err(error),
        }
    }

    /// Returns the variables of a step: those of the suite, overridden by the outputs of the steps that it needs; a later step
    /// overrides an earlier one. Secrets are returned separately.
    fn vars(&self, step: usize, runs: &[StepRun]) -> (RunVars, SecretValues) {
        let (mut vars, mut secrets) = (self.suite.vars.clone(), SecretValues::new());
        for before in needed(&self.steps, step) {
            let Some(run) = runs.iter().find(|run| run.step == before) else { continue };
            let outputs = run.outcome.iter().flat_map(|outcome| &outcome.judgement.outputs);
            for output in outputs {
                let name = &output.name;
                if let Some(secret) = run.secret_outputs.get(name) {
                    vars.values.remove(name);
                    secrets.insert(name.clone(), secret.clone());
                } else if let Some(value) = &output.value {
                    secrets.remove(name);
                    vars.values.insert(name.clone(), value.clone());
                }
            }
        }
        (vars, secrets)
    }

    fn outcome(&self, runs: &[StepRun], ended: &[Option<Verdict>]) -> SuiteOutcome {
        let steps: Vec<StepOutcome> = self
            .suite
            .steps
            .iter()
            .enumerate()
            .map(|(at, step)| {
                let run = runs.iter().find(|run| run.step == at).map(|run| run.run);
                let verdict = ended[at].or(Some(Verdict::Inconclusive));
                let reason = run.is_none().then(|| self.why_not(at, ended));
                let (name, test) = (step.name.clone(), step.test.clone());
                StepOutcome { name, test, run, verdict, reason }
            })
            .collect();
        let has = |verdict| steps.iter().any(|step| step.verdict == Some(verdict));
        let verdict = match (has(Verdict::Failed), has(Verdict::Inconclusive)) {
            (true, _) => Verdict::Failed,
            (false, true) => Verdict::Inconclusive,
            (false, false) => Verdict::Passed,
        };
        SuiteOutcome { verdict, steps }
    }

    /// Returns why a step has no run.
    fn why_not(&self, step: usize, ended: &[Option<Verdict>]) -> String {
        if let Some(why) = self.refused.get(&step) {
            return why.clone();
        }
        if self.is_stopped {
            return STOPPED.to_owned();
        }
        let did_not_pass = |need: &&usize| ended[**need] != Some(Verdict::Passed);
        let need = self.steps[step].needs.iter().find(did_not_pass);
        let need = need.map_or("", |need| &self.steps[*need].name);
        format!("it needs the step `{need}`, which did not pass")
    }

    /// Waits for a notification about the suite or one of its runs.
    async fn news(&self, hints: &mut Hints) {
        while let Some(subject) = hints.next().await {
            if self.awaited.contains(&subject.0) {
                return;
            }
        }
        std::future::pending::<()>().await;
    }
}

fn news_of(run: RunId) -> String {
    subjects::run_news(run).0
}
