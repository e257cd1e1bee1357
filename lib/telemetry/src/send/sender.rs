//! The thread that empties a lane, and the handle that wakes, drains and stops it.

use std::{
    io,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use journal::Ready;
use opentelemetry::Context;
use thiserror::Error;
use tokio::{runtime::Runtime, sync::Notify};

use super::{
    SendHost,
    client::ClientError,
    deliver::DeliveryLoop,
    lane::Lane,
    outlet::RequestWriter,
    push::{Push, SenderState},
};
use crate::{
    host::suppress_this_thread,
    plan::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX, Destination, Exporter, Retry},
};

/// Below this throttle the journal wakes the sender at each first item; from it on, the sender polls.
pub(crate) const LOOK_MIN: Duration = Duration::from_millis(20);

/// A running thread that empties a lane.
#[derive(Debug)]
pub(crate) struct Sender {
    control: Arc<Control>,
    now: fn() -> Instant,
    /// `None` after it was joined.
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

/// A prepared sender: only the lane is missing.
pub(crate) struct PreparedSender {
    exporter: Exporter,
    host: SendHost,
    outlet: RequestWriter,
    runtime: Background,
}

/// A runtime that is dropped without waiting: a DNS lookup in progress would block its owner for as long as the
/// resolver takes, and an asynchronous owner must not block at all.
struct Background(Option<Runtime>);

/// Notifies the waiting callers that the thread has ended, also after a panic.
struct Farewell(Arc<Control>);

/// Why a sender cannot start.
#[derive(Debug, Error)]
pub(crate) enum SenderError {
    #[error(transparent)]
    Client(Box<ClientError>),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

fn outlet(exporter: &Exporter, user_agent: &str) -> Result<RequestWriter, SenderError> {
    RequestWriter::new(&exporter.destination, user_agent)
        .map_err(|error| SenderError::Client(error.into()))
}

/// The control signals for the thread.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) notify: Notify,
    is_full: AtomicBool,
    stop_by: Mutex<Option<Instant>>,
    /// `None` after the thread has ended.
    drains: Mutex<Option<Vec<Drain>>>,
}

/// A caller that waits for the lane to be empty.
#[derive(Debug)]
struct Drain {
    until: Instant,
    is_new: bool,
    empty: SyncSender<()>,
}

impl Sender {
    /// Starts to empty the lane into the exporter's destination.
    #[cfg(test)]
    pub(crate) fn start(
        lane: Arc<Lane>,
        exporter: &Exporter,
        host: &SendHost,
    ) -> Result<Self, SenderError> {
        Self::prepare(exporter, host)?.start(lane)
    }

    /// Reads the files that the exporter names, and creates everything that can fail. Nothing is sent yet, and another
    /// sender may be running.
    pub(crate) fn prepare(
        exporter: &Exporter,
        host: &SendHost,
    ) -> Result<PreparedSender, SenderError> {
        let outlet = outlet(exporter, &host.user_agent)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_start(suppress_this_thread)
            .build()?;
        let (exporter, host) = (exporter.clone(), host.clone());
        Ok(PreparedSender { exporter, host, outlet, runtime: Background(Some(runtime)) })
    }

    /// Returns whether the thread is running: it runs until it is stopped, unless it panics.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Sends queued items without waiting for the throttle. Returns when all of them have ended, or at this time.
    pub(crate) fn drain(&self, until: Instant) {
        let (empty, is_empty) = sync_channel(1);
        let drain = Drain { until, is_new: true, empty };
        match &mut *self.control.drains() {
            Some(drains) => drains.push(drain),
            None => return,
        }
        self.control.notify.notify_one();
        // Empty, timed out, or the thread has ended: the counts show which.
        is_empty.recv_timeout(until.saturating_duration_since((self.now)())).unwrap_or_default();
    }

    /// Signals the thread to end by this time, and does not wait for it.
    pub(crate) fn signal_stop(&self, deadline: Instant) {
        self.control.stop(deadline);
    }

