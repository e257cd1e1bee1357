//! Traces whose ids other programs create (`traceid` triggers): every server on the bus knows which of them runs wait for.

use anyhow::{Result, ensure};
use bench::parts::{Database, NatsCluster};
use serde_json::{Value, json};

use crate::{ENDED_MAX, Member, judged, send_span, serve, start};

const ROOT: (&str, &str, &str) = ("00000000000000a1", "", "checkout");
const CHILD: (&str, &str, &str) = ("00000000000000a2", "00000000000000a1", "delete customer");

/// Applies a test that waits for a trace id.
async fn apply(on: &Member, trace: &str, flush_ms: u64) -> Result<()> {
    let document = format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger: {{type: traceid, traceid: {{id: {trace}}}}}
  settle: {{timeout: 20s, flush: {flush_ms}ms}}
  trace:
    - {{name: nothing is deleted, claim: 'count(span[name=\"delete customer\"]) = 0'}}
    - {{name: one is deleted, claim: 'count(span[name=\"delete customer\"]) = 1'}}
    - {{name: there is a checkout, claim: 'some span[name=\"checkout\"]'}}
"
    );
    on.api.apply(&document).await.map(drop)
}

fn external(number: u8) -> String {
    format!("{number:02x}").repeat(16)
}

fn unsettled(run: &Value) -> &Value {
    &run["outcome"]["settlement"]["unsettled"]
}

#[tokio::test(flavor = "multi_thread")]
async fn an_external_trace_is_judged_by_the_spans_of_all_servers() -> Result<()> {
    let database = Database::create("bus_external").await?;
    let nats = NatsCluster::start(1, true).await?;
    let (one, other) = (serve(&database, &nats, "").await?, serve(&database, &nats, "").await?);
    for number in 1..9 {
        let trace = external(number);
        apply(&one, &trace, 400).await?;
        let (id, shown) = start(if number % 2 == 0 { &one } else { &other }).await?;
        assert_eq!(shown, trace);
        let is_deleted = number % 4 < 2;
        if is_deleted {
            assert_eq!(send_span(&one, &trace, CHILD).await?, 200);
        }
        assert_eq!(send_span(&other, &trace, ROOT).await?, 200);
        let (verdicts, run) = judged(&one, &id).await?;
        let expected = if is_deleted { crate::ONE_DELETED } else { crate::NOTHING_DELETED };
        assert_eq!(verdicts, expected, "{run:#}");
        assert_eq!(unsettled(&run), &json!([]), "{run:#}");
    }
    // Two runs on any servers wait for one trace, and both get all of it; a server that starts meanwhile knows of them.
    let trace = external(9);
    apply(&one, &trace, 3000).await?;
    let (first, _) = start(&one).await?;
    let (second, _) = start(&other).await?;
    let late = serve(&database, &nats, "").await?;
    assert_eq!(send_span(&late, &trace, CHILD).await?, 200);
    assert_eq!(send_span(&one, &trace, ROOT).await?, 200);
    for id in [first, second] {
        let (verdicts, run) = judged(&late, &id).await?;
        assert_eq!(verdicts, crate::ONE_DELETED, "{run:#}");
        assert_eq!(unsettled(&run), &json!([]), "{run:#}");
    }
    for member in [one, other, late] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

/// A server that hangs may receive spans of the trace later, and discard them: nothing follows from absence.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_does_not_confirm_an_external_trace_is_another_server() -> Result<()> {
    let database = Database::create("bus_silent").await?;
    let nats = NatsCluster::start(1, true).await?;
    let (one, silent) = (serve(&database, &nats, "").await?, serve(&database, &nats, "").await?);
    let trace = external(1);
    apply(&one, &trace, 400).await?;
    silent.server.signal("-STOP").await?;
    let (id, _) = start(&one).await?;
    silent.server.signal("-CONT").await?;
    assert_eq!(send_span(&one, &trace, ROOT).await?, 200);
    let (verdicts, run) = judged(&one, &id).await?;
    assert_eq!(verdicts, ["inconclusive", "inconclusive", "passed"], "{run:#}");
    let reasons = unsettled(&run).to_string();
    assert!(reasons.contains("otherServers"), "{reasons} within {ENDED_MAX:?}");
    for member in [one, silent] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}
