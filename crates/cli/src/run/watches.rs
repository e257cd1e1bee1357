//! Runs that have their verdict and still hear their spans: does one come that would have changed it?

use std::collections::VecDeque;

use runner::{Watch, Watched};
use tokio::{sync::oneshot, task::JoinSet};

/// Runs that are listened to at a time; the oldest is let go for a further one.
const RUNS_MAX: usize = 512;
/// Spans of all runs that are listened to: each keeps its trace.
const SPANS_MAX: usize = 2_000_000;

/// Runs that are listened to.
#[derive(Debug, Default)]
pub(super) struct Watches {
    tasks: JoinSet<(usize, Watched)>,
    /// Ends the watch when dropped; with the spans of its run.
    ends: VecDeque<(oneshot::Sender<()>, usize)>,
    spans: usize,
}

impl Watches {
    /// Listens on to the run of a case.
    pub(super) fn add(&mut self, case: usize, watch: Watch, spans: usize) {
        let (end, ended) = oneshot::channel();
        self.tasks.spawn(async move {
            let until = watch.until(async {
                // It ends by being dropped.
                let _dropped = ended.await;
            });
            (case, until.await)
        });
        self.ends.push_back((end, spans));
        self.spans += spans;
        while self.ends.len() > RUNS_MAX || self.spans > SPANS_MAX {
            let Some((_, spans)) = self.ends.pop_front() else { break };
            self.spans -= spans;
        }
    }

    /// Listens no longer, and tells what came meanwhile, in the order of the cases.
    pub(super) async fn end(mut self) -> Vec<(usize, Watched)> {
        self.ends.clear();
        let mut watched = Vec::new();
        while let Some(ended) = self.tasks.join_next().await {
            watched.extend(ended);
        }
        watched.sort_by_key(|(case, _)| *case);
        watched
    }
}
