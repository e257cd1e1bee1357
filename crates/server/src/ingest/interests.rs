//! Traces that runs wait for though their ids were not minted for the run's project: those of `traceid` triggers.
//!
//! Several projects may wait for such an id, and each gets the spans of its own senders: each project has its own channel
//! on the bus for it. So no test can read or end another project's trace by naming its id.
//!
//! The receiver queries this for every foreign span. It is nearly always empty: then a query costs one atomic load.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bus::Channel;
use db::{AwaitedTrace, Db, DbError};
use drivers::receiver::Sender;
use model::{BusSlot, KeyRing, Project, TraceId};
use ring::digest::{Context, SHA256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How often the traces that the database or other servers named are compared with the database.
const SWEEP: Duration = Duration::from_secs(60);

/// How long the database need not have a trace that a worker announced: it records its attempt after that.
const UNRECORDED_MAX: Duration = Duration::from_secs(60);

/// The maximum number of such traces.
const KNOWN_MAX: u32 = 10_000;

/// The registered traces. Clones share the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interests(Arc<InterestTable>);

#[derive(Debug, Default)]
struct InterestTable {
    /// The number of traces.
    traces: AtomicUsize,
    /// For each trace, who waits for it; at most as many traces as runs.
    runs: Mutex<HashMap<TraceId, HashMap<Waiter, usize>>>,
    /// The traces that this server knows from the database or from other servers, until their runs are over.
    known: Mutex<HashMap<AwaitedTrace, KnownTrace>>,
}

/// The runs of a project that wait for a trace, and the slot to which its spans go on a shared bus.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Waiter {
    pub(crate) project: Project,
    pub(crate) slot: Option<BusSlot>,
}

/// How this server knows of a trace.
#[derive(Clone, Copy, Debug)]
struct KnownTrace {
    since: Instant,
    /// Whether it was known before this server accepted any span.
    is_from_start: bool,
}

/// The interest of one run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    pub(crate) awaited: AwaitedTrace,
    of: Interests,
}

impl Interests {
    /// Registers the traces of active runs before this server accepts spans: no worker announces them again.
    pub(crate) async fn resume(
        &self,
        db: &Db,
        keys: &KeyRing,
        is_shared: bool,
    ) -> Result<(), DbError> {
        let awaited = db.awaited_traces(is_shared, KNOWN_MAX).await?;
        for awaited in awaited.into_iter().filter(|it| !keys.is_of(&it.project, &it.trace)) {
            self.know(awaited, true);
        }
        Ok(())
    }

    /// Registers a trace that a worker announces; false if there are too many.
    pub(crate) fn announced(&self, awaited: AwaitedTrace) -> bool {
        self.know(awaited, false)
    }

    /// Whether this server has known a trace since before it accepted any span.
    pub(crate) fn is_known_from_start(&self, awaited: &AwaitedTrace) -> bool {
        self.0.known().get(awaited).is_some_and(|known| known.is_from_start)
    }

    fn know(&self, awaited: AwaitedTrace, is_from_start: bool) -> bool {
        let mut known = self.0.known();
        if known.contains_key(&awaited) {
            return true;
        }
        if known.len() >= 2 * KNOWN_MAX as usize {
            return false;
        }
        self.0.add(&awaited);
        known.insert(awaited, KnownTrace { since: Instant::now(), is_from_start });
        true
    }

    /// Removes the known traces whose runs are over.
    pub(crate) async fn keep(self, db: Db, is_shared: bool, stop: CancellationToken) {
        while tokio::time::timeout(SWEEP, stop.cancelled()).await.is_err() {
            let (began, is_empty) = (Instant::now(), self.0.known().is_empty());
            if is_empty {
                continue;
            }
            match db.awaited_traces(is_shared, KNOWN_MAX).await {
                Ok(awaited) => self.let_go(&awaited, began),
                // They stay until the database answers.
                Err(error) => tracing::debug!(%error, "awaited traces could not be compared"),
            }
        }
    }

    /// Removes the known traces that the database did not have at a time.
    fn let_go(&self, awaited: &[AwaitedTrace], at: Instant) {
        if awaited.len() >= KNOWN_MAX as usize {
            // There may be more of them.
            return;
        }
        self.0.known().retain(|known, facts| {
            let is_kept = facts.since + UNRECORDED_MAX >= at || awaited.contains(known);
            if !is_kept {
                self.0.remove(known);
            }
            is_kept
        });
    }

    pub(crate) fn register(&self, awaited: AwaitedTrace) -> Interest {
        self.0.add(&awaited);
        Interest { awaited, of: self.clone() }
    }

    /// Returns who waits for this trace, as far as this sender reaches them.
    pub(crate) fn of(&self, trace: &TraceId, sender: &Sender) -> Vec<Waiter> {
        if self.0.traces.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let runs = self.0.runs();
        let waiters = runs.get(trace).into_iter().flat_map(HashMap::keys);
        waiters.filter(|waiter| sender.reaches(&waiter.project)).cloned().collect()
    }
}

/// Returns the bus channel for a project's part of a trace: that of the trace id itself if it was minted for the project.
///
/// That of another id has the slot of the worker that announced it.
pub(crate) fn channel(
    keys: &KeyRing,
    project: &Project,
    trace: TraceId,
    slot: Option<BusSlot>,
) -> Channel {
    match keys.is_of(project, &trace) {
        true => own_channel(keys, trace),
        false => Channel { slot: slot.unwrap_or_default(), trace: part_of(project, trace) },
    }
}

