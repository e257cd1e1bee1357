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
    Arrival, append,
    store::{Completeness, QueryLimit, QueryResult, Store, StoreProfile, poll},
};
use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData},
};
use tokio::time::{Instant, sleep, timeout_at};

const PROFILE: StoreProfile = StoreProfile { pause_max: Duration::from_secs(1) };

/// A store that gives these answers, each after a time, and then the last one for ever.
struct ScriptedStore {
    began: Instant,
    answers: Mutex<VecDeque<(u64, QueryResult)>>,
    queries: Mutex<Vec<u64>>,
}

impl Store for ScriptedStore {
    fn profile(&self) -> &StoreProfile {
        &PROFILE
    }

    async fn query(&self, _: TraceId, _: Timestamp) -> QueryResult {
        self.queries.lock().expect("no panic").push(self.began.elapsed().as_millis() as u64);
        let (takes, answer) = {
            let mut answers = self.answers.lock().expect("no panic");
            match answers.len() {
                1 => answers[0].clone(),
                _ => answers.pop_front().expect("an answer"),
            }
        };
        // The clock is paused, and the time of an answer is a part of the script.
        sleep(Duration::from_millis(takes)).await;
        answer
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

/// Polls for some milliseconds. Returns the times of the queries, and the arrivals: names of spans, and coverage.
async fn played(
    answers: Vec<(u64, QueryResult)>,
    wanted: Option<u64>,
    millis: u64,
) -> (Vec<u64>, Vec<String>) {
    let began = Instant::now();
    let store =
        ScriptedStore { began, answers: Mutex::new(answers.into()), queries: Mutex::default() };
    let store = Arc::new(store);
    let limit = Arc::new(QueryLimit::new(4, 1000));
    let mut arrivals = poll(Arc::clone(&store), limit, trace_id(), Timestamp::from_nanos(0));
    if let Some(wanted) = wanted {
        arrivals.want(began + Duration::from_millis(wanted));
    }
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
            Arrival::Coverage { began: covered } => {
                format!("{}", covered.duration_since(began).as_millis())
            }
        });
    }
    let queries = store.queries.lock().expect("no panic").clone();
    (queries, seen)
}

#[tokio::test(start_paused = true)]
async fn pauses_grow_and_begin_anew_with_news() {
    let one = whole(&[(1, "a")]);
    let answers =
        vec![(0, QueryResult::Nothing), (0, QueryResult::Nothing), (0, one.clone()), (0, one)];
    let (queries, seen) = played(answers, None, 1200).await;
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
    let (_, seen) = played(answers, None, 450).await;
    let spans: Vec<_> = seen.iter().filter(|it| it.parse::<u64>().is_err()).collect();
    assert_eq!(spans, ["a+b", "c", "changed"], "what a store forgets is not taken back");
}

#[tokio::test(start_paused = true)]
async fn only_a_complete_answer_covers_and_from_its_beginning() {
    let answers = vec![
        (40, partial(&[(1, "a")])),
        (40, failed(None)),
        (40, whole(&[(1, "a"), (2, "b")])),
        (40, failed(None)),
    ];
    let (queries, seen) = played(answers, None, 700).await;
    assert_eq!(queries, [0, 140, 330, 470, 660]);
    assert_eq!(seen, ["a", "b", "330"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_decoded_covers_nothing() {
    let broken = QueryResult::Spans {
        otlp: vec![otlp(&[(1, "a")]), Bytes::from_static(b"\x0a\xff")],
        completeness: Completeness::Complete,
    };
    let (_, seen) = played(vec![(0, broken)], None, 500).await;
    assert_eq!(seen, ["a"]);
}

#[tokio::test(start_paused = true)]
async fn a_wanted_time_is_queried_once_when_it_has_come() {
    let (queries, seen) = played(vec![(0, QueryResult::Nothing)], Some(830), 1500).await;
    assert_eq!(queries, [0, 100, 250, 475, 813, 830]);
    assert_eq!(seen.last().map(String::as_str), Some("830"));
    // An answer that fails is no reason to query without a pause.
    let (queries, _) = played(vec![(0, failed(None))], Some(10), 700).await;
    assert_eq!(queries, [0, 10, 160, 385]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_states_a_time_gets_it() {
    let answers = vec![(0, failed(Some(2000))), (0, QueryResult::Nothing)];
    let (queries, seen) = played(answers, Some(300), 2100).await;
    assert_eq!(queries, [0, 2000], "also where the run would want it sooner");
    assert_eq!(seen, ["2000"]);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_refuses_is_not_queried_again() {
    let refused = QueryResult::Refused { message: "401".to_owned() };
    let (queries, seen) = played(vec![(0, refused)], Some(300), 5000).await;
    assert_eq!((queries, seen), (vec![0], Vec::new()));
}

#[tokio::test(start_paused = true)]
async fn many_runs_share_the_limit_of_a_store_and_none_starves() {
    let began = Instant::now();
    let answers = VecDeque::from([(50, QueryResult::Nothing)]);
    let store = ScriptedStore { began, answers: Mutex::new(answers), queries: Mutex::default() };
    let (store, limit) = (Arc::new(store), Arc::new(QueryLimit::new(2, 20)));
    let runs: Vec<_> = (0..100)
        .map(|_| poll(Arc::clone(&store), Arc::clone(&limit), trace_id(), Timestamp::from_nanos(0)))
        .collect();
    for mut run in runs {
        let end = began + Duration::from_secs(10);
        let covered = timeout_at(end, run.next()).await.expect("each has its turn");
        assert!(matches!(covered, Some(Arrival::Coverage { .. })), "{covered:?}");
    }
    let queries = store.queries.lock().expect("no panic").clone();
    assert!(queries.windows(21).all(|it| it[20] - it[0] >= 1000), "20 in a second: {queries:?}");
}
