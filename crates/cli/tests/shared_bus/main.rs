//! Servers that share spans over NATS, as `docs/server.md` specifies: a run is judged by all spans of its trace, whichever server
//! received them, and absence counts.

mod active;
mod external;
mod interrupted;
mod roles;

use std::{path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use bench::parts::{Api, Database, NatsCluster, Server, Target};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long a run may take to end.
const ENDED_MAX: Duration = Duration::from_secs(60);

/// A server on the bus.
struct Member {
    server: Server,
    api: Api,
}

async fn serve(database: &Database, nats: &NatsCluster, more: &str) -> Result<Member> {
    serve_with(database, &format!("{}{more}", nats.section(""))).await
}

async fn serve_with(database: &Database, more: &str) -> Result<Member> {
    let configuration = format!("{}\n{more}", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    Ok(Member { api: Api::new(&server.api)?, server })
}

/// Applies a test of which two claims depend on a span that another server may receive.
async fn apply(on: &Member, target: &Target, flush_ms: u64) -> Result<()> {
    let document = format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}/cart'}}}}
  settle: {{timeout: 20s, flush: {flush_ms}ms}}
  trace:
    - {{name: nothing is deleted, claim: 'count(span[name=\"delete customer\"]) = 0'}}
    - {{name: one is deleted, claim: 'count(span[name=\"delete customer\"]) = 1'}}
    - {{name: the cart is looked at, claim: 'some span[name=\"GET /cart\"]'}}
",
        target.url
    );
    on.api.apply(&document).await.map(drop)
}

/// Starts a run, and returns its id and its trace id.
async fn start(on: &Member) -> Result<(String, String)> {
    let id = on.api.start("cart", &json!({})).await?;
    let began = Instant::now();
    loop {
        if let Some(trace) = on.api.run(&id).await?["traceId"].as_str() {
            return Ok((id, trace.to_owned()));
        }
        ensure!(began.elapsed() < ENDED_MAX, "the run has no trace");
        sleep(Duration::from_millis(10)).await;
    }
}

/// Returns the verdicts of the three claims, and the run.
async fn judged(on: &Member, id: &str) -> Result<([String; 3], Value)> {
    let run = on.api.ended(id, ENDED_MAX).await?;
    let claims = &run["outcome"]["judgement"]["claims"];
    let verdict = |at: usize| claims[at]["verdict"].as_str().unwrap_or("none").to_owned();
    Ok(([verdict(0), verdict(1), verdict(2)], run))
}

/// Sends a span of the trace, and returns the status of the response.
async fn send(to: &Member, trace: &str) -> Result<u16> {
    send_span(to, trace, ("00000000000000aa", "", "delete customer")).await
}

/// Sends a span with its id, its parent and its name, and returns the status of the response.
async fn send_span(
    to: &Member,
    trace: &str,
    (id, parent, name): (&str, &str, &str),
) -> Result<u16> {
    let span = json!({
        "traceId": trace, "spanId": id, "parentSpanId": parent, "name": name, "kind": 1,
        "startTimeUnixNano": "1800000000000000000", "endTimeUnixNano": "1800000000000000001",
    });
    let body = json!({"resourceSpans": [{"scopeSpans": [{"spans": [span]}]}]});
    let url = format!("http://127.0.0.1:{}/v1/traces", to.server.otlp_grpc);
    Ok(reqwest::Client::new().post(url).json(&body).send().await?.status().as_u16())
}

const NOTHING_DELETED: [&str; 3] = ["passed", "failed", "passed"];
const ONE_DELETED: [&str; 3] = ["failed", "passed", "passed"];

#[tokio::test(flavor = "multi_thread")]
async fn both_servers_judge_by_all_spans_and_absence_counts() -> Result<()> {
    let database = Database::create("shared_bus").await?;
    let nats = NatsCluster::start(1, false).await?;
    let (one, other) = (serve(&database, &nats, "").await?, serve(&database, &nats, "").await?);
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 400).await?;
    let mut runs = Vec::new();
    for number in 0..20 {
        let starter = if number % 2 == 0 { &one } else { &other };
        let (id, trace) = start(starter).await?;
        let is_deleted = number % 4 < 2;
        if is_deleted {
            assert_eq!(send(&other, &trace).await?, 200);
        }
        runs.push((id, is_deleted));
    }
    for (number, (id, is_deleted)) in runs.iter().enumerate() {
        // Any server shows any run.
        let reader = if number % 3 == 0 { &one } else { &other };
        let (verdicts, run) = judged(reader, id).await?;
        let expected = if *is_deleted { ONE_DELETED } else { NOTHING_DELETED };
        assert_eq!(verdicts, expected, "{run:#}");
    }
    let workers = database
        .count("select count(distinct slot) from servers where counts_until > clock_timestamp()")
        .await?;
    assert_eq!(workers, 2, "each has a slot of its own");
    for member in [one, other] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

/// The short form of `cargo xtask prove bus`.
#[tokio::test(flavor = "multi_thread")]
async fn every_verdict_is_right_whichever_server_receives_which_span() -> Result<()> {
    let result = bench::shared::play(Path::new(BINARY), 60, 3).await?;
    assert!(result.is_right() && result.runs == 60, "{result:?}");
    Ok(())
}

