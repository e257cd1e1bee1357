//! Workers: they take runs under a lease, work on them, let them linger, and listen on after the verdict.
//!
//! One worker owns a run from taking to verdict. Every write bears the epoch under which the run was taken,
//! so that a worker whose lease ran out can change nothing. What is done for one run is in `run.rs`. Deliberately
//! absent: any state of a run that is not in the record; a worker may die at any line of this.

mod active_runs;
mod late;
mod learning;
mod ports;
mod run;
mod slots;

use std::{sync::Arc, time::Duration};

use bus::{Bus, Hints, Local};
use db::{Db, LeaseRequest, RunLease, RunLeases};
use drivers::{
    receiver::ReceiverStats,
    trigger::{AnswerMemory, Triggers},
};
use model::{RunId, Step, World};
use runner::Pool;
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    api, config,
    ingest::{Logs, UnreadableExports},
    interests::Interests,
    own_spans::{Call, RunTrace},
    own_telemetry,
    peers::Peers,
    startup::Keys,
    traceparent::TraceParent,
    watch::Watch,
};
use active_runs::ActiveRuns;
use late::{LateRun, LateRuns};
use learning::LearnedQueue;
use slots::{Slot, Slots};

/// How long a worker leaves between two looks for runs, so that it asks the database once for those that come together.
const PACE: Duration = Duration::from_millis(10);
/// How long it gathers free slots before it looks for runs that wait for one. Most often none does.
const GATHER: Duration = Duration::from_millis(25);
/// How long runs in flight may go on after the server was told to stop.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// How long it may take to give back the runs that did not end, and to keep what was learned.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// One slot of so many, of the worker's and of a host's, is for projects that have few runs in flight.
const RESERVED_PART: usize = 8;

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
    pub(crate) bus: Arc<Local>,
    pub(crate) keys: Keys,
    pub(crate) interests: Interests,
    pub(crate) peers: Peers,
    /// Exports that were not taken, and that may have been anybody's.
    pub(crate) unread: Arc<UnreadableExports>,
    /// Where runs are judged.
    pub(crate) pool: Pool,
    /// The traces of which log records came.
    pub(crate) logs: Arc<Logs>,
    /// What the receiver has met, for runs whose trace is not whole.
    pub(crate) witness: ReceiverStats,
    pub(crate) triggers: Triggers,
    pub(crate) watch: Watch,
    pub(crate) world: World,
    pub(crate) shared: RunState,
}

/// What the runs of this process share while they go on; all of it may be lost.
#[derive(Debug, Default)]
pub(crate) struct RunState {
    flights: ActiveRuns,
    /// Where large answers are held.
    answer_memory: AnswerMemory,
    learning: LearnedQueue,
    slots: Arc<Slots>,
}

/// A run that was taken: its slot, its place in its trace, and when it was asked for.
struct LeasedRun {
    taken: RunLease,
    slot: Slot,
    trace: RunTrace,
    asked: Instant,
}

/// Takes runs and works on them until told to stop, then lets those in flight end.
pub(crate) async fn work(worker: Arc<Worker>, stop: CancellationToken) {
    let mut runs = JoinSet::new();
    let mut lates = LateRuns::default();
    let mut learning = JoinSet::new();
    learning.spawn(learning::keep(Arc::clone(&worker)));
    // Renewal has a task where nobody is held: neither judging a large trace nor a full buffer may keep it waiting.
    let mut keeping = JoinSet::new();
    keeping.spawn_on(active_runs::keep(Arc::clone(&worker)), &worker.calm);
    let mut hints = worker.bus.hints();
    let mut looked = Instant::now();
    // When to look for runs; none while nothing calls for it.
    let mut due = Some(looked);
    while !stop.is_cancelled() {
        let slots = worker.config.runs_max.saturating_sub(worker.shared.slots.taken());
        if due.is_some_and(|due| due <= Instant::now()) {
            if slots > 0 {
                for held in take(&worker, slots, &mut runs).await {
                    let own = held.trace.own();
                    let run = run::one(Arc::clone(&worker), held);
                    runs.spawn(own_telemetry::within(own, run));
                }
            }
            (due, looked) = (None, Instant::now());
        }
        let again = tokio::select! {
            () = stop.cancelled() => None,
            () = worker.called(&mut hints) => Some(looked + PACE),
            () = worker.shared.slots.freed() => match worker.shared.slots.taken() {
                0 => Some(looked),
                _ => Some(Instant::now() + GATHER),
            },
            // The poll finds runs whose worker died.
            () = sleep_until(due.unwrap_or(looked + worker.config.poll)) => Some(looked),
            Some(ended) = runs.join_next(), if !runs.is_empty() => {
                lates.extend(&worker, ended);
                while let Some(ended) = runs.try_join_next() {
                    lates.extend(&worker, ended);
                }
                None
            }
            () = lates.ended(), if !lates.is_empty() => None,
        };
        due = due.into_iter().chain(again).min();
    }
    drain(&worker, runs, lates).await;
    learning.shutdown().await;
    if timeout(LEAVE_MAX, worker.shared.learning.flush(&worker)).await.is_err() {
        tracing::warn!("what the last runs have shown could not be kept");
    }
}

