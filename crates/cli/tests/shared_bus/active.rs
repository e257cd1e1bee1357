//! What people see of a run while its spans arrive, as the API document specifies: whichever process executes the run.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use bench::parts::{Database, NatsCluster, Target};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::{ENDED_MAX, Member, NOTHING_DELETED, apply, judged, send_span, serve, start};

/// A span of the trace, which the test does not expect.
const SPAN: &str = "00000000000000bb";

/// Reads the stream of a run until an event `gathering` with this many spans, and returns the settlement in it.
async fn gathering(api: &Member, run: &str, spans: u64) -> Result<Value> {
    let mut response = stream(api, &format!("runs/{run}/events?gathering=true")).await?;
    let mut unread = String::new();
    while let Some(chunk) = response.chunk().await? {
        unread.push_str(std::str::from_utf8(&chunk)?);
        while let Some((event, rest)) = unread.split_once("\n\n") {
            if event.starts_with("event: gathering") {
                ensure!(!event.contains("\nid:"), "it has no number: {event}");
                let (_, data) = event.split_once("data: ").context("data")?;
                let settlement: Value = serde_json::from_str(data)?;
                if settlement["spans"].as_u64() >= Some(spans) {
                    return Ok(settlement);
                }
            }
            unread = rest.to_owned();
        }
    }
    anyhow::bail!("the stream ended without {spans} spans: {unread}")
}

/// Opens a stream of events.
async fn stream(api: &Member, path: &str) -> Result<reqwest::Response> {
    let request = reqwest::Client::new().get(format!("{}/api/v1/{path}", api.server.api));
    Ok(request.header("accept", "text/event-stream").send().await?.error_for_status()?)
}

/// Reads the stream of a project until it states that its runs have changed.
async fn changed(changes: &mut reqwest::Response) -> Result<()> {
    let mut read = String::new();
    while !read.contains("event: runs\n") {
        let chunk = timeout(ENDED_MAX, changes.chunk()).await??.context("the stream ended")?;
        read.push_str(std::str::from_utf8(&chunk)?);
    }
    Ok(())
}

/// Looks at a run by this API while it collects the spans that are sent to that receiver.
async fn look_on(api: &Member, ingest: &Member) -> Result<()> {
    let target = Target::start(Some(ingest.server.otlp_grpc)).await?;
    apply(api, &target, 5_000).await?;
    let (mut changes, mut of_others) =
        (stream(api, "events").await?, stream(api, "events?project=other").await?);
    let (id, trace) = start(api).await?;
    changed(&mut changes).await?;
    assert_eq!(send_span(ingest, &trace, (SPAN, "", "look around")).await?, 200);
    let settlement = timeout(ENDED_MAX, gathering(api, &id, 2)).await??;
    assert_eq!(settlement["unsettled"], json!(["notQuiet"]), "{settlement:#}");
    let arrived: u64 = settlement["processes"]
        .as_array()
        .context("processes")?
        .iter()
        .flat_map(|process| process["arrivals"]["spans"].as_array().into_iter().flatten())
        .filter_map(Value::as_u64)
        .sum();
    assert_eq!(Some(arrived), settlement["spans"].as_u64(), "{settlement:#}");

    let path = format!("{}/api/v1/runs/{id}", api.server.api);
    let columns = reqwest::get(format!("{path}/trace/columns")).await?;
    assert_eq!((columns.status().as_u16(), columns.headers().get("etag")), (200, None));
    assert!(columns.bytes().await?.starts_with(b"QTCO"));
    let span: Value = reqwest::get(format!("{path}/trace/spans/{SPAN}")).await?.json().await?;
    assert_eq!(span["spans"][0]["name"], "look around", "{span:#}");
    let selector = "trace/select?q=span%5Bname%3D%22look%20around%22%5D";
    let selected: Value = reqwest::get(format!("{path}/{selector}")).await?.json().await?;
    assert_eq!(selected["spans"], json!([SPAN]), "{selected:#}");
    for (of_others, status) in [
        ("trace?project=other", 404),
        ("trace/columns?project=other", 404),
        ("events?gathering=true", 406),
        ("../../events", 406),
    ] {
        let refused = reqwest::get(format!("{path}/{of_others}")).await?;
        assert_eq!(refused.status().as_u16(), status, "{of_others}");
    }
    assert!(api.api.run(&id).await?["verdict"].is_null(), "it was looked at while it was active");

    changed(&mut changes).await?;
    let (verdicts, run) = judged(api, &id).await?;
    let nothing = timeout(Duration::from_millis(50), changed(&mut of_others)).await;
    assert!(nothing.is_err(), "a client hears of its own project alone");
    assert_eq!(verdicts, NOTHING_DELETED, "{run:#}");
    let columns = reqwest::get(format!("{path}/trace/columns")).await?;
    assert!(columns.headers().contains_key("etag"), "it is stored, and does not change any more");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_looked_at_while_its_spans_arrive_whichever_process_has_it() -> Result<()> {
    let database = Database::create("bus_active").await?;
    let nats = NatsCluster::start(1, true).await?;
    let (api, ingest, worker) = (
        serve(&database, &nats, "server: {roles: [api]}\n").await?,
        serve(&database, &nats, "server: {roles: [ingest]}\n").await?,
        serve(&database, &nats, "server: {roles: [worker]}\n").await?,
    );
    look_on(&api, &ingest).await?;
    for member in [api, ingest, worker] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    let all = serve(&database, &nats, "").await?;
    look_on(&all, &all).await?;
    ensure!(all.server.terminate().await? == Some(0), "it ended in order");
    database.remove().await
}
