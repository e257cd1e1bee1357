//! The API from the view of its callers: a real server on a real Postgres, requests in, responses out.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use anyhow::{Context, Result};
use bench::parts::Database;
use db::{Connect, Db, LeaseRequest, NewRun, RunVars, Starter};
use model::{Project, RunId, Timestamp, World};
use reqwest::{Client, Method};
use serde_json::Value;
use server::{
    Handle, Telemetry,
    config::{self, Config, Environment},
};
use source::Text;
use tokio::{
    io::AsyncWriteExt,
    net::TcpStream,
    runtime,
    time::{Instant, sleep},
};

const WORLD: World = World::new(now, random);

fn now() -> Timestamp {
    #[expect(clippy::disallowed_methods, reason = "a test is a main of its own")]
    let now =
        std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_nanos(u64::try_from(now.as_nanos()).unwrap_or(u64::MAX))
}

fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).expect("the system has randomness");
    bytes
}

fn configuration(database: &Database) -> Result<Config> {
    let text = Text::new("config.yaml", database.section()?);
    config::read(&text, &Environment::default()).config.context("a configuration")
}

async fn start(database: &Database) -> Result<Handle> {
    start_with(configuration(database)?).await
}

async fn start_with(mut config: Config) -> Result<Handle> {
    let any: SocketAddr = "127.0.0.1:0".parse()?;
    config.listen = config::Listen { http: any, otlp_grpc: any, otlp_http: any, probes: Some(any) };
    config.data_directory = env!("CARGO_TARGET_TMPDIR").into();
    let telemetry = Arc::new(Telemetry::start(&config, server::host())?);
    let server = server::start(config, telemetry, WORLD, runtime::Handle::current(), None).await?;
    // On a busy machine the database is opened only after the start.
    server.ready().await;
    Ok(server)
}

