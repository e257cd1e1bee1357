//! The spans of one trace as they arrive: the one contract of all sources of spans.
//!
//! A source either pushes or is queried. What is pushed in one process is in the channel as soon as the receiver accepted it: no
//! further span of the past is on its way here, and absence is judged by the current time. Where other processes receive spans too,
//! the source reports an [`Arrival::Proof`] up to which nothing is on its way, or an [`Arrival::Doubt`]. A source that is queried
//! proves absence only up to the beginning of its last complete answer, which it reports as [`Arrival::Coverage`]. An answer that
//! failed or was partial covers nothing, and is reported as [`Arrival::Gap`].

use std::time::Duration;

use bytes::Bytes;
use model::{SpanDetail, Timestamp};
use tokio::{
    sync::{mpsc, watch},
    task::JoinSet,
    time::Instant,
};

use crate::inbox::Claim;

/// The maximum number of messages between all queried sources and a run; further ones wait.
const MESSAGES_MAX: usize = 16;

/// What a source of spans reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// Some spans of one trace, in an OTLP `TracesData` message.
    Spans {
        /// The number of the queried source; none for pushed spans.
        source: Option<usize>,
        /// When they arrived, which may be long before they are decoded.
        at: Instant,
        /// The message.
        bytes: Bytes,
    },
    /// All pushed spans that any receiver had accepted at a time have been reported.
    Proof {
        /// The time.
        began: Instant,
    },
    /// It cannot be proved that all accepted spans have been reported.
    Doubt {
        /// The reason.
        reason: String,
        /// Whether no later proof removes the doubt.
        is_lasting: bool,
    },
    /// All spans that a queried source had at a time have been reported.
    Coverage {
        /// The number of the source.
        source: usize,
        /// When the query began.
        began: Instant,
    },
    /// A queried source is found not to keep all of spans.
    Lacks {
        /// The number of the source.
        source: usize,
        /// What it does not keep.
        lacks: Vec<SpanDetail>,
    },
    /// A queried source gave an answer that covers nothing.
    Gap {
        /// The number of the source.
        source: usize,
        /// The reason.
        gap: AnswerGap,
    },
}

/// Why an answer of a queried source covers nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AnswerGap {
    /// The query failed; another may succeed.
    Failed(String),
    /// The answer may not have all spans that the source has.
    Partial(String),
    /// The source refuses the query, and would refuse it again.
    Refused(String),
}

/// A source that is queried.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueriedSource {
    /// The name that the user gave it.
    pub name: String,
    /// How long after its arrival at the source a span may be missing from complete answers.
    pub lag: Lag,
    /// What it does not keep of spans.
    pub lacks: Vec<SpanDetail>,
}

/// How long after its arrival at a source a span may be missing from complete answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lag {
    /// The user states it.
    Declared(Duration),
    /// The usual lag of such a source, if earlier runs show no other.
    Usual(Duration),
}

/// What a run demands of its queried sources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Demand {
    /// No query yet: the trigger has no answer.
    #[default]
    Nothing,
    /// Queries for spans that began after a time, if one is known.
    Spans {
        /// No span of the trace began earlier.
        since: Option<Timestamp>,
        /// The time that has to be covered, once it has come.
        until: Option<Instant>,
    },
    /// A few more queries, for late spans: the verdict is final.
    LateSpans {
        /// No span of the trace began earlier.
        since: Option<Timestamp>,
        /// When the verdict became final.
        from: Instant,
    },
}

/// The spans of one trace as they arrive. The same span may arrive more than once, and from several sources.
#[derive(Debug)]
pub struct Arrivals {
    pushed: mpsc::Receiver<Arrival>,
    /// What the run demands of a source that pushes and proves.
    proofs: Option<watch::Sender<Demand>>,
    /// Dropping it ends the interest in the trace.
    _claim: Option<Claim>,
    queried: Option<QuerySet>,
}

/// The queried sources. Dropping them ends their queries.
#[derive(Debug)]
struct QuerySet {
    receiver: mpsc::Receiver<Arrival>,
    sender: mpsc::Sender<Arrival>,
    sources: Vec<QueriedSource>,
    demand: watch::Sender<Demand>,
    queries: JoinSet<()>,
}

/// The interface of a queried source to a run.
#[derive(Debug)]
pub struct SourceFeed {
    source: usize,
    sender: mpsc::Sender<Arrival>,
    /// What the run demands. It closes when the run has ended.
    pub demand: watch::Receiver<Demand>,
}

/// The run has ended, and receives no more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunEnd;

impl Arrival {
    /// Returns the arrival of spans that were pushed, now.
    pub fn pushed(bytes: Bytes) -> Self {
        Self::Spans { source: None, at: Instant::now(), bytes }
    }

    /// Returns the message with the spans, if it has any.
    pub fn spans(self) -> Option<Bytes> {
        match self {
            Self::Spans { bytes, .. } => Some(bytes),
            Self::Proof { .. }
            | Self::Doubt { .. }
            | Self::Coverage { .. }
            | Self::Lacks { .. }
            | Self::Gap { .. } => None,
        }
    }
}

