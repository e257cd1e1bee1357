//! Spans after the provisional verdict count, are reported and learned from; and rejected spans.

use std::time::Duration;

use anyhow::{Result, ensure};
use bench::parts::{free_port, unix_nanos};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::stand::{Answer, Answers, Stand, finished, outcomes, plain, traced};

/// Exports a span named `work` below the request for this path, as a service would that ended it now.
async fn work(otlp: &str, answers: &Answers, path: &str, span: &str) -> Result<()> {
    let (trace, parent) = answers.parent(path)?;
    let now = unix_nanos();
    let service = json!({"key": "service.name", "value": {"stringValue": "worker"}});
    let span = json!({
        "traceId": trace, "spanId": span, "parentSpanId": parent, "name": "work", "kind": 2,
        "startTimeUnixNano": (now - 1_000_000).to_string(), "endTimeUnixNano": now.to_string(),
    });
    let export = json!({"resourceSpans": [{"resource": {"attributes": [service]}, "scopeSpans": [{"spans": [span]}]}]});
    let request = reqwest::Client::new().post(format!("http://{otlp}/v1/traces")).json(&export);
    ensure!(request.send().await?.status().is_success());
    Ok(())
}

#[tokio::test]
async fn a_verdict_that_a_late_span_changes_is_superseded() -> Result<()> {
    let answers = Answers::start(|path, _| {
        let after = if path == "/slow" { Duration::from_secs(3) } else { Duration::ZERO };
        Answer { after, ..Answer::status(200) }
    })
    .await?;
    let stand = Stand::new()?;
    stand.write("t/a.yaml", &traced("early", &format!("{}/early", answers.url), "flush: 100ms"))?;
    stand.write("t/b.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
    let otlp = format!("127.0.0.1:{}", free_port()?);
    let run = ["run", "t", "--otlp", &otlp, "--report", "json", "--report", "json=out.json"];
    let child = stand.start(&run)?;
    answers.wait_for("/early").await?;
    work(&otlp, &answers, "/early", "00000000000000a1").await?;
    // The gap between the two spans is learned, and has to be at least a second.
    sleep(Duration::from_millis(1200)).await;
    work(&otlp, &answers, "/early", "00000000000000a2").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(1), "the final verdict counts: {finished:?}");
    let words = "early: superseded: passed at first, failed now: 1 span came";
    assert!(finished.err.contains(words), "{}", finished.err);
    let told = outcomes(&finished)?;
    assert_eq!((&told[0]["verdict"], &told[0]["provisional"]), (&json!("passed"), &json!(true)));
    let last = &told[2];
    assert_eq!(
        (&last["test"], &last["verdict"]),
        (&json!("early"), &json!("failed")),
        "told again"
    );
    let report = stand.read("out.json")?;
    let first: Value = serde_json::from_str(report.lines().next().unwrap_or_default())?;
    let outcome = &first["outcome"];
    assert_eq!(outcome["verdict"], "failed", "{report}");
    assert_eq!(outcome["superseded"]["verdict"], "passed", "{report}");
    assert_eq!(outcome["superseded"]["service"], "worker", "{report}");
    let learned: Value = serde_json::from_str(&stand.read(".qualitytrace/learned.json")?)?;
    assert!(learned["learned"]["services"]["worker"].is_object(), "{learned}");
    let gaps = &learned["learned"]["tests"]["early"]["gapsMs"];
    assert!(gaps[0].as_u64().is_some_and(|gap| gap >= 1000), "{learned}");
    Ok(())
}

#[tokio::test]
async fn nothing_is_concluded_from_the_absence_of_what_was_refused() -> Result<()> {
    for (kind, code) in [(None, 0), (Some("text/plain"), 3), (Some("application/json"), 3)] {
        let answers = Answers::start(|_, _| Answer::status(200)).await?;
        let stand = Stand::new()?;
        stand.write("a.yaml", &traced("a", &format!("{}/a", answers.url), "flush: 500ms"))?;
        let otlp = format!("127.0.0.1:{}", free_port()?);
        let child = stand.start(&["run", "a.yaml", "--otlp", &otlp, "--report", "json"])?;
        answers.wait_for("/a").await?;
        work(&otlp, &answers, "/a", "00000000000000a1").await?;
        if let Some(kind) = kind {
            // An unreadable export of another service: it may contain a second `work`.
            let request = reqwest::Client::new().post(format!("http://{otlp}/v1/traces"));
            let request = request.header("content-type", kind).body("{\"resourceSpans\":7}");
            ensure!(request.send().await?.status().is_client_error());
        }
        let finished = finished(child).await?;
        assert_eq!(finished.code, Some(code), "{kind:?}: {finished:?}");
    }
    Ok(())
}
