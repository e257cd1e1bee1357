//! The execution of one run by a worker: from its stored state to its final verdict, which is written once.

use std::sync::Arc;

use bus::Bus;
use db::{DamagedRun, Db, DbError, OtlpTrace, RunLease, SecretValues};
use lang::{Document, Evidence, Files, Plan, Reference, Secrets, SettleProfile, Vars};
use model::{
    DocumentKind, Faulty, LearnedProfile, Outcome, RunEvent, RunId, Step, StepTime,
    SupersededVerdict, Timestamp, Trace, Verdict, What,
    trace::{SpanData, TraceFull},
};
use runner::{FinishedRun, Job, LeaseLost, Limits, Ports, RunError, Share};

use super::{
    late::LateRun,
    lease_term::{STALLS_MAX, is_given_up},
    ports::{self, WorkerPorts},
    slots::Slot,
    state::{LeasedRun, Worker},
    stores::{StoreDocuments, StoresError},
};
use crate::{
    subjects,
    telemetry::{
        call::Call,
        catalogue::attribute,
        events,
        spans::{self, RunSpan, RunTrace, send_run},
    },
    worker::{gates::gates, variables::variables},
};

/// The reason of a run that was stopped.
const STOPPED: &str =
    "stopped: the run was cancelled before it had its verdict; run it again if needed";

/// Executes one run, as long as its lease is held. Returns the state to watch it for late spans.
pub(super) async fn one(worker: Arc<Worker>, held: LeasedRun) -> Option<LateRun> {
    let LeasedRun { taken, slot, trace, asked } = held;
    let _note = InternalErrorNote;
    let flights = &worker.shared.flights;
    let flight = flights.begin((taken.run_id, taken.epoch), worker.config.lease, asked);
    let ports = WorkerPorts::new(&worker, &flight.lease, trace, &taken);
    let ended = tokio::select! {
        result = execute(&worker, &taken, ports, slot) => result,
        lost = flight.lease.over() => Err(lost),
    };
    match ended {
        Ok(late) => late,
        Err(lost) => {
            tracing::warn!(
                { {attribute::RUN_ID} = %taken.run_id, epoch = taken.epoch, reason = %lost },
                "a run was given up here"
            );
            None
        }
    }
}

/// Logs that a run ended by an internal error of its task, where the log knows the run.
struct InternalErrorNote;

impl Drop for InternalErrorNote {
    fn drop(&mut self) {
        if std::thread::panicking() {
            tracing::error!(
                "internal error in a run; it is leased again when its lease has expired"
            );
        }
    }
}

/// Ends a run with a row that cannot be decoded; another lease could not decode it either.
pub(super) async fn end_damaged(
    worker: Arc<Worker>,
    damaged: DamagedRun,
    _slot: Slot,
) -> Option<LateRun> {
    let DamagedRun { run_id, epoch, test, reason, .. } = damaged;
    tracing::error!({ {attribute::RUN_ID} = %run_id, reason }, "a run cannot be read, and is ended");
    let reason = format!("{reason}; look for what else has written to the database");
    let outcome = bare(run_id, test, reason);
    let at = worker.world.now();
    let events = [RunEvent { at, what: What::Judged { verdict: outcome.verdict } }];
    let finished = db::RunCompletion { outcome: &outcome, events: &events, trace: None };
    match worker.db.finish(run_id, epoch, &finished).await {
        Ok(()) => worker.bus.hint(subjects::run_news(run_id)),
        Err(error) => {
            tracing::warn!(
                { {attribute::RUN_ID} = %run_id, %error },
                "the end of a run that cannot be read is not stored; it is tried again when its lease is over"
            );
        }
    }
    None
}

/// The maximum size of a document that is compiled on the run's own task; a larger one takes too long for other tasks.
const DOCUMENT_SMALL_BYTES: usize = 16 << 10;

