//! Polling a store, on a paused clock: when it is queried, what is passed on, and what is covered.
//!
//! The store is scripted: a real one cannot be made to fail, cut and go backwards at chosen times.

use std::{
    collections::VecDeque,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use drivers::{
    AnswerGap, Arrival, Arrivals, append,
    store::{
        Completeness, Evidence, Query, QueryLimit, QueryResult, Store, StoreClient, StoreProfile,
        poll,
    },
};
use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData},
};
use tokio::{
    sync::mpsc,
    time::{Instant, sleep, timeout_at},
};

const PROFILE: StoreProfile = StoreProfile {
    name: "script",
    api: "",
    version: "",
    evidence: Evidence::Contract,
    lacks: &[],
    changes: "",
    lag: Duration::from_secs(2),
    pause_max: Duration::from_secs(1),
    spans_max: None,
};

/// A store that gives these answers, each after a time, and then the last one for ever.
#[derive(Debug)]
struct ScriptedStore {
    began: Instant,
    answers: Mutex<VecDeque<(u64, QueryResult)>>,
    queries: Arc<Mutex<Vec<u64>>>,
}

impl Store for ScriptedStore {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    fn query(&self, _: TraceId, _: Option<Timestamp>) -> Query<'_> {
        self.queries.lock().expect("no panic").push(self.began.elapsed().as_millis() as u64);
        let (takes, answer) = {
            let mut answers = self.answers.lock().expect("no panic");
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().expect("an answer"),
            }
        };
        Box::pin(async move {
            // The clock is paused, and the time of an answer is a part of the script.
            sleep(Duration::from_millis(takes)).await;
            answer
        })
    }
}

fn trace_id() -> TraceId {
    TraceId::from_random([3; 16])
}

/// Encodes spans, each by its number and its name.
fn otlp(spans: &[(u8, &str)]) -> Bytes {
    let mut trace = Trace::new(trace_id());
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    for (number, name) in spans {
        let span = SpanData::new(SpanId::from_random([*number; 8]), None, *name);
        trace.push(resource, scope, span).expect("room");
    }
    otlp::encode(&trace).into()
}

fn whole(spans: &[(u8, &str)]) -> QueryResult {
    QueryResult::Spans { otlp: vec![otlp(spans)], completeness: Completeness::Complete }
}

fn partial(spans: &[(u8, &str)]) -> QueryResult {
    let completeness = Completeness::Partial("a shard failed".to_owned());
    QueryResult::Spans { otlp: vec![otlp(spans)], completeness }
}

fn failed(retry_after: Option<u64>) -> QueryResult {
    let retry_after = retry_after.map(Duration::from_millis);
    QueryResult::Failed { message: "503".to_owned(), retry_after }
}

/// A scripted store, and the times of its queries.
fn scripted(
    answers: Vec<(u64, QueryResult)>,
    limit: QueryLimit,
) -> (Arc<StoreClient>, Arc<Mutex<Vec<u64>>>) {
    let queries = Arc::<Mutex<Vec<u64>>>::default();
    let store = ScriptedStore {
        began: Instant::now(),
        answers: Mutex::new(answers.into()),
        queries: Arc::clone(&queries),
    };
    let client =
        StoreClient { name: "prod".to_owned(), declared_lag: None, store: Box::new(store), limit };
    (Arc::new(client), queries)
}

/// Returns arrivals of a run to which nothing is pushed, with what keeps them open.
fn unpushed() -> (Arrivals, mpsc::Sender<Arrival>) {
    let (sender, receiver) = mpsc::channel(1);
    (Arrivals::new(receiver), sender)
}

/// Polls for some milliseconds. Returns the times of the queries, and the arrivals: names of spans, coverage, and gaps.
async fn played(
    answers: Vec<(u64, QueryResult)>,
    demand: impl Fn(&Arrivals, Instant),
    millis: u64,
) -> (Vec<u64>, Vec<String>) {
    let began = Instant::now();
    let (client, queries) = scripted(answers, QueryLimit::new(4, 1000));
    let (mut arrivals, _pushes) = unpushed();
    poll(&mut arrivals, client, trace_id());
    demand(&arrivals, began);
    let mut seen = Vec::new();
    let end = began + Duration::from_millis(millis);
    while let Ok(Some(arrival)) = timeout_at(end, arrivals.next()).await {
        seen.push(match arrival {
            Arrival::Spans { bytes, .. } => {
                let mut trace = Trace::new(trace_id());
                append(&mut trace, &bytes).expect("spans");
                let names: Vec<_> = trace.spans().map(|span| span.name().to_owned()).collect();
                names.join("+")
            }
            Arrival::Coverage { began: covered, .. } => {
                format!("{}", covered.duration_since(began).as_millis())
            }
            Arrival::Lacks { lacks, .. } => format!("lacks {lacks:?}"),
            Arrival::Gap { gap: AnswerGap::Failed(why), .. } => format!("failed: {why}"),
            Arrival::Gap { gap: AnswerGap::Partial(why), .. } => format!("partial: {why}"),
            Arrival::Gap { gap: AnswerGap::Refused(why), .. } => format!("refused: {why}"),
            pushed @ (Arrival::Proof { .. } | Arrival::Doubt { .. }) => format!("{pushed:?}"),
        });
    }
    let queries = queries.lock().expect("no panic").clone();
    (queries, seen)
}