const TEST: &str = "type: Test
spec:
  id: nobody
  name: nobody is at home
  skipTraceCollection: true
  trigger: {type: http, httpRequest: {method: GET, url: 'http://127.0.0.1:1/'}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
";

/// A queue without a worker fills: a project gets half of it, and a refusal has a time.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_queue_refuses_new_runs_with_a_time() -> Result<()> {
    let database = Database::create("full_queue").await?;
    let mut config = configuration(&database)?;
    config.roles = "api".parse()?;
    config.limits.queued_runs_max = 5;
    let server = start_with(config).await?;
    let base = format!("http://{}/api/v1", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    let starting = async |project: &str| {
        let url = format!("{base}/tests/nobody/runs?project={project}");
        anyhow::Ok(client.post(url).send().await?)
    };
    for project in ["alpha", "beta", "gamma"] {
        let applied = client.put(format!("{base}/tests?project={project}")).body(TEST).send();
        assert!(applied.await?.status().is_success());
    }
    let expected = [("alpha", 3, "of the project `alpha`"), ("beta", 2, "5 runs wait")];
    for (project, runs, reason) in expected {
        for _ in 0..runs {
            assert_eq!(starting(project).await?.status(), 202, "{project}");
        }
        let refused = starting(project).await?;
        assert_eq!(
            (refused.status().as_u16(), &refused.headers()["retry-after"]),
            (429, &"5".parse()?)
        );
        let problem: Value = serde_json::from_str(&refused.text().await?)?;
        assert_eq!(problem["code"], "overloaded", "{problem}");
        assert!(problem["detail"].as_str().is_some_and(|it| it.contains(reason)), "{problem}");
    }
    // What the database shows decides, whichever server accepted them.
    database.count("with gone as (delete from open_runs where project = 'beta' returning 1) select count(*) from gone").await?;
    let began = tokio::time::Instant::now();
    while starting("gamma").await?.status() == 429 {
        assert!(began.elapsed().as_secs() < 20, "there is room again");
        // The server reads the database every two seconds.
        tokio::time::sleep(std::time::Duration::from_millis(200)).await;
    }
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

/// Refused requests: method, path, body, status, and a part of the detail.
const REFUSALS: &[(&str, &str, &str, u16, &str)] = &[
    ("GET", "/api/v1/nothing", "", 404, "there is nothing at `/api/v1/nothing`"),
    ("GET", "/nothing", "", 404, "there is nothing at `/nothing`"),
    ("DELETE", "/api/v1/tests", "", 405, "does not take `DELETE`"),
    ("POST", "/livez", "", 405, "does not take `POST`"),
    ("PUT", "/api/v1/tests", "type: Test\nspec: {nmae: x}\n", 422, "unknown key `nmae`"),
    ("PUT", "/api/v1/tests", "type: Kest\nspec: {}\n", 422, "did you mean `Test`?"),
    ("PUT", "/api/v1/tests", "", 422, "holds no test"),
    ("PUT", "/api/v1/tests?projct=a", TEST, 400, "unknown field `projct`"),
    ("PUT", "/api/v1/tests?project=a%20b", TEST, 400, "1 to 128 letters"),
    ("POST", "/api/v1/tests/absent/runs", "", 404, "absent"),
    ("POST", "/api/v1/tests/a%20b/runs", "", 400, "is not a test id"),
    ("GET", "/api/v1/runs/7", "", 400, "`7` is not a run id"),
    ("GET", "/api/v1/runs?verdict=maybe", "", 400, "maybe"),
    ("GET", "/api/v1/runs?limit=0", "", 400, "expected 1 to 500"),
    ("GET", "/api/v1/runs?cursor=x", "", 404, "there is no page at this `cursor`"),
    ("GET", "/api/v1/tests/absent/trend", "", 404, "there is no test `absent`"),
    ("GET", "/api/v1/runs/01a1dcee-cd00-7101-8101-010101010101", "", 404, "there is no run"),
    ("GET", "/api/v1/runs/01a1dcee-cd00-7101-8101-010101010101/events", "", 404, "there is no run"),
    ("GET", "/api/v1/runs/01a1dcee-cd00-7101-8101-010101010101/trace", "", 404, "has no trace"),
    ("GET", "/api/v1/runs/01a1dcee-cd00-7101-8101-010101010101/events?after=x", "", 400, "after"),
];

/// A browser, which names HTML, gets the page at a path that is none; programs and requests to the API get the problem.
#[tokio::test(flavor = "multi_thread")]
async fn an_unknown_path_is_a_page_for_browsers_alone() -> Result<()> {
    let database = Database::create("api_unknown").await?;
    let server = start(&database).await?;
    let base = format!("http://{}", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let cases = [
        (Method::GET, "/nothing", browser, "text/html; charset=utf-8"),
        (Method::GET, "/r/1/trace/nothing", "TEXT/HTML", "text/html; charset=utf-8"),
        (Method::GET, "/nothing", "*/*", "application/problem+json"),
        (Method::GET, "/api/v1/nothing", browser, "application/problem+json"),
        (Method::POST, "/nothing", browser, "application/problem+json"),
    ];
    for (method, path, accept, content_type) in cases {
        let case = format!("{method} {path} with `accept: {accept}`");
        let request = client.request(method, format!("{base}{path}")).header("accept", accept);
        let response = request.send().await?;
        assert_eq!(response.status().as_u16(), 404, "{case}");
        assert_eq!(response.headers()["content-type"], content_type, "{case}");
        let policy = response.headers()["content-security-policy"].to_str()?;
        assert_eq!(policy.contains("script-src"), content_type.starts_with("text/html"), "{case}");
    }
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_the_one_form() -> Result<()> {
    let database = Database::create("api_refusals").await?;
    let server = start(&database).await?;
    let base = format!("http://{}", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    let too_large = "#".repeat((1 << 20) + 1);
    let all = REFUSALS.iter().copied().chain([(
        "PUT",
        "/api/v1/tests",
        too_large.as_str(),
        413,
        "length limit",
    )]);
    for (method, path, body, status, words) in all {
        let request =
            client.request(Method::from_bytes(method.as_bytes())?, format!("{base}{path}"));
        let response = request.body(body.to_owned()).send().await?;
        let case = format!("{method} {path}");
        assert_eq!(response.status().as_u16(), status, "{case}");
        assert_eq!(response.headers()["content-type"], "application/problem+json", "{case}");
        let problem: Value = serde_json::from_slice(&response.bytes().await?)?;
        assert_eq!(problem["status"], status, "{case}");
        let detail = problem["detail"].as_str().context("a detail")?;
        assert!(detail.contains(words), "{case}: {detail}");
        let code = match status {
            400 => "invalid-request",
            404 => "not-found",
            405 => "method-not-allowed",
            413 => "too-large",
            _ => "invalid-document",
        };
        assert_eq!(problem["code"], code, "{case}");
    }
    let page =
        client.get(format!("{base}/livez")).header("origin", "http://evil.example").send().await?;
    assert_eq!(page.status(), 403, "a web page is turned away");
    let problem: Value = serde_json::from_slice(&page.bytes().await?)?;
    assert_eq!(problem["code"], "cross-origin");
    let own_page = client.get(format!("{base}/api/v1/tests")).header("origin", base.as_str());
    assert_eq!(own_page.send().await?.status(), 200, "a page of this server may call it");
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn probes_have_a_port_where_nothing_else_is() -> Result<()> {
    let database = Database::create("api_probes").await?;
    let server = start(&database).await?;
    let base = format!("http://{}", server.addresses().probes.context("a port for probes")?);
    let client = Client::builder().no_proxy().build()?;
    let all =
        [("/livez", 200), ("/readyz", 200), ("/metrics", 404), ("/api/v1/tests", 404), ("/", 404)];
    for (path, status) in all {
        assert_eq!(client.get(format!("{base}{path}")).send().await?.status(), status, "{path}");
    }
    let started = client.post(format!("{base}/api/v1/tests/nobody/runs")).send().await?;
    assert_eq!(started.status(), 404);
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_started_and_read_with_its_events() -> Result<()> {
    let database = Database::create("api_run").await?;
    let server = start(&database).await?;
    let base = format!("http://{}", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    for path in ["/livez", "/readyz"] {
        assert_eq!(client.get(format!("{base}{path}")).send().await?.status(), 200, "{path}");
    }
    let apply = || client.put(format!("{base}/api/v1/tests?file=nobody.yaml")).body(TEST).send();
    let applied: Value = serde_json::from_slice(&apply().await?.bytes().await?)?;
    assert_eq!(applied["tests"][0]["version"], 1);
    let again: Value = serde_json::from_slice(&apply().await?.bytes().await?)?;
    assert_eq!(
        again["tests"][0],
        serde_json::json!({"id": "nobody", "name": "nobody is at home", "version": 1, "changed": false})
    );

    let started = client.post(format!("{base}/api/v1/tests/nobody/runs")).send().await?;
    assert_eq!(started.status(), 202);
    let location = started.headers()["location"].to_str()?.to_owned();
    let run = ended(&client, &format!("{base}{location}")).await?;
    assert_eq!(run["verdict"], "inconclusive", "{run:#}");
    assert_eq!(run["outcome"]["answer"]["noAnswer"]["kind"], "refused");
    let events = client.get(format!("{base}{location}/events?after=1")).send().await?;
    let events: Value = serde_json::from_slice(&events.bytes().await?)?;
    let numbers: Vec<_> =
        events.as_array().context("a list")?.iter().map(|one| one["n"].clone()).collect();
    assert_eq!(numbers, [2, 3, 4, 5], "{events:#}");
    let kinds: Vec<_> = events
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| one["event"]["what"].to_string())
        .collect();
    for (kind, expected) in kinds.iter().zip(["taken", "attempted", "notAnswered", "judged"]) {
        assert!(kind.contains(expected), "{events:#}");
    }
    let other = client.get(format!("{base}{location}?project=other")).send().await?;
    assert_eq!(other.status(), 404, "another project does not see it");
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_that_ended_two_workers_ends_as_inconclusive() -> Result<()> {
    let database = Database::create("api_poison").await?;
    let server = start(&database).await?;
    let base = format!("http://{}", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    client.put(format!("{base}/api/v1/tests")).body(TEST).send().await?.error_for_status()?;
    assert!(server.shutdown().await.is_delivered());

    // Workers lease the run and never renew the lease.
    let postgres = configuration(&database)?.postgres;
    let record = Db::connect(&Connect {
        host: postgres.host,
        port: postgres.port,
        user: postgres.user,
        password: postgres.password.expose().to_owned(),
        dbname: postgres.dbname,
        ..Connect::default()
    })
    .await?;
    let id = RunId::new(now(), [7; 10]);
    let (project, test) = (Project::default(), "nobody".parse()?);
    let new = NewRun {
        id,
        project,
        test,
        accepted_at: now(),
        traceparent: None,
        vars: RunVars::default(),
        timeout: None,
        key: None,
        starter: Starter::Token,
    };
    record.create_run(&new).await?;
    for epoch in 1..=2 {
        let taking = LeaseRequest {
            worker: "a dead worker",
            lease: Duration::ZERO,
            at: now(),
            runs_max: 1,
            host_max: 1,
            runs_reserved: 0,
            host_reserved: 0,
            with_expired: true,
            oldest_lease: None,
        };
        let took = record.lease_runs(&taking).await?.context("no other worker leases")?;
        assert_eq!(took.runs.first().context("it waits")?.epoch, epoch);
    }
    record.close().await;

    let server = start(&database).await?;
    let url = format!("http://{}/api/v1/runs/{id}", server.addresses().http);
    let run = ended(&client, &url).await?;
    assert_eq!(run["verdict"], "inconclusive", "{run:#}");
    let reason = run["outcome"]["reasons"][0].as_str().context("a reason")?;
    assert!(reason.starts_with("given up: 2 workers"), "{reason}");
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn half_a_request_does_not_keep_the_server() -> Result<()> {
    let database = Database::create("api_half").await?;
    let server = start(&database).await?;
    let mut half = TcpStream::connect(server.addresses().http).await?;
    half.write_all(b"GET /livez HTTP/1.1\r\nHost: loc").await?;
    let began = Instant::now();
    assert!(server.shutdown().await.is_delivered());
    assert!(began.elapsed() < Duration::from_secs(25), "{:?}", began.elapsed());
    drop(half);
    database.remove().await
}

/// Waits until a run has ended, and returns it.
async fn ended(client: &Client, url: &str) -> Result<Value> {
    let began = Instant::now();
    loop {
        let run: Value = serde_json::from_slice(&client.get(url).send().await?.bytes().await?)?;
        if run["state"] == "ended" || began.elapsed() > Duration::from_secs(20) {
            return Ok(run);
        }
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_listed_a_page_at_a_time_and_have_a_trend() -> Result<()> {
    let database = Database::create("api_history").await?;
    let server = start(&database).await?;
    let base = format!("http://{}/api/v1", server.addresses().http);
    let client = Client::builder().no_proxy().build()?;
    client.put(format!("{base}/tests")).body(TEST).send().await?.error_for_status()?;
    let get = async |path: &str| -> Result<Value> {
        let answer = client.get(format!("{base}{path}")).send().await?.error_for_status()?;
        Ok(serde_json::from_slice(&answer.bytes().await?)?)
    };
    for _ in 0..3 {
        let started = client.post(format!("{base}/tests/nobody/runs")).send().await?;
        assert_eq!(started.status(), 202);
    }
    let began = Instant::now();
    let trend = loop {
        let trend = get("/tests/nobody/trend").await?;
        if trend["runs"] == 3 {
            break trend;
        }
        assert!(began.elapsed() < Duration::from_secs(30), "{trend}");
        sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&trend["inconclusive"], &trend["flips"]), (&3.into(), &0.into()), "{trend}");
    assert!(trend["medianNs"].as_u64().is_some_and(|ns| ns > 0), "{trend}");
    let mut seen = Vec::new();
    let mut path = "/runs?limit=2&test=nobody&verdict=inconclusive".to_owned();
    loop {
        let page = get(&path).await?;
        let items = page["items"].as_array().context("items")?;
        seen.extend(items.iter().map(|item| item["id"].to_string()));
        let Some(next) = page["next"].as_str() else { break };
        path = format!("/runs?limit=2&test=nobody&verdict=inconclusive&cursor={next}");
    }
    let last = trend["last"].as_array().context("runs")?;
    let expected: Vec<_> = last.iter().map(|item| item["id"].to_string()).collect();
    assert_eq!(seen, expected, "each once, the newest first");
    assert_eq!(get("/runs?verdict=passed").await?["items"], serde_json::json!([]));
    assert!(server.shutdown().await.is_delivered());
    database.remove().await
}
