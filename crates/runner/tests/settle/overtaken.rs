//! Spans that arrive after the verdict.

use std::time::Duration;

use model::Verdict;
use tokio::time::sleep;

use crate::{
    FLUSH,
    stage::{Stage, shown},
};

/// Formats how the verdict changes while a run is watched for this many milliseconds after it.
async fn watched(lines: &str, claim: &str, ms: u64) -> String {
    let mut stage = Stage::new(lines);
    stage.test = format!("{FLUSH}\n  trace: ['{claim}']");
    let finished = stage.run().await;
    let settled = shown(&finished);
    let watch = finished.watch.expect("a trace was asked for");
    // The clock is paused: the time of the watch passes at once.
    let watched = watch.until(sleep(Duration::from_millis(ms))).await;
    let overtaken = watched.overtaken.map_or_else(String::new, |overtaken| {
        format!(
            "; {} by {} after {} with {} spans",
            overtaken.verdict.as_str(),
            overtaken.service.unwrap_or_default(),
            overtaken.after_ns / 1_000_000,
            overtaken.spans
        )
    });
    let services = watched.seen.services.iter().filter(|(name, _)| *name != "qualitytrace");
    let delays = services.map(|(name, service)| {
        let delays: Vec<_> =
            service.delays_ns.iter().map(|d| (d / 1_000_000).to_string()).collect();
        let late = match service.late_ns / 1_000_000 {
            0 => String::new(),
            late => format!(" late {late}"),
        };
        format!("; {name} {}{late}", delays.join("+"))
    });
    format!("{settled}{overtaken}{}", delays.collect::<String>())
}

#[tokio::test(start_paused = true)]
async fn a_late_span_that_changes_the_verdict_overtakes_it() {
    let late = "10 a server 1<t 0..9 name=x\n 600 a inner 2<1 1..9 name=x";
    let twice = "10 a server 1<t 0..9\n 600 a inner 2<1 1..9 name=x\n 700 a inner 3<2 1..9 name=y";
    let cases = [
        (
            "it differs",
            late,
            "count(span[name=\"x\"]) = 1",
            1000,
            "whole 110; failed by a after 490 with 1 spans; a 591 late 590",
        ),
        ("it is the same", late, "count(span[name=\"x\"]) <= 3", 1000, "whole 110; a 591"),
        ("nobody listens any more", late, "count(span[name=\"x\"]) = 1", 400, "whole 110"),
        ("it was final", late, "count(span[name=\"x\"]) >= 1", 1000, "NotWaited 10; a 591"),
        (
            "what comes then makes it right again",
            twice,
            "count(span[name=\"x\"]) = count(span[name=\"y\"])",
            1000,
            "whole 110; a 691",
        ),
        (
            "it came too late to be conclusive",
            "10 a inner 2<1 1..9 name=x\n 10500 a server 1<t 0..9",
            "count(span[name=\"x\"]) = 1",
            1000,
            "orphans 2 10000 inconclusive; passed by a after 500 with 1 spans; a 10491 late 10490",
        ),
        (
            "nothing had come",
            "7000 a server 1<t 0..9",
            "count(span[name=\"x\"]) = 1",
            2000,
            "NoTelemetry 6000 inconclusive; failed by a after 1000 with 1 spans; a 6991 late 7000",
        ),
        (
            "a repeated span is no news",
            "10 a server 1<t 0..9\n 600 a server 1<t 0..9",
            "no span[name=\"x\"]",
            1000,
            "whole 110",
        ),
    ];
    for (name, lines, claim, ms, expected) in cases {
        assert_eq!(watched(lines, claim, ms).await, expected, "{name}");
    }
}

#[tokio::test(start_paused = true)]
async fn the_trace_that_was_judged_stays_as_it_was() {
    let mut stage = Stage::new("10 a server 1<t 0..9\n 600 a inner 2<1 1..9");
    stage.test = format!("{FLUSH}\n  trace: ['count(span[service.name=\"a\"]) = 1']");
    let finished = stage.run().await;
    let (trace, watch) = (finished.trace.expect("kept"), finished.watch.expect("listens"));
    // The watch ends after the late span, by the paused clock.
    let watched = watch.until(sleep(Duration::from_secs(1))).await;
    assert_eq!(watched.overtaken.map(|it| it.verdict), Some(Verdict::Failed));
    assert_eq!(trace.len(), 2, "the trigger's span and one of the system");
}

/// A span that ended late and was sent at once has no delay; the next run waits for it, whatever the profile contains.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_overtaken_makes_the_next_one_wait() {
    let mut stage = Stage::new("10 a server 1<t 0..9\n 600 a inner 2<1 1..599 name=x");
    stage.test = format!("{FLUSH}\n  trace: ['no span[name=\"x\"]']");
    let first = stage.run().await;
    assert_eq!(shown(&first), "whole 110");
    // The watch ends after the late span, by the paused clock.
    let watched = first.watch.expect("listens").until(sleep(Duration::from_secs(1))).await;
    assert_eq!(watched.overtaken.map(|it| it.verdict), Some(Verdict::Failed));
    stage.learned.observe(&watched.seen);
    assert_eq!(shown(&stage.run().await), "NotWaited 600 failed");
}
