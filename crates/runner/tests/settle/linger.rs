//! From the provisional verdict to the final one.

use std::time::Duration;

use model::{LearnedProfile, LearnedTest, Verdict};
use tokio::time::Instant;

use crate::{
    FLUSH,
    stage::{Stage, shown},
};

/// Formats a run: its provisional verdict, when it is ready to be final, the final verdict, and what it learned.
async fn lingered(lines: &str, claim: &str, known: Option<LearnedTest>, end: u64) -> String {
    let mut stage = Stage::new(lines);
    stage.test = format!("id: buy\n  {FLUSH}\n  trace: ['{claim}']");
    stage.learned.tests.extend(known.map(|known| ("buy".to_owned(), known)));
    let began = Instant::now();
    let (finished, concluded, ready) = stage.conclude(Duration::from_millis(end)).await;
    let provisional = if finished.outcome.provisional { "provisional " } else { "" };
    let outcome = &concluded.outcome;
    assert!(!outcome.provisional);
    let superseded = outcome.superseded.as_ref().map_or_else(String::new, |it| {
        let after = it.after_ns.map_or(0, |after| after / 1_000_000);
        let service = it.service.as_deref().unwrap_or_default();
        format!(", was {} until {service} after {after} with {}", it.verdict.as_str(), it.spans)
    });
    let gap =
        concluded.seen.tests.get("buy").map_or_else(String::new, |test| {
            format!("; gap {:?} of {} runs", test.gaps_ms, test.runs)
        });
    // Rounds to ten milliseconds: timers of the paused clock are a little late.
    let ready = ready.duration_since(began).as_millis() / 10 * 10;
    format!(
        "{provisional}{}; final {ready} {}{superseded}{gap}",
        shown(&finished),
        outcome.verdict.as_str()
    )
}

fn runs(runs: u32, gaps_ms: &[u64]) -> Option<LearnedTest> {
    Some(LearnedTest { runs, gaps_ms: gaps_ms.to_vec() })
}

/// The name of a case, its spans, its claim, the learned profile of the test, when the command ends, and the result.
type Case =
    (&'static str, &'static str, &'static str, Option<(u32, &'static [u64])>, u64, &'static str);

const ONE: &str = "10 a server 1<t 0..9 name=x";
const LATE: &str = "10 a server 1<t 0..9 name=x\n 600 a inner 2<1 1..9 name=x";
const SLOW: &str = "10 a server 1<t 0..9 name=x\n 1900 a inner 2<1 1..9 name=x";
const ONCE: &str = "count(span[name=\"x\"]) = 1";

const CASES: &[Case] = &[
    (
        "nothing is known: a second",
        ONE,
        ONCE,
        None,
        0,
        "provisional whole 110; final 1010 passed; gap [10] of 1 runs",
    ),
    (
        "what comes meanwhile counts, and lingers as well",
        LATE,
        ONCE,
        None,
        0,
        "provisional whole 110; final 1600 failed, was passed until a after 490 with 1; gap [590] of 1 runs",
    ),
    (
        "what changes nothing is no news",
        LATE,
        "count(span[name=\"x\"]) <= 3",
        None,
        0,
        "provisional whole 110; final 1600 passed; gap [590] of 1 runs",
    ),
    (
        "what comes later is not seen",
        SLOW,
        ONCE,
        None,
        0,
        "provisional whole 110; final 1010 passed; gap [10] of 1 runs",
    ),
    (
        "unless others are waited for",
        SLOW,
        ONCE,
        None,
        1800,
        "provisional whole 110; final 1010 failed, was passed until a after 1790 with 1; gap [1890] of 1 runs",
    ),
    (
        "what presence decides is final",
        LATE,
        "count(span[name=\"x\"]) >= 1",
        None,
        0,
        "NotWaited 10; final 10 passed; gap [10] of 0 runs",
    ),
    (
        "so is what presence breaks",
        "10 a server 1<t 0..9 name=x error",
        "no span[status=\"error\"]",
        None,
        0,
        "NotWaited 10 failed; final 10 failed; gap [10] of 0 runs",
    ),
    (
        "three runs make it shorter",
        ONE,
        ONCE,
        Some((3, &[10, 12, 200])),
        0,
        "provisional whole 110; final 310 passed; gap [10] of 1 runs",
    ),
    (
        "never below the quiet",
        ONE,
        ONCE,
        Some((3, &[10, 12, 11])),
        0,
        "provisional whole 110; final 110 passed; gap [10] of 1 runs",
    ),
    (
        "two do not",
        ONE,
        ONCE,
        Some((2, &[10, 12])),
        0,
        "provisional whole 110; final 1010 passed; gap [10] of 1 runs",
    ),
    (
        "one that was longer counts at once",
        SLOW,
        ONCE,
        Some((0, &[1890])),
        0,
        "provisional whole 110; final 4730 failed, was passed until a after 1790 with 1; gap [1890] of 1 runs",
    ),
    (
        "the timeout of the test bounds it",
        ONE,
        ONCE,
        Some((3, &[60_000])),
        0,
        "provisional whole 110; final 10010 passed; gap [10] of 1 runs",
    ),
];

#[tokio::test(start_paused = true)]
async fn a_verdict_that_absence_decides_is_final_after_its_linger() {
    for (name, lines, claim, known, end, expected) in CASES {
        let known = known.and_then(|(count, gaps)| runs(count, gaps));
        assert_eq!(lingered(lines, claim, known, *end).await, *expected, "{name}");
    }
}
#[tokio::test(start_paused = true)]
async fn what_a_late_span_announces_is_waited_for() {
    let lines = "10 a server 1<t 0..9
         300 a client 2<1 300..320 to=b
         310 b server 3<2 301..319
         800 a client 4<1 800..820 to=b";
    let stage = Stage::new(lines).test(FLUSH);
    let (finished, concluded, _) = stage.conclude(Duration::ZERO).await;
    assert!(finished.outcome.provisional && finished.outcome.verdict == Verdict::Passed);
    let outcome = concluded.outcome;
    assert_eq!(outcome.verdict, Verdict::Inconclusive, "{outcome:#?}");
    assert_eq!(outcome.superseded.map(|it| it.verdict), Some(Verdict::Passed));
}

#[tokio::test(start_paused = true)]
async fn a_learned_quiet_is_no_shorter_than_the_gaps_of_the_test() {
    let services = ["a"].map(|name| {
        let delays_ns = vec![1_000_000; 3];
        let service = model::LearnedService { runs: 3, delays_ns, ..Default::default() };
        (name.to_owned(), service)
    });
    let mut stage = Stage::new(ONE);
    stage.test = "id: buy\n  trace: ['no span[name=\"never\"]']".to_owned();
    stage.learned = LearnedProfile {
        services: services.into(),
        tests: runs(3, &[700]).map(|known| ("buy".to_owned(), known)).into_iter().collect(),
        ..LearnedProfile::default()
    };
    assert_eq!(stage.outcome().await, "whole 710");
}
