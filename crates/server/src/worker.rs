//! Workers: they take runs under a lease, run them, and write the verdict.
//!
//! One worker owns a run from taking to verdict. Every write bears the epoch under which the run was taken,
//! so that a worker whose lease ran out can change nothing. Deliberately absent: any state of a run that is
//! not in the record; a worker may die at any line of this.

mod ports;

use std::{
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use bus::Bus;
use db::{Db, DbError, OtlpTrace, Taken};
use drivers::trigger::Triggers;
use lang::{Files, Plan, Vars};
use model::{
    Event, Judgement, KeyRing, Learned, Outcome, Progress, Step, StepTime, Timestamp, Trace,
    Verdict, What, World, trace::SpanData,
};
use runner::{Finished, Job, Limits, Lost, RunError};
use tokio::{task::JoinSet, time::Instant};
use tokio_util::sync::CancellationToken;

use crate::{
    config,
    interests::Interests,
    own_spans::{self, Call, RunSpan, RunTrace, send_run},
    traceparent::TraceParent,
    watch::Watch,
};
use ports::{Lease, WorkerPorts};

/// How long runs in flight may go on after the server was told to stop.
const DRAIN_MAX: Duration = Duration::from_secs(10);

/// How many workers may try to end a run. One that ends each of them ends as inconclusive.
const EPOCHS_MAX: i64 = 5;

/// What workers share.
#[derive(Debug)]
pub(crate) struct Worker {
    /// The name under which this process takes runs.
    pub(crate) name: String,
    pub(crate) config: config::Workers,
    pub(crate) db: Db,
    /// The same record by connections of their own, for those who must not wait for a held producer.
    pub(crate) calm_db: Db,
    /// The runtime on which nothing is told and nobody is held.
    pub(crate) calm: tokio::runtime::Handle,
    pub(crate) bus: Arc<Bus>,
    pub(crate) keys: KeyRing,
    pub(crate) interests: Interests,
    /// Exports that were not taken, and that may have been anybody's.
    pub(crate) unread: Arc<AtomicU64>,
    pub(crate) triggers: Triggers,
    pub(crate) watch: Watch,
    pub(crate) world: World,
}

/// Takes runs and works on them until told to stop, then lets those in flight end.
pub(crate) async fn work(worker: Arc<Worker>, stop: CancellationToken) {
    let mut runs = JoinSet::new();
    let mut hints = worker.bus.hints();
    while !stop.is_cancelled() {
        while !stop.is_cancelled()
            && runs.len() < worker.config.runs_max
            && let Some((taken, trace, asked)) = take(&worker).await
        {
            runs.spawn(one(Arc::clone(&worker), taken, trace, asked));
        }
        tokio::select! {
            () = stop.cancelled() => {}
            // A hint or a free place: look again. The poll finds runs whose worker died.
            _ = hints.next() => {}
            Some(ended) = runs.join_next(), if !runs.is_empty() => {
                if let Err(error) = ended {
                    tracing::error!(%error, "a run met a bug here; it is taken again when its lease is over");
                }
            }
            () = tokio::time::sleep(worker.config.poll) => {}
        }
    }
    let drained =
        tokio::time::timeout(DRAIN_MAX, async { while runs.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!(
            runs = runs.len(),
            "runs in flight were left; they resume at the next start"
        );
    }
}

/// A run that waits, its place in its trace, and when it was asked for.
async fn take(worker: &Worker) -> Option<(Taken, RunTrace, Instant)> {
    let (asked, began) = (Instant::now(), worker.world.now());
    match worker.db.take(&worker.name, worker.config.lease, began).await {
        Ok(taken) => taken.map(|taken| {
            let parent = taken.traceparent.as_deref().and_then(TraceParent::from_stored);
            let trace = RunTrace::new(parent, worker.world);
            // Only the taken run says whose trace this is.
            worker.watch.tell(trace.step(Step::Queue), Call("UPDATE", "runs"), began, None);
            (taken, trace, asked)
        }),
        Err(error) => {
            tracing::warn!(%error, "no run can be taken; trying again");
            None
        }
    }
}

/// One run, as long as it is ours.
async fn one(worker: Arc<Worker>, taken: Taken, trace: RunTrace, asked: Instant) {
    let lease = Arc::new(Lease::new(worker.calm_db.clone(), &taken, worker.config.lease, asked));
    // Renewal has a task of its own: neither judging a large trace nor a held producer may keep it waiting.
    let mut keeping = JoinSet::new();
    let keep = {
        let lease = Arc::clone(&lease);
        async move { lease.keep().await }
    };
    keeping.spawn_on(keep, &worker.calm);
    let ports = WorkerPorts::new(&worker, &lease, trace);
    let ended = tokio::select! {
        result = execute(&worker, &taken, ports) => result,
        Some(Ok(lost)) = keeping.join_next() => Err(lost),
    };
    if let Err(lost) = ended {
        tracing::warn!(run = %taken.run_id, epoch = taken.epoch, reason = %lost, "a run was given up here");
    }
}

async fn execute(worker: &Worker, taken: &Taken, ports: WorkerPorts<'_>) -> Result<(), Lost> {
    let mut steps = vec![StepTime {
        step: Step::Queue,
        began: taken.accepted_at,
        ended: worker.world.now().max(taken.accepted_at),
    }];
    let began = worker.world.now();
    let plan = match taken.epoch {
        ..=EPOCHS_MAX => compile(taken),
        _ => Err(format!(
            "given up: {EPOCHS_MAX} workers took the run and none brought it to an end; see their logs"
        )),
    };
    steps.push(StepTime { step: Step::Compile, began, ended: worker.world.now() });
    let result = match &plan {
        Err(reason) => Err(reason.clone()),
        Ok(plan) => {
            let job = Job {
                run_id: taken.run_id,
                plan,
                vars: &Vars::default(),
                files: &Files::default(),
                progress: taken.progress.clone(),
                limits: Limits::default(),
                learned: &Learned::default(),
                started: None,
                timeout: None,
            };
            match runner::run(job, &ports).await {
                Ok(finished) => Ok(finished),
                Err(RunError::Lost(lost)) => return Err(lost),
                Err(error @ (RunError::Resolve(_) | RunError::Full(_))) => Err(error.to_string()),
            }
        }
    };
    let mut ended = match result {
        Ok(finished) => Ended::from_run(finished, ports.take_events()),
        Err(reason) => Ended::without_run(taken, reason, worker.world.now()),
    };
    steps.append(&mut ended.outcome.steps);
    ended.outcome.steps = steps;
    record(worker, taken, &ports, ended).await
}

/// The plan of the version that the run started with.
fn compile(taken: &Taken) -> Result<Plan, String> {
    let text = source::Text::new(&taken.test.file, &taken.test.document);
    let (planned, diagnostics) = lang::plans(&text);
    let plan =
        planned.into_iter().map(|planned| planned.plan).find(|plan| plan.id == taken.test.id);
    plan.ok_or_else(|| {
        let picture = source::draw(&diagnostics, source::Colour::Never);
        format!("the test as it is kept does not compile any more; apply it again\n{picture}")
    })
}

/// What is left of a run to be recorded and told.
struct Ended {
    outcome: Outcome,
    events: Vec<Event>,
    trace: Option<Arc<Trace>>,
    trigger: Option<SpanData>,
}

impl Ended {
    fn from_run(finished: Finished, events: Vec<Event>) -> Self {
        let Finished { outcome, trace, trigger, .. } = finished;
        Self { outcome, events, trace, trigger }
    }

    /// A run that came to no judgement, and the reason.
    fn without_run(taken: &Taken, reason: String, at: Timestamp) -> Self {
        let verdict = Verdict::Inconclusive;
        let outcome = Outcome {
            run_id: Some(taken.run_id),
            test: taken.test.name.clone(),
            verdict,
            reasons: vec![reason],
            trace_id: taken.progress.attempt().map(|attempt| attempt.trace_id),
            answer: match &taken.progress {
                Progress::Answered(_, answer) => Some(answer.clone()),
                Progress::New | Progress::Attempted(_) => None,
            },
            settlement: None,
            diagnoses: Vec::new(),
            overtaken: None,
            earlier: Vec::new(),
            judgement: Judgement::bare(verdict),
            analysis: None,
            steps: Vec::new(),
        };
        let events = vec![Event { at, what: What::Judged { verdict } }];
        Self { outcome, events, trace: None, trigger: None }
    }
}

/// Writes verdict, events and trace in one statement, then tells of the run.
async fn record(
    worker: &Worker,
    taken: &Taken,
    ports: &WorkerPorts<'_>,
    mut ended: Ended,
) -> Result<(), Lost> {
    let began = worker.world.now();
    let trace = ended
        .trace
        .take()
        .map(|trace| OtlpTrace { spans: trace.len() as u64, otlp: otlp::encode(&trace).into() });
    let has_trace = trace.is_some();
    let mut written = write(taken, ports, &ended, trace).await;
    if let Err(error) = &written
        && has_trace
        && !matches!(error, DbError::Fenced { .. })
    {
        // The verdict stands without its trace; thrown away, the run would be judged again to the same end.
        ended.outcome.reasons.push(format!("the trace is not kept: {error}"));
        written = write(taken, ports, &ended, None).await;
    }
    written.map_err(|error| ports::lost(&error))?;
    tell(worker, ports.trace(), &ended, began);
    if let Some(trace_id) = ended.outcome.trace_id {
        worker.bus.forget(trace_id);
    }
    Ok(())
}

async fn write(
    taken: &Taken,
    ports: &WorkerPorts<'_>,
    ended: &Ended,
    trace: Option<OtlpTrace>,
) -> Result<(), DbError> {
    let finished = db::Finished { outcome: &ended.outcome, events: &ended.events, trace };
    let finished = &finished;
    let finish = |db: Db| async move { db.finish(taken.run_id, taken.epoch, finished).await };
    ports.insist(Step::Record, finish).await
}

/// Sends the run's own spans, and the trigger span for the application's trace.
fn tell(worker: &Worker, trace: RunTrace, ended: &Ended, record_began: Timestamp) {
    let mut steps = ended.outcome.steps.clone();
    steps.push(StepTime { step: Step::Record, began: record_began, ended: worker.world.now() });
    let trigger = ended.trigger.as_ref();
    let telemetry = &worker.watch.telemetry;
    let outcome = &ended.outcome;
    let linked = outcome.trace_id.zip(trigger.map(|trigger| trigger.id));
    send_run(telemetry, &RunSpan { trace, outcome, trigger: linked, steps: &steps });
    if let (Some(first), Some(last)) = (steps.first(), steps.last()) {
        telemetry.ran(outcome.verdict, last.ended.since(first.began));
    }
    if let (Some(trace_id), Some(trigger)) = (ended.outcome.trace_id, trigger) {
        let trigger = own_spans::trigger_for_application(trigger.clone());
        telemetry.application(trace_id, trigger);
    }
}
