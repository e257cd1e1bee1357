//! Pushes metrics at an interval.
//!
//! Metrics bypass the journal: each collection contains cumulative sums, so a later one replaces an earlier one, and a
//! missed push only costs resolution. The latest undelivered collection is kept and retried until the next one replaces
//! it. Deliberately absent: splitting and bisecting, for the same reason.

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use tokio::{
    task::{JoinSet, spawn_blocking},
    time::timeout_at,
};

use super::{
    SendHost,
    answer::{Answer, Why, WhyKind},
    backoff::{Failure, Outage},
    lane::Lane,
    notices::Notices,
    outlet::RequestWriter,
    tally::add,
};
use crate::{
    metrics::{CollectError, Reader},
    plan::{Exporter, Retry, Signal},
};

/// The shortest supported interval.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// The timeout of the last push.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// Pushes metrics at an interval.
pub(crate) struct Push {
    reader: Reader,
    service_name: String,
    interval: Duration,
    retry: Retry,
    lane: Arc<Lane>,
    outlet: Arc<RequestWriter>,
    host: SendHost,
    notices: Notices,
    /// When the next collection is due.
    next: Instant,
    /// Whether a collection is due as soon as no push is in progress.
    is_wanted: bool,
    unsent: Option<ExportRequest>,
    outage: Option<Outage>,
    under_way: JoinSet<PushResult>,
}

/// An export request with its data points.
#[derive(Clone)]
struct ExportRequest {
    request: Bytes,
    points: u64,
}

/// The result of a push: `None` if there was nothing to collect, an error if collecting failed.
struct PushResult {
    sent: Instant,
    outcome: Result<Option<(ExportRequest, Answer)>, String>,
}

/// The state that all parts of a sender share.
#[derive(Clone)]
pub(crate) struct SenderState {
    pub(crate) lane: Arc<Lane>,
    /// The number of the sender in the lane.
    pub(crate) turn: u64,
    pub(crate) outlet: Arc<RequestWriter>,
    pub(crate) host: SendHost,
}

impl Push {
    /// Creates the push of an exporter; `None` if it pushes no metrics.
    pub(crate) fn new(exporter: &Exporter, retry: Retry, shared: SenderState) -> Option<Self> {
        let interval = exporter.signals.metrics?.max(INTERVAL_MIN);
        let SenderState { lane, turn: _, outlet, host } = shared;
        Some(Self {
            reader: host.metrics.clone()?,
            service_name: exporter.service_name.clone(),
            interval,
            retry,
            lane,
            outlet,
            next: (host.now)() + interval,
            notices: Notices::new(exporter, &host),
            host,
            is_wanted: false,
            unsent: None,
            outage: None,
            under_way: JoinSet::new(),
        })
    }

    /// Returns whether no push is in progress.
    pub(crate) fn is_still(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Starts a push that is due, and returns when the next one will be.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        if now >= self.next {
            self.is_wanted = true;
            // Counted from now: missed pushes are not made up for.
            self.next = now + self.interval;
        }
        if !self.under_way.is_empty() {
            return self.next;
        }
        if self.is_wanted {
            self.is_wanted = false;
            self.unsent = None;
            self.start(None, now);
            return self.next;
        }
        let Some(outage) = self.outage.filter(|_| self.unsent.is_some()) else { return self.next };
        if now < outage.resume_at {
            return self.next.min(outage.resume_at);
        }
        let again = self.unsent.take();
        self.start(again, now);
        self.next
    }

    /// Waits until the push in progress ends.
    pub(crate) async fn ended(&mut self) {
        let Some(Ok(PushResult { sent, outcome })) = self.under_way.join_next().await else {
            return;
        };
        match outcome {
            Ok(Some((collected, answer))) => self.answered(collected, answer, sent),
            Ok(None) => self.lane.tally.forget_trouble(Signal::Metrics),
            Err(error) => {
                self.lane.tally.began(Signal::Metrics, sent);
                self.failed(Why::new(
                    WhyKind::Io,
                    format!("metrics could not be collected: {error}"),
                ));
            }
        }
    }

