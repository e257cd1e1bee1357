//! What a bus holds in memory, under one lock: batches by trace, how old each trace is, and what was let go of.
//!
//! Deliberately absent: the journal. What is added here is in there already, and what is let go of is noted for whoever
//! writes it.

use std::{
    collections::{BTreeSet, HashMap},
    mem,
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use journal::Stretch;
use model::{Project, Timestamp, TraceId};
use tokio::sync::Notify;

use crate::{
    Batch,
    spans::{Limits, Subscription},
};

/// What a batch costs beside its bytes: its place, in a list that may have room for twice as many, and the
/// allocator's part of the block that the bytes are in.
pub(crate) const BATCH_COST: usize = 256;

/// What a trace costs beside its batches: its places in two collections that may have room for twice as many, a
/// list with room for a few batches, and what its subscribers wait on.
pub(crate) const TRACE_COST: usize = 768;

/// Of a full bus this part is made free at a time.
const DISPLACED_SHARE: usize = 16;

/// All traces.
#[derive(Debug, Default)]
pub(crate) struct TraceTable {
    pub(crate) traces: HashMap<TraceId, TraceBatches>,
    /// The traces to which something was published, by when it last was.
    ages: BTreeSet<(Timestamp, TraceId)>,
    pub(crate) bytes: usize,
    /// Of these, what traces of each project cost that somebody subscribed to.
    of_projects: HashMap<Project, usize>,
    /// What was forgotten and is in the journal still.
    pub(crate) released: Vec<ReleasedTrace>,
    /// Spans that were not kept because their trace or their project was at its bound.
    pub(crate) over_spans: u64,
    /// Spans that nobody subscribed to, and that made room for others.
    pub(crate) displaced_spans: u64,
}

/// What is held of one trace.
#[derive(Debug, Default)]
pub(crate) struct TraceBatches {
    pub(crate) batches: Vec<StoredBatch>,
    /// What the batches cost, and with the first one the trace itself.
    pub(crate) bytes: usize,
    spans: u64,
    /// Whose it is, once somebody has subscribed to it.
    project: Option<Project>,
    pub(crate) refused: u64,
    /// Whether it was heard of from its beginning on.
    pub(crate) expected: bool,
    last: Timestamp,
    /// Each subscription shares it, so that its count tells whether there is any.
    pub(crate) news: Arc<Notify>,
}

/// A batch, and where it stands in the journal.
#[derive(Clone, Debug)]
pub(crate) struct StoredBatch {
    /// Rises with publishing.
    pub(crate) number: u64,
    pub(crate) spans: u32,
    pub(crate) bytes: Bytes,
    pub(crate) stretch: Stretch,
}

/// A forgotten trace: its batches were numbered below `before`.
#[derive(Debug)]
pub(crate) struct ReleasedTrace {
    pub(crate) trace: TraceId,
    pub(crate) before: u64,
    pub(crate) stretches: Vec<Stretch>,
}

/// What is on its way into the journal, and will be added.
#[derive(Debug, Default)]
pub(crate) struct PendingBatches {
    bytes: usize,
    of: HashMap<TraceId, (usize, u64)>,
    of_projects: HashMap<Project, usize>,
}

/// Why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The trace is at its bound, and waiting does not make it smaller.
    Trace,
    /// The traces of its project are. Who sends them may send others' too, and is not made to wait.
    Project,
    /// All of them together are, and somebody waits for each.
    Bus,
}

impl TraceTable {
    /// The trace of this subscription, unless it was forgotten.
    pub(crate) fn of(&self, subscription: &Subscription) -> Option<&TraceBatches> {
        let held = self.traces.get(&subscription.trace)?;
        Arc::ptr_eq(&held.news, &subscription.news).then_some(held)
    }

    fn of_trace(&self, trace: TraceId) -> (usize, u64) {
        self.traces.get(&trace).map_or((0, 0), |held| (held.bytes, held.spans))
    }

