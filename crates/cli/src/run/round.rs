//! One round: runs every selected test, N at a time, and reports the results.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    sync::Arc,
};

use lang::{Evidence, StepOutput, Vars};
use model::{ErrorCode, Outcome, Trace, Verdict};
use runner::{FinishedRun, RunError};
use tokio::{
    sync::mpsc,
    task::{Id, JoinError, JoinSet},
};

use super::{
    ports::ResponseNotifier,
    progress::{Line, ProgressLevel},
    schedule::Schedule,
    session::{Session, SessionError},
    signals::Signals,
    system::{RunningSystem, SystemError},
    traces,
    watches::{JudgedRun, Try, Watches},
};
use crate::{args, exit::Exit, files, reports::Reports, terminal::Terminal};

/// The default concurrency of tests. Tests wait far more than they compute, so that the number of cores is no measure; and a
/// system that cannot handle four concurrent requests is rare.
pub(crate) const JOBS: u16 = 4;

/// The inputs of a round.
#[derive(Debug)]
pub(super) struct Round<'a> {
    pub(super) session: &'a Arc<Session>,
    pub(super) args: &'a args::RunArgs,
    pub(super) vars: &'a Vars,
    pub(super) telling: ProgressLevel,
    pub(super) terminal: &'a Terminal,
}

/// The result of a round.
#[derive(Debug, Default)]
pub(super) struct RoundResult {
    /// Further exits of the command.
    pub(super) exits: Vec<Exit>,
    /// The reported cases, each with its exit.
    pub(super) cases: BTreeMap<usize, Exit>,
    /// The case that stopped the round (`--fail-fast`).
    pub(super) stopped_by: Option<usize>,
    /// Cases that were not run.
    pub(super) left: BTreeSet<usize>,
    pub(super) watches: Watches,
}

/// The upper bound for runs that only wait for spans, beside those that `--jobs` counts.
const WAITING_MAX: usize = 64;

/// The upper bound for queued notifications of responses: more than concurrent runs.
const ANSWERED_MAX: usize = 1024;

/// The bytes of buffered spans at which no further run may start to wait beside the jobs.
const WAITING_BYTES_MAX: usize = 256 << 20;

/// An active round.
struct ActiveRound<'a, 'r> {
    round: &'a Round<'a>,
    schedule: &'a mut Schedule,
    reports: &'a mut Reports<'r>,
    running: JoinSet<CaseResult>,
    cases: HashMap<Id, usize>,
    /// Cases with a response of their trigger, and the channel that reports them.
    waiting: BTreeSet<usize>,
    answered: (mpsc::Sender<usize>, mpsc::Receiver<usize>),
    /// Cases that are retried.
    tried: HashMap<usize, RetryState>,
    told: BTreeSet<usize>,
    is_stopped: bool,
    ended: RoundResult,
}

/// The results of the runs so far of a case that is retried.
struct RetryState {
    /// The outcome of the last run.
    outcome: Outcome,
    trace: Option<Arc<Trace>>,
    /// The verdicts of the runs before it.
    earlier: Vec<Verdict>,
}

/// The result of one run.
struct CaseResult {
    result: Result<(FinishedRun, Option<Arc<RunningSystem>>), SessionError>,
    outputs: Vec<StepOutput>,
    /// The reason why its trace could not be written.
    unkept: Option<String>,
}

impl RoundResult {
    /// Returns the exit of the command.
    pub(super) fn exit(&self) -> Exit {
        Exit::over(self.exits.iter().chain(self.cases.values()).copied())
    }

    /// Returns the items that were run, each with whether all of its cases passed.
    pub(super) fn items(&self, schedule: &Schedule) -> BTreeMap<usize, bool> {
        let item = |case: &usize| schedule.cases()[*case].item;
        let mut items = BTreeMap::new();
        for (case, exit) in &self.cases {
            *items.entry(item(case)).or_insert(true) &= *exit == Exit::Passed;
        }
        for case in &self.left {
            items.entry(item(case)).and_modify(|has_passed| *has_passed = false);
        }
        items
    }

