//! Notices about an exporter: that it delivers nothing, why, and how much is buffered; that its buffer fills, is full,
//! drops items, or cannot be written; and when each of these is over.
//!
//! A thread takes a snapshot of all exporters a few times a second, and reports changes. Because it is separate from
//! the senders, it also detects an exporter that hangs.
//! Deliberately absent: any reaction to these conditions.

mod alarm;
mod delivery;
mod exporter;
#[cfg(test)]
mod tests;
pub(crate) mod words;

use std::{
    collections::HashMap,
    io,
    path::PathBuf,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        mpsc::{RecvTimeoutError, SyncSender, sync_channel},
    },
    thread,
    time::{Duration, Instant},
};

use self::exporter::ExporterWatch;
use crate::{
    counts::Counts,
    host::{Host, Notice, Topic, suppress_this_thread},
    pipeline::{Outlet, Pipeline, State},
    plan::Signal,
    send::SignalSnapshot,
};

/// The interval between snapshots.
const INTERVAL: Duration = Duration::from_millis(250);

/// The status of an exporter.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Its destination, without secrets.
    pub destination: String,
    /// Its delivery state.
    pub state: Delivery,
    /// How long delivery has been failing, if it fails.
    pub failing_for: Option<Duration>,
    /// How full its buffer is, from 0 to 1.
    pub buffer: f64,
    /// The counts of its items, and its failure reason.
    pub counts: Counts,
}

/// The delivery state of an exporter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// No request was tried so far.
    #[default]
    Waiting,
    /// The exporter delivers.
    Delivering,
    /// The exporter does not deliver.
    Failing,
    /// The exporter delivers again, and sends the backlog.
    CatchingUp,
    /// The destination responds, and permanently rejects all items.
    Rejecting,
}

impl Delivery {
    /// The name of the state.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Waiting => "waiting",
            Self::Delivering => "delivering",
            Self::Failing => "failing",
            Self::CatchingUp => "catching-up",
            Self::Rejecting => "rejecting",
        }
    }
}

/// The reported state of all exporters.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    exporters: Mutex<HashMap<String, ExporterWatch>>,
    /// When a full buffer was last seen to block producers.
    held_at: Mutex<Option<Instant>>,
}

