//! The lifecycle of runs on a server: idempotent start by a key, variables, timeout, stop, learned profile, late spans,
//! a database that does not renew a lease in time, the end of a damaged run, and the end of active runs at shutdown.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{Api, Database, Gate, Hold, Server, Target, answer, free_port};
use reqwest::Method;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const ENDED_MAX: Duration = Duration::from_secs(20);

struct Stand {
    database: Database,
    server: Server,
    target: Target,
    api: Api,
}

impl Stand {
    async fn start(purpose: &str) -> Result<Self> {
        let database = Database::create(purpose).await?;
        let server = Server::start(Path::new(BINARY), &database, free_port()?).await?;
        let target = Target::start(Some(server.otlp_grpc)).await?;
        let api = Api::new(&server.api)?;
        for (id, path, timeout) in
            [("cart", "/cart?run=${var:run}", "20s"), ("slow", "/slow", "3s")]
        {
            api.apply(&document(id, &format!("{}{path}", target.url), timeout)).await?;
        }
        Ok(Self { database, server, target, api })
    }

    async fn end(self) -> Result<()> {
        assert_eq!(self.server.terminate().await?, Some(0));
        self.database.remove().await
    }

    /// Waits until the query returns a count above 0.
    async fn until(&self, query: &'static str) -> Result<()> {
        let began = Instant::now();
        while self.database.count(query).await? == 0 {
            anyhow::ensure!(began.elapsed() < ENDED_MAX, "not in time: {query}");
            sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }
}

/// Waits until the target has received this many requests.
async fn until_requests(target: &Target, requests: u64) -> Result<()> {
    let began = Instant::now();
    while target.requests() < requests {
        anyhow::ensure!(began.elapsed() < ENDED_MAX, "only {} requests", target.requests());
        sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

fn document(id: &str, url: &str, timeout: &str) -> String {
    format!(
        "type: Test
spec:
  id: {id}
  name: the {id}
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}'}}}}
  settle: {{timeout: {timeout}, flush: 200ms}}
  specs:
    - selector: span[http.route exists]
      assertions: ['attr:tracetest.selected_spans.count = 1']
"
    )
}

fn reasons(run: &Value) -> String {
    run["outcome"]["reasons"].to_string()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_once_and_with_its_values() -> Result<()> {
    let stand = Stand::start("started_once").await?;
    let start = |key: &str, run: &str| {
        let body = json!({"variables": {"run": run}}).to_string();
        let request = stand.api.request(Method::POST, "/api/v1/tests/cart/runs");
        answer(request.header("idempotency-key", key).body(body))
    };
    let (status, first) = start("a", "one").await?;
    assert_eq!(status, 202, "{first:#}");
    let (status, again) = start("a", "one").await?;
    assert_eq!((status, &again["id"]), (200, &first["id"]), "{again:#}");
    let (status, other) = start("a", "two").await?;
    assert_eq!(status, 422, "{other:#}");
    let id = first["id"].as_str().context("an id")?;
    let ended = stand.api.ended(id, ENDED_MAX).await?;
    assert_eq!(ended["verdict"], "passed", "{ended:#}");
    let (status, again) = start("a", "one").await?;
    assert_eq!((status, &again["verdict"]), (200, &json!("passed")), "as it is by now");
    assert_eq!(stand.target.requests_of_runs(), [("one".to_owned(), 1)].into());

    let refusals = [
        ("a b", "{}", "visible letters"),
        ("b", "{\"variable\": {}}", "unknown field `variable`"),
        ("b", "{\"timeoutSeconds\": 0}", "0.1 to 86400"),
        ("b", "[", "not a start of a run"),
    ];
    for (key, body, words) in refusals {
        let request = stand.api.request(Method::POST, "/api/v1/tests/cart/runs");
        let (status, problem) = answer(request.header("idempotency-key", key).body(body)).await?;
        assert_eq!(status, 400, "{body}");
        assert!(problem["detail"].to_string().contains(words), "{problem:#}");
    }
    let (status, fresh) = start("b", "two").await?;
    assert_eq!(status, 202, "what was refused has used no key: {fresh:#}");
    let id = fresh["id"].as_str().context("an id")?;
    stand.api.ended(id, ENDED_MAX).await?;
    let learned = "select count(*) from learned where service = 'shop' and learned->>'runs' = '2'";
    stand.until(learned).await?;
    stand.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_stopped_and_bounded_in_time() -> Result<()> {
    let stand = Stand::start("stopped").await?;
    let stop =
        |id: &str| answer(stand.api.request(Method::POST, &format!("/api/v1/runs/{id}/stop")));
    let id = stand.api.start("slow", &json!({})).await?;
    until_requests(&stand.target, 1).await?;
    let began = Instant::now();
    let (status, asked) = stop(&id).await?;
    assert_eq!(status, 200, "{asked:#}");
    assert!(asked["stopAt"].is_string(), "{asked:#}");
    let stopped = stand.api.ended(&id, ENDED_MAX).await?;
    assert!(began.elapsed() < Duration::from_secs(2), "{:?}: by the hint", began.elapsed());
    assert_eq!(stopped["verdict"], "inconclusive", "{stopped:#}");
    assert!(reasons(&stopped).contains("stopped: the run was cancelled"), "{stopped:#}");
    assert!(stopped["outcome"]["traceId"].is_string(), "what was sent is told: {stopped:#}");
    let (status, again) = stop(&id).await?;
    assert_eq!((status, &again["verdict"]), (200, &json!("inconclusive")), "it stays");
    assert_eq!(stop("01a1dcee-cd00-7101-8101-010101010101").await?.0, 404);

    let id = stand.api.start("slow", &json!({"timeoutSeconds": 0.5})).await?;
    let bounded = stand.api.ended(&id, ENDED_MAX).await?;
    assert_eq!(bounded["verdict"], "inconclusive", "{bounded:#}");
    assert!(reasons(&bounded).contains("time was up"), "{bounded:#}");

    // A run that cannot be read is ended too, and does not block other runs.
    let id = stand.api.start("slow", &json!({})).await?;
    stand.until("select count(*) from open_runs where attempted_at_ns is not null").await?;
    stand
        .database
        .execute(
            "update open_runs set answer_sealed = '\\x0000', answer_bytes = 0, answered_epoch = 1, lease_until = now(),
                 epoch = epoch + 1",
        )
        .await?;
    let damaged = stand.api.ended(&id, ENDED_MAX).await?;
    assert!(reasons(&damaged).contains("the record is damaged"), "{damaged:#}");
    stand.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_late_span_overtakes_a_verdict_and_changes_nothing_else() -> Result<()> {
    let stand = Stand::start("overtaken").await?;
    let id = stand.api.start("cart", &json!({"variables": {"run": "1"}})).await?;
    let passed = stand.api.ended(&id, ENDED_MAX).await?;
    assert_eq!(passed["verdict"], "passed", "{passed:#}");
    let trace = passed["outcome"]["traceId"].as_str().context("a trace id")?;
    let late = json!({"resourceSpans": [{
        "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "shop"}}]},
        "scopeSpans": [{"spans": [{
            "traceId": trace, "spanId": "00000000000000aa", "name": "late", "kind": 2,
            "startTimeUnixNano": "1", "endTimeUnixNano": "2",
            "attributes": [{"key": "http.route", "value": {"stringValue": "/late"}}],
        }]}],
    }]});
    let otlp = Api::new(&format!("http://127.0.0.1:{}", stand.server.otlp_grpc))?;
    let sent = otlp.request(Method::POST, "/v1/traces").header("content-type", "application/json");
    assert_eq!(answer(sent.body(late.to_string())).await?.0, 200);
    stand.until("select count(*) from runs where overtaken is not null").await?;
    let overtaken = stand.api.run(&id).await?;
    assert_eq!(overtaken["verdict"], "passed", "the verdict stays");
    assert_eq!(overtaken["outcome"]["overtaken"]["verdict"], "failed", "{overtaken:#}");
    assert_eq!(overtaken["outcome"]["overtaken"]["service"], "shop", "{overtaken:#}");
    stand.end().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_told_to_stop_lets_its_runs_end() -> Result<()> {
    let Stand { database, server, target, api } = Stand::start("drained").await?;
    for _ in 0..5 {
        api.start("slow", &json!({})).await?;
    }
    until_requests(&target, 5).await?;
    assert_eq!(server.terminate().await?, Some(0));
    let ended = "select count(*) from runs
                 where verdict is not null and epoch = 1 and outcome->'answer'->'response' is not null";
    assert_eq!(database.count(ended).await?, 5, "each by its first owner, with its answer");
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_database_delays_the_trigger_and_does_not_prevent_it() -> Result<()> {
    let database = Database::create("slow_renewal").await?;
    let gate = Gate::start(&database, "attempted_epoch = epoch", Hold::Answer).await?;
    let by_gate = database.section_at(gate.port)?;
    let server = Server::start_with(Path::new(BINARY), &by_gate, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&document("cart", &format!("{}/cart", target.url), "20s")).await?;
    let run = api.start("cart", &json!({})).await?;
    gate.held().await;
    // The attempt is stored, and no lease of 10 s is renewed for 7.5 s: when the attempt's response comes after 6 s, less than
    // half of the lease is left.
    let renewals = "do $$ begin perform from open_runs for update; perform pg_sleep(7.5); end $$";
    let (locked, released) = tokio::join!(database.execute(renewals), async {
        // More than half of the lease.
        sleep(Duration::from_secs(6)).await;
        gate.release();
        // That nothing is sent takes time.
        sleep(Duration::from_secs(1)).await;
        target.requests()
    });
    locked?;
    assert_eq!(released, 0, "nothing is sent before a renewal");
    let ended = api.ended(&run, ENDED_MAX).await?;
    assert_eq!((target.requests(), &ended["verdict"]), (1, &json!("passed")), "{ended:#}");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}
