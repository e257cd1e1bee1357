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
use db::{Db, DbError};
use drivers::receiver::Sender;
use model::{BusSlot, KeyRing, Project, TraceId};
use ring::digest::{Context, SHA256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long the traces of runs that were active at the start of the server stay registered: a worker leases each of these runs
/// when its old lease expires, and then registers its own interest.
const RESUMED_MAX: Duration = Duration::from_secs(10 * 60);

/// The maximum number of such traces.
const RESUMED_TRACES_MAX: u32 = 10_000;

/// The registered traces. Clones share the same set.
#[derive(Clone, Debug, Default)]
pub(crate) struct Interests(Arc<InterestTable>);

#[derive(Debug, Default)]
struct InterestTable {
    /// The number of traces.
    traces: AtomicUsize,
    /// For each trace, how many runs of which projects wait for it; at most as many traces as runs.
    runs: Mutex<HashMap<TraceId, HashMap<Project, usize>>>,
    /// The traces of runs that were active when the database was opened, and the time of their registration.
    resumed: Mutex<Option<(Instant, Vec<AwaitedTraces>)>>,
}

/// A project, and the trace that its run waits for.
type AwaitedTraces = (Project, TraceId);

/// The interest of one run, until it is dropped.
#[derive(Debug)]
pub(crate) struct Interest {
    awaited: AwaitedTraces,
    of: Interests,
}

impl Interests {
    /// Registers the traces of active runs before a worker leases them again: their spans arrive as soon as ingest accepts spans.
    pub(crate) async fn resume(&self, db: &Db, keys: &KeyRing) -> Result<(), DbError> {
        let traces = db.awaited_traces(RESUMED_TRACES_MAX).await?.into_iter();
        let foreign: Vec<_> =
            traces.filter(|(project, trace)| !keys.is_of(project, trace)).collect();
        self.let_go();
        foreign.iter().for_each(|awaited| self.0.add(awaited));
        *self.0.resumed() = Some((Instant::now(), foreign));
        Ok(())
    }

    /// Removes these traces again, once workers have registered their own interests.
    pub(crate) async fn keep(self, stop: CancellationToken) {
        while tokio::time::timeout(RESUMED_MAX / 10, stop.cancelled()).await.is_err() {
            let since = self.0.resumed().as_ref().map(|(since, _)| *since);
            if since.is_some_and(|since| since.elapsed() > RESUMED_MAX) {
                self.let_go();
            }
        }
    }

    fn let_go(&self) {
        let resumed = self.0.resumed().take();
        let traces = resumed.into_iter().flat_map(|(_, traces)| traces);
        traces.for_each(|awaited| self.0.remove(&awaited));
    }

    pub(crate) fn register(&self, project: Project, trace: TraceId) -> Interest {
        let awaited = (project, trace);
        self.0.add(&awaited);
        Interest { awaited, of: self.clone() }
    }

    /// Returns the projects with runs that wait for this trace, as far as this sender reaches them.
    pub(crate) fn of(&self, trace: &TraceId, sender: &Sender) -> Vec<Project> {
        if self.0.traces.load(Ordering::Acquire) == 0 {
            return Vec::new();
        }
        let runs = self.0.runs();
        let projects = runs.get(trace).into_iter().flat_map(HashMap::keys);
        projects.filter(|project| sender.reaches(project)).cloned().collect()
    }
}

/// Returns the bus channel for a project's part of a trace: that of the trace id itself if it was minted for the project.
///
/// That of another id has the slot of this server: only spans that it receives itself reach the run.
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
    fn add(&self, (project, trace): &AwaitedTraces) {
        let mut runs = self.runs();
        *runs.entry(*trace).or_default().entry(project.clone()).or_default() += 1;
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn remove(&self, (project, trace): &AwaitedTraces) {
        let mut runs = self.runs();
        if let Some(projects) = runs.get_mut(trace) {
            if let Some(count) = projects.get_mut(project) {
                *count -= 1;
            }
            projects.retain(|_, count| *count > 0);
            if projects.is_empty() {
                runs.remove(trace);
            }
        }
        self.traces.store(runs.len(), Ordering::Release);
    }

    fn runs(&self) -> MutexGuard<'_, HashMap<TraceId, HashMap<Project, usize>>> {
        self.runs.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn resumed(&self) -> MutexGuard<'_, Option<(Instant, Vec<AwaitedTraces>)>> {
        self.resumed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Interest {
    fn drop(&mut self) {
        self.of.0.remove(&self.awaited);
    }
}

#[cfg(test)]
mod tests {
    use drivers::receiver::Sender;
    use model::{Key, KeyRing, Project, Timestamp, TraceId};

    use super::{Interests, channel};

    fn projects() -> [Project; 2] {
        ["alpha", "beta"].map(|name| name.parse().expect("a name"))
    }

    #[test]
    fn a_trace_is_wanted_for_as_long_as_a_run_waits_for_it() {
        let interests = Interests::default();
        let (one, other) = (TraceId::from_random([1; 16]), TraceId::from_random([2; 16]));
        let [alpha, beta] = projects();
        let all = Sender::of_all();
        assert_eq!(interests.of(&one, &all), []);
        let register = |project: &Project| interests.register(project.clone(), one);
        let (first, second, third) = (register(&alpha), register(&alpha), register(&beta));
        assert_eq!(interests.of(&one, &all).len(), 2);
        assert_eq!(interests.of(&one, &Sender::of([beta.clone()])), [beta]);
        assert_eq!(interests.of(&other, &all), []);
        drop((first, third));
        assert_eq!(interests.of(&one, &all), [alpha]);
        drop(second);
        assert_eq!(interests.of(&one, &all), []);
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
