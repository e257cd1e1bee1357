//! Leases queued runs, as many as there are free slots, and starts them.

use std::{sync::Arc, time::Duration};

use bus::{Bus, Hints};
use db::{LeaseNumber, LeaseRequest, RunLease, RunLeases};
use model::{RunId, Step, World};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep_until, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use super::{
    late::{LateRun, LateRuns},
    run,
    state::{LeasedRun, Worker},
};
use crate::{
    subjects,
    telemetry::{call::Call, log_context, spans::RunTrace, traceparent::TraceParent},
};

/// The minimum time between two polls for runs, so that one query leases the runs that arrive together.
const PACE: Duration = Duration::from_millis(10);
/// How long the worker collects free slots before it polls for runs that wait for one. Most often none does.
const GATHER: Duration = Duration::from_millis(25);
/// How long active runs may continue after the server began to stop.
const DRAIN_MAX: Duration = Duration::from_secs(10);
/// The timeout for releasing the runs that did not end, and for storing learned profiles.
const LEAVE_MAX: Duration = Duration::from_secs(1);

/// The first delay after a request that leased no run although some are queued, or met another worker that leases; each further
/// one is twice as long.
const VAIN: Duration = Duration::from_millis(4);
/// The upper bound of these delays.
const VAIN_MAX: Duration = Duration::from_millis(1024);

/// One of this many slots, of the worker and of a host, is reserved for projects with few active runs.
const RESERVED_PART: usize = 8;

