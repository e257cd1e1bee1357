//! The thread that empties a lane, and the handle by which it is woken, drained and ended.

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

/// Below this throttle the journal wakes the sender at each first item; from it on, the sender looks by itself.
pub(crate) const LOOK_MIN: Duration = Duration::from_millis(20);

/// A running thread that empties a lane.
#[derive(Debug)]
pub(crate) struct Sender {
    control: Arc<Control>,
    now: fn() -> Instant,
    /// Until it is joined.
    thread: Option<JoinHandle<()>>,
    ended: Receiver<()>,
}

/// A sender that has everything it needs but a lane.
pub(crate) struct PreparedSender {
    exporter: Exporter,
    host: SendHost,
    outlet: RequestWriter,
    runtime: Background,
}

/// A runtime that is left without waiting: a name that is being looked up would hold its owner for as long as the
/// resolver pleases, and an owner that is itself asynchronous must not wait at all.
struct Background(Option<Runtime>);

/// Tells those who wait that the thread is gone, however it went.
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

/// What others tell the thread.
#[derive(Debug)]
pub(crate) struct Control {
    pub(crate) notify: Notify,
    is_full: AtomicBool,
    stop_by: Mutex<Option<Instant>>,
    /// None when the thread is gone.
    drains: Mutex<Option<Vec<Drain>>>,
}

/// Somebody who waits for the lane to be empty.
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

    /// Reads the files that the exporter names and makes everything that may fail to be made. Nothing is sent yet, and
    /// another sender may be at work.
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

    /// Whether the thread runs: it does until it is stopped, unless it panics.
    pub(crate) fn is_alive(&self) -> bool {
        self.thread.as_ref().is_some_and(|thread| !thread.is_finished())
    }

    /// Sends what is queued without waiting for the throttle, and returns when all of it has ended, or at this time.
    pub(crate) fn drain(&self, until: Instant) {
        let (empty, is_empty) = sync_channel(1);
        let drain = Drain { until, is_new: true, empty };
        match &mut *self.control.drains() {
            Some(drains) => drains.push(drain),
            None => return,
        }
        self.control.notify.notify_one();
        // Empty, too late, or the thread is gone: the counts say which.
        is_empty.recv_timeout(until.saturating_duration_since((self.now)())).unwrap_or_default();
    }

    /// Tells the thread to end by this time, and does not wait for it.
    pub(crate) fn signal_stop(&self, deadline: Instant) {
        self.control.stop(deadline);
    }

    /// Ends the thread. Requests under way may still be answered for a moment; what then has not ended is unread again.
    pub(crate) fn stop(mut self, deadline: Instant) {
        self.signal_stop(deadline);
        let wait = deadline.saturating_duration_since((self.now)());
        let is_late = self.ended.recv_timeout(wait) == Err(RecvTimeoutError::Timeout);
        if let Some(thread) = self.thread.take_if(|_| !is_late) {
            // A thread that panicked has said so, and the journal still has what it was about.
            drop(thread.join());
        }
    }
}

impl Drop for Sender {
    /// Ends the thread without waiting for it, where nobody stopped it.
    fn drop(&mut self) {
        if self.is_alive() {
            self.signal_stop((self.now)());
        }
    }
}

impl PreparedSender {
    /// Starts to empty the lane. A sender that is still at it has nothing to say any more.
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
        // The system's threads have names that end at a zero.
        let name = format!("telemetry-{}", exporter.name.replace('\0', "%00"));
        let of_thread = Arc::clone(&control);
        let run = move || {
            let _told: SyncSender<()> = told;
            let _farewell = Farewell(Arc::clone(&of_thread));
            let _suppressed = Context::enter_telemetry_suppressed_scope();
            // Let go before that ends: connections say something when they are.
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

    /// Whether the journal said that a batch is full since this was last asked.
    pub(crate) fn take_full(&self) -> bool {
        self.is_full.swap(false, Ordering::Relaxed)
    }

    /// By when the thread is to have ended, if it is to end.
    pub(crate) fn stop_by(&self) -> Option<Instant> {
        *self.stop_by.lock().expect("no panic under this lock")
    }

    /// Whether somebody waits for the lane to be empty, and whether somebody new does.
    pub(crate) fn draining(&self, now: Instant) -> (bool, bool) {
        let mut drains = self.drains();
        let Some(drains) = &mut *drains else { return (false, false) };
        drains.retain(|drain| drain.until > now);
        let is_new = drains.iter_mut().any(|drain| std::mem::take(&mut drain.is_new));
        (!drains.is_empty(), is_new)
    }

    /// Tells those who wait that the lane is empty.
    pub(crate) fn drained(&self) {
        for drain in self.drains().iter_mut().flat_map(|drains| drains.drain(..)) {
            // Who waits no longer needs no answer.
            drain.empty.try_send(()).unwrap_or_default();
        }
    }

    fn drains(&self) -> MutexGuard<'_, Option<Vec<Drain>>> {
        self.drains.lock().expect("no panic under this lock")
    }
}

/// How an exporter waits between attempts.
pub(crate) fn retry(exporter: &Exporter) -> Retry {
    match &exporter.destination {
        Destination::Otlp(otlp) => otlp.retry,
        Destination::Stdout | Destination::Log(_) => Retry::default(),
    }
}
