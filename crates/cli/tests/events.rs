//! The records of the log exporter: every event of the catalogue by its name, with severity and trace context, and no logs of
//! libraries, no statements and no build paths. All parts are real.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{
    Api, CollectedData, CollectedLog, Collector, Database, Server, Target, answer, free_port,
    qualitytrace,
};
use reqwest::Method;
use serde_json::json;
use server::catalogue::EVENTS;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const WAIT_MAX: Duration = Duration::from_secs(30);
/// OpenTelemetry's severity number of `WARN`.
const INFO: u64 = 9;
const WARN: u64 = 13;
const VERSION: &str = "qualitytrace.document.version";

/// Fragments of SQL statements, of build paths, and of library logs about a connection.
const FOREIGN: &[&str] = &[
    "SELECT ",
    "select ",
    "INSERT INTO",
    "insert into",
    "UPDATE ",
    "rows_affected",
    ".cargo/registry",
    "/src/",
    ".rs:",
    "h2::",
    "hyper",
    "rustls",
    "sqlx",
];

fn configuration(
    database: &Database,
    data: &Path,
    ports: (u16, u16),
    level: &str,
) -> Result<String> {
    let (collector, refused) = ports;
    Ok(format!(
        "{}
server: {{dataDirectory: '{}'}}
log: {{level: {level}, format: json}}
tracer:
  all: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{collector}', level: {level}, throttle: 100ms, enable: {{log-exporter: true}}}}
  away: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{refused}'}}
",
        database.section()?,
        data.display()
    ))
}

fn named<'a>(collected: &'a CollectedData, event: &str) -> Vec<&'a CollectedLog> {
    collected.logs.iter().filter(|log| log.event() == event).collect()
}

/// Checks that every name and every attribute of an event is in the catalogue, which is the documentation.
fn assert_is_of_the_catalogue(log: &CollectedLog) {
    if log.event().is_empty() {
        return;
    }
    let event = EVENTS.iter().find(|event| event.name == log.event());
    assert!(event.is_some(), "`{}` is not in the catalogue", log.event());
    let Some(event) = event else { return };
    let word = match log.severity() {
        ..INFO => "debug",
        INFO..WARN => "info",
        _ => "warn",
    };
    assert!(event.severity.contains(word), "{word}: {event:?}");
    for key in log.keys() {
        assert!(
            event.attributes.contains(&key),
            "`{key}` of `{}` is not in the catalogue",
            log.event()
        );
    }
}

/// Applies a test by the route for tests only, applies it again without a change, and deletes it.
async fn change_documents(server: &Server, target: &Target) -> Result<()> {
    let (api, path) = (Api::new(&server.api)?, "/api/v1/tests");
    let text = target.test(Duration::from_millis(100)).replace("id: cart", "id: other");
    for _ in 0..2 {
        let (status, body) = answer(api.request(Method::PUT, path).body(text.clone())).await?;
        assert_eq!(status, 200, "{body}");
    }
    let (status, body) = answer(api.request(Method::DELETE, &format!("{path}/other"))).await?;
    assert_eq!(status, 204, "{body}");
    Ok(())
}

/// Starts a run that passes at first, and fails because of a span after the response.
async fn supersede(server: &Server, target: &Target) -> Result<()> {
    let api = Api::new(&server.api)?;
    let text = format!(
        "type: Test
spec:
  id: late
  name: late
  trigger: {{type: http, httpRequest: {{method: GET, url: '{}/cart?late=600&run=late'}}}}
  settle: {{timeout: 10s, flush: 30ms}}
  trace: ['no span[status=\"error\"]']
",
        target.url
    );
    api.apply(&text).await?;
    let run = api.start("late", &json!({})).await?;
    let ended = api.ended(&run, WAIT_MAX).await?;
    assert_eq!(ended["outcome"]["superseded"]["verdict"], "passed", "{ended:#}");
    Ok(())
}

/// Returns the event of a superseded verdict.
fn superseded(collected: &CollectedData) -> &CollectedLog {
    let superseded = named(collected, "qualitytrace.run.superseded")[0];
    let verdicts = ["qualitytrace.run.provisional_verdict", "qualitytrace.run.verdict"];
    let verdicts = verdicts.map(|key| superseded.text(key));
    assert_eq!(verdicts, [Some("passed"), Some("failed")]);
    superseded
}

/// Checks that each change of a document is logged once, with its version if it has one.
fn assert_changes(collected: &CollectedData) {
    let changes = named(collected, "qualitytrace.document.changed");
    let changes: Vec<_> = changes
        .iter()
        .map(|log| (log.text("qualitytrace.document.id"), log.keys().any(|key| key == VERSION)))
        .collect();
    let (first, second) = (Some("cart"), Some("other"));
    let third = Some("late");
    assert_eq!(changes, [(first, true), (second, true), (second, false), (third, true)]);
}