/// The handle of the snapshot thread: dropping it ends the thread.
#[derive(Debug)]
pub(crate) struct Watcher(#[expect(dead_code, reason = "it is dropped")] SyncSender<()>);

/// A snapshot of an exporter.
#[derive(Clone, Debug)]
struct Snapshot {
    now: Instant,
    counts: Counts,
    /// The first of the signals that it carries.
    first: Signal,
    /// The destinations of spans, logs and metrics.
    destinations: [String; 3],
    /// The folders of its buffers, if they are on disk, and the number of items in each.
    folders: Vec<(PathBuf, u64)>,
    /// How long a batch that is not full may wait.
    throttle: Duration,
    /// Whether it has a buffer: metrics have none.
    is_buffered: bool,
    lossy: bool,
    buffer: f64,
    /// The delivery states of spans, logs and metrics.
    signals: [SignalSnapshot; 3],
    /// The folder with the last write error, and the error.
    disk: Option<(PathBuf, String)>,
}

/// A notice: its topic, whether it is over, and its message.
type Line = (Topic, bool, String);

impl Watch {
    /// Starts the thread that takes snapshots, until the watcher is dropped.
    pub(crate) fn start(self: &Arc<Self>, state: &Arc<State>, host: &Host) -> io::Result<Watcher> {
        let (ends, ended) = sync_channel::<()>(1);
        let (watch, state, host) = (Arc::downgrade(self), Arc::downgrade(state), host.clone());
        let observe = move || {
            suppress_this_thread();
            while ended.recv_timeout(INTERVAL) == Err(RecvTimeoutError::Timeout) {
                let (Some(watch), Some(state)) = (watch.upgrade(), state.upgrade()) else { return };
                watch.observe(&state, &host);
            }
        };
        thread::Builder::new().name("telemetry-watch".to_owned()).spawn(observe)?;
        Ok(Watcher(ends))
    }

    /// Returns the status of all exporters.
    pub(crate) fn status(&self, state: &State, now: Instant) -> Vec<Status> {
        let known = self.known();
        let pipeline = state.pipeline.load();
        let status = |outlets: Vec<&Outlet>| {
            let snapshot = Snapshot::at(&outlets, now);
            let told = known.get(&snapshot.counts.exporter);
            Status {
                state: told.map(|told| told.state(&snapshot)).unwrap_or_default(),
                failing_for: told.and_then(|told| told.failing_for(now)),
                destination: snapshot.destination(snapshot.first).to_owned(),
                buffer: snapshot.buffer,
                counts: snapshot.counts,
            }
        };
        exporters(&pipeline).into_iter().map(status).collect()
    }

    /// Returns whether a full buffer blocked producers at any time since `since`.
    pub(crate) fn was_held_since(&self, since: Instant) -> bool {
        let held_at = *self.held_at.lock().unwrap_or_else(PoisonError::into_inner);
        // A block between two snapshots is seen in the later one.
        held_at.is_some_and(|at| at + INTERVAL >= since)
    }

    fn observe(&self, state: &State, host: &Host) {
        let pipeline = state.pipeline.load_full();
        let mut told = Vec::new();
        let mut known = self.known();
        known.retain(|name, _| pipeline.outlets.iter().any(|outlet| outlet.name == *name));
        for outlets in exporters(&pipeline) {
            let snapshot = Snapshot::at(&outlets, (host.now)());
            let name = snapshot.counts.exporter.clone();
            let exporter =
                known.entry(name.clone()).or_insert_with(|| ExporterWatch::new(&snapshot));
            if exporter.is_held(&snapshot) {
                *self.held_at.lock().unwrap_or_else(PoisonError::into_inner) = Some(snapshot.now);
            }
            told.extend(exporter.observe(&snapshot).into_iter().map(|line| (name.clone(), line)));
        }
        // Unlocked first: the host's callback may query the status of exporters.
        drop(known);
        for (exporter, (topic, is_over, message)) in &told {
            let is_over = *is_over;
            (host.notice)(&Notice { exporter, topic: *topic, is_over, message });
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<String, ExporterWatch>> {
        self.exporters.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Snapshot {
    fn signal(&self, signal: Signal) -> &SignalSnapshot {
        &self.signals[signal as usize]
    }

    fn destination(&self, signal: Signal) -> &str {
        &self.destinations[signal as usize]
    }

    /// The number of items that are no longer queued.
    fn ended(&self) -> u64 {
        self.counts.delivered + self.counts.rejected
    }

    /// Takes the snapshot of one exporter, which has at least one outlet.
    fn at(outlets: &[&Outlet], now: Instant) -> Self {
        let one = |outlet: &&Outlet| {
            let (counts, disk) = outlet.counts_and_write_error();
            let folder = outlet.folder.clone();
            let first = match outlet {
                Outlet { spans: true, .. } => Signal::Spans,
                Outlet { logs: true, .. } => Signal::Logs,
                _ => Signal::Metrics,
            };
            let mut signals = outlet.lane.tally.snapshot();
            signals[first as usize].oldest = counts.oldest;
            Self {
                now,
                first,
                destinations: outlet.destinations.clone(),
                disk: disk.map(|reason| (folder.clone().unwrap_or_default(), reason)),
                folders: folder.into_iter().map(|folder| (folder, counts.queued)).collect(),
                throttle: outlet.throttle,
                is_buffered: outlet.spans || outlet.logs,
                lossy: outlet.lossy,
                buffer: outlet.journal.pressure(),
                signals,
                counts,
            }
        };
        outlets.iter().map(one).reduce(Self::with).expect("an exporter has an outlet")
    }

    /// Merges the snapshot of another outlet of the same exporter.
    fn with(mut self, other: Self) -> Self {
        self.disk = self.disk.or(other.disk);
        self.folders.extend(other.folders);
        for (signal, other) in self.signals.iter_mut().zip(other.signals) {
            signal.unanswered_since =
                [signal.unanswered_since, other.unanswered_since].into_iter().flatten().min();
            signal.accepted += other.accepted;
            signal.reason = signal.reason.take().or(other.reason);
            signal.oldest = signal.oldest.max(other.oldest);
        }
        self.is_buffered |= other.is_buffered;
        self.buffer = self.buffer.max(other.buffer);
        self.counts.add(&other.counts);
        self
    }
}

/// Groups the outlets by exporter.
fn exporters(pipeline: &Pipeline) -> Vec<Vec<&Outlet>> {
    let mut exporters = Vec::<Vec<&Outlet>>::new();
    for outlet in &pipeline.outlets {
        match exporters.iter_mut().find(|known| known[0].name == outlet.name) {
            Some(known) => known.push(outlet),
            None => exporters.push(vec![outlet]),
        }
    }
    exporters
}
