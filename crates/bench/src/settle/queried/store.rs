//! A store that shows its spans late, and gives bad answers.
//!
//! Scripted: a real store cannot be made to hide a span for a chosen time, and answers in real time.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use bytes::Bytes;
use drivers::store::{Completeness, Evidence, Query, QueryResult, Store, StoreProfile};
use model::{Timestamp, TraceId};
use tokio::time::{Instant, sleep};

use super::super::{
    chance::{Dice, between, percent},
    system::MS,
};

/// The lag of the store, if neither its document nor earlier runs know it.
pub(super) const USUAL_LAG: Duration = Duration::from_secs(5);

const PROFILE: StoreProfile = StoreProfile {
    name: "script",
    api: "",
    version: "",
    evidence: Evidence::Contract,
    lacks: &[],
    changes: "",
    lag: USUAL_LAG,
    pause_max: Duration::from_secs(1),
    spans_max: None,
};

/// A span in the store.
#[derive(Clone, Debug)]
pub(super) struct StoredSpan {
    /// From when on it is in answers.
    pub(super) visible: Instant,
    /// It, encoded.
    pub(super) otlp: Bytes,
}

/// How bad the answers are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trouble {
    /// Every answer is complete.
    None,
    /// Some answers fail, hang, are cut or partial, go backwards or repeat.
    Some,
    /// No answer is complete after the first ones.
    Lasting,
    /// A query is refused.
    Refusal,
}

#[derive(Debug)]
pub(super) struct ScriptedStore {
    state: Arc<Mutex<StoreState>>,
}

/// What the store holds, and how it answers.
#[derive(Debug)]
pub(super) struct StoreState {
    pub(super) spans: Vec<StoredSpan>,
    trouble: Trouble,
    dice: Dice,
    pub(super) queries: u64,
    /// How many spans were shown, in their order of visibility.
    shown: usize,
}

impl StoreState {
    pub(super) fn new(trouble: Trouble, dice: Dice) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { spans: Vec::new(), trouble, dice, queries: 0, shown: 0 }))
    }

    /// Returns the answer of a query that begins now, and how long it takes.
    fn answer(&mut self, now: Instant) -> (Duration, QueryResult) {
        self.queries += 1;
        let visible: Vec<_> = self.spans.iter().filter(|span| span.visible <= now).collect();
        let mut otlp: Vec<_> = visible.iter().map(|span| span.otlp.clone()).collect();
        let count = otlp.len();
        // Stores keep no order.
        for at in (1..count).rev() {
            otlp.swap(at, self.dice.below(at + 1));
        }
        let takes = match self.dice.below(20) {
            0 => between(&mut self.dice, 100 * MS, 2_000 * MS),
            _ => between(&mut self.dice, MS, 40 * MS),
        };
        let takes = Duration::from_nanos(takes);
        let failed = |message: &str, retry_after| QueryResult::Failed {
            message: message.to_owned(),
            retry_after,
        };
        let partial = |otlp: Vec<Bytes>| {
            let completeness = Completeness::Partial("a shard failed".to_owned());
            QueryResult::Spans { otlp, completeness }
        };
        let is_bad = match self.trouble {
            Trouble::None => false,
            Trouble::Some => percent(&mut self.dice, 30),
            Trouble::Lasting => self.queries > 3,
            Trouble::Refusal => {
                let message = "401 Unauthorized".to_owned();
                return (takes, QueryResult::Refused { message });
            }
        };
        if is_bad {
            return match self.dice.below(6) {
                0 => (takes, failed("503 Service Unavailable", None)),
                1 => (takes, failed("429 Too Many Requests", Some(Duration::from_secs(2)))),
                2 => (Duration::from_secs(10), failed("no complete answer within 10s", None)),
                // A part is cut off, and what is left is as it was sent.
                3 => {
                    otlp.truncate(self.dice.below(count + 1));
                    (takes, partial(otlp))
                }
                4 => (takes, partial(otlp)),
                // The answer breaks off within a span.
                _ => match otlp.last_mut() {
                    Some(last) => {
                        let size = last.len();
                        last.truncate(size - 1 - self.dice.below(size / 2));
                        let completeness = Completeness::Complete;
                        (takes, QueryResult::Spans { otlp, completeness })
                    }
                    None => (takes, failed("its answer broke off", None)),
                },
            };
        }
        // An answer of another replica lacks spans that were shown before; it is complete for what is not known yet.
        if self.trouble == Trouble::Some && self.shown == count && percent(&mut self.dice, 10) {
            otlp.truncate(self.dice.below(count + 1));
        }
        self.shown = self.shown.max(count);
        let completeness = Completeness::Complete;
        match otlp.is_empty() {
            true => (takes, QueryResult::Nothing),
            false => (takes, QueryResult::Spans { otlp, completeness }),
        }
    }
}

impl ScriptedStore {
    pub(super) fn new(state: &Arc<Mutex<StoreState>>) -> Self {
        Self { state: Arc::clone(state) }
    }

    fn state(&self) -> MutexGuard<'_, StoreState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Store for ScriptedStore {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    fn query(&self, _: TraceId, _: Option<Timestamp>) -> Query<'_> {
        let (takes, result) = self.state().answer(Instant::now());
        Box::pin(async move {
            // The clock is virtual, and the time of an answer is a part of the script.
            sleep(takes).await;
            result
        })
    }
}
