//! Runs that have a verdict and linger: they still receive spans, until the verdict is final.
//!
//! Several runs linger concurrently, so that a command waits only once. Deliberately absent: the effect of a changed verdict
//! on other tests (`finals`).

use std::{
    collections::{BTreeSet, VecDeque},
    sync::Arc,
};

use lang::Plan;
use model::{LearnedProfile, Outcome};
use runner::{FinalRun, LateSpanMonitor};
use tokio::{sync::oneshot, task::JoinSet, time::Instant};

use super::{
    ports::{LocalPorts, Stage},
    progress::Line,
    session::Session,
    system::RunningSystem,
};

/// The upper bound for lingering runs; for a further one, the oldest stops when its own linger is over.
const RUNS_MAX: usize = 512;
/// The upper bound for spans of all lingering runs: each keeps its trace.
const SPANS_MAX: usize = 2_000_000;

/// The lingering runs.
#[derive(Debug, Default)]
pub(super) struct Watches {
    tasks: JoinSet<(Try, Final)>,
    /// The cases of these runs.
    cases: BTreeSet<usize>,
    /// Each completes when a verdict is final unless further spans arrive, or when its run lingers no longer.
    ready: Vec<oneshot::Receiver<()>>,
    /// Senders that end a linger when dropped, each with the number of spans of its run.
    ends: VecDeque<(oneshot::Sender<()>, usize)>,
    spans: usize,
}

/// One run of a case.
#[derive(Debug)]
pub(super) struct Try {
    pub(super) case: usize,
    pub(super) plan: Arc<Plan>,
    /// Whether a retry followed, because this run did not pass.
    pub(super) is_repeated: bool,
}

/// The final outcome of a run.
#[derive(Debug)]
pub(super) struct Final {
    pub(super) concluded: FinalRun,
    /// The names of outputs with changed values.
    pub(super) changed_outputs: Vec<String>,
}

/// A run that has a verdict.
#[derive(Debug)]
pub(super) struct JudgedRun {
    pub(super) watch: LateSpanMonitor,
    pub(super) outcome: Outcome,
    pub(super) spans: usize,
    pub(super) session: Arc<Session>,
    pub(super) running: Option<Arc<RunningSystem>>,
    /// A line that shows nothing any more.
    pub(super) line: Line,
}

impl Watches {
    /// Starts to linger for a run.
    pub(super) fn add(&mut self, of: Try, run: JudgedRun) {
        let (end, ended) = oneshot::channel();
        let (ready, is_ready) = oneshot::channel();
        self.ends.push_back((end, run.spans));
        self.ready.push(is_ready);
        self.spans += run.spans;
        self.cases.insert(of.case);
        self.tasks.spawn(async move { (of, conclude(run, ready, ended).await) });
        while self.ends.len() > RUNS_MAX || self.spans > SPANS_MAX {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    /// Waits until every verdict is final unless further spans arrive.
    pub(super) async fn ready(&mut self) {
        for ready in self.ready.drain(..) {
            // A run that has ended is ready too.
            let _ended = ready.await;
        }
    }

    /// Waits no longer than each linger needs, and returns the final outcomes in the order of the cases.
    pub(super) async fn end(mut self) -> Vec<(Try, Final)> {
        self.ends.clear();
        let mut concluded = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            concluded.extend(ended);
        }
        concluded.sort_by_key(|(of, _)| (of.case, !of.is_repeated));
        concluded
    }

    /// Stops all lingers at once, and returns the cases without a final verdict: the command was interrupted.
    pub(super) async fn abort(mut self) -> BTreeSet<usize> {
        self.tasks.shutdown().await;
        self.cases
    }
}

async fn conclude(
    run: JudgedRun,
    ready: oneshot::Sender<()>,
    ended: oneshot::Receiver<()>,
) -> Final {
    let JudgedRun { watch, outcome, session, running, line, .. } = run;
    let mut ready_at = None;
    let ready = || {
        ready_at = Some(Instant::now());
        // The receiver is gone if the command was interrupted.
        let _unasked = ready.send(());
    };
    let end = async {
        // The sender ends the linger by being dropped.
        let _dropped = ended.await;
    };
    let mut watch = watch.linger(ready, end).await;
    let stage = Stage::Judged { ready: ready_at.unwrap_or_else(Instant::now) };
    let ports = LocalPorts::new(&session, running.as_deref(), &line, stage);
    let before = outcome.clone();
    let concluded = watch.conclude(outcome, &ports).await;
    // A local run cannot lose its lease.
    let mut concluded = concluded.unwrap_or_else(|_| FinalRun {
        outcome: before.clone(),
        trace: None,
        seen: LearnedProfile::default(),
    });
    let outcome = &mut concluded.outcome;
    if let Some(ended) = ports.ended_meanwhile().filter(|ended| !outcome.reasons.contains(ended)) {
        outcome.reasons.push(ended);
    }
    let outputs = before.judgement.outputs.iter().zip(&outcome.judgement.outputs);
    let changed = outputs.filter(|(before, now)| before.value != now.value);
    let changed_outputs = changed.map(|(_, now)| now.name.clone()).collect();
    Final { concluded, changed_outputs }
}
