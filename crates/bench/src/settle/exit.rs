//! Follows a run to its exit code: the only module that knows how the engine reports its first and its last verdict.

use std::{sync::Arc, time::Duration};

use model::{LearnedProfile, Outcome, Overtaken, Trace, Verdict};
use runner::{FinalRun, FinishedRun, Ports, WatchEnd};
use tokio::{
    sync::Notify,
    time::{Instant, sleep_until},
};

/// The result of a run, with times.
pub(super) struct Exit {
    /// The outcome that determines the exit code.
    pub(super) outcome: Outcome,
    /// The trace that was judged for it.
    pub(super) trace: Option<Arc<Trace>>,
    /// The first verdict.
    pub(super) first: Verdict,
    /// When the last verdict was available.
    pub(super) final_at: Instant,
    /// Until when the run received spans.
    pub(super) watched_to: Instant,
    /// The mark of a last verdict that later spans would have changed.
    pub(super) overtaken: Option<Overtaken>,
    /// The observations of the run for the learned profile, in their order.
    pub(super) seen: Vec<LearnedProfile>,
}

/// Follows a run from its first verdict to the earliest exit code, and receives spans for `watched` longer.
pub(super) async fn follow<P: Ports>(finished: FinishedRun, ports: &P, watched: Duration) -> Exit {
    let FinishedRun { outcome, trace, seen, watch, .. } = finished;
    let first = outcome.verdict;
    let Some(watch) = watch else {
        let (final_at, watched_to) = (Instant::now(), Instant::now());
        let seen = vec![seen];
        return Exit { outcome, trace, first, final_at, watched_to, overtaken: None, seen };
    };
    let ready = Notify::new();
    let mut watch = watch.linger(|| ready.notify_one(), ready.notified()).await;
    let concluded = watch.conclude(outcome, ports).await;
    let FinalRun { outcome, trace: last, seen: later } =
        concluded.expect("nobody else has a run of this world");
    let final_at = Instant::now();
    let WatchEnd { overtaken, seen: latest } = watch.until(sleep_until(final_at + watched)).await;
    Exit {
        first,
        outcome,
        trace: last.or(trace),
        final_at,
        watched_to: Instant::now(),
        overtaken,
        seen: vec![seen, later, latest],
    }
}
