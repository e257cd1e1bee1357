//! An exporter that the plan no longer contains. It sends its queued items for a while and ends, unless a later plan
//! contains it again: a configuration that was empty for a moment then has no effect.
//!
//! Deliberately absent: which exporter is removed, and what happens to its counts. That is `life`.

use std::{
    path::PathBuf,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, Weak},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use opentelemetry::Context;

use crate::{
    counts::Counts,
    exporter::{JournalId, RunningExporter},
    host::{Host, Notice, Topic},
    pipeline::Pipeline,
    plan,
    watch::words,
};

/// How long a draining exporter may take to send its queued items.
const RETIRE_MAX: Duration = Duration::from_secs(10);
/// How long a producer may still use a swapped pipeline before the exporter no longer waits for it.
const SWAP_MAX: Duration = Duration::from_secs(1);
/// The maximum delay until the draining thread notices an order.
const HEAR_MAX: Duration = Duration::from_millis(50);

/// An exporter that sends its queued items, on its own thread.
#[derive(Debug)]
pub(crate) struct DrainingExporter {
    journal: JournalId,
    pub(crate) slot: u8,
    orders: Arc<Orders>,
    thread: JoinHandle<DrainEnd>,
}

/// How draining ended.
pub(crate) enum DrainEnd {
    Ended(EndedExporter),
    /// A later plan recalled the exporter before its deadline.
    Recalled(Box<RunningExporter>),
}

/// An exporter that has ended, with its journal closed.
#[derive(Debug)]
pub(crate) struct EndedExporter {
    pub(crate) counts: Counts,
    /// The folder of the undelivered items, if it is on disk.
    pub(crate) folder: Option<PathBuf>,
}

/// The orders for a draining exporter.
#[derive(Debug)]
struct Orders {
    order: Mutex<Order>,
    changed: Condvar,
}

#[derive(Clone, Copy, Debug)]
struct Order {
    until: Instant,
    is_recalled: bool,
}

impl DrainingExporter {
    /// Starts to drain an exporter. Producers that hold its old pipeline may still append to it.
    pub(crate) fn start(running: RunningExporter, left: Weak<Pipeline>, host: &Host) -> Self {
        let began = (host.now)();
        let order = Order { until: began + RETIRE_MAX, is_recalled: false };
        let orders = Arc::new(Orders { order: Mutex::new(order), changed: Condvar::new() });
        let (of_thread, host) = (Arc::clone(&orders), host.clone());
        let (journal, slot) = (JournalId::of(&running.plan), running.outlet.slot);
        let thread = thread::spawn(move || {
            let _suppressed = Context::enter_telemetry_suppressed_scope();
            let is_in_hand = || left.strong_count() > 0 && (host.now)() < began + SWAP_MAX;
            match send_rest(&running, &of_thread, is_in_hand, host.now) {
                Some(until) => DrainEnd::Ended(end(running, until, &host)),
                None => DrainEnd::Recalled(Box::new(running)),
            }
        });
        Self { journal, slot, orders, thread }
    }

    /// Returns whether this is the exporter of that plan, with a journal that can be reused.
    pub(crate) fn keeps_journal(&self, plan: &plan::Exporter) -> bool {
        self.journal == JournalId::of(plan)
    }

    /// Recalls the exporter.
    pub(crate) fn recall(&self) {
        self.orders.lock().is_recalled = true;
        self.orders.changed.notify_all();
    }

    /// Moves the deadline to `until`, unless it is earlier already.
    pub(crate) fn end_by(&self, until: Instant) {
        let mut order = self.orders.lock();
        order.until = order.until.min(until);
        self.orders.changed.notify_all();
    }

    pub(crate) fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until the exporter ends, or until it is returned after a recall.
    pub(crate) fn join(self) -> Option<DrainEnd> {
        self.thread.join().ok()
    }
}

impl Orders {
    fn lock(&self) -> MutexGuard<'_, Order> {
        self.order.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sends the queued items. Returns the deadline when no item is left or no time is left, and `None` on a recall.
fn send_rest(
    running: &RunningExporter,
    orders: &Orders,
    is_in_hand: impl Fn() -> bool,
    now: fn() -> Instant,
) -> Option<Instant> {
    let mut seen = None;
    loop {
        let is_last = !is_in_hand();
        let queued = running.outlet.journal.counts().queued;
        let order = *orders.lock();
        let left = order.until.saturating_duration_since(now());
        if order.is_recalled {
            return None;
        }
        if left.is_zero() || (is_last && queued == 0) {
            return Some(order.until);
        }
        let pause = left.min(HEAR_MAX);
        if seen != Some(queued) {
            running.drain(now() + pause);
        } else {
            // No item is delivered: another drain would cut the retry pause of the destination short.
            let unchanged = |now: &mut Order| !now.is_recalled && now.until == order.until;
            drop(orders.changed.wait_timeout_while(orders.lock(), pause, unchanged));
        }
        seen = Some(queued);
    }
}

/// Closes the journal, and reports the items that are left.
fn end(running: RunningExporter, until: Instant, host: &Host) -> EndedExporter {
    let folder = running.folder();
    let dropped_before = running.outlet.counts().dropped;
    let counts = running.finish(until, host.now);
    let dropped = counts.dropped - dropped_before;
    let say = |topic: Topic, message: &str| {
        (host.notice)(&Notice { exporter: &counts.exporter, topic, is_over: false, message });
    };
    if let Some(folder) = folder.as_deref().filter(|_| counts.queued > 0) {
        let said = format!(
            "it has ended with {} not delivered, kept in `{}`: an exporter of this name and `directory` delivers what is there",
            words::items(counts.queued),
            folder.display()
        );
        say(Topic::Delivery, &said);
    }
    if dropped > 0 {
        let said = format!(
            "it has ended with {} not delivered and dropped: without a `directory` nothing is kept",
            words::items(dropped)
        );
        say(Topic::Drops, &said);
    }
    EndedExporter { counts, folder }
}