    /// Whether a signal interrupted the round.
    pub(super) fn is_interrupted(&self) -> bool {
        self.exits.iter().any(|exit| matches!(exit, Exit::Interrupted | Exit::Terminated))
    }
}

impl Round<'_> {
    /// Runs all cases, or as many as the flags and the signals allow.
    pub(super) async fn run(
        &self,
        schedule: &mut Schedule,
        reports: &mut Reports<'_>,
        signals: &mut Signals,
    ) -> RoundResult {
        let mut going = ActiveRound {
            round: self,
            schedule,
            reports,
            running: JoinSet::new(),
            cases: HashMap::new(),
            waiting: BTreeSet::new(),
            answered: mpsc::channel(ANSWERED_MAX),
            tried: HashMap::new(),
            told: BTreeSet::new(),
            is_stopped: false,
            ended: RoundResult::default(),
        };
        going.begin(signals).await;
        loop {
            going.fill();
            let joined = tokio::select! {
                joined = going.running.join_next_with_id() => joined,
                Some(case) = going.answered.1.recv() => {
                    going.waiting.insert(case);
                    continue;
                }
                exit = signals.end() => {
                    self.terminal.line("stopping");
                    going.ended.exits.push(exit);
                    going.stop().await;
                    break;
                }
            };
            match joined {
                Some(joined) => going.take(joined),
                None => break,
            }
        }
        going.leave_rest();
        going.ended
    }

    fn jobs(&self) -> usize {
        let default = if self.args.system.drain { 1 } else { JOBS };
        usize::from(self.args.pace.jobs.unwrap_or(default))
    }
}

impl RetryState {
    /// Returns the verdicts of all runs.
    fn verdicts(mut self) -> Vec<Verdict> {
        self.earlier.push(self.outcome.verdict);
        self.earlier
    }
}

impl ActiveRound<'_, '_> {
    /// Aborts the active runs. Reports those that had finished but were not processed yet.
    async fn stop(&mut self) {
        self.is_stopped = true;
        self.running.abort_all();
        while let Some(joined) = self.running.join_next_with_id().await {
            if !joined.as_ref().is_err_and(JoinError::is_cancelled) {
                self.take(joined);
            }
        }
    }

    /// Starts the system before the first test, so that the duration of a test excludes it.
    async fn begin(&mut self, signals: &mut Signals) {
        let Round { session, vars, .. } = self.round;
        let cases = self.schedule.cases();
        let target = cases.iter().find_map(|case| session.target(&case.test.plan, vars));
        tokio::select! {
            begun = session.begin(target) => match begun {
                // Every test would report the same error, so it is reported once.
                Err(error @ (SystemError::Start { .. } | SystemError::Taken { .. })) => {
                    self.refuse(0, &error);
                    self.is_stopped = true;
                }
                // Every test then reports why the system is not ready.
                Err(SystemError::NotReady { .. } | SystemError::Ended { .. }) | Ok(()) => {}
            },
            exit = signals.end() => {
                self.ended.exits.push(exit);
                self.is_stopped = true;
            }
        }
    }

    /// Prints the number of cases that were not run. A case that was run in part has not passed.
    fn leave_rest(&mut self) {
        let mut tried: Vec<_> = self.tried.keys().copied().collect();
        tried.sort_unstable();
        for case in tried {
            self.no_run(case, "the run was stopped".to_owned());
        }
        let rest = (0..self.schedule.cases().len()).filter(|case| !self.told.contains(case));
        self.ended.left = rest.collect();
        if !self.ended.left.is_empty() {
            let rest = crate::discovery::tests(self.ended.left.len());
            self.round.terminal.line(&format!("not run: {rest}"));
        }
    }

    /// Starts cases while the limits allow it.
    fn fill(&mut self) {
        while let Some((case, why)) = self.schedule.skipped() {
            let outcome = Outcome::open(self.schedule.cases()[case].name.clone(), why);
            self.tell(case, outcome, None);
        }
        while !self.is_stopped && self.has_room() {
            let Some(case) = self.schedule.start() else { return };
            self.spawn(case);
        }
    }

