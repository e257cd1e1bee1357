//! `run --server`: the same progress and reports as a local run, over restarts, with older and newer servers, until Ctrl-C.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    process::Stdio,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use axum::{
    Json, Router,
    http::{HeaderMap, StatusCode, header},
    response::{IntoResponse, Response},
    routing::{get, post, put},
};
use base64::{Engine, prelude::BASE64_STANDARD};
use bench::parts::{Api, CommandResult, Database, Server, Target, answer, qualitytrace};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines, copy_bidirectional},
    net::{TcpListener, TcpStream},
    process::{Child, ChildStderr, Command},
    task::JoinSet,
    time::timeout,
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
/// The timeout for everything in this file.
const LINE_MAX: Duration = Duration::from_secs(30);

fn test(id: &str, url: &str, status: u32, more: &str) -> String {
    format!(
        "type: Test
spec:
  id: {id}
  name: {id}
  skipTraceCollection: true
  trigger: {{type: http, httpRequest: {{method: GET, url: '{url}'}}}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = {status}']
{more}"
    )
}

/// Files with tests and suites, some of which do not pass.
fn folder(url: &str) -> Result<TempDir> {
    let folder = TempDir::new()?;
    let output = "  outputs:
    - name: items
      selector: span[name=\"Qualitytrace trigger\"]
      value: attr:tracetest.response.status
";
    let write = |name: &str, text: String| fs::write(folder.path().join(name), text);
    write("first.yaml", test("first", &format!("{url}/cart?run=first"), 200, output))?;
    let then = format!("{url}/cart?run=status-${{var:items}}");
    write("then.yaml", test("then", &then, 200, ""))?;
    let wrong = test("wrong", &format!("{url}/cart"), 418, "");
    let alone = test("alone", &format!("{url}/cart"), 200, "");
    let away = test("away", "http://127.0.0.1:1/", 200, "");
    write("more.yaml", format!("{wrong}---\n{alone}---\n{away}"))?;
    let suite = "type: TestSuite
spec: {id: good, name: Good, steps: [first, then]}
---
type: TestSuite
spec:
  id: bad
  name: Bad
  steps:
    - {test: wrong, needs: []}
    - {test: then, needs: [wrong]}
";
    write("suites.yaml", suite.to_owned())?;
    Ok(folder)
}

/// Returns test, verdict and reasons of each outcome, in the order of the documents.
fn told(report: &str) -> Result<Vec<Value>> {
    let read = |line| -> Result<Value> {
        let line: Value = serde_json::from_str(line)?;
        let outcome = &line["outcome"];
        Ok(json!([outcome["test"], outcome["verdict"], outcome["reasons"]]))
    };
    report.lines().map(read).collect()
}

/// Returns the set of progress lines, without the parts that differ between runs.
fn said(finished: &CommandResult, server: &str) -> BTreeSet<String> {
    let line = |line: &str| {
        let line = line.replace(&format!(" on {server}"), "");
        match line.split_once("trace ") {
            Some((before, id)) if id.len() == 32 => before.to_owned(),
            _ => line,
        }
    };
    let all = finished.err.lines().map(line);
    all.filter(|line| !line.starts_with("receiving OTLP")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_on_a_server_is_told_and_reported_as_one_here() -> Result<()> {
    let database = Database::create("remote").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let folder = folder(&target.url)?;
    let path = folder.path().display().to_string();
    let file = folder.path().join("out.json");
    let report = format!("json={}", file.display());
    let run = async |arguments: &[&str], more: &[&str]| -> Result<(CommandResult, Vec<Value>)> {
        let common = ["run", &path, "--report", &report, "--verbose"];
        let all = [&common, arguments, more].concat();
        let finished = qualitytrace(Path::new(BINARY), &all).await?;
        Ok((finished, told(&fs::read_to_string(&file)?)?))
    };
    let flags: [&[&str]; 3] = [&[], &["--test", "good"], &["--test", "alone", "--jobs", "1"]];
    for more in flags {
        let (here, told_here) = run(&["--otlp", "127.0.0.1:0"], more).await?;
        let (there, told_there) = run(&["--server", &server.api], more).await?;
        assert_eq!(here.code, there.code, "{}\n{}", here.err, there.err);
        assert_eq!(told_there, told_here, "{}", there.err);
        assert_eq!(said(&there, &server.api), said(&here, ""), "{}", there.err);
    }
    let runs = target.requests_of_runs();
    assert_eq!(runs.get("status-200"), runs.get("first"), "outputs reach later steps: {runs:?}");
    let junit = folder.path().join("out.xml");
    let report = format!("junit={}", junit.display());
    let wrong = ["run", &path, "--server", &server.api, "--test", "wrong", "--report", &report];
    assert_eq!(qualitytrace(Path::new(BINARY), &wrong).await?.code, Some(1));
    assert!(fs::read_to_string(&junit)?.contains("<testcase"), "reports are the same");
    keeps_traces(&server).await?;
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

/// Checks that the trace of a run on a server is in the requested folder and HTML page, and can be re-judged locally.
async fn keeps_traces(server: &Server) -> Result<()> {
    let (folder, target) = (TempDir::new()?, Target::start(Some(server.otlp_grpc)).await?);
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (tests, traces, page) = (path("traced.yaml"), path("traces"), path("out.html"));
    let text = format!(
        "type: Test
spec:
  id: traced
  name: traced
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}/cart'}}}}
  settle: {{timeout: 20s, flush: 100ms}}
  trace: ['count(span[name=\"GET /cart\"]) = 1']
",
        target.url
    );
    fs::write(&tests, text)?;
    let report = format!("html={page}");
    let run = ["run", &tests, "--server", &server.api, "--traces", &traces, "--report", &report];
    let ran = qualitytrace(Path::new(BINARY), &run).await?;
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    let files: Vec<_> = fs::read_dir(&traces)?.collect::<Result<_, _>>()?;
    let [file] = &files[..] else { anyhow::bail!("one run has one trace: {files:?}") };
    let name = file.file_name().to_string_lossy().into_owned();
    ensure!(name.starts_with("traced-") && name.ends_with(".pb"), "{name}");
    assert!(fs::read_to_string(&page)?.contains("select items"), "the page shows the spans");
    let file = file.path().display().to_string();
    let checked = qualitytrace(Path::new(BINARY), &["check", &tests, "--trace", &file]).await?;
    assert_eq!(checked.code, Some(0), "{}{}", checked.out, checked.err);
    Ok(())
}

/// A running command, and its stderr.
struct Running {
    child: Child,
    lines: Lines<BufReader<ChildStderr>>,
}

impl Running {
    fn start(arguments: &[&str]) -> Result<Self> {
        let mut command = Command::new(BINARY);
        command.args(arguments).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn()?;
        let lines = BufReader::new(child.stderr.take().context("stderr")?).lines();
        Ok(Self { child, lines })
    }

    async fn until(&mut self, words: &str) -> Result<()> {
        let mut all = String::new();
        while let Some(line) = timeout(LINE_MAX, self.lines.next_line()).await?? {
            all.push_str(&format!("{line}\n"));
            if line.contains(words) {
                return Ok(());
            }
        }
        anyhow::bail!("`{words}` was not said: {all}")
    }

    async fn code(mut self) -> Result<Option<i32>> {
        let said = async {
            let mut all = String::new();
            while let Some(line) = self.lines.next_line().await? {
                all.push_str(&format!("{line}\n"));
            }
            Ok::<_, anyhow::Error>(all)
        };
        timeout(LINE_MAX, said).await??;
        Ok(timeout(LINE_MAX, self.child.wait()).await??.code())
    }
}

/// A port that forwards to one server and then to another.
struct Door {
    url: String,
    house: Arc<Mutex<String>>,
    _tasks: JoinSet<()>,
}

impl Door {
    async fn to(api: &str) -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let house = Arc::new(Mutex::new(api.to_owned()));
        let mut tasks = JoinSet::new();
        let behind = Arc::clone(&house);
        tasks.spawn(async move {
            let mut visits = JoinSet::new();
            while let Ok((mut here, _)) = listener.accept().await {
                let api = behind.lock().unwrap_or_else(PoisonError::into_inner).clone();
                visits.spawn(async move {
                    if let Ok(mut there) =
                        TcpStream::connect(api.trim_start_matches("http://")).await
                    {
                        copy_bidirectional(&mut here, &mut there).await.ok();
                    }
                });
            }
        });
        Ok(Self { url, house, _tasks: tasks })
    }

    fn lead_to(&self, api: &str) {
        api.clone_into(&mut self.house.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_is_followed_over_a_restart_and_stopped_by_ctrl_c() -> Result<()> {
    let database = Database::create("remote_restart").await?;
    let target = Target::start(None).await?;
    let section = database.section()?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    let door = Door::to(&server.api).await?;
    let folder = TempDir::new()?;
    let file = folder.path().join("slow.yaml");
    fs::write(&file, test("slow", &format!("{}/cart?wait=2000", target.url), 200, ""))?;
    let file = file.display().to_string();
    let start = || Running::start(&["run", &file, "--server", &door.url, "--verbose"]);

    let mut command = start()?;
    command.until("slow: fired, trace ").await?;
    server.kill().await?;
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    door.lead_to(&server.api);
    // The result of the first request is unknown.
    assert_eq!(command.code().await?, Some(3), "it is followed to its end");

    let mut command = start()?;
    command.until("slow: fired, trace ").await?;
    assert!(command.child.try_wait()?.is_none(), "it is told as it happens");
    command.until("slow: answered 200, waiting for the trace").await?;
    assert_eq!(command.code().await?, Some(0));

    fs::write(&file, test("slow", &format!("{}/cart?wait=9000", target.url), 200, ""))?;
    let mut command = start()?;
    command.until("slow: fired, trace ").await?;
    let id = command.child.id().context("it runs")?.to_string();
    Command::new("kill").args(["-INT", &id]).status().await?;
    assert_eq!(command.code().await?, Some(130));
    let api = Api::new(&server.api)?;
    let (_, last) = answer(api.request(reqwest::Method::GET, "/api/v1/runs?limit=1")).await?;
    let last = last["items"][0]["id"].as_str().context("a run")?.to_owned();
    let stopped = api.ended(&last, Duration::from_secs(5)).await?;
    assert!(stopped["outcome"]["reasons"].to_string().contains("stopped"), "{stopped:#}");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

/// Writes a certificate authority's certificate, and a certificate and key that it issued for this machine, to files.
fn certificates(folder: &Path) -> Result<[String; 3]> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?;
    let issuer = Issuer::new(params, key);
    let key = KeyPair::generate()?;
    let names = ["127.0.0.1", "localhost"].map(str::to_owned).to_vec();
    let certificate = CertificateParams::new(names)?.signed_by(&key, &issuer)?;
    let write = |name: &str, label: &str, der: &[u8]| -> Result<String> {
        let path = folder.join(name);
        let text = BASE64_STANDARD.encode(der);
        fs::write(&path, format!("-----BEGIN {label}-----\n{text}\n-----END {label}-----\n"))?;
        Ok(path.display().to_string())
    };
    Ok([
        write("ca.pem", "CERTIFICATE", authority.der())?,
        write("api.pem", "CERTIFICATE", certificate.der())?,
        write("api.key", "PRIVATE KEY", &key.serialize_der())?,
    ])
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_is_reached_by_tls_and_only_if_it_is_trusted() -> Result<()> {
    let database = Database::create("remote_tls").await?;
    let target = Target::start(None).await?;
    let folder = TempDir::new()?;
    let [ca, cert, key] = certificates(folder.path())?;
    let tls = format!("server: {{tls: {{cert: '{cert}', key: '{key}'}}}}\n");
    let section = format!("{}\n{tls}", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &section, "127.0.0.1:0").await?;
    ensure!(server.api.starts_with("https://127.0.0.1:"), "{}", server.api);
    let file = folder.path().join("alone.yaml");
    fs::write(&file, test("alone", &format!("{}/cart", target.url), 200, ""))?;
    let file = file.display().to_string();
    let run = ["run", &file, "--server", &server.api, "--verbose"];
    let trusted = qualitytrace(Path::new(BINARY), &[&run[..], &["--ca", &ca]].concat()).await?;
    assert_eq!(trusted.code, Some(0), "{}{}", trusted.out, trusted.err);
    assert!(trusted.err.contains("alone: answered 200, waiting"), "live: {}", trusted.err);

    let unknown = qualitytrace(Path::new(BINARY), &run).await?;
    assert_eq!(unknown.code, Some(3), "{}", unknown.err);
    assert!(unknown.err.contains("cannot be reached") && unknown.err.contains("UnknownIssuer"));
    let other = qualitytrace(Path::new(BINARY), &[&run[..], &["--ca", &key]].concat()).await?;
    assert_eq!(other.code, Some(2), "{}", other.err);
    assert!(other.err.contains("holds no certificate"), "{}", other.err);

    for (name, port) in [("QUALITYTRACE_CA", "127.0.0.1"), ("SSL_CERT_FILE", "localhost")] {
        let api = server.api.replace("127.0.0.1", port);
        let mut list = Command::new(BINARY);
        let list = list.args(["list", "tests", "--server", &api]).env(name, &ca).output().await?;
        assert_eq!(
            String::from_utf8_lossy(&list.stdout),
            "ID     VERSION  NAME\nalone  1        alone\n",
            "{list:?}"
        );
    }
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

const RUN: &str = "0199a000-0000-7000-8000-000000000001";

/// A simulated server of another version, as far as a run needs one: such a server cannot be built here.
async fn other_version(events: fn(&HeaderMap) -> Response) -> Result<(String, JoinSet<()>)> {
    let reads = Arc::new(AtomicUsize::new(0));
    let run = move || {
        let reads = reads.fetch_add(1, Ordering::SeqCst);
        let outcome = json!({
            "runId": RUN, "test": "alone", "verdict": "passed", "reasons": [], "traceId": null, "mood": "good",
            "answer": {"response": {"status": 200, "headers": [], "body": {"text": ""}, "durationNs": 1}},
            "settlement": null, "judgement": {"verdict": "passed", "specs": [], "outputs": []}, "steps": [],
        });
        let outcome = if reads < 3 { Value::Null } else { outcome };
        async move { Json(json!({"id": RUN, "weather": [1], "outcome": outcome})) }
    };
    let applied = json!({"tests": [{"id": "alone", "name": "alone", "version": 1, "changed": true}], "notices": ""});
    let router = Router::new()
        .route("/api/v1/tests", put(|| async move { Json(applied) }))
        .route(
            "/api/v1/tests/alone/runs",
            post(|| async { (StatusCode::ACCEPTED, Json(json!({"id": RUN}))) }),
        )
        .route(&format!("/api/v1/runs/{RUN}"), get(run))
        .route(
            &format!("/api/v1/runs/{RUN}/events"),
            get(move |headers: HeaderMap| async move { events(&headers) }),
        );
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        let _ended = axum::serve(listener, router).await;
    });
    Ok((url, tasks))
}

/// The events of a version without event streams, which always returns a list.
fn older(_: &HeaderMap) -> Response {
    let answered = json!({"at": "2026-11-15T14:00:00Z", "what": {"answered": {"status": 200}}});
    Json(json!([{"n": 1, "event": answered}])).into_response()
}

/// The events of a version with fields and events that this version does not know.
fn newer(headers: &HeaderMap) -> Response {
    assert_eq!(
        headers.get(header::ACCEPT).map(|it| it.as_bytes()),
        Some(&b"text/event-stream"[..])
    );
    let text = "retry: 10\n\nid: 1\nevent: pondered\ndata: {\"n\":1,\"event\":{\"at\":\"2026-11-15T14:00:00Z\",\"what\":{\"pondered\":{}}}}\n\n\
                id: 2\nevent: answered\nmood: good\ndata: {\"n\":2,\"by\":7,\"event\":{\"at\":\"2026-11-15T14:00:00Z\",\"why\":1,\n\
                data: \"what\":{\"answered\":{\"status\":200}}}}\n\nevent: end\ndata: {\"verdict\":\"passed\"}\n\n";
    ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], text).into_response()
}

/// The events of a server without a free slot for another reader.
fn full(headers: &HeaderMap) -> Response {
    match headers.get(header::ACCEPT).is_some_and(|it| it == "text/event-stream") {
        true => (StatusCode::TOO_MANY_REQUESTS, Json(json!({"detail": "full"}))).into_response(),
        false => older(headers),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn older_and_newer_servers_are_understood() -> Result<()> {
    let folder = TempDir::new()?;
    let file = folder.path().join("alone.yaml");
    fs::write(&file, test("alone", "http://127.0.0.1:1/", 200, ""))?;
    let file = file.display().to_string();
    for (version, events) in
        [("older", older as fn(&HeaderMap) -> Response), ("newer", newer), ("full", full)]
    {
        let (url, _tasks) = other_version(events).await?;
        let finished =
            qualitytrace(Path::new(BINARY), &["run", &file, "--server", &url, "--verbose"]).await?;
        assert_eq!(finished.code, Some(0), "{version}: {}{}", finished.out, finished.err);
        let told = finished.err.matches("alone: answered 200, waiting for the trace").count();
        ensure!(told == 1, "{version}: told once: {}", finished.err);
    }
    Ok(())
}