/// Checks that the log tells what a run did, in order, under its run id.
fn assert_story(collected: &CollectedData, run: Option<&str>) {
    let notes = named(collected, "qualitytrace.run.debug");
    let notes = notes.iter().filter(|log| log.text("qualitytrace.run.id") == run);
    let story: Vec<_> =
        notes.map(|log| log.json["body"]["stringValue"].as_str().unwrap_or("")).collect();
    let mut rest = story.iter();
    for begin in [
        "leased",
        "the bus delivers",
        "the attempt is stored",
        "the answer is stored: 200 after ",
        "settling begins: the trace has at most ",
        "settling ends after ",
        "the verdict is stored: passed",
    ] {
        assert!(rest.any(|note| note.starts_with(begin)), "`{begin}`: {story:#?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn events_have_names_and_places_and_libraries_are_not_heard() -> Result<()> {
    let database = Database::create("events").await?;
    let folder = TempDir::new()?;
    let ports = (free_port()?, free_port()?);
    let collector = Collector::start_for_all(ports.0).await?;
    let text = configuration(&database, folder.path(), ports, "trace")?;
    let server = Server::start_with(Path::new(BINARY), &text, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let file = folder.path().join("cart.yaml");
    fs::write(&file, target.test(Duration::from_millis(100)))?;
    let file = file.to_str().context("a path that is text")?;
    let passed = qualitytrace(Path::new(BINARY), &["run", file, "--server", &server.api]).await?;
    assert_eq!(passed.code, Some(0), "{passed:?}");
    change_documents(&server, &target).await?;
    supersede(&server, &target).await?;
    server.signal("-HUP").await?;
    let wanted = [
        "qualitytrace.server.ready",
        "qualitytrace.server.reloaded",
        "qualitytrace.document.changed",
        "qualitytrace.run.accepted",
        "qualitytrace.run.ended",
        "qualitytrace.run.superseded",
        "qualitytrace.exporter.trouble",
    ];
    let has_all = |it: &CollectedData| {
        let changes = named(it, "qualitytrace.document.changed").len();
        changes >= 4 && wanted.iter().all(|name| !named(it, name).is_empty())
    };
    let collected = collector.wait_for(WAIT_MAX, has_all).await?;
    let names: BTreeSet<_> = collected.logs.iter().map(CollectedLog::event).collect();
    assert!(has_all(&collected), "{names:?}");

    let [ended, late] = named(&collected, "qualitytrace.run.ended")[..] else {
        panic!("two runs: {names:?}")
    };
    assert_eq!(late.text("qualitytrace.run.verdict"), Some("failed"));
    let superseded = superseded(&collected);
    assert_eq!(ended.text("qualitytrace.run.verdict"), Some("passed"));
    assert_eq!(ended.text("test.case.name"), Some("the cart answers"));
    assert_eq!(ended.text("qualitytrace.settle.reason"), Some("complete"));
    let [accepted, _] = named(&collected, "qualitytrace.run.accepted")[..] else {
        panic!("two runs: {names:?}")
    };
    for event in [ended, accepted, superseded] {
        let place = ["traceId", "spanId"].map(|key| event.json[key].as_str().unwrap_or_default());
        let is_sent = collected.spans.iter().any(|span| [&*span.trace_id, &*span.span_id] == place);
        assert!(is_sent, "it names a span that is sent: {}", event.json);
    }
    assert_changes(&collected);
    assert_story(&collected, ended.text("qualitytrace.run.id"));
    let trouble = named(&collected, "qualitytrace.exporter.trouble");
    assert_eq!(trouble[0].text("otel.component.name"), Some("tracer.away"), "{}", trouble[0].json);

    for log in &collected.logs {
        assert_is_of_the_catalogue(log);
        let said = log.json.to_string();
        let foreign =
            FOREIGN.iter().find(|part| said.contains(**part) || log.scope.contains(**part));
        assert!(log.severity() >= WARN || foreign.is_none(), "{foreign:?}: {} {said}", log.scope);
    }
    let stderr = server.log()?;
    assert!(
        stderr.contains("\"level\":\"debug\"") || stderr.contains("\"level\":\"info\""),
        "{stderr}"
    );
    for line in stderr.lines() {
        let foreign = FOREIGN.iter().find(|part| line.contains(**part));
        assert!(foreign.is_none(), "{foreign:?}: {line}");
    }
    assert_eq!(server.terminate().await?, Some(0));
    collector.kill().await?;
    database.remove().await
}