/// The owner of a run is killed after its trigger; another server goes on with it, with all spans, and decides it.
#[tokio::test(flavor = "multi_thread")]
async fn a_run_whose_owner_is_killed_is_decided_by_another_server() -> Result<()> {
    let database = Database::create("bus_resumed").await?;
    let nats = NatsCluster::start(1, true).await?;
    let first = serve(&database, &nats, "workers: {lease: 3s}\n").await?;
    let target = Target::start(Some(first.server.otlp_grpc)).await?;
    apply(&first, &target, 4000).await?;
    let (id, trace) = start(&first).await?;
    let second = serve(&database, &nats, "workers: {lease: 3s}\n").await?;
    // The exports of the target to the first server take some time, and this test has no other sign of them.
    sleep(Duration::from_millis(500)).await;
    assert_eq!(send(&second, &trace).await?, 200);
    first.server.kill().await?;
    let (verdicts, run) = judged(&second, &id).await?;
    // Spans that were exported to the killed server are there, and one that came later; that there is no second one counts.
    assert_eq!(verdicts, ONE_DELETED, "{run:#}");
    assert_eq!(run["outcome"]["settlement"]["unsettled"], json!([]), "{run:#}");
    ensure!(second.server.terminate().await? == Some(0), "it ended in order");
    database.remove().await
}

/// Without NATS spans are refused, and runs wait; with it, they go on.
#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_its_nats_is_not_ready_and_refuses_spans() -> Result<()> {
    let database = Database::create("bus_away").await?;
    let mut nats = NatsCluster::start(1, true).await?;
    let one = serve(&database, &nats, "").await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 300).await?;
    let (id, trace) = start(&one).await?;
    assert_eq!(judged(&one, &id).await?.0, NOTHING_DELETED);
    nats.kill(0).await?;
    let ready = async || {
        let url = format!("{}/readyz", one.server.api);
        let answer = reqwest::get(url).await?;
        anyhow::Ok((answer.status().as_u16(), answer.text().await?))
    };
    let began = Instant::now();
    while ready().await?.0 == 200 {
        ensure!(began.elapsed() < ENDED_MAX, "it knows that NATS is away");
        sleep(Duration::from_millis(50)).await;
    }
    assert!(ready().await?.1.contains("NATS"), "{:?}", ready().await?);
    assert_eq!(send(&one, &trace).await?, 503);
    nats.start_node(0)?;
    nats.healthy().await?;
    let began = Instant::now();
    while ready().await?.0 != 200 {
        ensure!(began.elapsed() < ENDED_MAX, "NATS is back");
        sleep(Duration::from_millis(50)).await;
    }
    let (id, _) = start(&one).await?;
    let (verdicts, run) = judged(&one, &id).await?;
    assert_eq!(verdicts, NOTHING_DELETED, "{run:#}");
    one.server.terminate().await?.context("it ended in order")?;
    database.remove().await
}

/// Two NATS are two buses, though both have the same prefix.
#[tokio::test(flavor = "multi_thread")]
async fn servers_on_different_nats_are_other_servers() -> Result<()> {
    let database = Database::create("two_buses").await?;
    let (nats, other_nats) =
        (NatsCluster::start(1, false).await?, NatsCluster::start(1, false).await?);
    let one = serve(&database, &nats, "").await?;
    let other = serve(&database, &other_nats, "").await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 400).await?;
    let (id, trace) = start(&one).await?;
    assert_eq!(send(&other, &trace).await?, 200);
    let (verdicts, run) = judged(&one, &id).await?;
    assert!(!verdicts[..2].contains(&"passed".to_owned()), "nothing follows from absence: {run:#}");
    for member in [one, other] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

/// What a server refuses that has lost NATS, another one cannot take for absent.
#[tokio::test(flavor = "multi_thread")]
async fn what_a_server_without_nats_refuses_is_a_doubt_elsewhere() -> Result<()> {
    let database = Database::create("cut_bus").await?;
    let nats = NatsCluster::start(1, true).await?;
    let node: std::net::SocketAddr = nats.urls().trim_start_matches("nats://").parse()?;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let by_path =
        format!("nats: {{endpoint: 'nats://{}', synced: true}}\n", listener.local_addr()?);
    let mut path = tokio::task::JoinSet::new();
    path.spawn(async move {
        let mut connections = tokio::task::JoinSet::new();
        while let Ok((mut client, _)) = listener.accept().await {
            connections.spawn(async move {
                let mut server = tokio::net::TcpStream::connect(node).await?;
                tokio::io::copy_bidirectional(&mut client, &mut server).await
            });
        }
    });
    let one = serve(&database, &nats, "").await?;
    let other = serve_with(&database, &by_path).await?;
    let target = Target::start(Some(one.server.otlp_grpc)).await?;
    apply(&one, &target, 6000).await?;
    // The owner of the run has to be the server that keeps NATS: the other one leases nothing without it.
    path.shutdown().await;
    let began = Instant::now();
    while reqwest::get(format!("{}/readyz", other.server.api)).await?.status() == 200 {
        ensure!(began.elapsed() < ENDED_MAX, "it knows that NATS is away");
        sleep(Duration::from_millis(50)).await;
    }
    let (id, trace) = start(&one).await?;
    assert_eq!(send(&other, &trace).await?, 503);
    let (verdicts, run) = judged(&one, &id).await?;
    assert_eq!(verdicts, ["inconclusive", "inconclusive", "passed"], "{run:#}");
    let unsettled = run["outcome"]["settlement"]["unsettled"].to_string();
    assert!(unsettled.contains("otherServers"), "{unsettled}");
    one.server.terminate().await?.context("it ended in order")?;
    other.server.terminate().await?.context("it ended in order")?;
    database.remove().await
}
