//! Queries a store for one trace until the run has what it needs.
//!
//! The first query is sent at once; the pauses grow from 100 ms by half up to the longest pause of the store, and start anew when
//! an answer has new spans. A run that would conclude at a time wants that time covered: the store is queried once more when it
//! has come. Only spans that are new or changed are passed on.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use model::{Timestamp, TraceId};
use otlp::only_new;
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::{Instant, sleep_until},
};

use super::{Completeness, QueryLimit, QueryResult, Store};
use crate::arrivals::{Arrival, Arrivals};

/// The first pause between two queries.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The maximum number of messages between the queries and a run; further ones wait.
const MESSAGES_MAX: usize = 16;

/// Queries a store for the spans of a trace that began after `since`, until the arrivals are dropped or the store refuses.
pub fn poll<S: Store>(
    store: Arc<S>,
    limit: Arc<QueryLimit>,
    trace: TraceId,
    since: Timestamp,
) -> Arrivals {
    let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
    let (wanted, wants) = watch::channel(None);
    let queries = Queries { store, limit, trace, since, sender, wants, seen: HashSet::new() };
    let mut tasks = JoinSet::new();
    tasks.spawn(queries.run());
    Arrivals::queried(receiver, wanted, tasks)
}

struct Queries<S> {
    store: Arc<S>,
    limit: Arc<QueryLimit>,
    trace: TraceId,
    since: Timestamp,
    sender: mpsc::Sender<Arrival>,
    /// The time that the run wants covered.
    wants: watch::Receiver<Option<Instant>>,
    /// The hashes of all spans that were passed on, with their resources and scopes.
    seen: HashSet<u64>,
}

/// What follows from an answer.
enum Next {
    /// The next query, after at least this pause.
    Pause { has_news: bool, at_least: Duration },
    /// No further query: the store refuses, or the run has ended.
    End,
}

impl<S: Store> Queries<S> {
    async fn run(mut self) {
        let pause_max = self.store.profile().pause_max.max(PAUSE_MIN);
        let mut pause = PAUSE_MIN;
        loop {
            let permit = self.limit.turn().await;
            let began = Instant::now();
            let result = self.store.query(self.trace, self.since).await;
            drop(permit);
            let next = self.pass_on(result, began).await;
            let Next::Pause { has_news, at_least } = next else { return };
            pause = if has_news { PAUSE_MIN } else { pause };
            let now = Instant::now();
            let (next, earliest) = (now + pause.max(at_least), now + at_least);
            if self.wait(began, next, earliest).await.is_err() {
                return;
            }
            pause = (pause * 3 / 2).min(pause_max);
        }
    }

    /// Passes on what an answer has, and what it covers.
    async fn pass_on(&mut self, result: QueryResult, began: Instant) -> Next {
        let (otlp, completeness) = match result {
            QueryResult::Nothing => (Vec::new(), Completeness::Complete),
            QueryResult::Spans { otlp, completeness } => (otlp, completeness),
            QueryResult::Refused { .. } => return Next::End,
            QueryResult::Failed { retry_after, .. } => {
                return Next::Pause { has_news: false, at_least: retry_after.unwrap_or_default() };
            }
        };
        let mut is_complete = completeness == Completeness::Complete;
        let mut has_news = false;
        for message in otlp {
            match self.news(&message) {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => {
                    has_news = true;
                    let arrival = Arrival::Spans { at: Instant::now(), bytes };
                    if self.sender.send(arrival).await.is_err() {
                        return Next::End;
                    }
                }
                // What cannot be decoded may hold any span.
                None => is_complete = false,
            }
        }
        if is_complete && self.sender.send(Arrival::Coverage { began }).await.is_err() {
            return Next::End;
        }
        Next::Pause { has_news, at_least: Duration::ZERO }
    }

    /// Returns a message with the spans that are new or changed; empty if there are none, and none if it cannot be decoded.
    fn news(&mut self, message: &Bytes) -> Option<Bytes> {
        let seen = &mut self.seen;
        let is_new = |parts: [&[u8]; 3]| {
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            seen.insert(hasher.finish())
        };
        let batch = only_new(message, self.trace, is_new).ok()?;
        Some(if batch.spans == 0 { Bytes::new() } else { batch.bytes })
    }

    /// Waits until `next`, or until a wanted time has come since the last query `began`, but not less than until `earliest`. Fails if
    /// the run has ended.
    async fn wait(
        &mut self,
        began: Instant,
        next: Instant,
        earliest: Instant,
    ) -> Result<(), watch::error::RecvError> {
        loop {
            let due = self.wants.borrow_and_update().filter(|wanted| *wanted > began);
            let until = due.map_or(next, |due| due.min(next)).max(earliest);
            tokio::select! {
                biased;
                () = sleep_until(until) => return Ok(()),
                changed = self.wants.changed() => changed?,
            }
        }
    }
}