/// Lets runs in flight end, as far as they do in time, and gives back the others.
async fn drain(worker: &Arc<Worker>, mut runs: JoinSet<Option<LateRun>>, mut lates: LateRuns) {
    let deadline = Instant::now() + DRAIN_MAX;
    let ending = async {
        while let Some(ended) = runs.join_next().await {
            lates.extend(worker, ended);
        }
    };
    let is_drained = timeout_at(deadline, ending).await.is_ok();
    if timeout_at(deadline + LEAVE_MAX, lates.end()).await.is_err() {
        tracing::warn!("it is not known of some runs whether late spans overtook their verdict");
    }
    if is_drained {
        return;
    }
    let left = worker.shared.flights.all();
    // Nothing may be done for a run that somebody else may take.
    runs.shutdown().await;
    tracing::warn!(
        runs = left.len(),
        "runs in flight were left; another server goes on with them, or the next start"
    );
    if !matches!(timeout(LEAVE_MAX, worker.db.release(&left)).await, Ok(Ok(()))) {
        tracing::warn!(
            "the runs could not be given back; they are taken when their leases are over"
        );
    }
}

/// The runs that wait, as many as there are slots for. What cannot be read is ended among `runs`.
async fn take(
    worker: &Arc<Worker>,
    slots: usize,
    runs: &mut JoinSet<Option<LateRun>>,
) -> Vec<LeasedRun> {
    let (asked, began) = (Instant::now(), worker.world.now());
    let taking = LeaseRequest {
        worker: &worker.name,
        lease: worker.config.lease,
        at: began,
        runs_max: slots,
        host_max: worker.config.host_max as usize,
        runs_reserved: worker.config.runs_max / RESERVED_PART,
        host_reserved: worker.config.host_max as usize / RESERVED_PART,
    };
    let took = worker.db.take(&taking).await.unwrap_or_else(|error| {
        tracing::warn!(%error, "no run can be taken; trying again");
        RunLeases::default()
    });
    for damaged in took.damaged {
        let slot = worker.shared.slots.take();
        runs.spawn(run::end_damaged(Arc::clone(worker), damaged, slot));
    }
    let held = |taken: RunLease| {
        let parent = taken.traceparent.as_deref().and_then(TraceParent::from_stored);
        let trace = RunTrace::new(parent, worker.world);
        // Only the taken run says whose trace this is.
        worker.watch.tell(trace.step(Step::Queue), Call("UPDATE", "runs"), began, None);
        worker.bus.hint(api::run_events(taken.run_id));
        LeasedRun { taken, slot: worker.shared.slots.take(), trace, asked }
    };
    took.runs.into_iter().map(held).collect()
}

impl Worker {
    /// Waits for hints that are a reason to look for runs; many of them are one reason.
    async fn called(&self, hints: &mut Hints) {
        while let Some(subject) = hints.next().await {
            // What happens in runs that were taken is for their followers.
            if subject.0.starts_with(api::RUN_EVENTS) {
                continue;
            }
            self.hear(&subject);
            while let Some(subject) = at_once(hints.next()).await {
                self.hear(&subject);
            }
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Has a run looked at whose stop was asked for.
    fn hear(&self, subject: &bus::Subject) {
        let run = subject.0.strip_prefix(api::RUN_STOPPED).and_then(|id| id.parse::<RunId>().ok());
        if let Some(run) = run {
            self.shared.flights.look_again(run);
        }
    }
}

/// What is there without waiting.
async fn at_once<T>(next: impl Future<Output = Option<T>>) -> Option<T> {
    tokio::select! {
        biased;
        next = next => next,
        () = std::future::ready(()) => None,
    }
}
