//! Servers of which each runs a part, as `docs/server.md` specifies: API, ingest, workers.

use std::{path::Path, process::Command};

use anyhow::{Result, ensure};
use bench::parts::{Database, NatsCluster, Server, Target};
use serde_json::json;

use crate::{BINARY, Member, NOTHING_DELETED, ONE_DELETED, apply, judged, send, serve, start};

async fn serve_roles(database: &Database, nats: &NatsCluster, roles: &str) -> Result<Member> {
    serve(database, nats, &format!("server: {{roles: [{roles}]}}\n")).await
}

async fn status(member: &Member, path: &str) -> Result<u16> {
    Ok(reqwest::get(format!("{}{path}", member.server.api)).await?.status().as_u16())
}

#[tokio::test(flavor = "multi_thread")]
async fn each_role_may_run_in_a_process_of_its_own() -> Result<()> {
    let database = Database::create("bus_roles").await?;
    let nats = NatsCluster::start(1, true).await?;
    let api = serve_roles(&database, &nats, "api").await?;
    let (ingest, other_ingest) = (
        serve_roles(&database, &nats, "ingest").await?,
        serve_roles(&database, &nats, "ingest").await?,
    );
    let (worker, other_worker) = (
        serve_roles(&database, &nats, "worker").await?,
        serve_roles(&database, &nats, "api, worker").await?,
    );
    // Each opens only what its roles need.
    assert_eq!((api.server.otlp_grpc, worker.server.otlp_grpc), (0, 0));
    for (member, of_api) in [(&api, 200), (&ingest, 404), (&worker, 404), (&other_worker, 200)] {
        assert_eq!(status(member, "/api/v1/tests").await?, of_api);
        assert_eq!((status(member, "/readyz").await?, status(member, "/livez").await?), (200, 200));
    }
    let slots = database.count("select count(slot) from servers").await?;
    assert_eq!(slots, 2, "only workers have one");
    let target = Target::start(Some(ingest.server.otlp_grpc)).await?;
    apply(&api, &target, 400).await?;
    for number in 0..8 {
        let (id, trace) = start(if number % 2 == 0 { &api } else { &other_worker }).await?;
        let is_deleted = number % 4 < 2;
        if is_deleted {
            assert_eq!(send(&other_ingest, &trace).await?, 200);
        }
        let (verdicts, run) = judged(&api, &id).await?;
        let expected = if is_deleted { ONE_DELETED } else { NOTHING_DELETED };
        assert_eq!(verdicts, expected, "{run:#}");
        assert_eq!(run["outcome"]["settlement"]["unsettled"], json!([]), "{run:#}");
    }
    let mut metrics = String::new();
    for member in [&worker, &other_worker] {
        metrics += &reqwest::get(format!("{}/metrics", member.server.api)).await?.text().await?;
    }
    let proofs = "qualitytrace_bus_proof=\"proved\"";
    for name in [proofs, "qualitytrace_bus_lag", "qualitytrace_lease_duration_seconds_count"] {
        assert!(metrics.contains(name), "{name}: {metrics}");
    }
    // A worker has no receiver: the diagnosis of a silent system is by what all others have seen.
    let silent = Target::start(None).await?;
    apply(&api, &silent, 400).await?;
    let foreign = "ab".repeat(16);
    for expected in ["(2 of 2 servers that receive spans answered)", "1 other trace of"] {
        let (id, _) = start(&api).await?;
        let (_, run) = judged(&api, &id).await?;
        let diagnoses = run["outcome"]["diagnoses"].to_string();
        assert!(diagnoses.contains(expected), "{expected}: {run:#}");
        assert_eq!(send(&other_ingest, &foreign).await?, 200);
    }
    for member in [api, ingest, other_ingest, worker, other_worker] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

/// Any node with the API streams the events of any run, and its last event is the verdict.
#[tokio::test(flavor = "multi_thread")]
async fn a_node_without_workers_streams_the_events_of_runs() -> Result<()> {
    let database = Database::create("bus_events").await?;
    let nats = NatsCluster::start(1, true).await?;
    let api = serve_roles(&database, &nats, "api").await?;
    let rest = serve_roles(&database, &nats, "ingest, worker").await?;
    let target = Target::start(Some(rest.server.otlp_grpc)).await?;
    apply(&api, &target, 400).await?;
    let (id, _) = start(&api).await?;
    let url = format!("{}/api/v1/runs/{id}/events", api.server.api);
    let request = reqwest::Client::new().get(url).header("accept", "text/event-stream");
    // The stream ends with the run.
    let events = request.send().await?.text().await?;
    let ids: Vec<u32> =
        events.lines().filter_map(|line| line.strip_prefix("id:")?.trim().parse().ok()).collect();
    assert_eq!(ids, (1..=ids.len() as u32).collect::<Vec<_>>(), "gapless: {events}");
    assert!(events.contains("event: end") && ids.len() > 3, "{events}");
    for member in [api, rest] {
        ensure!(member.server.terminate().await? == Some(0), "it ended in order");
    }
    database.remove().await
}

/// Without NATS, spans that one process receives would never reach the runs of another one.
#[tokio::test(flavor = "multi_thread")]
async fn ingest_without_workers_needs_nats() -> Result<()> {
    let database = Database::create("no_bus_roles").await?;
    let folder = tempfile::tempdir()?;
    let config = folder.path().join("config.yaml");
    std::fs::write(&config, database.section()?)?;
    for roles in ["ingest", "api,worker", "api,ingest", "no"] {
        let mut command = Command::new(BINARY);
        command.args(["serve", "--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0"]);
        command.args(["--otlp-http", "127.0.0.1:0", "--roles", roles, "--config"]).arg(&config);
        let output = command.env("STATE_DIRECTORY", folder.path()).output()?;
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success(), "{roles}: {message}");
        let expected = if roles == "no" { "is no role" } else { "set `nats.endpoint`" };
        assert!(message.contains(expected), "{roles}: {message}");
    }
    // Spans that NATS keeps for less than a run may take would be missing when it is resumed.
    let short = "nats: {endpoint: 'nats://127.0.0.1:1', maxAge: 10m}\nworkers: {timeout: 10m}\n";
    std::fs::write(&config, format!("{}\n{short}", database.section()?))?;
    let checked =
        Command::new(BINARY).args(["config", "check", "--config"]).arg(&config).output()?;
    let message = String::from_utf8_lossy(&checked.stderr).into_owned();
    assert!(!checked.status.success() && message.contains("`nats.maxAge`"), "{message}");
    // A node for the API alone has no spans: it needs none.
    let more = format!("{}\nserver: {{roles: [api]}}\n", database.section()?);
    let api = Server::start_with(Path::new(BINARY), &more, "127.0.0.1:0").await?;
    ensure!(api.terminate().await? == Some(0), "it ended in order");
    database.remove().await
}
