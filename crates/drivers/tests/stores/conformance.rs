//! What every store has to show, whichever it is.

use std::{net::SocketAddr, pin::Pin, time::Duration};

use drivers::append;
use drivers::store::{Completeness, QueryResult, StoreClient};
use model::{SpanDetail, Trace, TraceId, trace::DROPPED_UNKNOWN};
use tokio::{
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    cutter::{Cut, cutter},
    sample::{Content, content, decoded, flat, fresh, full, remove, send},
};

/// A real store under test.
pub(crate) struct Subject {
    pub(crate) client: StoreClient,
    /// Brings a trace to the store.
    pub(crate) intake: Intake,
    /// Removes what the store is known to change, beside what it lacks.
    pub(crate) changes: fn(&mut Content),
}

/// How a trace is brought to a store.
pub(crate) enum Intake {
    /// By OTLP over gRPC, to this address: of the store, or of a Collector that exports to it.
    Otlp(String),
    /// By the API of the store.
    Api(Box<dyn Fn(&Trace) -> Export + Send + Sync>),
}

/// An export that is under way.
pub(crate) type Export = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Intake {
    pub(crate) async fn send(&self, trace: &Trace) {
        match self {
            Self::Otlp(address) => send(address, trace).await,
            Self::Api(send) => send(trace).await,
        }
    }
}

/// How long a store may take to show what it accepted.
const VISIBLE: Duration = Duration::from_secs(20);

/// Whether the store may show nothing of a trace for a moment, although it showed it before.
///
/// Tempo removes an idle trace from its memory before it writes it to its head block, and a query in between finds neither. The
/// poller counts such an answer as partial.
fn may_hide(client: &StoreClient) -> bool {
    client.store.profile().name == "Tempo"
}

impl Subject {
    async fn query(&self, trace: TraceId) -> QueryResult {
        self.client.store.query(trace, None).await
    }

    /// Returns spans without these details, and without what the store changes.
    fn without(&self, content: &Content, lacks: &[SpanDetail]) -> Content {
        let mut content = content.clone();
        lacks.iter().for_each(|detail| remove(*detail, &mut content));
        (self.changes)(&mut content);
        content
    }

    /// Compares an answer with what was sent, but for what the store is known to change.
    fn compare(&self, result: &QueryResult, sent: &Trace) {
        let lacks = self.client.store.profile().lacks;
        let found = self.without(&decoded(sent.id(), result), lacks);
        assert_eq!(found, self.without(&content(sent), lacks));
    }

    /// Queries until the store shows so many spans.
    pub(crate) async fn shown(&self, trace: TraceId, spans: usize) -> QueryResult {
        let end = Instant::now() + VISIBLE;
        loop {
            let result = self.query(trace).await;
            let count = decoded(trace, &result).len();
            if count >= spans {
                return result;
            }
            assert!(Instant::now() < end, "{count} of {spans} spans: {}", told(&result));
            // The store decides when it shows what it accepted, and reports nothing.
            sleep(Duration::from_millis(50)).await;
        }
    }
}

/// Describes a result without its spans.
pub(crate) fn told(result: &QueryResult) -> String {
    match result {
        QueryResult::Spans { otlp, completeness } => {
            format!("{} messages, {completeness:?}", otlp.len())
        }
        other => format!("{other:?}"),
    }
}

/// A trace that was never sent is unknown, and that is no error.
pub(crate) async fn an_unknown_trace(subject: &Subject) {
    let result = subject.query(fresh()).await;
    assert_eq!(result, QueryResult::Nothing);
}

/// What goes in by OTLP comes out equal, but for what the store is known to change.
pub(crate) async fn what_was_sent(subject: &Subject) {
    let sent = full(fresh());
    subject.intake.send(&sent).await;
    let result = subject.shown(sent.id(), sent.len()).await;
    let (found, expected) = (decoded(sent.id(), &result), content(&sent));
    let lacks = subject.client.store.profile().lacks;
    // An attribute that is absent may be one of a resource that the store does not keep.
    assert_eq!(has_marked_resources(sent.id(), &result), lacks.contains(&SpanDetail::Resource));
    let without = |content: &Content, lacks: &[SpanDetail]| subject.without(content, lacks);
    pretty(&without(&found, lacks), &without(&expected, lacks));
    for detail in lacks {
        let others: Vec<_> = lacks.iter().copied().filter(|it| it != detail).collect();
        assert_ne!(without(&found, &others), without(&expected, &others), "it keeps {detail:?}");
    }
}

