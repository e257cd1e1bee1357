//! What a service manager and an orchestrator need of the server, by the built binary: values from files, a token to begin with,
//! migrations apart from the start, the protocol of systemd, and log lines that name their run.

use std::{collections::BTreeSet, fs, path::Path, process::Stdio, time::Duration};

use anyhow::{Context, Result, bail, ensure};
use bench::parts::{
    Api, CommandResult, Database, Gate, Hold, Server, Target, free_port, qualitytrace,
};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::{
    io::{AsyncBufReadExt, BufReader},
    net::UnixDatagram,
    process::Command,
    time::{Instant, sleep, timeout},
};

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const STARTED_MAX: Duration = Duration::from_secs(30);

async fn run(arguments: &[&str]) -> Result<CommandResult> {
    qualitytrace(Path::new(BINARY), arguments).await
}

/// A token that an operator made.
fn token(letter: char) -> String {
    format!("qtt_{}", letter.to_string().repeat(43))
}

/// The section of a configuration with the operator's token, in a file as a mounted secret is.
fn with_token(database: &Database, folder: &Path, token: &str) -> Result<String> {
    fs::write(folder.join("token"), format!("{token}\n"))?;
    Ok(format!(
        "{}\nserver: {{auth: {{mode: on, bootstrapToken: '${{file:{}/token}}'}}}}\n",
        database.section()?,
        folder.display()
    ))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_of_a_file_is_valid_as_long_as_it_is_configured() -> Result<()> {
    let (database, folder) = (Database::create("bootstrap").await?, TempDir::new()?);
    let (first, second) = (token('a'), token('b'));
    let mut server = None;
    for (now, other) in [(&first, &second), (&second, &first), (&first, &second)] {
        let configuration = with_token(&database, folder.path(), now)?;
        let running = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let who = ["whoami", "--server", &running.api, "--token"];
        let valid = run(&[&who[..], &[now]].concat()).await?;
        assert_eq!(valid.code, Some(0), "{}{}", valid.out, valid.err);
        assert!(valid.out.contains("bootstrap") && valid.out.contains("admin"), "{}", valid.out);
        let invalid = run(&[&who[..], &[other]].concat()).await?;
        assert_eq!(invalid.code, Some(2), "the other one is not configured: {}", invalid.out);
        if let Some(before) = server.replace(running) {
            Server::kill(before).await?;
        }
    }
    let server = server.context("a server")?;
    let logged = fs::read_to_string(&server.config)?;
    assert!(!logged.contains(&first), "the configuration has the path alone");
    server.kill().await?;
    // Without the key nothing of it is left.
    let without = format!("{}\nserver: {{auth: {{mode: on}}}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &without, "127.0.0.1:0").await?;
    let gone = run(&["whoami", "--server", &server.api, "--token", &first]).await?;
    assert_eq!(gone.code, Some(2), "{}", gone.out);
    server.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_that_is_no_value_is_refused_at_its_line() -> Result<()> {
    let folder = TempDir::new()?;
    let path = folder.path().join("server.yaml");
    let check = ["config", "check", "--config", path.to_str().context("UTF-8")?];
    fs::write(folder.path().join("short"), "qtt_short")?;
    fs::write(folder.path().join("word"), "word\n")?;
    for (value, expected) in [
        ("server: {auth: {bootstrapToken: '${file:short}'}}", "43 letters"),
        ("postgres: {password: '${file:nowhere}'}", "the file `nowhere` cannot be read"),
        ("postgres: {password: '${file:}'}", "`${file:PATH}`"),
        ("postgres: {password: '${file:.}'}", "the file `.` cannot be read"),
    ] {
        fs::write(&path, value)?;
        let refused = run(&check).await?;
        assert_eq!(refused.code, Some(2), "{value}: {}{}", refused.out, refused.err);
        ensure!(refused.err.contains(expected), "{value}: {}", refused.err);
        ensure!(refused.err.contains("server.yaml:1:"), "{value}: {}", refused.err);
        ensure!(!refused.err.contains("qtt_short"), "a secret: {}", refused.err);
    }
    fs::write(
        &path,
        "# ${file:nowhere} in a comment is no value\npostgres: {password: '${file:word}'}",
    )?;
    let right = run(&check).await?;
    assert_eq!(right.code, Some(0), "{}{}", right.out, right.err);
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_are_migrated_apart_from_the_start() -> Result<()> {
    let database = Database::create("migrate").await?;
    let configuration = format!("{}\nserver: {{migrate: false}}\n", database.section()?);
    let server = Server::start_listening(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let status = run(&["status", "--server", &server.api]).await?;
    assert_eq!(status.code, Some(1), "{}{}", status.out, status.err);
    assert!(status.out.contains("qualitytrace migrate"), "{}", status.out);
    let config = server.config.display().to_string();
    let migrated = run(&["migrate", "--config", &config]).await?;
    assert_eq!(migrated.code, Some(0), "{}{}", migrated.out, migrated.err);
    let began = Instant::now();
    while run(&["status", "--ready", "--server", &server.api]).await?.code != Some(0) {
        ensure!(began.elapsed() < STARTED_MAX, "the server waits no more");
        sleep(Duration::from_millis(100)).await;
    }
    let again = run(&["migrate", "--config", &config]).await?;
    assert_eq!(again.code, Some(0), "it may be run again: {}", again.err);
    server.kill().await?;
    database.remove().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_that_cannot_be_reached_is_reported() -> Result<()> {
    let (database, folder) = (Database::create("unnotified").await?, TempDir::new()?);
    let config = folder.path().join("server.yaml");
    fs::write(&config, database.section()?)?;
    let [http, grpc, otlp] = [free_port()?, free_port()?, free_port()?];
    let mut server = Command::new(BINARY);
    server.arg("serve").arg("--config").arg(&config).current_dir(folder.path());
    server.env("NOTIFY_SOCKET", folder.path().join("nowhere")).env("WATCHDOG_USEC", "0");
    for (flag, port) in [("--http", http), ("--otlp-grpc", grpc), ("--otlp-http", otlp)] {
        server.arg(flag).arg(format!("127.0.0.1:{port}"));
    }
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut server = server.spawn()?;
    let mut lines = BufReader::new(server.stderr.take().context("stderr")?).lines();
    let reported = timeout(STARTED_MAX, async {
        while let Some(line) = lines.next_line().await? {
            if line.contains("NOTIFY_SOCKET") {
                return Ok(line);
            }
        }
        bail!("it ended without a word of it")
    });
    let line = reported.await??;
    assert!(line.contains("/nowhere`"), "{line}");
    server.kill().await?;
    database.remove().await
}

/// Waits for a message with this line.
async fn message(manager: &UnixDatagram, line: &str) -> Result<String> {
    let mut buffer = [0; 4096];
    let began = Instant::now();
    while began.elapsed() < STARTED_MAX {
        let length = timeout(STARTED_MAX, manager.recv(&mut buffer)).await??;
        let text = String::from_utf8_lossy(&buffer[..length]).into_owned();
        if text.lines().any(|it| it.starts_with(line)) {
            return Ok(text);
        }
    }
    bail!("no message with `{line}`")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_service_manager_learns_the_state_of_the_server() -> Result<()> {
    let (database, folder) = (Database::create("notified").await?, TempDir::new()?);
    let config = folder.path().join("server.yaml");
    let ports = [free_port()?, free_port()?, free_port()?];
    let [http, grpc, otlp] = ports;
    fs::write(
        &config,
        format!(
            "{}\nserver: {{httpPort: {http}, otlpGrpcPort: {grpc}, otlpHttpPort: {otlp}, dataDirectory: {}}}\n",
            database.section()?,
            folder.path().display()
        ),
    )?;
    let socket = folder.path().join("notify");
    let manager = UnixDatagram::bind(&socket)?;
    let mut server = Command::new(BINARY);
    server.arg("serve").arg("--config").arg(&config).env("NOTIFY_SOCKET", &socket);
    server.env("WATCHDOG_USEC", "400000").kill_on_drop(true);
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut server = server.spawn()?;
    let started = message(&manager, "READY=1").await?;
    assert!(started.contains("STATUS=ready"), "{started}");
    message(&manager, "WATCHDOG=1").await?;
    let began = Instant::now();
    message(&manager, "WATCHDOG=1").await?;
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    let process = server.id().context("it runs")?.to_string();
    let signal = |name: &'static str| Command::new("kill").arg(name).arg(&process).status();
    signal("-HUP").await?;
    let reloading = message(&manager, "RELOADING=1").await?;
    let micros = reloading.lines().find_map(|line| line.strip_prefix("MONOTONIC_USEC="));
    assert!(micros.context("a time")?.parse::<u64>()? > 0, "{reloading}");
    message(&manager, "READY=1").await?;
    signal("-TERM").await?;
    message(&manager, "STOPPING=1").await?;
    let ended = timeout(STARTED_MAX, server.wait()).await??;
    assert!(ended.success(), "{ended}");
    database.remove().await
}

/// Waits until the log has this text, and returns the log.
async fn log_with(server: &Server, text: &str) -> Result<String> {
    let began = Instant::now();
    loop {
        let log = server.log()?;
        if log.contains(text) {
            return Ok(log);
        }
        ensure!(began.elapsed() < STARTED_MAX, "the log has no `{text}`:\n{log}");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_line_about_a_run_has_its_id_and_its_trace() -> Result<()> {
    let database = Database::create("run_log").await?;
    let gate = Gate::start(&database, "attempted_epoch = epoch", Hold::Answer).await?;
    let postgres = database.section_at(gate.port)?;
    let configuration = format!("{postgres}\nlog: {{level: debug, format: json}}\n");
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let api = Api::new(&server.api)?;
    api.apply(&target.test(Duration::from_millis(100))).await?;
    let run = api.start("cart", &json!({})).await?;
    gate.held().await;
    // A statement that takes a second is logged, and that line does not name the run itself.
    sleep(Duration::from_millis(1200)).await;
    gate.release();
    let ended = api.ended(&run, STARTED_MAX).await?;
    assert_eq!(ended["verdict"], "passed", "{ended:#}");
    server.signal("-TERM").await?;
    let log = log_with(&server, "late spans are not received").await?;

    let (mut messages, mut traces, mut of_traces) = (Vec::new(), BTreeSet::new(), Vec::new());
    for line in log.lines() {
        let line: Value = serde_json::from_str(line).with_context(|| line.to_owned())?;
        let trace = line["trace_id"].as_str().map(str::to_owned);
        if line["qualitytrace.run.id"] == run.as_str() {
            let trace = trace.with_context(|| line.to_string())?;
            messages.push(line["message"].as_str().context("a message")?.to_owned());
            traces.insert(trace);
        } else {
            assert!(!line.to_string().contains(&run), "a run without its key: {line}");
            of_traces.extend(trace.map(|trace| (trace, line)));
        }
    }
    assert_eq!(traces.len(), 1, "the request that started it, and all that it did: {traces:?}");
    for (trace, line) in of_traces {
        // A slow statement of the request was before the run.
        let of_request = line["message"].as_str().is_some_and(|it| it.contains(" INSERT runs"));
        assert!(of_request || !traces.contains(&trace), "a line of the run without its id: {line}");
    }
    for expected in [
        "a run was accepted",
        "leased with epoch 1",
        "the database took ",
        "the verdict is stored: passed",
        "a run ended",
        "late spans are not received any more",
    ] {
        let is_there = messages.iter().any(|message| message.starts_with(expected));
        assert!(is_there, "`{expected}` is not in {messages:#?}");
    }
    drop(server);
    database.remove().await
}
