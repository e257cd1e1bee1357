//! Queries a store for one trace until the run has what it needs.
//!
//! The first query is sent when the trigger has its answer; the pauses grow from 100 ms by half up to the longest pause of the
//! store, and start anew when an answer has new spans. A run that would conclude at a time wants that time covered: the store is
//! queried once more when it has come. After the final verdict a few more queries find spans that came too late. Only spans that
//! are new or changed are passed on.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use model::{SpanDetail, SpanId, Timestamp, TraceId};
use otlp::only_new;
use tokio::time::{Instant, sleep_until};

use super::{Completeness, QueryResult, StoreClient};
use crate::arrivals::{AnswerGap, Arrivals, Demand, QueriedSource, RunEnd, SourceFeed};

/// The first pause between two queries.
const PAUSE_MIN: Duration = Duration::from_millis(100);

/// The maximum number of queries for late spans, over twice the lag.
const LATE_QUERIES_MAX: u32 = 10;

/// Adds a store to the sources of a trace.
pub fn poll(arrivals: &mut Arrivals, client: Arc<StoreClient>, trace: TraceId) {
    let lacks = client.store.lacks();
    let source =
        QueriedSource { name: client.name.clone(), lag: client.lag(), lacks: lacks.clone() };
    arrivals.query(source, |feed| async move {
        let (seen, shown) = (HashSet::new(), HashSet::new());
        let queries = Queries { client, trace, feed, seen, shown, lacks, late_queries: 0 };
        // The end of the run ends the queries.
        let _end = queries.run().await;
    });
}

struct Queries {
    client: Arc<StoreClient>,
    trace: TraceId,
    feed: SourceFeed,
    /// The hashes of all spans that were passed on, with their resources and scopes.
    seen: HashSet<u64>,
    /// The ids of all spans that were in an answer.
    shown: HashSet<SpanId>,
    /// What the run knows that the store does not keep of spans.
    lacks: Vec<SpanDetail>,
    /// The number of queries since the final verdict.
    late_queries: u32,
}

/// What follows from an answer.
enum Next {
    /// The next query, after at least this pause.
    Pause { has_news: bool, at_least: Duration },
    /// No further query: the store refuses.
    End,
}

impl Queries {
    async fn run(mut self) -> Result<(), RunEnd> {
        let since = self.begin().await?;
        let pause_max = self.client.store.profile().pause_max.max(PAUSE_MIN);
        let mut pause = PAUSE_MIN;
        loop {
            let permit = self.client.limit.turn().await;
            let began = Instant::now();
            let result = self.client.store.query(self.trace, since).await;
            drop(permit);
            let Next::Pause { has_news, at_least } = self.pass_on(result, began).await? else {
                return Ok(());
            };
            pause = if has_news { PAUSE_MIN } else { pause };
            if !self.wait(began, (pause, at_least)).await? {
                return Ok(());
            }
            pause = (pause * 3 / 2).min(pause_max);
        }
    }

    /// Waits until the run demands spans, and returns since when.
    async fn begin(&mut self) -> Result<Option<Timestamp>, RunEnd> {
        let demand = self.feed.demand.wait_for(|demand| *demand != Demand::Nothing).await;
        demand.map(|demand| demand.since()).map_err(|_| RunEnd)
    }

    /// Passes on what an answer has, and what it covers.
    async fn pass_on(&mut self, result: QueryResult, began: Instant) -> Result<Next, RunEnd> {
        let pause = |has_news, at_least| Next::Pause { has_news, at_least };
        let (otlp, completeness) = match result {
            QueryResult::Nothing => (Vec::new(), Completeness::Complete),
            QueryResult::Spans { otlp, completeness } => (otlp, completeness),
            QueryResult::Refused { message } => {
                self.feed.gap(AnswerGap::Refused(message)).await?;
                return Ok(Next::End);
            }
            QueryResult::Failed { message, retry_after } => {
                self.feed.gap(AnswerGap::Failed(message)).await?;
                return Ok(pause(false, retry_after.unwrap_or_default()));
            }
        };
        // Before the spans: they must not decide a statement that needs more.
        let lacks = self.client.store.lacks();
        if lacks != self.lacks {
            self.lacks.clone_from(&lacks);
            self.feed.lacks(lacks).await?;
        }
        let (mut completeness, mut has_news) = (completeness, false);
        let mut present = HashSet::new();
        for message in otlp {
            match self.news(&message, &mut present) {
                Some(bytes) if bytes.is_empty() => {}
                Some(bytes) => {
                    has_news = true;
                    self.feed.spans(bytes).await?;
                }
                // What cannot be decoded may hold any span.
                None => {
                    let why = "a part of the answer is not OTLP".to_owned();
                    completeness = Completeness::Partial(why);
                }
            }
        }
        // A store that was restarted may have lost more than what it once showed.
        if completeness == Completeness::Complete && !self.shown.is_subset(&present) {
            let why = "it no longer has spans that it showed before".to_owned();
            completeness = Completeness::Partial(why);
        }
        self.shown.extend(present);
        match completeness {
            Completeness::Complete => self.feed.coverage(began).await?,
            Completeness::Partial(why) => self.feed.gap(AnswerGap::Partial(why)).await?,
        }
        Ok(pause(has_news, Duration::ZERO))
    }

    /// Returns a message with the spans that are new or changed; empty if there are none, and none if it cannot be decoded.
    /// Adds the ids of its spans to `present`.
    fn news(&mut self, message: &Bytes, present: &mut HashSet<SpanId>) -> Option<Bytes> {
        let seen = &mut self.seen;
        let is_new = |id, parts: [&[u8]; 3]| {
            present.insert(id);
            let mut hasher = DefaultHasher::new();
            parts.hash(&mut hasher);
            seen.insert(hasher.finish())
        };
        let batch = only_new(message, self.trace, is_new).ok()?;
        Some(if batch.spans == 0 { Bytes::new() } else { batch.bytes })
    }

    /// Waits for the time of the next query: after the pause, or when a wanted time has come since the last query `began`, but not
    /// less than `at_least`. Returns false if there is to be none.
    async fn wait(
        &mut self,
        began: Instant,
        (pause, at_least): (Duration, Duration),
    ) -> Result<bool, RunEnd> {
        let now = Instant::now();
        loop {
            let demand = *self.feed.demand.borrow_and_update();
            let until = match demand {
                Demand::LateSpans { from, .. } => {
                    let window = self.client.lag().with(None) * 2;
                    let pause = (window / LATE_QUERIES_MAX).max(PAUSE_MIN);
                    if self.late_queries == LATE_QUERIES_MAX || now + pause > from + window {
                        return Ok(false);
                    }
                    self.late_queries += 1;
                    now + pause
                }
                Demand::Spans { until: Some(wanted), .. } if wanted > began => {
                    wanted.min(now + pause)
                }
                Demand::Spans { .. } | Demand::Nothing => now + pause,
            };
            tokio::select! {
                biased;
                () = sleep_until(until.max(now + at_least)) => return Ok(true),
                changed = self.feed.demand.changed() => changed.map_err(|_| RunEnd)?,
            }
        }
    }
}