impl Arrivals {
    /// Creates arrivals of a source that pushes, from this channel.
    pub fn new(pushed: mpsc::Receiver<Arrival>) -> Self {
        Self { pushed, proofs: None, _claim: None, queried: None }
    }

    /// Creates arrivals of a source that pushes, and that proves on demand that nothing is on its way here.
    pub fn with_proofs(pushed: mpsc::Receiver<Arrival>, demand: watch::Sender<Demand>) -> Self {
        Self { proofs: Some(demand), ..Self::new(pushed) }
    }

    /// Whether absence of pushed spans has to be proved.
    pub fn needs_proof(&self) -> bool {
        self.proofs.is_some()
    }

    pub(crate) fn claimed(pushed: mpsc::Receiver<Arrival>, claim: Claim) -> Self {
        Self { _claim: Some(claim), ..Self::new(pushed) }
    }

    /// Adds a source that is queried. The queries end with the arrivals.
    pub fn query<F>(&mut self, source: QueriedSource, queries: impl FnOnce(SourceFeed) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let queried = self.queried.get_or_insert_with(|| {
            let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
            let (sources, demand) = (Vec::new(), watch::Sender::default());
            QuerySet { receiver, sender, sources, demand, queries: JoinSet::new() }
        });
        let number = queried.sources.len();
        queried.sources.push(source);
        let (sender, demand) = (queried.sender.clone(), queried.demand.subscribe());
        queried.queries.spawn(queries(SourceFeed { source: number, sender, demand }));
    }

    /// Returns the sources that are queried, in the order of their numbers.
    pub fn sources(&self) -> &[QueriedSource] {
        self.queried.as_ref().map_or(&[], |queried| &queried.sources)
    }

    /// Starts the queries for spans that began after a time, if one is known.
    pub fn start(&self, since: Option<Timestamp>) {
        self.demand(|_| Demand::Spans { since, until: None });
    }

    /// Requests coverage of this time: a source that is queried queries once more when it has come.
    pub fn want(&self, at: Instant) {
        self.demand(|before| Demand::Spans { since: before.since(), until: Some(at) });
    }

    /// Reduces the queries to a few for late spans: the verdict is final.
    pub fn watch(&self, from: Instant) {
        self.demand(|before| Demand::LateSpans { since: before.since(), from });
    }

    fn demand(&self, change: impl Fn(Demand) -> Demand) {
        let queried = self.queried.as_ref().map(|queried| &queried.demand);
        for demand in queried.into_iter().chain(&self.proofs) {
            demand.send_if_modified(|demand| {
                let changed = change(*demand);
                std::mem::replace(demand, changed) != changed
            });
        }
    }

    /// Waits for the next arrival; none means that no more will come. Cancel-safe: a dropped wait loses nothing.
    pub async fn next(&mut self) -> Option<Arrival> {
        let Some(queried) = &mut self.queried else { return self.pushed.recv().await };
        tokio::select! {
            biased;
            arrival = self.pushed.recv() => arrival,
            arrival = queried.receiver.recv() => arrival,
        }
    }

    /// Returns the next arrival, if it is already there.
    pub fn waiting(&mut self) -> Option<Arrival> {
        let pushed = self.pushed.try_recv().ok();
        pushed.or_else(|| self.queried.as_mut()?.receiver.try_recv().ok())
    }
}

impl Lag {
    /// Returns the lag, if earlier runs have shown this one.
    pub fn with(self, shown: Option<Duration>) -> Duration {
        match self {
            Self::Declared(lag) => lag,
            Self::Usual(lag) => shown.unwrap_or(lag),
        }
    }
}

impl Demand {
    /// Returns a time before which no span of the trace began, if one is known.
    pub fn since(self) -> Option<Timestamp> {
        match self {
            Self::Nothing => None,
            Self::Spans { since, .. } | Self::LateSpans { since, .. } => since,
        }
    }
}

impl SourceFeed {
    /// Reports spans that are here now.
    pub async fn spans(&self, bytes: Bytes) -> Result<(), RunEnd> {
        let source = Some(self.source);
        self.send(Arrival::Spans { source, at: Instant::now(), bytes }).await
    }

    /// Reports that all spans that the source had when a query began have been reported.
    pub async fn coverage(&self, began: Instant) -> Result<(), RunEnd> {
        self.send(Arrival::Coverage { source: self.source, began }).await
    }

    /// Reports what the source does not keep of spans.
    pub async fn lacks(&self, lacks: Vec<SpanDetail>) -> Result<(), RunEnd> {
        self.send(Arrival::Lacks { source: self.source, lacks }).await
    }

    /// Reports an answer that covers nothing.
    pub async fn gap(&self, gap: AnswerGap) -> Result<(), RunEnd> {
        self.send(Arrival::Gap { source: self.source, gap }).await
    }

    async fn send(&self, arrival: Arrival) -> Result<(), RunEnd> {
        self.sender.send(arrival).await.map_err(|_| RunEnd)
    }
}