/// Whether every resource in an answer may have had further attributes.
fn has_marked_resources(trace: TraceId, result: &QueryResult) -> bool {
    let QueryResult::Spans { otlp, .. } = result else { return false };
    let mut decoded = Trace::new(trace);
    otlp.iter().for_each(|message| append(&mut decoded, message).map(drop).expect("spans"));
    decoded.resources().all(|resource| resource.dropped_attributes() == DROPPED_UNKNOWN)
}

fn pretty(found: &Content, expected: &Content) {
    assert_eq!(found.len(), expected.len());
    for (found, expected) in found.iter().zip(expected) {
        assert_eq!(format!("{found:#?}"), format!("{expected:#?}"));
    }
}

/// A trace that grows is queried twice, and the second answer has all of it.
pub(crate) async fn a_trace_that_grows(subject: &Subject) {
    let whole = flat(fresh(), 5);
    let first = whole.only(|span| span.name() < "span 2").expect("room");
    subject.intake.send(&first).await;
    let shown = subject.shown(whole.id(), 2).await;
    subject.compare(&shown, &first);
    let rest = whole.only(|span| span.name() >= "span 2").expect("room");
    subject.intake.send(&rest).await;
    let shown = subject.shown(whole.id(), 5).await;
    subject.compare(&shown, &whole);
}

/// All answers about the same trace are equal, byte by byte, for this time: what did not change is not news. A store that may hide
/// a trace shows it again.
pub(crate) async fn answers_that_repeat(subject: &Subject, time: Duration) {
    let sent = full(fresh());
    subject.intake.send(&sent).await;
    let first = subject.shown(sent.id(), sent.len()).await;
    let end = Instant::now() + time;
    while Instant::now() < end {
        let mut again = subject.query(sent.id()).await;
        if again == QueryResult::Nothing && may_hide(&subject.client) {
            again = subject.shown(sent.id(), sent.len()).await;
        }
        assert_eq!(
            (told(&again), decoded(sent.id(), &again)),
            (told(&first), decoded(sent.id(), &first))
        );
        assert_eq!(again, first);
        // Inside the store a trace moves meanwhile.
        sleep(Duration::from_millis(100)).await;
    }
}

/// A large trace comes back whole, or is reported as partial: never fewer spans without a sign.
pub(crate) async fn a_large_trace(subject: &Subject) {
    for spans in [9_999, 20_000] {
        let sent = flat(fresh(), spans);
        for part in 0..20 {
            let is_part = |number: u64| number % 20 == part;
            let number = |name: &str| name["span ".len()..].parse().expect("a number");
            subject
                .intake
                .send(&sent.only(|span| is_part(number(span.name()))).expect("room"))
                .await;
        }
        let result = subject.shown(sent.id(), sent.len()).await;
        let limit = subject.client.store.profile().spans_max.unwrap_or(u64::MAX);
        let QueryResult::Spans { completeness, .. } = &result else { unreachable!("spans") };
        assert_eq!(*completeness == Completeness::Complete, spans < limit, "{completeness:?}");
        subject.compare(&result, &sent);
    }
}

/// An answer that is cut at any 1,000th byte fails, and so does one that does not come.
pub(crate) async fn cut_answers(
    (query, intake): (SocketAddr, Intake),
    open: impl Fn(SocketAddr) -> StoreClient,
) {
    let sent = flat(fresh(), 200);
    intake.send(&sent).await;
    let subject = Subject { client: open(query), intake, changes: |_| () };
    subject.shown(sent.id(), sent.len()).await;
    let mut tasks = JoinSet::new();
    let mut is_whole = false;
    for bytes in (0..).step_by(1000) {
        let through = open(cutter(query, Cut::After(bytes), &mut tasks).await);
        let mut result = through.store.query(sent.id(), None).await;
        if result == QueryResult::Nothing && may_hide(&through) {
            subject.shown(sent.id(), sent.len()).await;
            result = through.store.query(sent.id(), None).await;
        }
        match result {
            QueryResult::Failed { .. } => {}
            result @ QueryResult::Spans { .. } => {
                assert_eq!(decoded(sent.id(), &result).len(), sent.len(), "{bytes} bytes");
                is_whole = true;
                break;
            }
            other => unreachable!("{bytes} bytes: {}", told(&other)),
        }
    }
    assert!(is_whole, "the answer ends somewhere");
    let (through, began) = (cutter(query, Cut::Hold, &mut tasks).await, Instant::now());
    let result = open(through).store.query(sent.id(), None).await;
    let message = "no complete answer within 10s".to_owned();
    assert_eq!(result, QueryResult::Failed { message, retry_after: None });
    assert!(began.elapsed() < Duration::from_secs(12), "{:?}", began.elapsed());
}