    /// The trace is of this project: what it costs counts for the project from now on.
    pub(crate) fn own(&mut self, trace: TraceId, project: &Project) -> &mut TraceBatches {
        let held = self.traces.entry(trace).or_default();
        if held.project.is_none() {
            held.project = Some(project.clone());
            count(&mut self.of_projects, project, held.bytes);
        }
        held
    }

    /// Makes room for a batch, where there is none without: what nobody subscribes to gives way, the oldest first.
    pub(crate) fn make_room(
        &mut self,
        limits: &Limits,
        coming: &mut PendingBatches,
        batch: &Batch,
    ) -> Result<(), NoRoom> {
        match self.room(limits, coming, batch) {
            Err(NoRoom::Bus) => {
                self.displace(limits, coming.bytes.saturating_add(cost(true, batch.bytes.len())));
                self.room(limits, coming, batch)
            }
            found => found,
        }
    }

    /// Finds room for a batch beside all that is here and coming, and counts it with what is coming.
    pub(crate) fn room(
        &self,
        limits: &Limits,
        coming: &mut PendingBatches,
        batch: &Batch,
    ) -> Result<(), NoRoom> {
        let (bytes, spans) = self.of_trace(batch.trace);
        let (bytes_coming, spans_coming) = coming.of.get(&batch.trace).copied().unwrap_or_default();
        let cost = cost(bytes + bytes_coming == 0, batch.bytes.len());
        let of_trace = bytes_coming.saturating_add(cost);
        let spans_of_trace = spans_coming + u64::from(batch.spans);
        if bytes.saturating_add(of_trace) > limits.trace_bytes_max
            || spans + spans_of_trace > limits.trace_spans_max
        {
            return Err(NoRoom::Trace);
        }
        let held = self.traces.get(&batch.trace);
        let project = held.and_then(|held| held.project.as_ref());
        if let Some(project) = project {
            let of = |bytes: &HashMap<Project, usize>| bytes.get(project).copied().unwrap_or(0);
            let of_project = of(&self.of_projects).saturating_add(of(&coming.of_projects));
            if of_project.saturating_add(cost) > limits.project_bytes_max {
                return Err(NoRoom::Project);
            }
        }
        if self.bytes.saturating_add(coming.bytes).saturating_add(cost) > limits.bytes_max {
            return Err(NoRoom::Bus);
        }
        coming.bytes += cost;
        coming.of.insert(batch.trace, (of_trace, spans_of_trace));
        if let Some(project) = project {
            count(&mut coming.of_projects, project, cost);
        }
        Ok(())
    }

    /// Forgets what nobody subscribes to, the oldest first, until there is room for so many bytes and some to spare: to look
    /// for it takes a walk past all that is subscribed to.
    fn displace(&mut self, limits: &Limits, wanted: usize) {
        let spare = limits.bytes_max / DISPLACED_SHARE;
        let room = limits.bytes_max.saturating_sub(wanted).saturating_sub(spare);
        let mut over = self.bytes.saturating_sub(room);
        let mut idle = Vec::new();
        for (_, trace) in &self.ages {
            let Some(held) = self.traces.get(trace) else { continue };
            if over == 0 {
                break;
            }
            if held.subscribers() == 0 {
                over = over.saturating_sub(held.bytes);
                idle.push((*trace, held.spans));
            }
        }
        for (trace, spans) in idle {
            self.displaced_spans += spans;
            self.forget(trace);
        }
    }

    /// Adds a batch for which there was room. The first of a trace pays for the trace: one that is only subscribed to is
    /// its subscribers' to bound.
    pub(crate) fn add(&mut self, now: Timestamp, trace: TraceId, stored: StoredBatch) {
        let held = self.traces.entry(trace).or_default();
        let cost = cost(held.bytes == 0, stored.bytes.len());
        self.bytes += cost;
        held.bytes += cost;
        if let Some(project) = &held.project {
            count(&mut self.of_projects, project, cost);
        }
        held.spans += u64::from(stored.spans);
        held.batches.push(stored);
        held.news.notify_waiters();
        let before = mem::replace(&mut held.last, now);
        self.age(trace, before, now);
    }

