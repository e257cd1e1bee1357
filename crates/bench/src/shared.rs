//! Proof that servers share spans: the spans of each trace go to two servers, half of the runs are decided by absence, and every
//! verdict is right.

use std::{
    path::Path,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, bail, ensure};
use axum::{
    Router,
    extract::{Query, State},
    http::HeaderMap,
    routing::get,
};
use serde_json::{Value, json};
use tokio::{
    net::TcpListener,
    task::JoinSet,
    time::{Instant, sleep},
};

use crate::{
    parts::{Api, Database, NatsCluster, Server},
    table::{Goal, Row},
};

/// Runs in the long form.
const RUNS: u64 = 1000;
/// Runs at a time.
const AT_ONCE: u64 = 24;
/// How long a run may take.
const ENDED_MAX: Duration = Duration::from_secs(90);
/// The time after the response within which the second server gets its span; the test waits for longer.
const LATE_MS: u64 = 400;

/// The result.
#[derive(Clone, Debug, Default)]
pub struct SharedResult {
    /// Runs.
    pub runs: u64,
    /// Claims with another verdict than the truth.
    pub wrong: u64,
    /// Claims without a verdict.
    pub inconclusive: u64,
    /// Requests that the system received for a run beyond the first.
    pub fired_twice: u64,
    /// The time from the start of a run to its end, in seconds, sorted.
    pub seconds: Vec<f64>,
}

/// The system under test: it sends the first span of a trace to one server, and the second, if there is one, to the other.
#[derive(Clone)]
struct SplitShop {
    ports: [u16; 2],
    requests: Arc<AtomicU64>,
    exports: Arc<Mutex<JoinSet<Result<()>>>>,
    client: reqwest::Client,
}

#[derive(Default, serde::Deserialize)]
#[serde(default)]
struct SplitCartRequest {
    deleted: bool,
}

/// Runs the proof; `rest` has the number of runs, and `--nodes N` for the number of NATS nodes.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let (mut runs, mut nodes) = (RUNS, 3);
    let mut words = rest.iter();
    while let Some(word) = words.next() {
        match (word.as_str(), word.parse()) {
            ("--nodes", _) => nodes = words.next().context("`--nodes` needs a number")?.parse()?,
            (_, Ok(number)) => runs = number,
            (word, Err(_)) => bail!("`{word}` is neither a number of runs nor `--nodes`"),
        }
    }
    Ok(play(&Server::binary_beside_this()?, runs, nodes).await?.rows())
}

/// Plays this many runs on two servers, over a NATS with this many nodes.
pub async fn play(binary: &Path, runs: u64, nodes: u16) -> Result<SharedResult> {
    let database = Database::create("shared").await?;
    let nats = NatsCluster::start(nodes, true).await?;
    let limits = "server: {limits: {requestsPerSecond: 10000, projectRequestsPerSecond: 10000}}\n";
    let workers = "workers: {perHost: 64}\n";
    let configuration =
        format!("{}\n{}{limits}{workers}", database.section()?, nats.section(", synced: true"));
    let one = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
    let other = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
    let system = SplitShop {
        ports: [one.otlp_grpc, other.otlp_grpc],
        requests: Arc::default(),
        exports: Arc::default(),
        client: reqwest::Client::new(),
    };
    let (url, _serving) = system.clone().serve().await?;
    let apis = [Api::new(&one.api)?, Api::new(&other.api)?];
    for is_deleted in [false, true] {
        apis[0].apply(&document(&url, is_deleted)).await?;
    }
    let apis = Arc::new(apis);
    let (mut result, mut tasks) =
        (SharedResult { runs, ..SharedResult::default() }, JoinSet::new());
    for number in 0..runs {
        while tasks.len() as u64 >= AT_ONCE {
            result.add(tasks.join_next().await.context("there is one")???);
        }
        tasks.spawn(run(Arc::clone(&apis), number));
    }
    while let Some(run) = tasks.join_next().await {
        result.add(run??);
    }
    result.fired_twice = system.requests.load(Ordering::SeqCst).saturating_sub(runs);
    let mut exports =
        std::mem::take(&mut *system.exports.lock().unwrap_or_else(PoisonError::into_inner));
    while let Some(export) = exports.join_next().await {
        export??;
    }
    result.seconds.sort_by(f64::total_cmp);
    for server in [one, other] {
        ensure!(server.terminate().await? == Some(0), "a server did not end in order");
    }
    database.remove().await?;
    Ok(result)
}

/// Starts a run on one server and reads it on the other; returns whether a span is there to be counted, the run, and how long it took.
async fn run(apis: Arc<[Api; 2]>, number: u64) -> Result<(bool, Value, f64)> {
    let is_deleted = number % 4 < 2;
    let (start, read) = (&apis[(number % 2) as usize], &apis[(number / 2 % 2) as usize]);
    let began = Instant::now();
    let id = start.start(name(is_deleted), &json!({})).await?;
    let run = read.ended(&id, ENDED_MAX).await?;
    Ok((is_deleted, run, began.elapsed().as_secs_f64()))
}

