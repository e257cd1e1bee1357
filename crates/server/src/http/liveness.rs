//! Monitors whether the work runtime makes progress.
//!
//! A task there sends a heartbeat every second. Without a heartbeat for half a minute, all of its threads are blocked, and only
//! a restart helps. A full telemetry buffer blocks them too, until an exporter drains it: that is no reason for a restart, which
//! would change nothing. The control runtime checks this, since its threads never block.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::{
    runtime,
    task::JoinSet,
    time::{Instant, sleep},
};
use tokio_util::sync::CancellationToken;

/// The interval of heartbeats.
const BEAT: Duration = Duration::from_secs(1);
/// The maximum time without a heartbeat.
const SILENT_MAX: Duration = Duration::from_secs(30);

/// The time of the last heartbeat of the work runtime. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Liveness(Arc<Mutex<Instant>>);

impl Liveness {
    /// Monitors until the server stops. `is_excused` returns true if a reason outside of the runtime explains missing progress.
    pub(crate) fn watch(
        tasks: &mut JoinSet<()>,
        work: &runtime::Handle,
        is_excused: impl Fn() -> bool + Send + 'static,
        stop: CancellationToken,
    ) -> Self {
        let liveness = Self(Arc::new(Mutex::new(Instant::now())));
        let (beating, looking) = (liveness.clone(), liveness.clone());
        let stopped = stop.clone();
        let beat = async move {
            while stopped.run_until_cancelled(sleep(BEAT)).await.is_some() {
                *beating.last() = Instant::now();
            }
        };
        tasks.spawn_on(beat, work);
        tasks.spawn(async move {
            while stop.run_until_cancelled(sleep(BEAT)).await.is_some() {
                if is_excused() {
                    *looking.last() = Instant::now();
                }
            }
        });
        liveness
    }

    /// Returns for how long the work runtime has made no progress, if that is too long.
    pub(crate) fn stalled_for(&self) -> Option<Duration> {
        let silent = self.last().elapsed();
        (silent > SILENT_MAX).then_some(silent)
    }

    fn last(&self) -> MutexGuard<'_, Instant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        sync::{
            Arc,
            atomic::{AtomicBool, Ordering},
        },
        time::Duration,
    };

    use tokio::{runtime, task::JoinSet, time::sleep};
    use tokio_util::sync::CancellationToken;

    use super::{Liveness, SILENT_MAX};

    /// The clock of this runtime is paused; the other runtime is never driven, like one with blocked threads.
    #[tokio::test(start_paused = true)]
    async fn work_that_stands_still_is_noticed_unless_it_is_excused() {
        let held = runtime::Builder::new_current_thread().enable_time().build().expect("a runtime");
        let (excused, stop) = (Arc::new(AtomicBool::new(true)), CancellationToken::new());
        let is_excused = {
            let excused = Arc::clone(&excused);
            move || excused.load(Ordering::Relaxed)
        };
        let mut tasks = JoinSet::new();
        let liveness = Liveness::watch(&mut tasks, held.handle(), is_excused, stop.clone());
        // Far beyond the limit, which passes at once.
        sleep(4 * SILENT_MAX).await;
        assert_eq!(liveness.stalled_for(), None, "a full buffer is no stall");
        excused.store(false, Ordering::Relaxed);
        // Just below the limit.
        sleep(SILENT_MAX - Duration::from_secs(2)).await;
        assert_eq!(liveness.stalled_for(), None, "it has half a minute after that");
        // Just above the limit.
        sleep(Duration::from_secs(5)).await;
        assert!(liveness.stalled_for().is_some_and(|silent| silent > SILENT_MAX));
        let here = Liveness::watch(&mut tasks, &runtime::Handle::current(), || false, stop);
        // Far beyond the limit again.
        sleep(4 * SILENT_MAX).await;
        assert_eq!(here.stalled_for(), None, "what goes on is alive");
        held.shutdown_background();
    }
}
