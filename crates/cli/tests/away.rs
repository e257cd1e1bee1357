//! A server with a Postgres that starts later, stops, and starts again.

use std::{
    collections::BTreeSet,
    path::Path,
    sync::{
        Mutex,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use bench::parts::{Cluster, Server, Target, free_port};
use reqwest::{Client, StatusCode};
use serde_json::Value;
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// How long the server may take to detect that Postgres is available.
const SEEN_MAX: Duration = Duration::from_secs(15);
/// How long accepted runs may take to end: leases expire first.
const ENDED_MAX: Duration = Duration::from_secs(40);

/// The number of runs that are accepted before, between and after the outages.
const MORE: usize = 15;

/// A client of one server.
struct Caller {
    client: Client,
    api: String,
}

impl Caller {
    async fn get(&self, path: &str) -> Result<(StatusCode, String)> {
        let answer = self.client.get(format!("{}{path}", self.api)).send().await?;
        Ok((answer.status(), answer.text().await?))
    }

    async fn is_ready(&self) -> Result<bool> {
        Ok(self.get("/readyz").await?.0 == StatusCode::OK)
    }

    async fn wait_for_ready(&self, ready: bool) -> Result<()> {
        let began = Instant::now();
        while self.is_ready().await? != ready {
            ensure!(began.elapsed() < SEEN_MAX, "readiness did not become {ready}");
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Starts a run; returns its id, if the server accepted it.
    async fn start_run(&self) -> Result<Option<String>> {
        let url = format!("{}/api/v1/tests/cart/runs", self.api);
        let answer = self.client.post(url).send().await?;
        if answer.status() != StatusCode::ACCEPTED {
            return Ok(None);
        }
        let run: Value = serde_json::from_str(&answer.text().await?)?;
        Ok(Some(run["id"].as_str().context("a run has an id")?.to_owned()))
    }
}

fn test_of(url: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: the cart
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart'}}}}
  settle: {{timeout: 2s, flush: 200ms}}
  specs: [{{selector: 'span[name=\"GET /cart\"]', assertions: ['attr:cart.items = 3']}}]
"
    )
}

async fn waits_in_sight(caller: &Caller) -> Result<()> {
    // Before Postgres starts: live, not ready, and `/readyz` states the reason.
    assert_eq!(caller.get("/livez").await?.0, StatusCode::OK);
    let (status, words) = caller.get("/readyz").await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{words}");
    assert!(words.contains("not ready: cannot speak to postgres"), "{words}");
    let (status, words) = caller.get("/api/v1/runs/x").await?;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{words}");
    Ok(())
}

async fn all_ended(
    cluster: &Cluster,
    caller: &Caller,
    accepted: &BTreeSet<String>,
    target: &Target,
) -> Result<()> {
    // Every accepted run ends, with one verdict, and was fired at most once.
    let open = "select count(*) from runs where verdict is null";
    let began = Instant::now();
    while cluster.count(open).await? > 0 && began.elapsed() < ENDED_MAX {
        sleep(Duration::from_millis(200)).await;
    }
    assert_eq!(cluster.count(open).await?, 0, "runs without a verdict");
    for run in accepted {
        let (status, run) = caller.get(&format!("/api/v1/runs/{run}")).await?;
        assert_eq!(status, StatusCode::OK, "{run}");
        let run: Value = serde_json::from_str(&run)?;
        assert!(run["verdict"].is_string(), "{run}");
    }
    let runs = cluster.count("select count(*) from runs").await?;
    assert!(runs >= accepted.len() as i64);
    assert!(target.requests() <= runs as u64, "{} of {runs}", target.requests());
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_accepted_is_lost_while_postgres_comes_and_goes() -> Result<()> {
    let mut cluster = Cluster::create().await?;
    let exporter = format!(
        "telemetry: {{exporters: {{collector: {{exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:{}'}}}}}}}}}}
server: {{telemetry: {{exporter: collector, applicationExporter: collector}}}}
workers: {{lease: 3s, poll: 200ms}}
",
        free_port()?
    );
    let config = format!("{}\n{exporter}", cluster.section());
    let server = Server::start_listening(Path::new(BINARY), &config, "127.0.0.1:0").await?;
    let caller = Caller { client: Client::new(), api: server.api.clone() };

    waits_in_sight(&caller).await?;

    // Postgres starts.
    cluster.start().await?;
    caller.wait_for_ready(true).await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let apply = caller.client.put(format!("{}/api/v1/tests", caller.api));
    let applied = apply.body(test_of(&target.url)).send().await?;
    assert_eq!(applied.status(), StatusCode::OK, "{}", applied.text().await?);

    // Under load Postgres stops and starts again, once in order and once after a crash.
    let accepted = Mutex::new(BTreeSet::new());
    let count = || accepted.lock().map_or(0, |accepted| accepted.len());
    let ended = AtomicBool::new(false);
    let client = || async {
        while !ended.load(Ordering::Relaxed) {
            if let Some(run) = caller.start_run().await? {
                accepted.lock().expect("nobody panicked").insert(run);
            }
            // The load is bounded: each client starts at most fifty runs a second.
            sleep(Duration::from_millis(20)).await;
        }
        anyhow::Ok(())
    };
    // Waits until this many more runs are accepted.
    let more = |runs: usize| {
        let enough = count() + runs;
        async move {
            let began = Instant::now();
            while count() < enough {
                ensure!(began.elapsed() < ENDED_MAX, "{} of {enough} runs are accepted", count());
                sleep(Duration::from_millis(5)).await;
            }
            anyhow::Ok(())
        }
    };
    let outages = async {
        more(MORE).await?;
        cluster.stop().await?;
        caller.wait_for_ready(false).await?;
        // The outage lasts while the clients continue.
        sleep(Duration::from_millis(500)).await;
        cluster.start().await?;
        more(MORE).await?;
        cluster.crash().await?;
        // The outage lasts longer than a lease.
        sleep(Duration::from_secs(4)).await;
        cluster.start().await?;
        more(MORE).await?;
        caller.wait_for_ready(true).await?;
        ended.store(true, Ordering::Relaxed);
        anyhow::Ok(())
    };
    // An error ends all of them: the clients would not stop without the end of the outages.
    tokio::try_join!(client(), client(), client(), outages)?;
    let accepted = accepted.into_inner().expect("nobody panicked");
    assert!(accepted.len() >= 3 * MORE, "{} runs", accepted.len());

    all_ended(&cluster, &caller, &accepted, &target).await?;
    assert_eq!(server.terminate().await?, Some(0));
    cluster.stop().await
}