    /// Whether a further run may start. Runs that only wait for spans do not count as jobs, up to a limit.
    fn has_room(&self) -> bool {
        let has_job = self.running.len() - self.waiting.len() < self.round.jobs();
        let held = self.round.session.inbox.bytes();
        has_job && self.waiting.len() < WAITING_MAX && held < WAITING_BYTES_MAX
    }

    /// Returns the notifier for a run that only waits for spans. There is none with one job, which means one test at a time, with
    /// `--drain`, since a drained command belongs to its test, and for a step of a suite, which keeps its turn.
    fn response_notifier(&self, case: usize) -> Option<ResponseNotifier> {
        let is_in_turn = self.round.jobs() == 1 || self.round.args.system.drain;
        let is_apart = !is_in_turn && !self.schedule.is_step(case);
        is_apart.then(|| ResponseNotifier { case, to: self.answered.0.clone() })
    }

    fn spawn(&mut self, case: usize) {
        let vars = self.schedule.vars(case, self.round.vars);
        let is_step = self.schedule.is_step(case);
        let Round { session, args, telling, terminal, .. } = self.round;
        let (session, terminal, telling) = (Arc::clone(session), (*terminal).clone(), *telling);
        let folder = args.output.traces.clone();
        let of = &self.schedule.cases()[case];
        let (name, plan) = (of.name.clone(), Arc::clone(&of.test.plan));
        let answered = self.response_notifier(case);
        let handle = self.running.spawn(async move {
            let line = Line::begin(&name, &terminal, telling);
            let result = session.run(&plan, &vars, &line, answered).await;
            let (mut outputs, mut unkept) = (Vec::new(), None);
            if let Ok((finished, _)) = &result {
                if is_step {
                    outputs = taken(&plan, &vars, finished);
                }
                if let (Some(folder), Some(trace)) = (folder, &finished.trace) {
                    unkept = traces::keep(&folder, &plan.id, trace).err();
                }
            }
            CaseResult { result, outputs, unkept }
        });
        self.cases.insert(handle.id(), case);
    }

    fn take(&mut self, joined: Result<(Id, CaseResult), JoinError>) {
        let id = joined.as_ref().map_or_else(JoinError::id, |(id, _)| *id);
        let Some(case) = self.cases.remove(&id) else { return };
        // Its last notification may still be queued.
        while let Ok(answered) = self.answered.1.try_recv() {
            self.waiting.insert(answered);
        }
        self.waiting.remove(&case);
        let done = match joined {
            Ok((_, done)) => done,
            Err(broken) => return self.no_run(case, format!("the run broke off: {broken}")),
        };
        if let Some(why) = done.unkept {
            self.round
                .terminal
                .error(ErrorCode::FileUnwritable, format_args!("the trace cannot be kept: {why}"));
            self.ended.exits.push(Exit::Refused);
        }
        match done.result {
            Ok((finished, running)) => self.finished(case, (finished, running), done.outputs),
            Err(SessionError::System(
                error @ (SystemError::Start { .. } | SystemError::Taken { .. }),
            )) => {
                self.refuse(case, &error);
                self.is_stopped = true;
            }
            Err(SessionError::System(error)) => self.no_run(case, named(&error)),
            // A variable that an earlier step did not set is no error of the document.
            Err(SessionError::Run(RunError::Resolve(error))) if self.schedule.has_needs(case) => {
                self.no_run(case, named(&error));
            }
            Err(SessionError::File(error)) => self.refuse(case, &error),
            Err(SessionError::Store(error)) => self.refuse(case, &error),
            Err(SessionError::Run(error)) => self.refuse(case, &error),
        }
    }

