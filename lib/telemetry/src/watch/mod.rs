//! What a person is told of an exporter: that it delivers nothing, why, and what is kept; that its buffer fills, is full, drops, or
//! cannot be written; and when each of these is over.
//!
//! A thread takes a snapshot of all exporters a few times a second, and says what changed. Since it is no part of the sending, it
//! also notices an exporter that hangs.
//! Deliberately absent: what is done about any of it.

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
};

/// How often a snapshot is taken.
const INTERVAL: Duration = Duration::from_millis(250);

/// How an exporter is doing.
#[derive(Clone, Debug, PartialEq)]
pub struct Status {
    /// Where it sends, without secrets.
    pub destination: String,
    /// Whether it gets through.
    pub state: Delivery,
    /// For how long it does not get through, where it does not.
    pub failing_for: Option<Duration>,
    /// How full its buffer is, from 0 to 1.
    pub buffer: f64,
    /// What became of what it was given, and what troubles it.
    pub counts: Counts,
}

/// Whether an exporter gets through.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// Nothing was tried so far.
    #[default]
    Waiting,
    /// It does.
    Delivering,
    /// It does not.
    Failing,
    /// It does again, and sends what was kept.
    CatchingUp,
    /// The destination answers, and refuses all that it gets for good.
    Rejecting,
}

impl Delivery {
    /// The word for it.
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

/// All exporters, as a person was told of them.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    exporters: Mutex<HashMap<String, ExporterWatch>>,
    /// When producers were last seen to be held by a full buffer.
    held_at: Mutex<Option<Instant>>,
}

/// Ends the thread that takes snapshots when it is dropped.
#[derive(Debug)]
pub(crate) struct Watcher(#[expect(dead_code, reason = "it is dropped")] SyncSender<()>);

/// An exporter at a moment.
#[derive(Clone, Debug)]
struct Snapshot {
    now: Instant,
    counts: Counts,
    /// The first of the signals that it carries.
    first: Signal,
    /// Where spans, logs and metrics go.
    destinations: [String; 3],
    /// Where its buffers are, if that is on disk, and how many items are in each.
    folders: Vec<(PathBuf, u64)>,
    /// How long what is not a full batch may wait.
    throttle: Duration,
    /// Whether it has a buffer: metrics have none.
    is_buffered: bool,
    lossy: bool,
    buffer: f64,
    /// How spans, logs and metrics fare.
    signals: [SignalSnapshot; 3],
    /// The folder that could not be written last, and why.
    disk: Option<(PathBuf, String)>,
}

/// One signal at a moment.
#[derive(Clone, Debug, Default)]
pub(crate) struct SignalSnapshot {
    /// The first attempt that was not answered well, with none that was since.
    pub(crate) unanswered_since: Option<Instant>,
    /// Requests that were answered well.
    pub(crate) accepted: u64,
    /// Why the last request failed.
    pub(crate) reason: Option<String>,
}

/// A line, and what it is about.
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

    /// How all exporters are doing.
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

    /// Whether producers were held by a full buffer at some time since then.
    pub(crate) fn was_held_since(&self, since: Instant) -> bool {
        let held_at = *self.held_at.lock().unwrap_or_else(PoisonError::into_inner);
        // What is held between two snapshots is seen in the later one.
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
        // Unlocked first: the host's function may ask for the status of exporters.
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

    /// Items that are not queued any more.
    fn ended(&self) -> u64 {
        self.counts.delivered + self.counts.rejected
    }

    /// Of one exporter, which has one outlet at the least.
    fn at(outlets: &[&Outlet], now: Instant) -> Self {
        let one = |outlet: &&Outlet| {
            let (counts, disk) = outlet.counts_and_write_error();
            let folder = outlet.folder.clone();
            Self {
                now,
                first: match outlet {
                    Outlet { spans: true, .. } => Signal::Spans,
                    Outlet { logs: true, .. } => Signal::Logs,
                    _ => Signal::Metrics,
                },
                destinations: outlet.destinations.clone(),
                disk: disk.map(|reason| (folder.clone().unwrap_or_default(), reason)),
                folders: folder.into_iter().map(|folder| (folder, counts.queued)).collect(),
                throttle: outlet.throttle,
                is_buffered: outlet.spans || outlet.logs,
                lossy: outlet.lossy,
                buffer: outlet.journal.pressure(),
                signals: outlet.lane.tally.snapshot(),
                counts,
            }
        };
        outlets.iter().map(one).reduce(Self::with).expect("an exporter has an outlet")
    }

    /// The same exporter's, seen over another of its outlets as well.
    fn with(mut self, other: Self) -> Self {
        self.disk = self.disk.or(other.disk);
        self.folders.extend(other.folders);
        for (signal, other) in self.signals.iter_mut().zip(other.signals) {
            signal.unanswered_since =
                [signal.unanswered_since, other.unanswered_since].into_iter().flatten().min();
            signal.accepted += other.accepted;
            signal.reason = signal.reason.take().or(other.reason);
        }
        self.is_buffered |= other.is_buffered;
        self.buffer = self.buffer.max(other.buffer);
        self.counts.add(&other.counts);
        self
    }
}

/// The outlets of each exporter.
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