async fn execute(
    worker: &Worker,
    taken: &RunLease,
    ports: WorkerPorts<'_>,
    mut slot: Slot,
) -> Result<Option<LateRun>, LeaseLost> {
    ports.debug(format_args!("leased with epoch {}", taken.epoch));
    let mut steps = vec![StepTime {
        step: Step::Queue,
        began: taken.accepted_at,
        ended: worker.world.now().max(taken.accepted_at),
    }];
    let began = worker.world.now();
    let plan = match taken.stalls {
        stalls if is_given_up(stalls) => Err(format!(
            "given up: {STALLS_MAX} workers had the run, and each stalled or died, or lost the database for longer than its \
             lease; see their logs"
        )),
        _ if taken.test.document.len() <= DOCUMENT_SMALL_BYTES => compile(taken),
        _ => {
            let taken = taken.clone();
            ports.share().run(move || compile(&taken)).await
        }
    };
    steps.push(StepTime { step: Step::Compile, began, ended: worker.world.now() });
    let resolve_began = worker.world.now();
    let result = match &plan {
        _ if taken.stop_at.is_some() => RunEnd::Stopped,
        Err(reason) => RunEnd::Open(reason.clone()),
        Ok(plan) => tokio::select! {
            result = judged(worker, taken, plan, (&ports, &mut slot)) => result?,
            () = ports.stopped() => RunEnd::Stopped,
        },
    };
    let at = worker.world.now();
    let is_stopped = matches!(result, RunEnd::Stopped);
    let mut ended = match result {
        RunEnd::Judged(finished) => RunResult::from_run(*finished, ports.take_events()),
        RunEnd::Open(reason) => RunResult::without_run(taken, &ports, reason, at),
        RunEnd::Stopped => RunResult::without_run(taken, &ports, STOPPED.to_owned(), at),
    };
    let resolved = || StepTime { step: Step::Resolve, began: resolve_began, ended: at };
    match ended.outcome.steps.iter_mut().find(|step| step.step == Step::Resolve) {
        // Reading the variables is part of the resolve step, but the runner does not measure it.
        Some(resolve) => resolve.began = resolve_began,
        None if plan.is_ok() && !is_stopped => steps.push(resolved()),
        None => {}
    }
    if is_stopped && let Some(attempt) = ports.attempt() {
        // The spans of the database queries are children of this step. Its actual progress is unknown.
        steps.push(StepTime { ended: attempt.at.max(resolve_began), ..resolved() });
        let ended = ports.lingers_since().unwrap_or(at).max(attempt.at);
        steps.push(StepTime { step: Step::Trigger, began: attempt.at, ended });
    }
    steps.append(&mut ended.outcome.steps);
    ended.outcome.steps = steps;
    supersede(&mut ended.outcome, ports.provisional());
    let (watch, seen) = (ended.watch.take(), std::mem::take(&mut ended.seen));
    let outcome = record(worker, taken, &ports, ended).await?;
    ports.debug(format_args!("the verdict is stored: {}", outcome.verdict.as_str()));
    worker.shared.learning.note(&taken.project, seen);
    Ok(LateRun::of(taken, watch, &outcome, ports))
}

/// The end of a run on this worker.
enum RunEnd {
    Judged(Box<FinishedRun>),
    /// The run could not be judged, with the reason.
    Open(String),
    Stopped,
}