    fn finished(
        &mut self,
        case: usize,
        (finished, running): (FinishedRun, Option<Arc<RunningSystem>>),
        outputs: Vec<StepOutput>,
    ) {
        let FinishedRun { mut outcome, watch, seen, trace, .. } = finished;
        let verdict = outcome.verdict;
        self.round.session.learn(&seen);
        outcome.test.clone_from(&self.schedule.cases()[case].name);
        let mut earlier = self.tried.remove(&case).map_or_else(Vec::new, RetryState::verdicts);
        let retries = self.round.args.pace.retries.unwrap_or(0) as usize;
        let is_repeated = verdict != Verdict::Passed && earlier.len() < retries && !self.is_stopped;
        if !is_repeated {
            outcome.earlier.clone_from(&earlier);
        }
        if let Some(watch) = watch {
            let plan = Arc::clone(&self.schedule.cases()[case].test.plan);
            let of = Try { case, plan, is_repeated };
            let run = JudgedRun {
                watch,
                outcome: outcome.clone(),
                spans: trace.as_deref().map_or(0, Trace::len),
                session: Arc::clone(self.round.session),
                running,
                line: Line::silent(&outcome.test, self.round.terminal),
            };
            self.ended.watches.add(of, run);
        }
        if is_repeated {
            let left = retries - earlier.len() - 1;
            let words =
                format!("{}: {}, trying again ({left} left)", outcome.test, verdict.as_str());
            self.round.terminal.line(&words);
            let earlier = std::mem::take(&mut earlier);
            self.tried.insert(case, RetryState { outcome, trace, earlier });
            return self.spawn(case);
        }
        self.schedule.end(case, verdict, outputs);
        self.tell(case, outcome, trace.as_deref());
    }

    /// Reports a case that could not be run: if this was a retry, the outcome of the last run stays.
    fn no_run(&mut self, case: usize, why: String) {
        let Some(RetryState { mut outcome, trace, earlier }) = self.tried.remove(&case) else {
            let outcome = Outcome::open(self.schedule.cases()[case].name.clone(), why);
            return self.tell(case, outcome, None);
        };
        outcome.earlier = earlier;
        outcome.reasons.push(format!("it was not tried again: {why}"));
        self.schedule.end(case, outcome.verdict, Vec::new());
        self.tell(case, outcome, trace.as_deref());
    }

    /// Reports the final outcome of a case.
    fn tell(&mut self, case: usize, outcome: Outcome, trace: Option<&Trace>) {
        let verdict = outcome.verdict;
        if outcome.run_id.is_none() {
            self.schedule.end(case, verdict, Vec::new());
        }
        self.reports.add_at(case, outcome, trace);
        self.note(case, verdict.into());
    }

    fn refuse(&mut self, case: usize, error: &impl model::Faulty) {
        let name = &self.schedule.cases()[case].name;
        let exit = self.round.terminal.refuse_for(name, error);
        if self.tried.contains_key(&case) {
            self.ended.exits.push(exit);
            return self.no_run(case, error.to_string());
        }
        self.reports.refuse_at(case, name, error.to_string());
        self.schedule.end(case, Verdict::Inconclusive, Vec::new());
        self.note(case, exit);
    }

    fn note(&mut self, case: usize, exit: Exit) {
        self.told.insert(case);
        self.ended.cases.insert(case, exit);
        if self.round.args.pace.fail_fast && exit != Exit::Passed && !self.is_stopped {
            self.is_stopped = true;
            self.ended.stopped_by = Some(case);
        }
    }
}

/// Returns the outputs of a run, as later steps receive them.
fn taken(plan: &lang::Plan, vars: &Vars, finished: &FinishedRun) -> Vec<StepOutput> {
    let outcome = &finished.outcome;
    let Some(run) = outcome.run_id else { return Vec::new() };
    let seed = runner::seed(run);
    let Ok(mut resolved) = lang::resolve(plan, vars, &seed) else { return Vec::new() };
    let asked = files::read(plan).ok();
    let asked = asked.and_then(|files| lang::request(plan, vars, &seed, &files).ok());
    asked.iter().for_each(|asked| resolved.hide(asked));
    let evidence = Evidence {
        trace: finished.trace.as_deref(),
        trigger: finished.trigger.as_ref().map(|trigger| trigger.id),
        answer: Some(&finished.answer),
        settlement: outcome.settlement.as_ref(),
    };
    lang::outputs(&resolved, &evidence)
}

/// Returns an error as a reason of a verdict, with its name last.
fn named(error: &impl model::Faulty) -> String {
    format!("{error} [{}]", error.code())
}
