//! No secret of a caller is in a place that others can read: logs, spans, errors, the database.

use std::{
    fs::{self, File},
    path::{Path, PathBuf},
    process::Stdio,
    time::Duration,
};

use anyhow::{Context, Result};
use bench::parts::{CollectedData, Collector, Database, Target, free_port, setting};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::TcpStream,
    process::{Child, Command},
    time::timeout,
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const READY_MAX: Duration = Duration::from_secs(60);

/// Counts the rows of all tables that contain a token: as text, or as bytes.
const IN_THE_RECORD: &str = "select coalesce(sum((xpath('/row/c/text()', query_to_xml(format(
    'select count(*) as c from %I x where x::text ~ ''qtt_[A-Za-z0-9_-]{8}'' or x::text like ''%%7174745f%%''', table_name),
    false, true, '')))[1]::text::bigint), 0)::bigint
 from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'";

/// Runs a command with this configuration folder, and returns its exit code and all its output.
async fn said(folder: &Path, arguments: &[&str], token: Option<&str>) -> Result<(i32, String)> {
    let mut command = Command::new(BINARY);
    command.args(arguments).current_dir(folder).env("XDG_CONFIG_HOME", folder).kill_on_drop(true);
    if let Some(token) = token {
        command.env("QUALITYTRACE_TOKEN", token);
    }
    let output = timeout(READY_MAX, command.output()).await??;
    let said = [output.stdout, output.stderr].concat();
    Ok((
        output.status.code().context("it ended by itself")?,
        String::from_utf8_lossy(&said).into_owned(),
    ))
}

/// Sends a raw request, and returns the complete response.
async fn raw(api: &str, request: &str) -> Result<String> {
    let mut stream = TcpStream::connect(api.trim_start_matches("http://")).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    timeout(READY_MAX, stream.read_to_end(&mut answer)).await??;
    Ok(String::from_utf8_lossy(&answer).into_owned())
}

/// A server that logs to a file, until it is dropped.
struct Server {
    child: Child,
    api: String,
    config: String,
    log: PathBuf,
}

impl Server {
    async fn start(folder: &Path, database: &Database, collector: u16) -> Result<Self> {
        let config = folder.join("quality-trace-config.yaml");
        let endpoint = format!("collector: {{endpoint: '127.0.0.1:{collector}'}}");
        let text = format!(
            "{}
telemetry: {{exporters: {{all: {{sampling: 100, exporter: {{type: collector, {endpoint}}}}}}}}}
server: {{auth: {{mode: on}}, triggers: {{networks: {{allow: [loopback]}}}}, telemetry: {{exporter: all, applicationExporter: all}}}}
log: {{level: trace, format: json}}
",
            database.section()?
        );
        fs::write(&config, text)?;
        let log = folder.join("server.log");
        let any = "127.0.0.1:0";
        let mut child = Command::new(BINARY)
            .args(["serve", "--http", any, "--otlp-grpc", any, "--otlp-http", any])
            .arg("--config")
            .arg(&config)
            .env("STATE_DIRECTORY", folder)
            .stdout(Stdio::piped())
            .stderr(File::create(&log)?)
            .kill_on_drop(true)
            .spawn()?;
        let mut lines = BufReader::new(child.stdout.take().context("a stdout")?).lines();
        // On a busy machine it first reports that it waits for its database.
        let mut ready = String::new();
        while !ready.starts_with("ready: ") {
            ready = timeout(READY_MAX, lines.next_line()).await??.context("it is ready")?;
        }
        let api = ready.split_once("API ").context("an address")?.1;
        let api = api.split([',', ' ']).next().unwrap_or_default().to_owned();
        let config = config.to_str().context("a path")?.to_owned();
        Ok(Self { child, api, config, log })
    }
}