    /// Stops the thread. It waits briefly for responses to requests in progress; batches that have not ended become
    /// unread again.
    pub(crate) fn stop(mut self, deadline: Instant) {
        self.signal_stop(deadline);
        let wait = deadline.saturating_duration_since((self.now)());
        let is_late = self.ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        if let Some(thread) = self.thread.take_if(|_| !is_late) {
            // The panic of a thread was already printed, and the journal still has its items.
            drop(thread.join());
        }
    }
}

impl Drop for Sender {
    /// Stops the thread without waiting for it, if it is still running.
    fn drop(&mut self) {
        if self.is_alive() {
            self.signal_stop((self.now)());
        }
    }
}

impl PreparedSender {
    /// Starts to empty the lane. An old sender that is still running can no longer change it.
    pub(crate) fn start(self, lane: Arc<Lane>) -> Result<Sender, SenderError> {
        let Self { exporter, host, outlet, runtime } = self;
        let control = Arc::new(Control::default());
        let turn = lane.begin();
        let waker = Arc::clone(&control);
        lane.journal.set_ready(Ready {
            items: if exporter.throttle < LOOK_MIN { 1 } else { BATCH_ITEMS_MAX },
            bytes: BATCH_BYTES_MAX as u64,
            wake: Arc::new(move || waker.wake()),
        });
        let now = host.now;
        let shared = SenderState { lane, turn, outlet: Arc::new(outlet), host };
        let (told, ended) = sync_channel(1);
        // Thread names of the operating system end at a zero byte.
        let name = format!("telemetry-{}", exporter.name.replace('\0', "%00"));
        let of_thread = Arc::clone(&control);
        let run = move || {
            let _told: SyncSender<()> = told;
            let _farewell = Farewell(Arc::clone(&of_thread));
            let _suppressed = Context::enter_telemetry_suppressed_scope();
            // Dropped before the suppression ends: connections emit telemetry when they are dropped.
            let runtime = runtime;
            runtime.block_on(async {
                let push = Push::new(&exporter, retry(&exporter), shared.clone());
                DeliveryLoop::new(&exporter, shared, of_thread).run(push).await;
            });
        };
        let thread = thread::Builder::new().name(name).spawn(run)?;
        Ok(Sender { control, now, thread: Some(thread), ended })
    }
}

impl Background {
    fn block_on(&self, work: impl Future<Output = ()>) {
        if let Some(runtime) = &self.0 {
            runtime.block_on(work);
        }
    }
}

impl Drop for Background {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl Drop for Farewell {
    fn drop(&mut self) {
        *self.0.drains() = None;
    }
}

impl Default for Control {
    fn default() -> Self {
        Self {
            notify: Notify::new(),
            is_full: AtomicBool::new(false),
            stop_by: Mutex::new(None),
            drains: Mutex::new(Some(Vec::new())),
        }
    }
}

impl Control {
    fn wake(&self) {
        self.is_full.store(true, Ordering::Relaxed);
        self.notify.notify_one();
    }

    fn stop(&self, deadline: Instant) {
        *self.stop_by.lock().expect("no panic under this lock") = Some(deadline);
        self.notify.notify_one();
    }

    /// Returns whether the journal has reported a full batch since the last call.
    pub(crate) fn take_full(&self) -> bool {
        self.is_full.swap(false, Ordering::Relaxed)
    }

    /// Returns the deadline by which the thread must end, if it was stopped.
    pub(crate) fn stop_by(&self) -> Option<Instant> {
        *self.stop_by.lock().expect("no panic under this lock")
    }

    /// Returns whether a caller waits for the lane to be empty, and whether there is a new one.
    pub(crate) fn draining(&self, now: Instant) -> (bool, bool) {
        let mut drains = self.drains();
        let Some(drains) = &mut *drains else { return (false, false) };
        drains.retain(|drain| drain.until > now);
        let is_new = drains.iter_mut().any(|drain| std::mem::take(&mut drain.is_new));
        (!drains.is_empty(), is_new)
    }

    /// Notifies the waiting callers that the lane is empty.
    pub(crate) fn drained(&self) {
        for drain in self.drains().iter_mut().flat_map(|drains| drains.drain(..)) {
            // A caller that has stopped waiting needs no notification.
            drain.empty.try_send(()).unwrap_or_default();
        }
    }

    fn drains(&self) -> MutexGuard<'_, Option<Vec<Drain>>> {
        self.drains.lock().expect("no panic under this lock")
    }
}

/// Returns the retry pauses of an exporter.
pub(crate) fn retry(exporter: &Exporter) -> Retry {
    match &exporter.destination {
        Destination::Otlp(otlp) => otlp.retry,
        Destination::Stdout | Destination::Log(_) => Retry::default(),
    }
}
