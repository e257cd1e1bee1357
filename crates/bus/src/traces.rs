//! The in-memory state of a bus, under one lock: batches by trace, the age of each trace, and the released traces.
//!
//! Deliberately absent: the journal. A batch that is added here is in the journal already, and a released trace is recorded for
//! the writer.

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
    refusals::{BatchDigest, Refusals},
    spans::{Limits, Subscription},
};

/// The overhead of a batch beside its bytes: its slot, in a list that may have capacity for twice as many, and the allocator's
/// part of the block that holds the bytes.
pub(crate) const BATCH_COST: usize = 256;

/// The overhead of a trace beside its batches: its entries in two collections that may have capacity for twice as many, a list
/// with capacity for a few batches, and the notifier of its subscribers.
pub(crate) const TRACE_COST: usize = 768;

/// A full bus frees one part in this number at a time.
const DISPLACED_SHARE: usize = 16;

/// All traces.
#[derive(Debug, Default)]
pub(crate) struct TraceTable {
    pub(crate) traces: HashMap<TraceId, TraceBatches>,
    /// The traces with a published batch, by the time of the last one.
    ages: BTreeSet<(Timestamp, TraceId)>,
    pub(crate) bytes: usize,
    /// The part of `bytes` of each project: traces that have or had a subscriber.
    of_projects: HashMap<Project, usize>,
    /// Forgotten traces that are still in the journal.
    pub(crate) released: Vec<ReleasedTrace>,
    /// Spans that were discarded because their trace or their project was at its bound.
    pub(crate) over_spans: u64,
    /// Spans without a subscriber that were discarded to make room for others.
    pub(crate) displaced_spans: u64,
    /// Spans of senders that may not write to the project of the trace.
    pub(crate) foreign_spans: u64,
}

/// The state of one trace.
#[derive(Debug, Default)]
pub(crate) struct TraceBatches {
    pub(crate) batches: Vec<StoredBatch>,
    /// The cost of the batches, including the cost of the trace once there is a batch.
    pub(crate) bytes: usize,
    spans: u64,
    /// The project of the first subscriber.
    pub(crate) project: Option<Project>,
    /// The number of batches that were lost.
    pub(crate) lost: u64,
    /// None until a batch was refused.
    refusals: Option<Box<Refusals>>,
    /// The era of the bus in which the trace began, if the bus has listened for it from its beginning.
    pub(crate) expected: Option<u64>,
    last: Timestamp,
    /// Shared by each subscription, so that its reference count shows whether there is one.
    pub(crate) news: Arc<Notify>,
}

/// A batch, and its location in the journal.
#[derive(Clone, Debug)]
pub(crate) struct StoredBatch {
    /// Increases with publishing.
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

/// What a batch needs room for.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BatchSize {
    pub(crate) trace: TraceId,
    pub(crate) spans: u32,
    pub(crate) bytes: usize,
}

/// Batches that are being written to the journal, and will be added.
#[derive(Debug, Default)]
pub(crate) struct PendingBatches {
    bytes: usize,
    of: HashMap<TraceId, (usize, u64)>,
    of_projects: HashMap<Project, usize>,
}

/// The reason why there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoRoom {
    /// The trace is at its bound; waiting does not make it smaller.
    Trace,
    /// The traces of its project are at their bound. The sender may also send for other projects, and is not made to wait.
    Project,
    /// All traces together are at the bound, and each of them has a subscriber.
    Bus,
}

impl TraceTable {
    /// Returns the trace of this subscription, unless it was forgotten.
    pub(crate) fn of(&self, subscription: &Subscription) -> Option<&TraceBatches> {
        let held = self.traces.get(&subscription.trace)?;
        Arc::ptr_eq(&held.news, &subscription.news).then_some(held)
    }

    fn of_trace(&self, trace: TraceId) -> (usize, u64) {
        self.traces.get(&trace).map_or((0, 0), |held| (held.bytes, held.spans))
    }

    /// Assigns the trace to this project, unless it has one: its cost counts for the project from now on.
    pub(crate) fn own(&mut self, trace: TraceId, project: &Project) -> &mut TraceBatches {
        let held = self.traces.entry(trace).or_default();
        if held.project.is_none() {
            held.project = Some(project.clone());
            count(&mut self.of_projects, project, held.bytes);
        }
        held
    }

    /// Whether a sender for these projects may write to a trace; counts its spans if not.
    pub(crate) fn is_open_to(
        &mut self,
        trace: TraceId,
        projects: Option<&[Project]>,
        spans: u32,
    ) -> bool {
        let project = self.traces.get(&trace).and_then(|held| held.project.as_ref());
        let is_open = project
            .is_none_or(|project| projects.is_none_or(|projects| projects.contains(project)));
        if !is_open {
            self.foreign_spans += u64::from(spans);
        }
        is_open
    }

