//! The thread that empties a lane, and the handle by which it is woken, drained and ended.

use std::{
    io,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering},
        mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel},
    },
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use journal::Ready;
use opentelemetry::Context;
use thiserror::Error;
use tokio::sync::Notify;

use super::{
    SendHost,
    client::ClientError,
    deliver::Delivery,
    lane::Lane,
    outlet::Outlet,
    push::{Push, Shared},
};
use crate::plan::{BATCH_BYTES_MAX, BATCH_ITEMS_MAX, Destination, Exporter, Retry};

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

/// Why a sender cannot start.
#[derive(Debug, Error)]
pub(crate) enum StartError {
    #[error(transparent)]
    Client(Box<ClientError>),
    #[error("cannot start a thread: {0}")]
    Thread(#[from] io::Error),
}

/// Whether a sender for this exporter could start; nothing is started.
pub(crate) fn check(exporter: &Exporter, user_agent: &str) -> Result<(), StartError> {
    outlet(exporter, user_agent).map(drop)
}

fn outlet(exporter: &Exporter, user_agent: &str) -> Result<Outlet, StartError> {
    Outlet::new(&exporter.destination, user_agent).map_err(|error| StartError::Client(error.into()))
}

/// What others tell the thread.
#[derive(Debug, Default)]
pub(crate) struct Control {
    pub(crate) notify: Notify,
    is_full: AtomicBool,
    stop_by: Mutex<Option<Instant>>,
    drains: Mutex<Vec<Drain>>,
}

/// Somebody who waits for the lane to be empty.
#[derive(Debug)]
struct Drain {
    until: Instant,
    is_new: bool,
    empty: SyncSender<()>,
}

impl Sender {
    /// Starts to empty the lane into the exporter's destination. The lane has no other sender at the time.
    pub(crate) fn start(
        lane: Arc<Lane>,
        exporter: &Exporter,
        host: &SendHost,
    ) -> Result<Self, StartError> {
        let outlet = outlet(exporter, &host.user_agent)?;
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .on_thread_start(suppress)
            .build()?;
        // A sender that ended badly may have left something read.
        lane.journal.rewind();
        let control = Arc::new(Control::default());
        let waker = Arc::clone(&control);
        lane.journal.set_ready(Ready {
            items: if exporter.throttle < LOOK_MIN { 1 } else { BATCH_ITEMS_MAX },
            bytes: BATCH_BYTES_MAX as u64,
            wake: Arc::new(move || waker.wake()),
        });
        let shared = Shared { lane, outlet: Arc::new(outlet), host: host.clone() };
        let (told, ended) = sync_channel(1);
        let (exporter, of_thread) = (exporter.clone(), Arc::clone(&control));
        let name = exporter.name.clone();
        let run = move || {
            let _suppressed = Context::enter_telemetry_suppressed_scope();
            runtime.block_on(async {
                let retry = retry(&exporter);
                let push = Push::new(&exporter, retry, shared.clone());
                Delivery::new(&exporter, shared, of_thread).run(push).await;
            });
            // A name that is being looked up would hold the thread for as long as the resolver pleases.
            runtime.shutdown_background();
            drop(told);
        };
        let thread = thread::Builder::new().name(format!("telemetry-{name}")).spawn(run)?;
        Ok(Self { control, now: host.now, thread: Some(thread), ended })
    }

    /// Sends what is queued without waiting for the throttle, and returns when all of it has ended, or at this time.
    pub(crate) fn drain(&self, until: Instant) {
        let (empty, is_empty) = sync_channel(1);
        let drain = Drain { until, is_new: true, empty };
        self.control.drains.lock().expect("no panic under this lock").push(drain);
        self.control.notify.notify_one();
        // Empty, too late, or the thread is gone: the counts say which.
        is_empty.recv_timeout(until.saturating_duration_since((self.now)())).unwrap_or_default();
    }

    /// Ends the thread. Requests under way may still be answered for a moment; what then has not ended is unread again.
    pub(crate) fn stop(mut self, deadline: Instant) {
        self.control.stop(deadline);
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
        if self.thread.is_some() {
            self.control.stop((self.now)());
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
        let mut drains = self.drains.lock().expect("no panic under this lock");
        drains.retain(|drain| drain.until > now);
        let is_new = drains.iter_mut().any(|drain| std::mem::take(&mut drain.is_new));
        (!drains.is_empty(), is_new)
    }

    /// Tells those who wait that the lane is empty.
    pub(crate) fn drained(&self) {
        for drain in self.drains.lock().expect("no panic under this lock").drain(..) {
            // Who waits no longer needs no answer.
            drain.empty.try_send(()).unwrap_or_default();
        }
    }
}

/// How an exporter waits between attempts.
pub(crate) fn retry(exporter: &Exporter) -> Retry {
    match &exporter.destination {
        Destination::Otlp(otlp) => otlp.retry,
        Destination::Stdout | Destination::Log(_) => Retry::default(),
    }
}

/// Keeps what the runtime's other threads do from becoming telemetry, for as long as they live.
fn suppress() {
    std::mem::forget(Context::enter_telemetry_suppressed_scope());
}