/// Returns the bus channel of a minted trace.
pub(crate) fn own_channel(keys: &KeyRing, trace: TraceId) -> Channel {
    Channel { slot: keys.slot(&trace).unwrap_or_default(), trace }
}

/// Returns an id for a project's part of a trace that was not minted for it.
fn part_of(project: &Project, trace: TraceId) -> TraceId {
    let mut digest = Context::new(&SHA256);
    digest.update(project.as_str().as_bytes());
    digest.update(&[0]);
    digest.update(trace.as_bytes());
    let digest = digest.finish();
    digest.as_ref().first_chunk().map_or(trace, |bytes| TraceId::from_random(*bytes))
}

impl InterestTable {
    fn add(&self, awaited: &AwaitedTrace) {
        let mut runs = self.runs();
        *runs.entry(awaited.trace).or_default().entry(waiter(awaited)).or_default() += 1;
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn remove(&self, awaited: &AwaitedTrace) {
        let mut runs = self.runs();
        if let Some(waiters) = runs.get_mut(&awaited.trace) {
            if let Some(count) = waiters.get_mut(&waiter(awaited)) {
                *count -= 1;
            }
            waiters.retain(|_, count| *count > 0);
            if waiters.is_empty() {
                runs.remove(&awaited.trace);
            }
        }
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<TraceId, HashMap<Waiter, usize>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn known(&self) -> MutexGuard<'_, HashMap<AwaitedTrace, KnownTrace>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn waiter(awaited: &AwaitedTrace) -> Waiter {
    Waiter { project: awaited.project.clone(), slot: awaited.slot }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.of.0.remove(&self.awaited);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use db::AwaitedTrace;
    use drivers::receiver::Sender;
    use model::{BusSlot, Key, KeyRing, Project, Timestamp, TraceId};
    use tokio::time::Instant;

    use super::{Interests, UNRECORDED_MAX, channel};

    fn projects() -> [Project; 2] {
        ["alpha", "beta"].map(|name| name.parse().expect("a name"))
    }

    fn awaited(project: &Project, trace: TraceId) -> AwaitedTrace {
        AwaitedTrace { project: project.clone(), trace, slot: Some(BusSlot(1)) }
    }

    /// Returns the projects that wait for a trace.
    fn waiting(interests: &Interests, trace: TraceId, sender: &Sender) -> Vec<Project> {
        interests.of(&trace, sender).into_iter().map(|waiter| waiter.project).collect()
    }

    #[test]
    fn a_trace_is_wanted_for_as_long_as_a_run_waits_for_it() {
        let interests = Interests::default();
        let (one, other) = (TraceId::from_random([1; 16]), TraceId::from_random([2; 16]));
        let [alpha, beta] = projects();
        let all = Sender::of_all();
        assert_eq!(waiting(&interests, one, &all), []);
        let register = |project: &Project| interests.register(awaited(project, one));
        let (first, second, third) = (register(&alpha), register(&alpha), register(&beta));
        assert_eq!(waiting(&interests, one, &all).len(), 2);
        assert_eq!(waiting(&interests, one, &Sender::of([beta.clone()])), [beta]);
        assert_eq!(waiting(&interests, other, &all), []);
        drop((first, third));
        assert_eq!(waiting(&interests, one, &all), [alpha]);
        drop(second);
        assert_eq!(waiting(&interests, one, &all), []);
    }

    #[test]
    fn an_announced_trace_is_known_until_its_run_is_over() {
        let interests = Interests::default();
        let [alpha, _] = projects();
        let (all, trace) = (Sender::of_all(), TraceId::from_random([1; 16]));
        let announced = awaited(&alpha, trace);
        let before = Instant::now();
        for _ in 0..2 {
            assert!(interests.announced(announced.clone()));
        }
        assert_eq!(interests.of(&trace, &all).len(), 1);
        assert!(!interests.is_known_from_start(&announced), "spans may have come before");
        // The database was read before the announcement.
        interests.let_go(&[], before);
        assert_eq!(interests.of(&trace, &all).len(), 1);
        let later = Instant::now() + UNRECORDED_MAX + Duration::from_secs(1);
        interests.let_go(std::slice::from_ref(&announced), later);
        assert_eq!(interests.of(&trace, &all).len(), 1, "its run waits");
        let own = interests.register(announced);
        interests.let_go(&[], later);
        assert_eq!(interests.of(&trace, &all).len(), 1, "an own run waits");
        drop(own);
        assert_eq!(interests.of(&trace, &all), []);
    }

    #[test]
    fn a_project_has_its_own_ids_and_a_channel_of_its_own_for_others() {
        let keys = KeyRing::new(Key::from_bytes([1; 16]), Vec::new());
        let [alpha, beta] = projects();
        let minted = keys.mint(&alpha, Timestamp::from_nanos(0), [1; 5]);
        assert_eq!(channel(&keys, &alpha, minted, None).trace, minted);
        let external = TraceId::from_random([7; 16]);
        let others = [(&beta, minted), (&alpha, external), (&beta, external)];
        let mut ids =
            others.map(|(project, trace)| channel(&keys, project, trace, None).trace).to_vec();
        ids.extend([minted, external]);
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 5, "none is another's");
    }
}
