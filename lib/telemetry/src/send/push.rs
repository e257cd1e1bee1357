//! Metrics, pushed at an interval.
//!
//! They bypass the journal: each collection holds the sums so far, so a later one replaces an earlier one, and a push
//! that is missed costs resolution only. The latest collection that has not arrived is kept and tried again until the
//! next replaces it. Deliberately absent: halving and bisecting, for the same reason.

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

/// The shortest interval that is kept to.
const INTERVAL_MIN: Duration = Duration::from_millis(10);
/// How long the last push may take.
const FINISH_MAX: Duration = Duration::from_secs(2);

/// Metrics, pushed at an interval.
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
    /// Whether a collection is wanted as soon as nothing is under way.
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

/// What came of a push: nothing where there was nothing to collect, an error where collecting failed.
struct PushResult {
    sent: Instant,
    outcome: Result<Option<(ExportRequest, Answer)>, String>,
}

/// What all parts of a sender share.
#[derive(Clone)]
pub(crate) struct SenderState {
    pub(crate) lane: Arc<Lane>,
    /// The sender's turn with the lane.
    pub(crate) turn: u64,
    pub(crate) outlet: Arc<RequestWriter>,
    pub(crate) host: SendHost,
}

impl Push {
    /// The push of an exporter; `None` where it has none.
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

    /// Whether nothing is under way.
    pub(crate) fn is_still(&self) -> bool {
        self.under_way.is_empty()
    }

    /// Starts what is due, and says when something will be.
    pub(crate) fn advance(&mut self, now: Instant) -> Instant {
        if now >= self.next {
            self.is_wanted = true;
            // Counted from now: after a standstill the missed ones are not made up for.
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

    /// Waits for what is under way to end.
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

    /// Pushes the last values, unless the destination is known to be away.
    pub(crate) async fn finish(mut self, stop_by: Instant) {
        let now = (self.host.now)();
        let until = stop_by.min(now + FINISH_MAX).into();
        while !self.under_way.is_empty() && timeout_at(until, self.ended()).await.is_ok() {}
        if self.under_way.is_empty() && self.outage.is_none() {
            self.start(None, now);
            // Late is as good as never: the process may be gone by then.
            drop(timeout_at(until, self.ended()).await);
        }
    }

    /// Collects, or takes up what was collected, and sends it.
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
            // The next collection will be no smaller and no other; this one is given up.
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

/// Collects on a thread beside the lane's: that calls the program's own functions, which may block and panic.
async fn collect(reader: Reader, service_name: String) -> Result<Option<ExportRequest>, String> {
    match spawn_blocking(move || reader.request(&service_name)).await {
        Ok(Ok((request, points))) => Ok(Some(ExportRequest { request: request.into(), points })),
        Ok(Err(CollectError::Empty)) => Ok(None),
        Ok(Err(error @ CollectError::Broken(_))) => Err(error.to_string()),
        Err(error) => Err(format!("an instrument failed ({error})")),
    }
}
