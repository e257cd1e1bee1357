//! Runs that have their verdict and still receive spans: detects late spans that would have changed it.
//!
//! The verdict stays. The worker that judged the run stores the verdict that late spans would have caused, under the same epoch.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bus::{Bus, Channel};
use db::RunLease;
use model::{Faulty, Outcome, Overtaken, Project, RunId};
use runner::{LateSpanMonitor, WatchEnd};
use tokio::{
    sync::oneshot,
    task::{JoinError, JoinSet},
    time::{Instant, sleep},
};

use super::{
    active_runs::RETRY,
    ports::{SpanSources, WorkerPorts},
    state::Worker,
};
use crate::{
    subjects,
    telemetry::{catalogue::attribute, events, log_context, traceparent::TraceParent},
};

/// The minimum time for which a run is watched.
const LISTEN_MIN: Duration = Duration::from_secs(10);
/// How long the worker retries to store the result.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// The maximum number of watched runs; the oldest is discarded for a new one.
const RUNS_MAX: usize = 2048;
/// The maximum number of spans of all watched runs: each holds its trace in memory.
const SPANS_MAX: u64 = 2_000_000;

/// A watched run that has its verdict.
#[derive(Debug)]
pub(super) struct LateRun {
    run: RunId,
    /// The span of the run, for its log lines.
    own: TraceParent,
    epoch: i64,
    project: Project,
    /// The bus channel of its spans.
    channel: Channel,
    spans: u64,
    /// How long it is watched.
    length: Duration,
    watch: LateSpanMonitor,
    listening: SpanSources,
}

/// The watched runs.
#[derive(Debug, Default)]
pub(super) struct LateRuns {
    tasks: JoinSet<()>,
    /// For each run, a sender that ends its watch when dropped, and the number of its spans.
    ends: VecDeque<(oneshot::Sender<()>, u64)>,
    spans: u64,
}

impl LateRun {
    /// Returns the state to watch a run; `None` if it has no trace to watch, which the bus then forgets.
    pub(super) fn of(
        taken: &RunLease,
        watch: Option<LateSpanMonitor>,
        outcome: &Outcome,
        ports: WorkerPorts<'_>,
    ) -> Option<Self> {
        let channel = ports.channel(outcome.trace_id?);
        let bus = Arc::clone(ports.bus());
        // A large response is not held for longer than its run.
        let watch = watch.filter(|_| !ports.holds_large_answer());
        let own = ports.trace().own();
        let listening = ports.into_listening();
        let (Some(watch), Some(settlement)) = (watch, &outcome.settlement) else {
            bus.forget(channel);
            return None;
        };
        Some(Self {
            run: taken.run_id,
            own,
            epoch: taken.epoch,
            project: taken.project.clone(),
            channel,
            spans: settlement.spans,
            length: LISTEN_MIN.max(2 * Duration::from_nanos(settlement.quiet_ns)),
            watch,
            listening,
        })
    }
}

impl LateRuns {
    /// Begins to watch a run that ended.
    pub(super) fn extend(
        &mut self,
        worker: &Arc<Worker>,
        ended: Result<Option<LateRun>, JoinError>,
    ) {
        // The task has logged its own internal error.
        let Ok(Some(late)) = ended else { return };
        let (end, ended) = oneshot::channel();
        self.ends.push_back((end, late.spans));
        self.spans += late.spans;
        let (run, own) = (late.run, late.own);
        let listening = listen(Arc::clone(worker), late, ended);
        self.tasks.spawn(log_context::within_run(run, own, listening));
        while self.ends.len() > RUNS_MAX || self.spans > SPANS_MAX {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until the watch of one run has ended, and removes all runs with an ended watch.
    pub(super) async fn ended(&mut self) {
        self.tasks.join_next().await;
        while self.tasks.try_join_next().is_some() {}
        while self.ends.front().is_some_and(|(end, _)| end.is_closed()) {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    /// Ends all watches, and stores their results.
    pub(super) async fn end(&mut self) {
        self.ends.clear();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn listen(worker: Arc<Worker>, late: LateRun, mut ended: oneshot::Receiver<()>) {
    let LateRun { run, epoch, project, channel, length, watch, listening, .. } = late;
    let end = async {
        tokio::select! {
            () = sleep(length) => {}
            // Dropping the sender ends the watch.
            _ = &mut ended => {}
        }
    };
    let WatchEnd { overtaken, seen } = watch.until(end).await;
    worker.shared.learning.note(&project, seen);
    worker.bus.forget(channel);
    events::run_debug(run, format_args!("late spans are not received any more"));
    drop(listening);
    if let Some(overtaken) = overtaken {
        write(&worker, (run, epoch), &overtaken).await;
    }
}

async fn write(worker: &Worker, (run, epoch): (RunId, i64), overtaken: &Overtaken) {
    let (began, at) = (Instant::now(), worker.world.now());
    loop {
        match worker.db.overtaken(run, epoch, overtaken, at).await {
            Ok(()) => {
                events::run_overtaken(run, overtaken);
                return worker.bus.hint(subjects::run_news(run));
            }
            Err(error) if error.fault().is_transient() && began.elapsed() < WRITE_MAX => {
                sleep(RETRY).await;
            }
            Err(error) => {
                return tracing::warn!(
                    { {attribute::RUN_ID} = %run, %error },
                    "that late spans overtook a verdict is not kept"
                );
            }
        }
    }
}
