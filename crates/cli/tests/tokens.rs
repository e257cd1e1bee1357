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
    // From now on the context has the token.
    for arguments in [
        &["apply", "test.yaml"][..],
        &["run", "--server", api, "test.yaml"],
        &["run", "--context", "default", "test.yaml"],
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
    let kept = folder.path().join("qualitytrace/contexts.json");
    assert!(fs::read_to_string(&kept)?.contains(&token), "it is where it belongs");
    collector.kill().await?;
    database.remove().await
}

/// Every command on contexts, tokens and the audit log, by a user with the right and by one without it.
#[tokio::test(flavor = "multi_thread")]
async fn contexts_tokens_and_the_audit_log_have_commands() -> Result<()> {
    let folder = TempDir::new()?;
    let database = Database::create("context_commands").await?;
    let mut server = Server::start(folder.path(), &database, free_port()?).await?;
    let token = async |arguments: &[&str]| -> Result<String> {
        let create = [&["token", "create", "--config", &server.config], arguments].concat();
        let (code, out) = said(folder.path(), &create, None).await?;
        assert_eq!(code, 0, "{out}");
        Ok(out.lines().find(|line| line.starts_with("qtt_")).context("a token")?.to_owned())
    };
    let admin = token(&[]).await?;
    let viewer = token(&["--name", "reader", "--role", "viewer", "--project", "shop"]).await?;
    let say = async |arguments: &[&str]| said(folder.path(), arguments, None).await;
    let api = server.api.as_str();

    // Without a context there is no token, and the server refuses.
    assert_eq!(say(&["whoami", "--server", api]).await?.0, 2);
    assert_eq!(say(&["context", "list"]).await?.1, "no contexts: `qualitytrace login` makes one\n");
    assert_eq!(say(&["logout"]).await?.0, 2);
    for (context, token) in [("work", &admin), ("reading", &viewer)] {
        let login = ["login", "--server", api, "--context", context, "--project", "shop"];
        let (code, out) = said(folder.path(), &login, Some(token)).await?;
        assert_eq!(code, 0, "{out}");
    }
    let (code, out) = say(&["context", "list"]).await?;
    let lines: Vec<Vec<_>> = out.lines().map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(code, 0, "{out}");
    assert_eq!(lines[0], ["CONTEXT", "SERVER", "PROJECT"]);
    assert_eq!(lines[1], ["*", "reading", api, "shop"]);
    assert_eq!(lines[2], ["work", api, "shop"]);
    assert!(!out.contains("qtt_"), "{out}");

    // The current context is the viewer's, who may not list tokens.
    let (code, out) = say(&["whoami"]).await?;
    assert_eq!((code, out), (0, format!("reader: viewer at {api}, projects: shop\n")));
    for refused in [&["token", "list"][..], &["audit"]] {
        let (code, out) = say(refused).await?;
        assert_eq!(code, 2, "{out}");
        assert!(out.starts_with("error: the server at "), "{out}");
    }
    assert_eq!(say(&["context", "use", "nowhere"]).await?.0, 2);
    assert_eq!(say(&["context", "use", "work"]).await?.0, 0);
    let (code, out) = say(&["token", "list", "--format", "json"]).await?;
    assert_eq!(code, 0, "{out}");
    let tokens: Vec<serde_json::Value> = serde_json::from_str(&out)?;
    assert_eq!(tokens.len(), 2, "{out}");
    let reader = tokens.iter().find(|it| it["name"] == "reader").context("the reader")?;
    let id = reader["id"].as_str().context("an id")?;
    let (_, names) = say(&["token", "list", "--format", "name"]).await?;
    assert!(names.lines().any(|line| line == id), "{names}");
    let (_, yaml) = say(&["token", "list", "--format", "yaml"]).await?;
    assert!(yaml.contains("name: reader\n"), "{yaml}");

    let (code, out) = say(&["token", "revoke", id]).await?;
    assert_eq!((code, out), (0, format!("{id}: revoked\n")));
    let (code, out) = say(&["whoami", "--context", "reading"]).await?;
    assert_eq!(code, 2, "{out}");
    let (code, out) = say(&["audit", "--limit", "1"]).await?;
    assert_eq!(code, 0, "{out}");
    assert_eq!(out.lines().count(), 2, "{out}");
    assert!(out.contains("DELETE") && out.contains(id), "{out}");

    assert_eq!(say(&["context", "remove", "reading"]).await?.0, 0);
    assert_eq!(say(&["logout"]).await?.0, 0);
    assert_eq!(say(&["context", "list", "--format", "name"]).await?.1, "");
    server.child.kill().await?;
    database.remove().await
}
