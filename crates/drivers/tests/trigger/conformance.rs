//! The requirements of every trigger, whatever it fires.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use drivers::trigger::AnswerHold;
use model::{Answer, NoAnswerKind, Propagator};

use crate::{
    firing::{attempt, fire},
    server::until,
    ways::{Does, Way},
};

const LONG: Duration = Duration::from_secs(30);
const SHORT: Duration = Duration::from_secs(1);

/// A trigger fires once, and its answer is complete. It calls `permit` once, before anything is sent.
#[tokio::test]
async fn it_fires_once_and_asks_before() {
    for way in Way::all().await {
        let asked = AtomicUsize::new(0);
        let permit = || {
            assert_eq!(way.fired(), 0, "{}: asked too late", way.name);
            asked.fetch_add(1, Ordering::SeqCst) == 0
        };
        let request = way.request(Does::Tells, LONG, &[Propagator::W3c]);
        let answer = way
            .triggers
            .fire(&request, &attempt(), permit, &AnswerHold::unlimited())
            .await
            .expect(way.name);
        assert!(answer.is_answered(), "{}: {answer:?}", way.name);
        assert_eq!(asked.load(Ordering::SeqCst), 1, "{}: asked once", way.name);
        assert_eq!(way.fired(), usize::from(way.fires()), "{}", way.name);
        assert_eq!(answer == Answer::NotFired, !way.fires(), "{}", way.name);
        assert_eq!(
            answer.duration_ns().is_some_and(|nanos| nanos > 0),
            way.fires(),
            "{}",
            way.name
        );
        until(way.name, || way.alive() == 0).await;
    }
}

/// Without permission nothing is sent, and no connection or process remains.
#[tokio::test]
async fn without_permission_nothing_is_sent() {
    for way in Way::all().await {
        let request = way.request(Does::Tells, LONG, &[Propagator::W3c]);
        let answer =
            way.triggers.fire(&request, &attempt(), || false, &AnswerHold::unlimited()).await;
        assert_eq!(answer, None, "{}", way.name);
        until(way.name, || way.alive() == 0).await;
        assert_eq!(way.fired(), 0, "{}", way.name);
    }
}

/// The trace context arrives in each requested format, and in no other; a command always gets that of W3C.
#[tokio::test]
async fn the_trace_arrives_in_each_form() {
    let (trace, span) = ("0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331");
    let w3c = [
        ("traceparent", format!("00-{trace}-{span}-01")),
        ("tracestate", "qualitytrace=true".to_owned()),
    ];
    let b3 = [("b3", format!("{trace}-{span}-1"))];
    let b3_multi = [
        ("x-b3-traceid", trace.to_owned()),
        ("x-b3-spanid", span.to_owned()),
        ("x-b3-sampled", "1".to_owned()),
    ];
    let jaeger = [("uber-trace-id", format!("{trace}:{span}:0:1"))];
    let forms: [(Propagator, &[(&str, String)]); 4] = [
        (Propagator::W3c, &w3c),
        (Propagator::B3, &b3),
        (Propagator::B3Multi, &b3_multi),
        (Propagator::Jaeger, &jaeger),
    ];
    let all: Vec<_> = Propagator::ALL.to_vec();
    let sets = Propagator::ALL.map(|form| vec![form]).into_iter().chain([all]);
    let sets: Vec<_> = sets.collect();
    for way in Way::all().await.into_iter().filter(Way::fires) {
        for set in &sets {
            let request = way.request(Does::Tells, LONG, set);
            let told = way.told(&fire(&way.triggers, &request).await);
            for (form, names) in &forms {
                let is_command = way.name.starts_with("exec");
                let is_told = set.contains(form) || (is_command && *form == Propagator::W3c);
                for (name, value) in *names {
                    let expected = is_told.then_some(value);
                    assert_eq!(told.get(*name), expected, "{}, {set:?}: {name}", way.name);
                }
            }
        }
    }
}

/// A timeout is an answer of its own kind, in time.
#[tokio::test]
async fn a_timeout_is_an_answer_of_its_kind() {
    for way in Way::all().await.into_iter().filter(Way::fires) {
        let request = way.request(Does::Stalls, SHORT, &[Propagator::W3c]);
        let began = tokio::time::Instant::now();
        let answer = fire(&way.triggers, &request).await;
        let took = began.elapsed();
        expect_kind(&way, &answer, NoAnswerKind::Timeout, "within 1s");
        assert!(took >= SHORT && took < LONG, "{}: {took:?}", way.name);
        until(way.name, || way.alive() == 0).await;
        // On a busy machine the timeout may expire before the connection is established.
        assert!(way.fired() <= 1, "{}: not tried again", way.name);
    }
}

/// A response that is too large is discarded, and the trigger does not wait for its end.
#[tokio::test]
async fn an_answer_is_bounded() {
    for way in Way::all().await.into_iter().filter(Way::fires) {
        let request = way.request(Does::Overflows, LONG, &[Propagator::W3c]);
        let answer = fire(&way.triggers, &request).await;
        expect_kind(&way, &answer, NoAnswerKind::TooLarge, "more than 1000 bytes");
        until(way.name, || way.alive() == 0).await;
    }
}

/// When the future is dropped, no process and no connection remains.
#[tokio::test]
async fn nothing_is_left_of_what_was_cancelled() {
    for way in Way::all().await.into_iter().filter(Way::fires) {
        let request = way.request(Does::Stalls, LONG, &[Propagator::W3c]);
        tokio::select! {
            answer = fire(&way.triggers, &request) => panic!("{}: {answer:?}", way.name),
            () = until(way.name, || way.fired() == 1 && way.alive() == 1) => {}
        }
        until(way.name, || way.alive() == 0).await;
    }
}

fn expect_kind(way: &Way, answer: &Answer, kind: NoAnswerKind, words: &str) {
    match answer {
        Answer::NoAnswer(no_answer) => {
            assert_eq!(no_answer.kind, kind, "{}: {}", way.name, no_answer.message);
            assert!(no_answer.message.contains(words), "{}: {}", way.name, no_answer.message);
        }
        answer => panic!("{}: {answer:?}", way.name),
    }
}
