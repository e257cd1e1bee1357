//! When a trace is complete, as tables on a paused clock: one line per arrival.

mod big;
mod learning;
mod linger;
mod overtaken;
mod property;
mod proved;
mod queried;
mod stage;

use std::time::Duration;

use model::{LearnedProfile, LearnedService};
use stage::Stage;

/// The name of a case, the settle part of the test, the arrivals, the result.
type Case = (&'static str, &'static str, &'static str, &'static str);

async fn check(cases: &[Case]) {
    for (name, settle, lines, expected) in cases {
        let outcome = Stage::new(lines).test(settle).outcome().await;
        assert_eq!(outcome, *expected, "{name}");
    }
}

const FLUSH: &str = "settle: {flush: 100ms, timeout: 10s}";
const NOTHING: &str = "settle: {timeout: 20s}";

#[tokio::test(start_paused = true)]
async fn each_process_has_its_own_quiet() {
    check(&[
        ("nothing is known", NOTHING, "10 a server 1<t 0..5", "whole 6010"),
        ("declared", FLUSH, "10 a server 1<t 0..5", "whole 110"),
        ("as late as its spans, and a half", FLUSH, "1000 a server 1<t 0..400", "whole 1900"),
        ("started by us", NOTHING, "10 a! server 1<t 0..5", "whole 110"),
        ("started by us, and late", NOTHING, "210 a! server 1<t 0..10", "whole 510"),
        (
            "the slow one holds up, the quick one does not",
            FLUSH,
            "10 a server 1<t 0..9
             11 a client 2<1 1..8 to=b
             610 b server 3<2 2..7",
            // At least 600 ms late: it cannot have started before it was called.
            "whole 1516",
        ),
        (
            "a process is an instance",
            FLUSH,
            "200 a#1 server 1<t 0..5
             201 a#2 server 2<t 0..200",
            "whole 493",
        ),
        (
            "what was not started by us is not taken to be quick",
            NOTHING,
            "10 a! server 1<t 0..5
             20 b server 2<t 0..5",
            "whole 6020",
        ),
        ("never less than 20 ms", "settle: {flush: 1ms}", "1 a server 1<t 0..1", "whole 21"),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn clocks_that_differ_make_no_process_look_quick() {
    check(&[
        ("ahead", FLUSH, "1000 a server 1<t 0..10 skew=5000", "whole 2485"),
        ("less ahead than late", FLUSH, "1000 a server 1<t 0..10 skew=500", "whole 2485"),
        ("behind", FLUSH, "1000 a server 1<t 0..10 skew=-5000", "whole 2485"),
        (
            "written with times of long ago",
            FLUSH,
            "10 a server 1<t 0..5
             10 a inner 2<1 -86400000..-86399999",
            "whole 110",
        ),
        ("no times at all", FLUSH, "10 a server 1<t -1000000000000..-1000000000000", "whole 110"),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_parent_that_is_named_and_absent_keeps_a_trace_open() {
    check(&[
        ("until it comes", FLUSH, "10 a inner 2<1 1..2\n 500 a server 1<t 0..490", "whole 600"),
        ("until the deadline", FLUSH, "10 a server 2<1 1..2", "orphans 2 10000 inconclusive"),
        (
            "unless it is declared",
            "settle: {flush: 100ms, absent: [a]}",
            "10 a server 2<1 1..2",
            "whole 110",
        ),
        (
            "and what is declared enters a service, not what is inside of it",
            "settle: {flush: 100ms, timeout: 10s, absent: [a]}",
            "10 a inner 2<1 1..2",
            "orphans 2 10000 inconclusive",
        ),
        (
            "nor what says that its parent is local",
            "settle: {flush: 100ms, timeout: 10s, absent: [a]}",
            "10 a server 2<1 1..2 local",
            "orphans 2 10000 inconclusive",
        ),
        (
            "or a message whose parent comes in the same message",
            FLUSH,
            "10 a inner 3<2 1..2
             10 a inner 2<1 1..2
             10 a server 1<t 0..3",
            "whole 110",
        ),
        (
            "that a circle names nobody absent",
            FLUSH,
            "10 a inner 2<1 1..2
             10 a inner 1<2 1..2
             10 a inner 3<3 1..2",
            "whole 110",
        ),
    ])
    .await;
}

const CALLS: &[Case] = &[
    (
        "an unknown peer is waited for six seconds from when the call came",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b",
        "whole 6010",
    ),
    (
        "its other side closes it",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b\n 20 b server 3<2 2..7",
        "whole 120",
    ),
    (
        "whichever comes first",
        FLUSH,
        "10 b server 3<2 2..7\n 20 a server 1<t 0..9\n 20 a client 2<1 1..8 to=b",
        "whole 120",
    ),
    (
        "once one came, the others of this peer will come too",
        FLUSH,
        "10 a server 1<t 0..9
             10 a client 2<1 1..3 to=b
             10 a client 4<1 3..5 to=b
             20 b server 3<2 2..3",
        "calls 4 10000 inconclusive",
    ),
    (
        "a database call has none",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=db db",
        "whole 110",
    ),
    (
        "after an error it may not exist",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b error",
        "whole 110",
    ),
    (
        "what is declared to send nothing is not waited for",
        "settle: {flush: 100ms, absent: [b]}",
        "10 a server 1<t 0..9\n 10 a client 2<1 1..8 to=b",
        "whole 110",
    ),
    (
        "a consumer is the other side of a producer",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a producer 2<1 1..8 topic=x\n 20 b consumer 3<2 9..9",
        "whole 120",
    ),
    (
        "also one that is linked and no child",
        FLUSH,
        "10 a server 1<t 0..9\n 10 a producer 2<1 1..8 topic=x\n 20 b consumer 3<t 9..9 link=2",
        "whole 120",
    ),
    (
        "and was there before",
        FLUSH,
        "10 b consumer 3<t 9..9 link=2\n 20 a server 1<t 0..9\n 20 a producer 2<1 1..8 topic=x",
        "whole 120",
    ),
    (
        "a broker serves several destinations, each with its own consumers; a queue may be slow, so that they are waited for",
        FLUSH,
        "10 a server 1<t 0..9
             10 a producer 2<1 1..8 at=kafka topic=x
             10 a producer 4<1 1..8 at=kafka topic=y
             20 b consumer 3<2 9..9",
        "calls 4 10000 inconclusive",
    ),
    (
        "a call inside of a call to the same peer waits in its place",
        FLUSH,
        "10 a server 1<t 0..9
             10 a client 2<1 1..8 to=b
             10 a client 4<2 2..7 to=b
             20 b server 3<4 3..6",
        "whole 120",
    ),
    (
        "also where the outer one names another",
        FLUSH,
        "10 b server 3<4 3..6
             15 a client 4<2 2..7 at=b
             20 a client 2<1 1..8 to=sdk
             25 a server 1<t 0..9",
        "whole 125",
    ),
    (
        "looking up a name is not the call",
        FLUSH,
        "10 a server 1<t 0..9
             10 a client 2<1 1..8 to=b
             10 a client 4<2 1..2",
        "whole 6010",
    ),
];

#[tokio::test(start_paused = true)]
async fn a_call_is_open_until_its_other_side_comes() {
    check(CALLS).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_test_expects_is_waited_for() {
    let expect = "settle: {flush: 100ms, timeout: 10s, expect: [mailer, 'span[name=\"send\"]']}";
    check(&[
        (
            "nothing",
            expect,
            "10 a server 1<t 0..5",
            "expected mailer+span[name=\"send\"] 10000 inconclusive",
        ),
        (
            "half of it",
            expect,
            "10 a server 1<t 0..5\n 50 mailer server 2<t 1..2",
            "expected span[name=\"send\"] 10000 inconclusive",
        ),
        (
            "all of it, late",
            expect,
            "10 a! server 1<t 0..5\n 4000 mailer! inner 2<1 3998..3999 name=send",
            "whole 4100",
        ),
        (
            "and as late as it may be if its clock is not ours",
            expect,
            "10 a server 1<t 0..5\n 4000 mailer inner 2<1 3998..3999 name=send",
            "whole 9999",
        ),
        (
            "the first span may come as late as the timeout",
            expect,
            "9000 mailer! inner 2<t 8998..8999 name=send",
            "whole 9100",
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn where_nothing_comes_nothing_is_concluded_and_nobody_waits_long() {
    check(&[
        ("nothing is known", NOTHING, "", "NoTelemetry 12000 inconclusive"),
        ("declared", FLUSH, "", "NoTelemetry 6000 inconclusive"),
        ("declared as slow", "settle: {flush: 8s}", "", "NoTelemetry 16000 inconclusive"),
        ("the timeout is shorter", "settle: {timeout: 2s}", "", "NoTelemetry 2000 inconclusive"),
        (
            "the first one is late",
            "settle: {timeout: 30s}",
            "11000 a server 1<t 0..10",
            "whole 26000",
        ),
    ])
    .await;
}

#[tokio::test(start_paused = true)]
async fn what_presence_decides_is_not_waited_for() {
    let lines = "10 a server 1<t 0..5 name=cart
                 200 a inner 2<1 1..2 name=query
                 1000 a inner 3<1 1..3 name=query";
    // (the test, the result)
    let cases = [
        ("trace: ['count(span[name=\"query\"]) >= 1']", "NotWaited 200"),
        ("trace: ['count(span[name=\"query\"]) <= 1']", "NotWaited 1000 failed"),
        ("trace: ['count(span[name=\"query\"]) = 2']", "whole 3000"),
        ("trace: ['some span[name=\"cart\"]', 'some span[name=\"query\"]']", "NotWaited 200"),
        ("trace: ['no span[name=\"cart\"]', 'no span[name=\"other\"]']", "whole 3000 failed"),
        (
            "specs: [{selector: 'span[name=\"cart\"]', assertions: ['name = \"x\"']}]",
            "NotWaited 10 failed",
        ),
        ("trace: ['response.status = 200']", "NotWaited, NoTelemetry 0"),
        (
            "trace: ['some span[name=\"cart\"]']
  outputs: [{name: X, selector: 'span[name=\"cart\"]', value: name}]",
            "whole 3000",
        ),
    ];
    for (test, expected) in cases {
        let mut stage = Stage::new(lines);
        stage.test = format!("settle: {{flush: 2s, timeout: 10s}}\n  {test}");
        assert_eq!(stage.outcome().await, expected, "{test}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_system_that_was_told_to_flush_needs_no_quiet() {
    let slow = "10 a server 1<t 0..5\n 700 a inner 2<1 1..2";
    // (the test's waits, arrivals, how long the flush takes, the result)
    let cases = [
        (NOTHING, slow, 800, "whole 800"),
        (NOTHING, "10 a inner 2<1 1..2\n 700 a server 1<t 0..5", 800, "whole 800"),
        (NOTHING, "10 a inner 2<1 1..2", 800, "orphans 2, calls 7 1800 inconclusive"),
        (NOTHING, "10 a server 1<t 0..5\n 10 a client 2<1 1..4 to=b", 800, "whole 6010"),
        (NOTHING, "", 100, "NoTelemetry 1100 inconclusive"),
        ("settle: {timeout: 500ms}", slow, 800, "NotQuiet 500 inconclusive"),
    ];
    for (settle, lines, takes, expected) in cases {
        let mut stage = Stage::new(lines).test(settle);
        stage.drain = Some(Duration::from_millis(takes));
        let finished = stage.run().await;
        assert_eq!(stage::shown(&finished), expected, "{lines}");
        let is_drained = finished.outcome.settlement.is_some_and(|it| it.drained);
        assert_eq!(is_drained, takes != 800 || !expected.starts_with("NotQuiet"), "{lines}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_ends_with_its_own_time() {
    // (when the trigger responds, the run's timeout, the result, whether a reason names the timeout)
    let cases = [
        (0, 5000, "NotQuiet 5000 inconclusive", true),
        (0, 7000, "whole 6010", false),
        (3000, 1000, "NotAnswered, NoTelemetry 0 inconclusive", true),
    ];
    for (answers_after, timeout, expected, is_said) in cases {
        let mut stage = Stage::new("10 a server 1<t 0..5").test(NOTHING);
        stage.answers_after = Duration::from_millis(answers_after);
        stage.timeout = Some(Duration::from_millis(timeout));
        let finished = stage.run().await;
        assert_eq!(stage::shown(&finished), expected);
        let says = finished.outcome.reasons.iter().any(|reason| reason.contains("own time was up"));
        assert_eq!(says, is_said, "{:?}", finished.outcome.reasons);
    }
}

#[tokio::test(start_paused = true)]
async fn spans_that_came_before_the_answer_have_waited_already() {
    let mut stage = Stage::new("10 a server 1<t 0..5").test(FLUSH);
    stage.arrivals[0].at = Duration::ZERO;
    assert_eq!(stage.outcome().await, "whole 100");
    // The quiet period starts when a span arrives, not when it is decoded.
    stage.answers_after = Duration::from_millis(60);
    assert_eq!(stage.outcome().await, "whole 100");
}

/// Returns the learned profile of a service, with the trigger's target as a peer that sends no spans.
fn learned(service: &str, known: LearnedService) -> LearnedProfile {
    let leaves = [("shop".to_owned(), 3)].into();
    let trigger = LearnedService { leaves, ..LearnedService::default() };
    let services = [(service.to_owned(), known), ("qualitytrace".to_owned(), trigger)];
    LearnedProfile { services: services.into(), ..LearnedProfile::default() }
}
