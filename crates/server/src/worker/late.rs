//! Runs that have their verdict and still hear their spans: does one come that would have changed it?
//!
//! The verdict stays. What late spans would have made of it is written by who judged, under the verdict's epoch.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use bus::Bus;
use db::RunLease;
use model::{Faulty, Outcome, Overtaken, Project, RunId, TraceId};
use runner::{LateSpanMonitor, WatchEnd};
use tokio::{
    sync::oneshot,
    task::{JoinError, JoinSet},
    time::{Instant, sleep},
};

use super::{
    Worker,
    ports::{RETRY, SpanSources, WorkerPorts},
};
use crate::{api, own_events};

/// How long a run is listened to at the least.
const LISTEN_MIN: Duration = Duration::from_secs(10);
/// How long it is tried to write what was heard.
const WRITE_MAX: Duration = Duration::from_secs(30);
/// Runs that are listened to at a time; the oldest is let go for a further one.
const RUNS_MAX: usize = 2048;
/// Spans of all runs that are listened to: each keeps its trace.
const SPANS_MAX: u64 = 2_000_000;

/// A run that has its verdict.
#[derive(Debug)]
pub(super) struct LateRun {
    run: RunId,
    epoch: i64,
    project: Project,
    /// Where on the bus its spans are.
    trace: TraceId,
    spans: u64,
    /// How long it is listened to.
    length: Duration,
    watch: LateSpanMonitor,
    listening: SpanSources,
}

/// Runs that are listened to.
#[derive(Debug, Default)]
pub(super) struct LateRuns {
    tasks: JoinSet<()>,
    /// Ends the listening when dropped; with the spans of its run.
    ends: VecDeque<(oneshot::Sender<()>, u64)>,
    spans: u64,
}

impl LateRun {
    /// What is left of a run to be listened to; nothing where it has no trace, which is then forgotten.
    pub(super) fn of(
        taken: &RunLease,
        watch: Option<LateSpanMonitor>,
        outcome: &Outcome,
        ports: WorkerPorts<'_>,
    ) -> Option<Self> {
        let trace = ports.channel(outcome.trace_id?);
        let bus = Arc::clone(ports.bus());
        // A large answer is not held for longer than its run.
        let watch = watch.filter(|_| !ports.holds_large_answer());
        let listening = ports.into_listening();
        let (Some(watch), Some(settlement)) = (watch, &outcome.settlement) else {
            bus.forget(trace);
            return None;
        };
        Some(Self {
            run: taken.run_id,
            epoch: taken.epoch,
            project: taken.project.clone(),
            trace,
            spans: settlement.spans,
            length: LISTEN_MIN.max(2 * Duration::from_nanos(settlement.quiet_ns)),
            watch,
            listening,
        })
    }
}

impl LateRuns {
    /// Goes on to listen to a run that ended.
    pub(super) fn extend(
        &mut self,
        worker: &Arc<Worker>,
        ended: Result<Option<LateRun>, JoinError>,
    ) {
        let late = match ended {
            Ok(late) => late,
            Err(error) => {
                tracing::error!(%error, "a run met a bug here; it is taken again when its lease is over");
                None
            }
        };
        let Some(late) = late else { return };
        let (end, ended) = oneshot::channel();
        self.ends.push_back((end, late.spans));
        self.spans += late.spans;
        self.tasks.spawn(listen(Arc::clone(worker), late, ended));
        while self.ends.len() > RUNS_MAX || self.spans > SPANS_MAX {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Waits until one is not listened to any more, and clears away all that are not.
    pub(super) async fn ended(&mut self) {
        self.tasks.join_next().await;
        while self.tasks.try_join_next().is_some() {}
        while self.ends.front().is_some_and(|(end, _)| end.is_closed()) {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    /// Listens no longer, and keeps what came.
    pub(super) async fn end(&mut self) {
        self.ends.clear();
        while self.tasks.join_next().await.is_some() {}
    }
}

async fn listen(worker: Arc<Worker>, late: LateRun, mut ended: oneshot::Receiver<()>) {
    let LateRun { run, epoch, project, trace, length, watch, listening, .. } = late;
    let end = async {
        tokio::select! {
            () = sleep(length) => {}
            // It ends by being dropped.
            _ = &mut ended => {}
        }
    };
    let WatchEnd { overtaken, seen } = watch.until(end).await;
    worker.shared.learning.note(&project, seen);
    worker.bus.forget(trace);
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
                own_events::run_overtaken(run, overtaken);
                return worker.bus.hint(api::run_news(run));
            }
            Err(error) if error.fault().is_transient() && began.elapsed() < WRITE_MAX => {
                sleep(RETRY).await;
            }
            Err(error) => {
                return tracing::warn!(%run, %error, "that late spans overtook a verdict is not kept");
            }
        }
    }
}