    /// Remembers the refusal where there is something to remember it with. A trace of which nothing is known
    /// gets no entry, else a full bus could be filled further.
    pub(crate) fn refuse(&mut self, now: Timestamp, trace: TraceId) {
        if let Some(held) = self.traces.get_mut(&trace) {
            held.refused += 1;
            let before = mem::replace(&mut held.last, now);
            self.age(trace, before, now);
        }
    }

    fn age(&mut self, trace: TraceId, before: Timestamp, now: Timestamp) {
        self.ages.remove(&(before, trace));
        self.ages.insert((now, trace));
    }

    pub(crate) fn expire(&mut self, now: Timestamp, age_max: Duration) {
        let old: Vec<TraceId> = self
            .ages
            .iter()
            .take_while(|(last, _)| now.since(*last) > age_max)
            .filter(|(_, trace)| self.traces.get(trace).is_none_or(|held| held.subscribers() == 0))
            .map(|(_, trace)| *trace)
            .collect();
        for trace in old {
            self.forget(trace);
        }
    }

    pub(crate) fn forget(&mut self, trace: TraceId) {
        let Some(held) = self.traces.remove(&trace) else { return };
        self.ages.remove(&(held.last, trace));
        self.bytes -= held.bytes;
        if let Some(project) = &held.project
            && let Some(bytes) = self.of_projects.get_mut(project)
        {
            *bytes -= held.bytes;
            if *bytes == 0 {
                self.of_projects.remove(project);
            }
        }
        held.news.notify_waiters();
        if let Some(last) = held.batches.last() {
            let before = last.number + 1;
            let stretches = held.batches.iter().map(|stored| stored.stretch).collect();
            self.released.push(ReleasedTrace { trace, before, stretches });
        }
    }

    /// The traces whose first batches are oldest in the journal, with so many bytes, or one of them.
    pub(crate) fn oldest(&self, bytes_max: usize) -> Vec<(TraceId, Vec<StoredBatch>)> {
        let first = |(trace, held): (&TraceId, &TraceBatches)| {
            held.batches.iter().map(|stored| stored.stretch).min().map(|first| (first, *trace))
        };
        let mut firsts: Vec<_> = self.traces.iter().filter_map(first).collect();
        firsts.sort_unstable();
        let mut bytes = 0;
        let mut oldest = Vec::new();
        for (_, trace) in firsts {
            if bytes >= bytes_max {
                break;
            }
            let Some(held) = self.traces.get(&trace) else { continue };
            bytes += held.bytes;
            oldest.push((trace, held.batches.clone()));
        }
        oldest
    }

    /// A batch stands elsewhere in the journal from now on. Says where it stood, if it is still here.
    pub(crate) fn moved(&mut self, trace: TraceId, number: u64, to: Stretch) -> Option<Stretch> {
        let held = self.traces.get_mut(&trace)?;
        let index = held.batches.binary_search_by_key(&number, |stored| stored.number).ok()?;
        Some(mem::replace(&mut held.batches[index].stretch, to))
    }
}

impl TraceBatches {
    pub(crate) fn subscribers(&self) -> usize {
        Arc::strong_count(&self.news) - 1
    }
}

/// What it costs to keep so many bytes.
pub(crate) fn cost(is_first: bool, bytes: usize) -> usize {
    bytes.saturating_add(BATCH_COST + if is_first { TRACE_COST } else { 0 })
}

/// Adds to what a project has.
fn count(of_projects: &mut HashMap<Project, usize>, project: &Project, bytes: usize) {
    match of_projects.get_mut(project) {
        Some(before) => *before += bytes,
        None if bytes > 0 => drop(of_projects.insert(project.clone(), bytes)),
        None => {}
    }
}
