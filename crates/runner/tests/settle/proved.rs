//! Spans that other processes receive too: absence counts up to what is proved.

use crate::{
    FLUSH,
    stage::{Stage, shown},
};

#[tokio::test(start_paused = true)]
async fn absence_of_pushed_spans_counts_up_to_the_last_proof() {
    let of = |lines: &str| format!("10 a server 1<t 0..5\n{lines}");
    let never = "unproved: the bus of the servers gave no proof in time 10000 inconclusive";
    let cases = [
        ("a proof that began too early", of("40 proved 30\n 200 proved 109"), never),
        ("one that began late enough", of("40 proved 30\n 200 proved 110"), "whole 200"),
        ("one that comes long after it began", of("900 proved 120"), "whole 900"),
        ("a later one that began earlier", of("150 proved 120\n 200 proved 30"), "whole 150"),
        (
            "spans that come before the proof",
            of("150 proved 60\n 300 a inner 2<1 1..2\n 301 proved 290\n 2000 proved 1900"),
            "whole 2000",
        ),
        (
            "a doubt that stays",
            of("40 doubted no marker\n 9000 doubted still none"),
            "unproved: still none 10000 inconclusive",
        ),
        ("a doubt that a proof removes", of("40 doubted no marker\n 300 proved 290"), "whole 300"),
        (
            "a doubt that lasts is not waited for",
            of("40 doubted-for-good the stream is new"),
            "unproved: the stream is new 110 inconclusive",
        ),
        (
            "and no proof removes it",
            of("40 doubted-for-good the stream is new\n 45 proved 44\n 50 doubted other"),
            "unproved: the stream is new 110 inconclusive",
        ),
        (
            "no span at all, and the wait is proved",
            "6100 proved 6050".to_owned(),
            "NoTelemetry 6100 inconclusive",
        ),
    ];
    for (name, lines, expected) in cases {
        let outcome = Stage::new(&lines).test(FLUSH).outcome().await;
        assert_eq!(outcome, expected, "{name}");
    }
}

/// What only a store shows does not depend on what is pushed here.
#[tokio::test(start_paused = true)]
async fn a_trace_that_only_a_store_shows_needs_no_proof() {
    let lines = "10 a server 1<t 0..5 from=store\n 40 doubted no marker\n 200 covered 150";
    assert_eq!(Stage::new(lines).test(FLUSH).outcome().await, "whole 200");
}

/// Present spans decide without a proof.
#[tokio::test(start_paused = true)]
async fn presence_needs_no_proof() {
    let mut stage = Stage::new("10 a server 1<t 0..5\n 40 doubted no marker");
    stage.test = "trace: ['some span[service=\"a\"]']".to_owned();
    assert_eq!(shown(&stage.run().await), "NotWaited 10");
}