/// The trigger has its answer, and nothing more is demanded.
fn started(arrivals: &Arrivals, _: Instant) {
    arrivals.start(None);
}

/// The trigger has its answer, and the run would conclude after some milliseconds.
fn wanted(millis: u64) -> impl Fn(&Arrivals, Instant) {
    move |arrivals, began| {
        arrivals.start(None);
        arrivals.want(began + Duration::from_millis(millis));
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_is_queried_before_the_trigger_has_its_answer() {
    let (queries, seen) = played(vec![(0, QueryResult::Nothing)], |_, _| (), 5000).await;
    assert_eq!((queries, seen), (Vec::new(), Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn after_the_verdict_ten_more_queries_cover_twice_the_lag() {
    let judged = |arrivals: &Arrivals, began: Instant| {
        arrivals.start(None);
        arrivals.watch(began);
    };
    let (queries, _) = played(vec![(0, QueryResult::Nothing)], judged, 60_000).await;
    let expected: Vec<u64> = (0..=10).map(|number| number * 400).collect();
    assert_eq!(queries, expected);
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_begin_anew_with_news() {
    let one = whole(&[(1, "a")]);
    let answers =
        vec![(0, QueryResult::Nothing), (0, QueryResult::Nothing), (0, one.clone()), (0, one)];
    let (queries, seen) = played(answers, started, 1200).await;
    assert_eq!(queries, [0, 100, 250, 350, 500, 725, 1063]);
    assert_eq!(seen, ["0", "100", "a", "250", "350", "500", "725", "1063"]);
}

#[tokio::test(start_paused = true)]
async fn only_what_is_new_or_changed_is_passed_on() {
    let answers = vec![
        (0, whole(&[(1, "a"), (2, "b")])),
        (0, whole(&[(2, "b"), (1, "a"), (3, "c")])),
        (0, whole(&[(1, "a"), (2, "changed"), (3, "c")])),
        (0, whole(&[(3, "c")])),
    ];
    let (_, seen) = played(answers, started, 350).await;
    let forgets = "partial: it no longer has spans that it showed before";
    assert_eq!(seen, ["a+b", "0", "c", "100", "changed", "200", forgets], "nothing is taken back");
}

#[tokio::test(start_paused = true)]
async fn only_a_complete_answer_covers_and_from_its_beginning() {
    let answers = vec![
        (40, partial(&[(1, "a")])),
        (40, failed(None)),
        (40, whole(&[(1, "a"), (2, "b")])),
        (40, failed(None)),
    ];
    let (queries, seen) = played(answers, started, 700).await;
    assert_eq!(queries, [0, 140, 330, 470, 660]);
    assert_eq!(seen, ["a", "partial: a shard failed", "failed: 503", "b", "330", "failed: 503"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_covers_nothing() {
    let broken = QueryResult::Spans {
        otlp: vec![otlp(&[(1, "a")]), Bytes::from_static(b"\x0a\xff")],
        completeness: Completeness::Complete,
    };
    let (_, seen) = played(vec![(0, broken)], started, 500).await;
    assert_eq!(seen[..2], ["a", "partial: a part of the answer is not OTLP"]);
    assert!(seen.iter().all(|it| it.parse::<u64>().is_err()), "{seen:?}");
}

#[tokio::test(start_paused = true)]
async fn a_wanted_time_is_queried_once_when_it_has_come() {
    let (queries, seen) = played(vec![(0, QueryResult::Nothing)], wanted(830), 1500).await;
    assert_eq!(queries, [0, 100, 250, 475, 813, 830]);
    assert_eq!(seen.last().map(String::as_str), Some("830"));
    // An answer that fails is no reason to query without a pause.
    let (queries, _) = played(vec![(0, failed(None))], wanted(10), 700).await;
    assert_eq!(queries, [0, 10, 160, 385]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_states_a_time_gets_it() {
    let answers = vec![(0, failed(Some(2000))), (0, QueryResult::Nothing)];
    let (queries, seen) = played(answers, wanted(300), 2100).await;
    assert_eq!(queries, [0, 2000], "also where the run would want it sooner");
    assert_eq!(seen, ["failed: 503", "2000"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_not_queried_again() {
    let refused = QueryResult::Refused { message: "401".to_owned() };
    let (queries, seen) = played(vec![(0, refused)], wanted(300), 5000).await;
    assert_eq!((queries, seen), (vec![0], vec!["refused: 401".to_owned()]));
}

#[tokio::test(start_paused = true)]
async fn many_runs_share_the_limit_of_a_store_and_none_starves() {
    let began = Instant::now();
    let answers = vec![(50, QueryResult::Nothing)];
    let (client, queries) = scripted(answers, QueryLimit::new(2, 20));
    let runs: Vec<_> = (0..100)
        .map(|_| {
            let (mut arrivals, pushes) = unpushed();
            poll(&mut arrivals, Arc::clone(&client), trace_id());
            arrivals.start(None);
            (arrivals, pushes)
        })
        .collect();
    for (mut run, _pushes) in runs {
        let end = began + Duration::from_secs(10);
        let covered = timeout_at(end, run.next()).await.expect("each has its turn");
        assert!(matches!(covered, Some(Arrival::Coverage { .. })), "{covered:?}");
    }
    let queries = queries.lock().expect("no panic").clone();
    assert!(queries.windows(21).all(|it| it[20] - it[0] >= 1000), "20 in a second: {queries:?}");
}
