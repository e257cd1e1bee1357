//! Sources that are queried: what their answers prove, and how long they may lag behind.

use std::time::Duration;

use drivers::arrivals::Lag;

use crate::{
    FLUSH, NOTHING,
    stage::{Stage, shown},
};

#[tokio::test(start_paused = true)]
async fn a_queried_source_proves_absence_only_up_to_its_last_complete_answer() {
    let pushed = "10 a server 1<t 0..5";
    let of = |lines: &str| format!("{pushed}\n{lines}");
    let cases = [
        (
            "an answer that began before the end",
            of("40 covered 30\n 200 covered 109"),
            "unread: no complete answer began late enough 10000 inconclusive",
        ),
        ("one that began after it", of("40 covered 30\n 200 covered 110"), "whole 200"),
        ("one that comes long after it began", of("900 covered 120"), "whole 900"),
        ("a later answer that began earlier", of("150 covered 120\n 200 covered 30"), "whole 150"),
        (
            "no complete answer behind the last span",
            of("40 covered 5"),
            "unread: no complete answer began late enough 10000 inconclusive",
        ),
        (
            "spans that an answer brings",
            of("150 covered 60\n 300 a inner 2<1 1..2\n 301 covered 290\n 2000 covered 1900"),
            "whole 2000",
        ),
        (
            "no span, and nothing covers the wait",
            "40 covered 30".to_owned(),
            "NoTelemetry 10000 inconclusive",
        ),
        (
            "no span, and an answer covers the wait",
            "40 covered 30\n 6100 covered 6050".to_owned(),
            "NoTelemetry 6100 inconclusive",
        ),
    ];
    for (name, lines, expected) in cases {
        let outcome = Stage::new(&lines).test(FLUSH).outcome().await;
        assert_eq!(outcome, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_covers_nothing_is_the_reason_of_the_run() {
    let pushed = "10 a server 1<t 0..5";
    let of = |lines: &str| format!("{pushed}\n{lines}");
    let cases = [
        (
            "answers that fail after the spans came",
            of("40 covered 30\n 200 failed 503\n 9000 failed 504"),
            "unread: 504 10000 inconclusive",
        ),
        (
            "an answer that fails, and one that does not",
            of("40 covered 30\n 200 failed 503\n 900 covered 800"),
            "whole 900",
        ),
        (
            "an answer that covers all, and one that fails",
            of("150 covered 120\n 200 failed 503"),
            "whole 150",
        ),
        (
            "answers that are partial",
            of("200 partial 3 of 5 shards\n 9000 partial 4 of 5 shards"),
            "partial: 4 of 5 shards 10000 inconclusive",
        ),
        (
            "a parent that is absent in a partial answer",
            "10 a inner 2<1 1..2\n 40 covered 30\n 9000 partial in progress".to_owned(),
            "partial: in progress, orphans 2, calls 7 10000 inconclusive",
        ),
        (
            "no span, and a query that fails",
            "40 failed 503".to_owned(),
            "unread: 503, NoTelemetry 10000 inconclusive",
        ),
        (
            "a query that is refused",
            of("40 covered 30\n 60 refused 401"),
            "unread: 401 60 inconclusive",
        ),
        (
            "a query that is refused before any span came",
            "40 refused 401".to_owned(),
            "unread: 401, NoTelemetry 40 inconclusive",
        ),
    ];
    for (name, lines, expected) in cases {
        let outcome = Stage::new(&lines).test(FLUSH).outcome().await;
        assert_eq!(outcome, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_lag_of_a_queried_source_is_added_to_every_wait() {
    let cases = [
        (FLUSH, "10 a server 1<t 0..5\n 2200 covered 2110", "whole 2200"),
        (
            FLUSH,
            "10 a server 1<t 0..5\n 2200 covered 2109",
            "unread: no complete answer began late enough 10000 inconclusive",
        ),
        (NOTHING, "10 a server 1<t 0..5\n 8100 covered 8010", "whole 8100"),
        (
            NOTHING,
            "10 a server 1<t 0..5\n 8100 covered 8009",
            "unread: no complete answer began late enough 20000 inconclusive",
        ),
        (
            "tags: [the default timeout]",
            "10 a server 1<t 0..5\n 8100 covered 8009",
            "unread: no complete answer began late enough 38000 inconclusive",
        ),
        (NOTHING, "10 a! server 1<t 0..5\n 2200 covered 2110", "whole 2200"),
        (NOTHING, "10 covered 5\n 14100 covered 14000", "NoTelemetry 14100 inconclusive"),
    ];
    for (test, lines, expected) in cases {
        let stage = Stage { lag: Lag::Declared(Duration::from_secs(2)), ..Stage::new(lines) };
        assert_eq!(stage.test(test).outcome().await, expected, "{test} {lines}");
    }
}

/// A store may change a span, or forget a part of it. It is still the span that was pushed.
#[tokio::test(start_paused = true)]
async fn a_span_of_two_sources_is_one_span() {
    let cases = [
        "10 a server 1<t 0..5\n 40 a server 1<t 0..5 from=store name=other\n 200 covered 110",
        "10 a server 1<t 0..5 from=store name=other\n 40 a server 1<t 0..5\n 200 covered 150",
    ];
    for lines in cases {
        let run = Stage::new(lines).test(FLUSH).run().await;
        let settlement = run.outcome.settlement.as_ref().expect("a trace was asked for");
        assert_eq!((shown(&run), settlement.spans), ("whole 200".to_owned(), 1), "{lines}");
        let trace = run.trace.as_ref().expect("a trace was asked for");
        assert!(trace.conflicts().is_empty(), "{lines}");
    }
}