fn test_of(url: &str) -> String {
    format!(
        "type: Test
spec:
  id: cart
  name: cart
  skipTraceCollection: true
  trigger:
    type: http
    httpRequest: {{method: GET, url: '{url}/cart'}}
  specs:
    - selector: span[name=\"Qualitytrace trigger\"]
      assertions: ['attr:tracetest.response.status = 200']
"
    )
}

/// Returns the output of all commands of a user who is refused, logs in, applies and runs.
async fn commands(folder: &Path, api: &str, token: &str) -> Result<Vec<String>> {
    let wrong = Some("qtt_wrong-s3cr3t");
    let (code, refused) = said(folder, &["apply", "--server", api, "test.yaml"], wrong).await?;
    assert_eq!(code, 2, "{refused}");
    assert!(refused.contains("good for nothing"), "{refused}");
    let (code, known) = said(folder, &["login", "--server", api], Some(token)).await?;
    assert_eq!(code, 0, "{known}");
    assert!(known.contains("knows you as `admin`, admin"), "{known}");
    let mut heard = vec![refused, known];
    // From now on the profile has the token.
    for arguments in [
        &["apply", "test.yaml"][..],
        &["run", "--server", api, "test.yaml"],
        &["run", "--profile", "default", "test.yaml"],
    ] {
        let (code, out) = said(folder, arguments, None).await?;
        assert_eq!(code, 0, "{arguments:?}: {out}");
        heard.push(out);
    }
    Ok(heard)
}

/// Checks that an error response does not repeat the request.
async fn refusals(api: &str, token: &str) -> Result<Vec<String>> {
    let mut heard = Vec::new();
    for shown in [
        format!("authorization: Basic {token}"),
        format!("authorization: Bearer {token}x"),
        format!("cookie: qualitytrace_session={token}"),
    ] {
        let request =
            format!("GET /api/v1/me HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{shown}\r\n\r\n");
        let answer = raw(api, &request).await?;
        assert!(answer.starts_with("HTTP/1.1 401 "), "{answer}");
        heard.push(answer);
    }
    // A token in the position of an id or a name.
    for path in [format!("/api/v1/tokens/{token}"), format!("/api/v1/{token}")] {
        let shown = format!("authorization: Bearer {token}");
        let request =
            format!("DELETE {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n{shown}\r\n\r\n");
        let answer = raw(api, &request).await?;
        assert!(answer.starts_with("HTTP/1.1 40") && answer.contains("qtt_***"), "{answer}");
        heard.push(answer);
    }
    Ok(heard)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_secret_stays_so() -> Result<()> {
    let folder = TempDir::new()?;
    let database = Database::create("secrets").await?;
    let port = free_port()?;
    let collector = Collector::start(port, None).await?;
    let target = Target::start(None).await?;
    let mut server = Server::start(folder.path(), &database, port).await?;
    fs::write(folder.path().join("test.yaml"), test_of(&target.url))?;
    // The first token, created with the configuration of the server.
    let create = ["token", "create", "--config", &server.config];
    let (code, out) = said(folder.path(), &create, None).await?;
    assert_eq!(code, 0, "{out}");
    let token = out.lines().find(|line| line.starts_with("qtt_"));
    let token = token.context("it is told once")?.to_owned();
    let mut heard = commands(folder.path(), &server.api, &token).await?;
    heard.extend(refusals(&server.api, &token).await?);
    let runs = |it: &CollectedData| it.named("qualitytrace.run").count();
    let spans = collector.wait_for(READY_MAX, |it| runs(it) >= 2).await?;
    assert!(runs(&spans) >= 2, "there is something to look through");
    server.child.kill().await?;
    heard.extend(spans.spans.iter().map(|span| span.json.to_string()));
    heard.push(fs::read_to_string(&server.log)?);
    let password = setting("QUALITYTRACE_TEST_POSTGRES_PASSWORD")?;
    for text in &heard {
        for secret in [&token["qtt_".len()..], "wrong-s3cr3t", &password] {
            assert!(!text.contains(secret), "{secret} is in {text}");
        }
    }
    assert_eq!(database.count(IN_THE_RECORD).await?, 0, "no token is in the record");
    let kept = folder.path().join("qualitytrace/profiles.json");
    assert!(fs::read_to_string(&kept)?.contains(&token), "it is where it belongs");
    collector.kill().await?;
    database.remove().await
}