    /// Makes room for a batch, if necessary: discards traces without a subscriber, the oldest first.
    pub(crate) fn make_room(
        &mut self,
        limits: &Limits,
        coming: &mut PendingBatches,
        batch: BatchSize,
    ) -> Result<(), NoRoom> {
        match self.room(limits, coming, batch) {
            Err(NoRoom::Bus) => {
                self.displace(limits, coming.bytes.saturating_add(cost(true, batch.bytes)));
                self.room(limits, coming, batch)
            }
            found => found,
        }
    }

    /// Checks that there is room for a batch beside all stored and pending ones, and counts it as pending.
    pub(crate) fn room(
        &self,
        limits: &Limits,
        coming: &mut PendingBatches,
        batch: BatchSize,
    ) -> Result<(), NoRoom> {
        let (bytes, spans) = self.of_trace(batch.trace);
        let (bytes_coming, spans_coming) = coming.of.get(&batch.trace).copied().unwrap_or_default();
        let cost = cost(bytes + bytes_coming == 0, batch.bytes);
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

    /// Discards traces without a subscriber, the oldest first, until there is room for `wanted` bytes and some to spare, since
    /// each search has to pass all traces that have a subscriber.
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

    /// Adds a batch for which there was room. The first batch of a trace pays for the trace: the subscribers themselves bound the
    /// traces without a batch.
    pub(crate) fn add(&mut self, now: Timestamp, trace: TraceId, stored: StoredBatch) {
        let held = self.traces.entry(trace).or_default();
        let cost = cost(held.bytes == 0, stored.bytes.len());
        self.bytes += cost;
        held.bytes += cost;
        if let Some(project) = &held.project {
            count(&mut self.of_projects, project, cost);
        }
        held.spans += u64::from(stored.spans);
        if let Some(refusals) = &mut held.refusals {
            refusals.add(&stored.bytes);
        }
        held.batches.push(stored);
        held.news.notify_waiters();
        let before = mem::replace(&mut held.last, now);
        self.age(trace, before, now);
    }

    /// Records a loss if the trace has an entry. An unknown trace gets no entry, else a full bus could be filled further.
    pub(crate) fn lose(&mut self, now: Timestamp, trace: TraceId) {
        self.note(now, trace, |held| held.lost += 1);
    }

    /// Records the refusal of a batch, which its sender may send again, if the trace has an entry.
    pub(crate) fn refuse(&mut self, now: Timestamp, trace: TraceId, batch: BatchDigest) {
        self.note(now, trace, |held| {
            let here = held.batches.iter().map(|stored| &*stored.bytes);
            let refusals = held.refusals.get_or_insert_with(|| Box::new(Refusals::new(here)));
            if !refusals.refuse(batch) {
                held.lost += 1;
            }
        });
    }

    fn note(&mut self, now: Timestamp, trace: TraceId, note: impl FnOnce(&mut TraceBatches)) {
        if let Some(held) = self.traces.get_mut(&trace) {
            note(held);
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

    /// Returns the traces with the oldest first batches in the journal, until they reach `bytes_max` bytes; at least one if there
    /// is any.
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

    /// Updates the location of a batch in the journal. Returns its old location, if the batch is still stored.
    pub(crate) fn moved(&mut self, trace: TraceId, number: u64, to: Stretch) -> Option<Stretch> {
        let held = self.traces.get_mut(&trace)?;
        let index = held.batches.binary_search_by_key(&number, |stored| stored.number).ok()?;
        Some(mem::replace(&mut held.batches[index].stretch, to))
    }
}

impl TraceBatches {
    /// Returns the number of refused batches that are not here.
    pub(crate) fn refused(&self) -> u64 {
        self.refusals.as_ref().map_or(0, |refusals| refusals.missing())
    }

    pub(crate) fn subscribers(&self) -> usize {
        Arc::strong_count(&self.news) - 1
    }
}

/// Returns the memory cost of a batch of this size.
pub(crate) fn cost(is_first: bool, bytes: usize) -> usize {
    bytes.saturating_add(BATCH_COST + if is_first { TRACE_COST } else { 0 })
}

/// Adds to the cost of a project.
fn count(of_projects: &mut HashMap<Project, usize>, project: &Project, bytes: usize) {
    match of_projects.get_mut(project) {
        Some(before) => *before += bytes,
        None if bytes > 0 => drop(of_projects.insert(project.clone(), bytes)),
        None => {}
    }
}
