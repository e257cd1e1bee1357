//! After runs full of secrets, a server has leaked none of them: not in its logs, spans, metrics, responses and reports, not
//! in the database, and on its disk only in stored spans, as their senders sent them.

use std::{
    fs::{self, File},
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::Stdio,
    thread,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use base64::{Engine, engine::general_purpose::STANDARD};
use bench::parts::{Collector, Database, free_port, setting};
use reqwest::{Client, Method};
use serde_json::json;
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    process::{Child, Command},
    time::{sleep, timeout},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const WAIT_MAX: Duration = Duration::from_secs(40);

/// A substring of every secret here that is a text.
const PART: &str = "s3cr3t";
/// A secret of a variable set: the system returns it in a response, and sets it in no span.
const OF_THE_SET: &str = "s3cr3t-of-the-set-41";
/// A secret of a variable set: the system's own spans contain it.
const IN_A_SPAN: &str = "s3cr3t-in-a-span-42";
const OF_THE_STORE: &str = "s3cr3t-of-the-store-45";
const SECRET_KEY: &str = "0ddba11d0ddba11d0ddba11d0ddba11d0ddba11d0ddba11d0ddba11d0ddba11d";
const ID_KEY: &str = "5ca1ab1e5ca1ab1e5ca1ab1e5ca1ab1e";

/// Counts the rows of all tables that contain a part of a secret, or of a key: as text, or as bytes.
const IN_THE_RECORD: &str = "select coalesce(string_agg(table_name || ': ' || found, ', '), '') from (
    select table_name, (xpath('/row/c/text()', query_to_xml(format(
        'select count(*) as c from %I x where x::text ~* ''s3cr3t|733363723374|czNjcjN0|0ddba11d|5ca1ab1e''', table_name),
        false, true, '')))[1]::text as found
    from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE') counted
 where found <> '0'";

/// A server for requests, until it is dropped.
struct Server {
    child: Child,
    client: Client,
    api: String,
    config: PathBuf,
    log: PathBuf,
    token: String,
}

fn configuration(database: &Database, collector: u16, format: &str) -> Result<String> {
    Ok(format!(
        "{}
telemetry:
  exporters:
    all:
      sampling: 100
      exporter:
        type: collector
        collector:
          endpoint: 127.0.0.1:{collector}
          headers: {{authorization: 'Bearer s3cr3t-of-the-exporter-43'}}
tracer:
  logs: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{collector}', level: trace, enable: {{log-exporter: true}}}}
metrics:
  open-telemetry: {{transport: grpc, endpoint: 'http://127.0.0.1:{collector}', interval: 500ms}}
server:
  auth:
    mode: on
    ingest: {{required: false}}
    oidc: {{issuer: 'https://127.0.0.1:1', clientId: qt, clientSecret: s3cr3t-of-the-client-44, roles: {{a: admin}}}}
  triggers: {{networks: {{allow: [loopback]}}}}
  telemetry: {{exporter: all, applicationExporter: all}}
ids: {{keys: ['{ID_KEY}']}}
secrets: {{keys: ['first:{SECRET_KEY}']}}
log: {{level: trace, format: {format}}}
",
        database.section()?
    ))
}

/// Returns all output of a command.
async fn said(arguments: &[&str], token: &str) -> Result<String> {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("QUALITYTRACE_TOKEN", token).kill_on_drop(true);
    let output = timeout(WAIT_MAX, command.output()).await??;
    let said = [output.stdout, output.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    ensure!(output.status.success(), "{arguments:?}: {said}");
    Ok(said)
}

impl Server {
    async fn start(
        (config, state): (&Path, &Path),
        text: &str,
        (otlp, format): (u16, &str),
    ) -> Result<Self> {
        fs::write(config, text)?;
        let log = config.with_file_name(format!("{format}.log"));
        let otlp = format!("127.0.0.1:{otlp}");
        let mut child = Command::new(BINARY)
            .args(["serve", "--http", "127.0.0.1:0", "--otlp-grpc", "127.0.0.1:0"])
            .args(["--otlp-http", &otlp, "--config"])
            .arg(config)
            .env("STATE_DIRECTORY", state)
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("a stdout")?).lines();
        let api = loop {
            let line = timeout(WAIT_MAX, lines.next_line()).await??.context("it is ready")?;
            if let Some((_, rest)) = line.split_once("ready: API ") {
                break rest.split(',').next().unwrap_or_default().to_owned();
            }
        };
        let file = config.to_str().context("a path")?;
        let told = said(&["token", "create", "--config", file], "").await?;
        let token = told.lines().find(|line| line.starts_with("qtt_")).context("a token")?;
        let client = Client::builder().no_proxy().timeout(WAIT_MAX).build()?;
        Ok(Self { child, client, api, config: config.to_owned(), log, token: token.to_owned() })
    }

    /// Sends a request; returns the status, and the complete response as text.
    async fn ask(&self, method: Method, path: &str, body: &str) -> Result<(u16, String)> {
        let request = self.client.request(method, format!("{}{path}", self.api));
        let request = request.bearer_auth(&self.token).body(body.to_owned());
        let response = request.header("accept", "*/*").send().await?;
        let (status, headers) = (response.status().as_u16(), format!("{:?}", response.headers()));
        Ok((status, headers + &String::from_utf8_lossy(&response.bytes().await?)))
    }

    async fn run(&self, test: &str) -> Result<String> {
        let start = json!({"variableSets": ["keys"]}).to_string();
        let (status, run) =
            self.ask(Method::POST, &format!("/api/v1/tests/{test}/runs"), &start).await?;
        ensure!(status == 202, "{run}");
        let id = run.split("\"id\":\"").nth(1).context("an id")?;
        let id = id[..36].to_owned();
        for _ in 0..400 {
            let (_, run) = self.ask(Method::GET, &format!("/api/v1/runs/{id}"), "").await?;
            if run.contains("\"state\":\"ended\"") {
                return Ok(id);
            }
            // At most 40 s in all.
            sleep(Duration::from_millis(100)).await;
        }
        anyhow::bail!("the run of `{test}` did not end")
    }

    /// Returns all that an authorized caller can read about a run.
    async fn told_of(&self, run: &str) -> Result<Vec<String>> {
        let mut told = Vec::new();
        let mut get = vec![format!("{run}"), format!("{run}/events"), format!("{run}/trace")];
        get.push(format!("{run}/trace/columns"));
        get.extend(report::Format::names().map(|it| format!("{run}/report?format={it}")));
        for path in get {
            told.push(self.ask(Method::GET, &format!("/api/v1/runs/{path}"), "").await?.1);
        }
        told.push(self.ask(Method::POST, &format!("/api/v1/runs/{run}/judgements"), "").await?.1);
        Ok(told)
    }
}

/// Documents with secrets, and tests that use them everywhere; one has no response, one cannot be sent, one not resolved.
fn documents(target: &str) -> String {
    format!(
        "type: VariableSet
spec:
  id: keys
  name: Keys
  values:
    - {{key: SET, value: {OF_THE_SET}, type: secret}}
    - {{key: SPAN, value: {IN_A_SPAN}, type: secret}}
---
type: TraceStore
spec: {{id: tempo, name: Tempo, type: tempo, tempo: {{type: http, http: {{url: 'http://127.0.0.1:3200', headers: {{authorization: {OF_THE_STORE}}}}}}}}}
---
type: Test
spec:
  id: told
  name: told
  trigger:
    type: http
    httpRequest:
      method: POST
      url: http://{target}/${{var:SET}}?key=${{var:SET}}
      headers: [{{key: x-set, value: '${{var:SET}}'}}, {{key: x-span, value: '${{var:SPAN}}'}}]
      body: '{{\"key\": \"${{var:SET}}\"}}'
      auth: {{type: basic, basic: {{username: ada, password: '${{var:SET}}'}}}}
  settle: {{timeout: 2s, flush: 200ms}}
  specs:
    - selector: span[name=\"told\"]
      assertions: ['attr:url.full = \"${{var:SPAN}}\"', 'attr:url.full = \"b\"']
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.body contains \"${{var:SET}}\"', 'attr:tracetest.response.body = \"b\"']
  outputs: [{{name: OUT, selector: 'span[name=\"told\"]', value: 'attr:url.full'}}]
---
type: Test
spec:
  id: refused
  name: refused
  trigger: {{type: http, httpRequest: {{url: 'http://${{var:SET}}@127.0.0.1:1/${{var:SET}}?key=${{var:SET}}'}}}}
---
type: Test
spec:
  id: unsendable
  name: unsendable
  trigger: {{type: http, httpRequest: {{url: 'http://127.0.0.1:1/', headers: [{{key: \"x\", value: \"${{var:SET}}\\n\"}}]}}}}
---
type: Test
spec:
  id: unfilled
  name: unfilled
  trigger: {{type: http, httpRequest: {{url: 'http://${{var:SET}}.invalid/${{var:NONE}}'}}}}
---
type: Test
spec:
  id: nowhere
  name: nowhere
  trigger: {{type: http, httpRequest: {{url: 'http://${{var:SET}}.invalid/'}}}}
"
    )
}

/// Responds to every request with the request itself, after a span that contains the second secret in each of its texts.
fn tell(listener: &TcpListener, otlp: u16) -> Result<()> {
    for stream in listener.incoming() {
        let mut stream = stream?;
        let mut asked = vec![0; 16 << 10];
        let read = stream.read(&mut asked)?;
        let asked = String::from_utf8_lossy(&asked[..read]).into_owned();
        let Some(parent) = asked.lines().find_map(|it| it.strip_prefix("traceparent: 00-")) else {
            continue;
        };
        export(otlp, &parent[..32], &parent[33..49])?;
        let (name, body) = ("x-said", asked.replace(IN_A_SPAN, ""));
        write!(
            stream,
            "HTTP/1.1 200 OK\r\n{name}: {OF_THE_SET}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        )?;
    }
    Ok(())
}

fn export(otlp: u16, trace: &str, parent: &str) -> Result<()> {
    let attribute = |key: &str| json!({"key": key, "value": {"stringValue": IN_A_SPAN}});
    let span = json!({
        "traceId": trace, "spanId": "00000000000000a1", "parentSpanId": parent, "name": "told", "kind": 2,
        "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": [attribute("url.full"), attribute(IN_A_SPAN)],
        "status": {"code": 2, "message": IN_A_SPAN}, "events": [{"name": IN_A_SPAN, "attributes": [attribute("e")]}],
    });
    let resource = json!({"attributes": [attribute("service.name")]});
    let export =
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]})
            .to_string();
    let mut stream = TcpStream::connect(("127.0.0.1", otlp))?;
    write!(
        stream,
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{export}",
        export.len()
    )?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    Ok(())
}

/// Collects every file below a folder, with its content.
fn files(folder: &Path, found: &mut Vec<(PathBuf, Vec<u8>)>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files(&path, found)?;
        } else {
            found.push((path.clone(), fs::read(&path)?));
        }
    }
    Ok(())
}

/// Returns all responses of the server while it receives secrets and requests for them.
async fn everything_told(server: &Server, target: &str) -> Result<Vec<String>> {
    let mut told = Vec::new();
    let applied = server.ask(Method::PUT, "/api/v1/documents", &documents(target)).await?;
    ensure!(applied.0 == 200, "{}", applied.1);
    told.push(applied.1);
    for test in ["told", "refused", "unsendable", "unfilled", "nowhere"] {
        let run = server.run(test).await?;
        let of_it = server.told_of(&run).await?;
        if test == "told" {
            let passed = |text: &String| text.matches("\"verdict\":\"passed\"").count();
            let (first, last) = (of_it.first().map(passed), of_it.last().map(passed));
            // The assertions that compare a secret with itself, on the spans that contain it, when judged and when re-judged.
            assert_eq!((first, last), (Some(4), Some(4)), "{of_it:#?}");
            assert!(of_it[2].contains("***"), "the trace is kept without it: {}", of_it[2]);
        }
        told.extend(of_it);
    }
    for path in [
        "/metrics",
        "/api/v1/runs",
        "/api/v1/variable-sets",
        "/api/v1/variable-sets/keys",
        "/api/v1/trace-stores/tempo",
        "/api/v1/audit",
        "/api/v1/tokens",
        "/auth/login",
        // An error response does not repeat the secret.
        "/api/v1/runs/none",
        "/api/v1/tests/none",
    ] {
        told.push(server.ask(Method::GET, path, "").await?.1);
    }
    let config = server.config.to_str().context("a path")?;
    for arguments in [
        &["config", "check", "--config", config][..],
        &["telemetry", "plan", "--config", config],
        &["export", "--server", &server.api],
        &["get", "variable-sets", "keys", "--server", &server.api],
    ] {
        told.push(said(arguments, &server.token).await?);
    }
    Ok(told)
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_full_of_secrets_leave_none() -> Result<()> {
    let folder = TempDir::new()?;
    let state = TempDir::new()?;
    let database = Database::create("kept_secrets").await?;
    let port = free_port()?;
    let collector = Collector::start_for_all(port).await?;
    let otlp = free_port()?;
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?.to_string();
    // It ends with the test.
    thread::spawn(move || tell(&listener, otlp));
    let config = folder.path().join("quality-trace-config.yaml");
    let mut told = Vec::new();
    let mut tokens = Vec::new();
    for format in ["json", "text"] {
        let text = configuration(&database, port, format)?;
        let mut server = Server::start((&config, state.path()), &text, (otlp, format)).await?;
        told.extend(everything_told(&server, &target).await?);
        let spans = |it: &bench::parts::CollectedData| it.named("qualitytrace.run").count();
        let wanted = 4 * (tokens.len() + 1);
        let collected = collector.wait_for(WAIT_MAX, |it| spans(it) >= wanted).await?;
        assert!(spans(&collected) >= wanted, "there is something to look through");
        for sign in ["resourceLogs", "resourceMetrics"] {
            let is_written = |_: &bench::parts::CollectedData| {
                collector.written().is_ok_and(|text| text.contains(sign))
            };
            let collected = collector.wait_for(WAIT_MAX, is_written).await?;
            assert!(is_written(&collected), "{sign} to look through");
        }
        server.child.kill().await?;
        told.push(fs::read_to_string(&server.log)?);
        tokens.push(server.token["qtt_".len()..].to_owned());
    }
    told.push(collector.written()?);
    let basic = STANDARD.encode(format!("ada:{OF_THE_SET}"));
    let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
    let encoded = STANDARD.encode(PART);
    let mut secrets = vec![PART, &basic, &password, SECRET_KEY, ID_KEY, &encoded];
    secrets.extend(tokens.iter().map(String::as_str));
    for text in &told {
        for secret in &secrets {
            let at = text.find(secret).map(|at| &text[at.saturating_sub(300)..at + secret.len()]);
            assert_eq!(at, None, "{secret}");
        }
    }
    assert_eq!(database.text(IN_THE_RECORD).await?, "", "in the record");
    on_disk(state.path(), &secrets)?;
    collector.kill().await?;
    database.remove().await
}

/// Checks the disk: only spans as sent are stored there, until their runs are judged.
fn on_disk(state: &Path, secrets: &[&str]) -> Result<()> {
    let mut found = Vec::new();
    files(state, &mut found)?;
    assert!(!found.is_empty(), "there is something to look through");
    for (path, bytes) in found {
        let text = String::from_utf8_lossy(&bytes).replace(IN_A_SPAN, "");
        for secret in secrets {
            assert!(!text.contains(secret), "{secret} is in {}", path.display());
        }
    }
    Ok(())
}