async fn judged(
    worker: &Worker,
    taken: &RunLease,
    plan: &Plan,
    (ports, slot): (&WorkerPorts<'_>, &mut Slot),
) -> Result<RunEnd, LeaseLost> {
    let within = ports.trace().step(Step::Resolve);
    let asked = (&worker.watch, within);
    let vars =
        match variables(asked, &worker.db, &taken.project, (&taken.vars, &taken.secrets)).await {
            Ok(vars) => vars,
            // Nothing was sent: the next owner of the run queries again.
            Err(error) if error.fault().is_transient() => return Err(LeaseLost(error.to_string())),
            Err(error) => return Ok(RunEnd::Open(error.to_string())),
        };
    ports.hide(Secrets::of(&vars));
    let through_stores = match stores(worker, taken, (plan, &vars), ports).await {
        Ok(learned) => learned,
        Err(error) if error.fault().is_transient() => return Err(LeaseLost(error.to_string())),
        Err(error) => return Ok(RunEnd::Open(error.to_string())),
    };
    let progress = match ports.progress(taken).await {
        Ok(progress) => progress,
        Err(error @ DbError::Fenced { .. }) => return Err(ports::lost(&error)),
        Err(error) => return Ok(RunEnd::Open(error.to_string())),
    };
    // No run gets more time than the operator allows.
    let timeout = taken.timeout.map_or(worker.config.timeout, |it| it.min(worker.config.timeout));
    // A worker that continues a run gives it the rest of its time.
    let spent = taken.progress.attempt().map(|attempt| worker.world.now().since(attempt.at));
    let job = Job {
        run_id: taken.run_id,
        plan,
        vars: &vars,
        files: &Files::default(),
        progress,
        limits: Limits::default(),
        learned: through_stores.as_ref().unwrap_or(&taken.learned),
        started: None,
        timeout: Some(timeout.saturating_sub(spent.unwrap_or_default())),
    };
    match runner::run(job, ports).await {
        Ok(finished) => {
            let finished = conclude(finished, ports, slot).await?;
            if taken.suite.is_some() && !finished.outcome.judgement.outputs.is_empty() {
                keep_secret_outputs(taken, (plan, &vars), &finished, ports).await?;
            }
            Ok(RunEnd::Judged(Box::new(finished)))
        }
        Err(RunError::Lost(lost)) => Err(lost),
        Err(error @ (RunError::Resolve(_) | RunError::Full(_))) => {
            Ok(RunEnd::Open(error.to_string()))
        }
    }
}

/// Lets the run query its trace stores. Returns the learned profile with what is known of them, if there are any.
async fn stores(
    worker: &Worker,
    taken: &RunLease,
    (plan, vars): (&Plan, &Vars),
    ports: &WorkerPorts<'_>,
) -> Result<Option<LearnedProfile>, StoresError> {
    let is_needed = taken.has_stores || !plan.stores().is_empty();
    if !is_needed || plan.skip_trace_collection() {
        return Ok(None);
    }
    let Worker { db, watch, .. } = worker;
    let (project, within) = (&taken.project, ports.trace().step(Step::Resolve));
    let documents = StoreDocuments { db, project, watch: (watch, within) };
    let stores = worker.stores.of(plan, documents, vars).await?;
    if stores.is_empty() {
        return Ok(None);
    }
    let known = db.learned_stores(project);
    let known = watch.db(within, Call("SELECT", "learned_stores"), known).await?;
    ports.query(stores);
    Ok(Some(LearnedProfile { stores: known, ..taken.learned.clone() }))
}

/// Stores the secret outputs of a step for the steps that need them: the outcome has `***` in their place.
async fn keep_secret_outputs(
    taken: &RunLease,
    (plan, vars): (&Plan, &Vars),
    finished: &FinishedRun,
    ports: &WorkerPorts<'_>,
) -> Result<(), LeaseLost> {
    let seed = runner::seed(taken.run_id);
    let Ok(mut resolved) = lang::resolve(plan, vars, &seed) else { return Ok(()) };
    if let Ok(asked) = lang::request(plan, vars, &seed, &Files::default()) {
        resolved.hide(&asked);
    }
    let (trace, answer) = (finished.trace.clone(), Arc::clone(&finished.answer));
    let trigger = finished.trigger.as_ref().map(|trigger| trigger.id);
    let settlement = finished.outcome.settlement.clone();
    let outputs = move || {
        let (trace, settlement) = (trace.as_deref(), settlement.as_ref());
        lang::outputs(&resolved, &Evidence { trace, trigger, answer: Some(&answer), settlement })
    };
    let outputs = ports.share().run(outputs).await;
    let secret = outputs.into_iter().filter(|output| output.is_secret);
    let secret: SecretValues = secret.map(|output| (output.name, Some(output.value))).collect();
    if secret.is_empty() {
        return Ok(());
    }
    let secret = &secret;
    let keep = |db: Db| async move { db.keep_outputs(taken.run_id, taken.epoch, secret).await };
    ports.insist(Step::Record, keep).await.map_err(|error| ports::lost(&error))
}

/// Lets a provisional verdict linger until it is final, without a slot once the verdict is in the database.
async fn conclude(
    mut finished: FinishedRun,
    ports: &WorkerPorts<'_>,
    slot: &mut Slot,
) -> Result<FinishedRun, LeaseLost> {
    let Some(watch) = finished.watch.take_if(|_| finished.outcome.provisional) else {
        return Ok(finished);
    };
    ports.linger(finished.outcome.verdict).await?;
    slot.linger(finished.outcome.settlement.as_ref().map_or(0, |settlement| settlement.spans));
    let mut watch = watch.linger(|| {}, std::future::ready(())).await;
    let concluded = watch.conclude(finished.outcome, ports).await?;
    finished.outcome = concluded.outcome;
    finished.trace = concluded.trace.or(finished.trace);
    finished.seen.observe(&concluded.seen);
    finished.watch = Some(watch);
    Ok(finished)
}

/// Names the stored provisional verdict in an outcome with another verdict. It may be from an earlier owner, or from
/// a run that was stopped in its linger.
fn supersede(outcome: &mut Outcome, provisional: Option<Verdict>) {
    let Some(verdict) = provisional else { return };
    let bare = SupersededVerdict { verdict, spans: 0, after_ns: None, service: None };
    let known = outcome.superseded.take();
    outcome.superseded = (outcome.verdict != verdict)
        .then(|| known.map_or(bare, |superseded| SupersededVerdict { verdict, ..superseded }));
}

/// Compiles the version of the test that the run started with.
fn compile(taken: &RunLease) -> Result<Plan, String> {
    let text = source::Text::new(&taken.test.file, &taken.test.document);
    let (planned, diagnostics) = lang::plans(&text);
    let plan =
        planned.into_iter().map(|planned| planned.plan).find(|plan| plan.id == taken.test.id);
    let mut plan = plan.ok_or_else(|| {
        let picture = source::draw(&diagnostics, source::Colour::Never);
        format!("the test as it is kept does not compile any more; apply it again\n{picture}")
    })?;
    if let Some(profile) = settle_profile(taken, &plan)? {
        plan.wait_as(&profile);
    }
    let stored = |kind: DocumentKind| taken.gates.get(kind.as_str()).map(String::as_str);
    plan.require(gates(stored(DocumentKind::Analyzer), stored(DocumentKind::QualityGate))?);
    Ok(plan)
}

/// Returns the settle profile: the one that the test names, else the default for tests that name none.
fn settle_profile(taken: &RunLease, plan: &Plan) -> Result<Option<SettleProfile>, String> {
    let read = |document: &String| {
        let (documents, _) = lang::read(&source::Text::new("profile.yaml", document));
        documents.into_iter().find_map(|document| match document {
            Document::SettleProfile(profile) => Some(profile),
            _ => None,
        })
    };
    let profiles = &taken.settle_profiles;
    match plan.settle_profile() {
        None => Ok(profiles.values().filter_map(read).find(|profile| profile.is_default)),
        Some(Reference::Id(id)) => match profiles.get(id).and_then(read) {
            Some(profile) => Ok(Some(profile)),
            None => Err(format!("there is no settle profile `{id}`, which the test names: apply it first")),
        },
        Some(Reference::File(_)) => Err(
            "the test names its settle profile by a file, which a server does not have: name it by its id"
                .to_owned(),
        ),
    }
}

/// The result of a run, to be stored and exported.
struct RunResult {
    outcome: Outcome,
    events: Vec<RunEvent>,
    trace: Option<Arc<Trace>>,
    /// The secrets to mask in the trace.
    secrets: Secrets,
    trigger: Option<SpanData>,
    seen: LearnedProfile,
    watch: Option<runner::LateSpanMonitor>,
}

impl RunResult {
    fn from_run(finished: FinishedRun, events: Vec<RunEvent>) -> Self {
        let FinishedRun { outcome, trace, secrets, trigger, seen, watch, .. } = finished;
        Self { outcome, events, trace, secrets, trigger, seen, watch }
    }

    /// Returns the result of a run that was not judged, with the reason.
    fn without_run(
        taken: &RunLease,
        ports: &WorkerPorts<'_>,
        reason: String,
        at: Timestamp,
    ) -> Self {
        // Without the response: only the run itself knows its secrets.
        let attempt = ports.attempt().or_else(|| taken.progress.attempt());
        let outcome = Outcome {
            trace_id: attempt.map(|attempt| attempt.trace_id),
            ..bare(taken.run_id, taken.test.name.clone(), reason)
        };
        let mut events = ports.take_events();
        events.push(RunEvent { at, what: What::Judged { verdict: outcome.verdict } });
        Self {
            outcome,
            events,
            trace: None,
            secrets: Secrets::default(),
            trigger: None,
            seen: LearnedProfile::default(),
            watch: None,
        }
    }
}

/// Returns an outcome that holds only a reason.
fn bare(run: RunId, test: String, reason: String) -> Outcome {
    Outcome { run_id: Some(run), ..Outcome::open(test, reason) }
}

/// Writes verdict, events and trace in one statement, then exports the run's spans. Returns the outcome.
async fn record(
    worker: &Worker,
    taken: &RunLease,
    ports: &WorkerPorts<'_>,
    mut ended: RunResult,
) -> Result<Outcome, LeaseLost> {
    let began = worker.world.now();
    let secrets = std::mem::take(&mut ended.secrets);
    let trace = match ended.trace.take() {
        Some(trace) => match encoded(&ports.share(), trace, secrets).await {
            Ok(trace) => Some(trace),
            Err(error) => {
                ended.outcome.reasons.push(format!("the trace is not kept: {error}"));
                None
            }
        },
        None => None,
    };
    let has_trace = trace.is_some();
    let mut written = write(taken, ports, &ended, trace).await;
    if let Err(error) = &written
        && has_trace
        && !matches!(error, DbError::Fenced { .. })
    {
        // The verdict is valid without its trace. If it were discarded, the run would be re-judged with the same result.
        ended.outcome.reasons.push(format!("the trace is not kept: {error}"));
        written = write(taken, ports, &ended, None).await;
    }
    written.map_err(|error| ports::lost(&error))?;
    worker.bus.hint(subjects::run_news(taken.run_id));
    worker.bus.hint(subjects::project_news(&taken.project));
    let linger = ports.lingers_since();
    let linger = linger.map(|since| StepTime { step: Step::Linger, began: since, ended: began });
    tell(worker, (ports.trace(), taken), &ended, (linger, began));
    Ok(ended.outcome)
}

/// Encodes a trace for the database, with its secrets masked, and its columns for the page.
async fn encoded(
    share: &Share,
    trace: Arc<Trace>,
    secrets: Secrets,
) -> Result<OtlpTrace, TraceFull> {
    let encode = move || {
        let masked = secrets.masked_trace(&trace)?;
        let kept = masked.as_ref().unwrap_or(&trace);
        // The trace is valid without its columns.
        let columns = otlp::columns(kept).ok().map(Into::into);
        Ok(OtlpTrace { spans: kept.len() as u64, otlp: otlp::encode(kept).into(), columns })
    };
    share.run(encode).await
}

async fn write(
    taken: &RunLease,
    ports: &WorkerPorts<'_>,
    ended: &RunResult,
    trace: Option<OtlpTrace>,
) -> Result<(), DbError> {
    let finished = db::RunCompletion { outcome: &ended.outcome, events: &ended.events, trace };
    let finished = &finished;
    let finish = |db: Db| async move { db.finish(taken.run_id, taken.epoch, finished).await };
    ports.insist(Step::Record, finish).await
}

/// Exports the run's own spans, and the trigger span for the application's trace.
fn tell(
    worker: &Worker,
    (trace, taken): (RunTrace, &RunLease),
    ended: &RunResult,
    (linger, record_began): (Option<StepTime>, Timestamp),
) {
    let mut steps = ended.outcome.steps.clone();
    steps.extend(linger);
    steps.push(StepTime { step: Step::Record, began: record_began, ended: worker.world.now() });
    let trigger = ended.trigger.as_ref();
    let telemetry = &worker.watch.telemetry;
    let outcome = &ended.outcome;
    let linked = outcome.trace_id.zip(trigger.map(|trigger| trigger.id));
    send_run(telemetry, &RunSpan { trace, outcome, taken, trigger: linked, steps: &steps });
    telemetry.metrics().ran(outcome, &steps);
    events::run_ended(taken, outcome);
    if let (Some(trace_id), Some(trigger)) = (ended.outcome.trace_id, trigger) {
        let trigger = spans::trigger_for_application(trigger.clone(), taken);
        telemetry.application(trace_id, trigger);
    }
}
