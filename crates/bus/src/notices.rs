//! What servers learn of traces beside their spans: exports that could not be read, and log records.

use std::{
    collections::{HashMap, VecDeque},
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use model::{Project, TraceId};

/// The signal of an export that could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Signal {
    /// Spans, or an unknown signal that may have been spans.
    Spans,
    /// Log records.
    Logs,
}

/// All notices.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    spans: LostExports,
    logs: LostExports,
    by_trace: Mutex<LogCounts>,
}

/// The number of unreadable exports of one signal.
#[derive(Debug, Default)]
struct LostExports {
    /// The exports of senders that reach all projects.
    all: AtomicU64,
    /// The exports of other senders: at most one entry for each project.
    by_project: Mutex<HashMap<Project, u64>>,
}

#[derive(Debug, Default)]
struct LogCounts {
    records: HashMap<TraceId, u64>,
    /// The traces in the order of their first log record.
    order: VecDeque<TraceId>,
}

/// The maximum number of traces with counted log records; the oldest one is evicted for a new one.
const LOG_TRACES_MAX: usize = 65_536;

impl Notices {
    fn exports(&self, signal: Signal) -> &LostExports {
        match signal {
            Signal::Spans => &self.spans,
            Signal::Logs => &self.logs,
        }
    }

    /// Counts exports that may have belonged to any run of these projects; none stands for all.
    pub(crate) fn lose_unread(&self, signal: Signal, projects: Option<&[Project]>, exports: u64) {
        let lost = self.exports(signal);
        let Some(projects) = projects else {
            lost.all.fetch_add(exports, Ordering::Relaxed);
            return;
        };
        let mut counts = locked(&lost.by_project);
        for project in projects {
            *counts.entry(project.clone()).or_default() += exports;
        }
    }

    /// Returns how many exports may have belonged to a run of this project.
    pub(crate) fn unread(&self, signal: Signal, project: &Project) -> u64 {
        let lost = self.exports(signal);
        let own = locked(&lost.by_project).get(project).copied().unwrap_or(0);
        lost.all.load(Ordering::Relaxed) + own
    }

    pub(crate) fn log(&self, trace: TraceId, records: u64) {
        let mut counts = locked(&self.by_trace);
        let LogCounts { records: by_trace, order } = &mut *counts;
        *by_trace.entry(trace).or_insert_with(|| {
            order.push_back(trace);
            0
        }) += records;
        while order.len() > LOG_TRACES_MAX
            && let Some(oldest) = order.pop_front()
        {
            by_trace.remove(&oldest);
        }
    }

    pub(crate) fn logs(&self, trace: TraceId) -> u64 {
        locked(&self.by_trace).records.get(&trace).copied().unwrap_or(0)
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // No panic can occur between two changes that belong together.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