    /// Pushes the last values, unless the destination is known to be unreachable.
    pub(crate) async fn finish(mut self, stop_by: Instant) {
        let now = (self.host.now)();
        let until = stop_by.min(now + FINISH_MAX).into();
        while !self.under_way.is_empty() && timeout_at(until, self.ended()).await.is_ok() {}
        if self.under_way.is_empty() && self.outage.is_none() {
            self.start(None, now);
            // A late result is useless: the process may have exited by then.
            drop(timeout_at(until, self.ended()).await);
        }
    }

    /// Collects, or reuses an earlier collection, and sends it.
    fn start(&mut self, again: Option<ExportRequest>, sent: Instant) {
        let (reader, name) = (self.reader.clone(), self.service_name.clone());
        let (lane, outlet) = (Arc::clone(&self.lane), Arc::clone(&self.outlet));
        self.under_way.spawn(async move {
            let collected = match again {
                Some(collected) => Ok(Some(collected)),
                None => collect(reader, name).await,
            };
            let outcome = match collected {
                Ok(Some(collected)) => {
                    lane.tally.began(Signal::Metrics, sent);
                    let answer = outlet.send(Signal::Metrics, collected.request.clone()).await;
                    Ok(Some((collected, answer)))
                }
                Ok(None) => Ok(None),
                Err(error) => Err(error),
            };
            PushResult { sent, outcome }
        });
    }

    fn answered(&mut self, collected: ExportRequest, answer: Answer, sent: Instant) {
        let (after, why) = match answer {
            Answer::Accepted => return self.arrived(collected.points, 0),
            Answer::Partial { rejected, message } => {
                self.notices.say(
                    WhyKind::Protocol,
                    &format!("{rejected} data points were refused: {message}"),
                );
                return self.arrived(collected.points, rejected);
            }
            // The next collection would have the same problem; this one is discarded.
            Answer::TooLarge(why) | Answer::Poison(why) => return self.failed(why),
            Answer::Misconfigured(why) => {
                self.unsent = Some(collected);
                self.outage = Some(Outage::until(sent, (self.host.now)() + super::HOLD));
                return self.failed(why);
            }
            Answer::Later { after, why } => (after, why),
        };
        self.unsent = Some(collected);
        let (now, random) = ((self.host.now)(), (self.host.random)());
        let failure = Failure { sent, now, after, random };
        self.outage = Some(Outage::next(self.outage, failure, self.retry));
        add(&self.lane.tally.pushes_failed, 1);
        self.lane.tally.set_trouble(Signal::Metrics, Some(why));
    }

    fn arrived(&mut self, points: u64, rejected: u64) {
        self.outage = None;
        add(&self.lane.tally.pushes, 1);
        add(&self.lane.tally.points, points.saturating_sub(rejected));
        self.lane.tally.answered(Signal::Metrics, None);
        if rejected == 0 {
            self.notices.clear();
        }
        self.lane.tally.set_trouble(Signal::Metrics, None);
    }

    fn failed(&mut self, why: Why) {
        add(&self.lane.tally.pushes_failed, 1);
        self.lane.tally.set_trouble(Signal::Metrics, Some(why));
    }
}

/// Collects on a separate thread: this calls the program's own callbacks, which may block and panic.
async fn collect(reader: Reader, service_name: String) -> Result<Option<ExportRequest>, String> {
    match spawn_blocking(move || reader.request(&service_name)).await {
        Ok(Ok((request, points))) => Ok(Some(ExportRequest { request: request.into(), points })),
        Ok(Err(CollectError::Empty)) => Ok(None),
        Ok(Err(error @ CollectError::Broken(_))) => Err(error.to_string()),
        Err(error) => Err(format!("an instrument failed ({error})")),
    }
}