/// Leases and executes runs until the server stops, then waits for active runs.
pub(crate) async fn work(worker: Arc<Worker>, stop: CancellationToken) {
    let mut runs = JoinSet::new();
    let mut lates = LateRuns::default();
    let mut learning = JoinSet::new();
    let queue = Arc::clone(&worker);
    learning.spawn(async move {
        let was_held = |since| queue.was_held_since(since);
        queue.shared.learning.keep(&queue.db, was_held).await;
    });
    // Renewal has a task on the control runtime: neither judging a large trace nor a full buffer may delay it.
    let mut keeping = JoinSet::new();
    let renewed = Arc::clone(&worker);
    let renewal = async move {
        renewed.shared.flights.keep(&renewed.calm_db, renewed.config.lease).await;
    };
    keeping.spawn_on(renewal, &worker.calm);
    let mut hints = worker.bus.hints();
    let mut queue = Queue::default();
    let mut looked = Instant::now();
    // When to poll for runs; `None` while there is no reason to.
    let mut due = Some(looked);
    while !stop.is_cancelled() {
        let slots = worker.free_slots();
        worker.bus.set_available(slots > 0);
        if due.is_some_and(|due| due <= Instant::now()) {
            if slots > 0 {
                for held in take(&worker, &mut queue, slots, &mut runs).await {
                    let (id, own) = (held.taken.run_id, held.trace.own());
                    let run = run::one(Arc::clone(&worker), held);
                    runs.spawn(log_context::within_run(id, own, run));
                }
            }
            looked = Instant::now();
            due = queue.again.take().map(|delay| looked + delay);
        }
        let again = tokio::select! {
            () = stop.cancelled() => None,
            () = worker.called(&mut hints) => Some(looked + PACE),
            () = worker.shared.slots.freed() => match worker.shared.slots.taken() {
                0 => Some(looked),
                _ => Some(Instant::now() + GATHER),
            },
            // The poll finds the runs of workers that died.
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
    worker.bus.set_available(false);
    drain(&worker, runs, lates).await;
    learning.shutdown().await;
    if !matches!(timeout(LEAVE_MAX, worker.shared.learning.flush(&worker.db)).await, Ok(Ok(()))) {
        tracing::warn!("the learned profiles of the last runs could not be stored");
    }
}

/// Waits for active runs up to a timeout, and releases the others.
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
    // No task may still work on a run that another worker may lease.
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

/// What a worker knows of the queue from its last lease.
#[derive(Debug, Default)]
struct Queue {
    oldest_lease: Option<LeaseNumber>,
    /// When it last looked for the runs of workers that died.
    expired_at: Option<Instant>,
    /// How many requests in a row leased no run although there may be some.
    vain: u32,
    /// The delay after which it leases again, if there is a reason to.
    again: Option<Duration>,
}

impl Queue {
    /// Takes note of leases, or of another worker that leases.
    fn note(&mut self, leases: Option<&RunLeases>, request: &LeaseRequest<'_>, world: World) {
        if let Some(leases) = leases {
            self.oldest_lease = leases.oldest_lease;
            if request.with_expired {
                self.expired_at = Some(Instant::now());
            }
        }
        let leased = leases.map_or(0, |leases| leases.runs.len() + leases.damaged.len());
        let has_more = leases.is_none_or(|leases| leases.is_partial && leased < request.runs_max);
        self.again = match (has_more, leased) {
            (false, _) => None,
            (true, 1..) => Some(GATHER),
            (true, 0) => {
                let delay = VAIN.saturating_mul(1 << self.vain.min(8)).min(VAIN_MAX);
                let [part] = world.random::<1>();
                Some(delay.mul_f64(0.5 + f64::from(part) / 256.0))
            }
        };
        self.vain = if has_more && leased == 0 { self.vain.saturating_add(1) } else { 0 };
    }
}

/// Leases queued runs, as many as there are slots. A task in `runs` ends each run that cannot be read.
async fn take(
    worker: &Arc<Worker>,
    queue: &mut Queue,
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
        with_expired: queue.expired_at.is_none_or(|at| at.elapsed() >= worker.config.poll),
        oldest_lease: queue.oldest_lease,
    };
    let took = worker.db.lease_runs(&taking).await.unwrap_or_else(|error| {
        // A thread that a full telemetry buffer blocks holds its connection: then the notice about the buffer is the reason.
        match worker.was_held_since(asked) {
            true => tracing::debug!(%error, "cannot lease runs while telemetry blocks the server"),
            false => tracing::warn!(%error, "cannot lease runs; trying again"),
        }
        // It may be another database by now, such as one from a backup: `RunLeases::default` has no oldest lease.
        Some(RunLeases::default())
    });
    worker.watch.telemetry.metrics().leased(asked.elapsed());
    queue.note(took.as_ref(), &taking, worker.world);
    let took = took.unwrap_or_default();
    if took.runs.len() >= slots {
        // There may be more than this worker can take.
        worker.bus.set_available(false);
        worker.bus.hint_one(subjects::runs_waiting());
    }
    for damaged in took.damaged {
        let slot = worker.shared.slots.take();
        let (id, own) = (damaged.run_id, run_trace(worker, damaged.traceparent.as_deref()).own());
        let end = run::end_damaged(Arc::clone(worker), damaged, slot);
        runs.spawn(log_context::within_run(id, own, end));
    }
    let held = |taken: RunLease| {
        let trace = run_trace(worker, taken.traceparent.as_deref());
        let _within = log_context::of_run(taken.run_id, trace.own()).attach();
        // The trace of this query is known only from the leased run.
        worker.watch.tell(trace.step(Step::Queue), Call("UPDATE", "runs"), began, None);
        worker.bus.hint(subjects::run_events(taken.run_id));
        LeasedRun { taken, slot: worker.shared.slots.take(), trace, asked }
    };
    took.runs.into_iter().map(held).collect()
}

/// Returns the spans of a run, below the request that started it.
fn run_trace(worker: &Worker, traceparent: Option<&str>) -> RunTrace {
    RunTrace::new(traceparent.and_then(TraceParent::from_stored), worker.world)
}

impl Worker {
    /// Returns how many runs may begin now: none while their spans would not arrive, or other servers refuse this one.
    fn free_slots(&self) -> usize {
        if !self.bus.is_open() || self.peers.is_refused() {
            return 0;
        }
        self.config.runs_max.saturating_sub(self.shared.slots.taken())
    }

    /// Waits for notifications that are a reason to poll for runs; several of them count as one.
    async fn called(&self, hints: &mut Hints) {
        while let Some(subject) = hints.next().await {
            // Events of active runs are for their followers.
            if subject.0.starts_with(subjects::RUN_EVENTS) {
                continue;
            }
            self.check_stop(&subject);
            while let Some(subject) = at_once(hints.next()).await {
                self.check_stop(&subject);
            }
            return;
        }
        std::future::pending::<()>().await;
    }

    /// Checks the row of a run for which a stop was requested.
    fn check_stop(&self, subject: &bus::Subject) {
        let run =
            subject.0.strip_prefix(subjects::RUN_STOPPED).and_then(|id| id.parse::<RunId>().ok());
        if let Some(run) = run {
            self.shared.flights.look_again(run);
        }
    }
}

/// Returns the next item if it is ready without waiting.
async fn at_once<T>(next: impl Future<Output = Option<T>>) -> Option<T> {
    tokio::select! {
        biased;
        next = next => next,
        () = std::future::ready(()) => None,
    }
}