impl SharedResult {
    fn add(&mut self, (is_deleted, run, seconds): (bool, Value, f64)) {
        self.seconds.push(seconds);
        let expected = if is_deleted { ["failed", "passed"] } else { ["passed", "failed"] };
        for (at, expected) in expected.into_iter().enumerate() {
            match run["outcome"]["judgement"]["claims"][at]["verdict"].as_str() {
                Some(verdict) if verdict == expected => {}
                Some("inconclusive") | None => self.inconclusive += 1,
                Some(_) => self.wrong += 1,
            }
        }
    }

    /// Whether every claim has its verdict.
    pub fn is_right(&self) -> bool {
        self.wrong == 0 && self.inconclusive == 0 && self.fired_twice == 0
    }

    /// One row for each figure.
    pub fn rows(&self) -> Vec<Row> {
        let none = Some(Goal::AtMost(0.0));
        let row =
            |name: &str, value: f64, unit, goal| Row { name: name.to_owned(), value, unit, goal };
        let median = self.seconds.get(self.seconds.len() / 2).copied().unwrap_or_default();
        vec![
            row("runs, half decided by absence", self.runs as f64, "runs", None),
            row("claims with a wrong verdict", self.wrong as f64, "claims", none),
            row("claims without a verdict", self.inconclusive as f64, "claims", none),
            row("triggers fired twice", self.fired_twice as f64, "triggers", none),
            row("accepted to verdict, median", median, "s", None),
        ]
    }
}

fn name(is_deleted: bool) -> &'static str {
    if is_deleted { "deleted" } else { "kept" }
}

fn document(url: &str, is_deleted: bool) -> String {
    let (name, flush) = (name(is_deleted), 2 * LATE_MS);
    format!(
        "type: Test
spec:
  id: {name}
  name: {name}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}/cart?deleted={is_deleted}'}}}}
  settle: {{timeout: 30s, flush: {flush}ms}}
  trace:
    - {{name: nothing is deleted, claim: 'count(span[name=\"delete customer\"]) = 0'}}
    - {{name: one is deleted, claim: 'count(span[name=\"delete customer\"]) = 1'}}
"
    )
}

impl SplitShop {
    async fn serve(self) -> Result<(String, JoinSet<()>)> {
        let router = Router::new().route("/cart", get(cart)).with_state(self);
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            // It ends with the proof.
            let _ended = axum::serve(listener, router).await;
        });
        Ok((url, serving))
    }

    /// Sends a span to one of the servers.
    async fn export(&self, port: u16, span: Value) -> Result<()> {
        let resource = json!({"attributes": [
            {"key": "service.name", "value": {"stringValue": "shop"}},
        ]});
        let body = json!({"resourceSpans": [
            {"resource": resource, "scopeSpans": [{"spans": [span]}]},
        ]});
        let url = format!("http://127.0.0.1:{port}/v1/traces");
        let answer = self.client.post(url).header("content-type", "application/json");
        let answer = answer.body(body.to_string()).send().await?;
        ensure!(answer.status() == 200, "a server refuses a span: {}", answer.status());
        Ok(())
    }
}

async fn cart(
    State(system): State<SplitShop>,
    Query(request): Query<SplitCartRequest>,
    headers: HeaderMap,
) -> &'static str {
    let number = system.requests.fetch_add(1, Ordering::SeqCst);
    let parent = headers.get("traceparent").and_then(|it| it.to_str().ok()).unwrap_or_default();
    let ids: Vec<String> = parent.split('-').map(str::to_owned).collect();
    let [_, trace, parent, _] = ids.as_slice() else { return "no trace" };
    let span = |id: u64, parent: &str, name: &str| {
        let nanos = crate::parts::unix_nanos();
        json!({
            "traceId": trace, "spanId": format!("{id:016x}"), "parentSpanId": parent, "name": name,
            "kind": 1, "startTimeUnixNano": nanos.to_string(), "endTimeUnixNano": (nanos + 1).to_string(),
        })
    };
    let first = span(2 * number + 1, parent, "GET /cart");
    let second = request
        .deleted
        .then(|| span(2 * number + 2, &format!("{:016x}", 2 * number + 1), "delete customer"));
    let (to, other) =
        (system.ports[(number % 2) as usize], system.ports[((number + 1) % 2) as usize]);
    let exporter = system.clone();
    let export = async move {
        exporter.export(to, first).await?;
        if let Some(second) = second {
            sleep(Duration::from_millis(number * 37 % LATE_MS)).await;
            exporter.export(other, second).await?;
        }
        Ok(())
    };
    system.exports.lock().unwrap_or_else(PoisonError::into_inner).spawn(export);
    "{}"
}
