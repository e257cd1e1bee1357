//! Real SDKs: an echo service on each of the official ones of Python, Node, Go and Java, run by the built binary over
//! each protocol that the SDK supports. Every received field is compared with one table.
//!
//! The services are in `tests/sdks`; `cargo xtask services up sdks` installs them.

#[path = "sdks/expected.rs"]
mod expected;

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result, ensure};
use bench::parts::{free_port, setting};
use expected::{IS_REMOTE, IS_REMOTE_KNOWN, JSON, KINDS, KINDS_STATUS, LINKED, Sdk};
use model::{
    Trace,
    trace::{Kind, SpanData, StatusCode, Value},
};
use runner::MARKER;
use tempfile::TempDir;
use tokio::process::Command;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// A resource attribute of every service, beside the SDK's own; the space in its value is percent-encoded in the variable.
const RESOURCE: &str = "team=a%20b";

/// The upper bound from response to verdict; usually tens of milliseconds, but a busy machine takes longer.
const VERDICT_MS_MAX: u64 = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn python() -> Result<()> {
    check(&expected::python()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn node() -> Result<()> {
    check(&expected::node()).await.map(drop)
}

#[tokio::test(flavor = "multi_thread")]
async fn go() -> Result<()> {
    let trace = check(&expected::go()).await?;
    // With another table the same trace is wrong: the comparison can fail.
    let other = Sdk {
        language: "c",
        differs: |_| vec![("int.max", Some(Value::Int(1))), ("text", None)],
        link_state: "vendor=value",
        sampled: 0,
        ..expected::go()
    };
    let wrong = compare(&other, JSON, &trace);
    let wrong: Vec<_> = wrong.iter().filter_map(|line| Some(line.split_once(": ")?.0)).collect();
    let expected = [
        "flags of `kinds`",
        "flags of `HTTP GET`",
        "flags of the server",
        "`bytes.empty` of kinds",
        "`int.max` of kinds",
        "`text` of kinds",
        "`telemetry.sdk.language` of resource",
        "link",
    ];
    ensure!(wrong == expected, "{wrong:?}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn java() -> Result<()> {
    check(&expected::java()).await.map(drop)
}

/// Compares the trace of each protocol, and returns the trace of the last one.
async fn check(sdk: &Sdk) -> Result<Trace> {
    let mut last = None;
    for protocol in sdk.protocols {
        let trace = run(sdk, protocol)
            .await
            .with_context(|| format!("{} over {protocol}", sdk.language))?;
        let wrong = compare(sdk, protocol, &trace);
        ensure!(wrong.is_empty(), "{} over {protocol}:\n{}", sdk.language, wrong.join("\n"));
        last = Some(trace);
    }
    last.context("an SDK has a protocol")
}

/// Runs the test against the service, and returns the received trace.
async fn run(sdk: &Sdk, protocol: &str) -> Result<Trace> {
    let folder = TempDir::new()?;
    let port = free_port()?;
    fs::write(folder.path().join("echo.yaml"), document(sdk, port))?;
    let mut command = Command::new(BINARY);
    command.current_dir(folder.path()).kill_on_drop(true);
    command.args(["run", "echo.yaml", "--protocol", protocol, "--traces", "traces"]);
    command.args(["--report", "json=report.json", "--"]);
    if protocol == JSON && !sdk.json_by.is_empty() {
        command.arg("env").args(sdk.json_by);
    }
    command.arg(setting(sdk.variable)?).env("PORT", port.to_string());
    command.env("OTEL_SERVICE_NAME", "echo").env("OTEL_RESOURCE_ATTRIBUTES", RESOURCE);
    let output = command.output().await?;
    let shown = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    ensure!(
        output.status.code() == Some(0),
        "it did not pass: {}\n{}{}",
        output.status,
        shown(&output.stdout),
        shown(&output.stderr)
    );
    tell(sdk, protocol, &folder.path().join("report.json"))?;
    let mut kept = fs::read_dir(folder.path().join("traces"))?;
    let file = kept.next().context("a kept trace")??.path();
    let mut traces = otlp::read(&fs::read(file)?)?;
    ensure!(traces.len() == 1, "one trace, not {}", traces.len());
    traces.pop().context("one trace")
}

/// Returns a test with a verdict that needs the complete trace.
fn document(sdk: &Sdk, port: u16) -> String {
    format!(
        "type: Test
spec:
  id: echo
  name: the echo of {language}
  trigger:
    type: http
    httpRequest:
      method: GET
      url: http://127.0.0.1:{port}/echo
  # Nothing is known yet of what the service calls, and it would be waited for.
  settle:
    flush: 50ms
  specs:
    - selector: span[name=\"kinds\"]
      assertions:
        - attr:tracetest.selected_spans.count = 1
        - attr:text = \"plain\"
    - selector: span[name=\"{failed}\" kind=\"client\"]
      assertions:
        - attr:tracetest.selected_spans.count = 1
",
        language = sdk.language,
        failed = sdk.failed.0,
    )
}

#[expect(clippy::print_stdout, reason = "how long it takes is worth seeing, beside that it passes")]
fn tell(sdk: &Sdk, protocol: &str, report: &Path) -> Result<()> {
    let report: serde_json::Value = serde_json::from_slice(&fs::read(report)?)?;
    let settlement = &report["outcome"]["settlement"];
    let waited = settlement["waitedNs"].as_u64().context("how long it waited")? / 1_000_000;
    println!("{} over {protocol}: {waited} ms from the answer to the verdict", sdk.language);
    ensure!(waited < VERDICT_MS_MAX, "that is too long: {settlement}");
    Ok(())
}

/// Returns all differences, each in a line.
fn compare(sdk: &Sdk, protocol: &str, trace: &Trace) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut check = |what: String, found: String, expected: String| {
        if found != expected {
            wrong.push(format!("{what}: {found}, expected {expected}"));
        }
    };
    let named = |name: &str, kind: Kind| {
        let mut found = trace.spans().filter(|span| span.name() == name && span.kind() == kind);
        found.next().map(|span| (span.to_data(), span.resource().to_data(), span.scope().to_data()))
    };
    let server = named(sdk.server.0, Kind::Server);
    let kinds = named(KINDS.0, KINDS.1);
    let failed = named(sdk.failed.0, Kind::Client);
    let (Some((server, ..)), Some((kinds, resource, scope)), Some((failed, ..))) =
        (server, kinds, failed)
    else {
        let names: Vec<_> = trace.spans().map(|span| (span.name(), span.kind())).collect();
        return vec![format!("a span is not there: {names:?}")];
    };

    for below in [&kinds, &failed] {
        check(format!("parent of `{}`", below.name), show(below.parent), show(Some(server.id)));
        check(format!("flags of `{}`", below.name), show(below.flags), {
            show(IS_REMOTE_KNOWN | sdk.sampled)
        });
    }
    check("flags of the server".into(), show(server.flags), {
        show(IS_REMOTE_KNOWN | IS_REMOTE | sdk.sampled)
    });
    check(
        "trigger above the server".into(),
        show(server.parent.and_then(|id| trace.find(id)).is_some()),
        show(true),
    );
    check("scope".into(), show((scope.name, scope.version)), show(("echo", "1.2.3")));

    let mut all = expected::kinds();
    for (key, value) in (sdk.differs)(protocol) {
        all.retain(|(known, _)| *known != key);
        all.extend(value.map(|value| (key, value)));
    }
    let attributes = [
        ("kinds", known(&kinds.attributes, sdk.everywhere), known_of(&all)),
        ("failed", known(&failed.attributes, sdk.everywhere), known_of(&sdk.failed.2)),
        ("server", only(&server.attributes, &sdk.server.1), known_of(&sdk.server.1)),
        ("resource", only(&resource.attributes, &of_resource(sdk)), known_of(&of_resource(sdk))),
    ];
    for (of, found, expected) in attributes {
        for key in found.keys().chain(expected.keys()).collect::<std::collections::BTreeSet<_>>() {
            check(format!("`{key}` of {of}"), show(found.get(key)), show(expected.get(key)));
        }
    }
    let marker = resource.attributes.iter().find(|(key, _)| key == MARKER);
    check("marker".into(), show(marker.is_some()), show(true));
    let status = |span: &SpanData| show((span.status.code, span.status.message.as_str()));
    check("status of `kinds`".into(), status(&kinds), show(KINDS_STATUS));
    check("status of the server".into(), show(server.status.code), show(StatusCode::Unset));
    check("status of the call".into(), status(&failed), show((StatusCode::Error, sdk.failed.1)));
    check("event".into(), events(&kinds), expected_event());
    check("link".into(), links(&kinds), expected_link(sdk));
    for span in [&server, &kinds, &failed] {
        let is_in = |at| span.start <= at && at <= span.end;
        let moments = span.events.iter().all(|event| is_in(event.at)) && is_in(span.end);
        check(format!("times of `{}`", span.name), show(moments), show(true));
        let dropped = span.dropped_attributes + span.dropped_events + span.dropped_links;
        check(format!("dropped of `{}`", span.name), show(dropped), show(0));
    }
    wrong
}

/// Formats values as text: each kind of value has a format of its own, and all NaN values are equal.
fn show(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

fn of_resource(sdk: &Sdk) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::Str(text.to_owned());
    vec![
        ("service.name", text("echo")),
        ("team", text("a b")),
        ("telemetry.sdk.language", text(sdk.language)),
        ("telemetry.sdk.name", text("opentelemetry")),
    ]
}

type Known = BTreeMap<String, Value>;

/// Returns attributes by their keys, without those that are on every span.
fn known(attributes: &[(String, Value)], everywhere: &[&str]) -> Known {
    let theirs = attributes.iter().filter(|(key, _)| !everywhere.contains(&key.as_str()));
    theirs.map(|(key, value)| (key.clone(), sorted(value))).collect()
}

fn known_of(attributes: &[(&str, Value)]) -> Known {
    attributes.iter().map(|(key, value)| ((*key).to_owned(), sorted(value))).collect()
}

/// Returns only the expected attributes; the others depend on the machine.
fn only(attributes: &[(String, Value)], expected: &[(&str, Value)]) -> Known {
    let mut found = known(attributes, &[]);
    found.retain(|key, _| expected.iter().any(|(known, _)| known == key));
    found
}

/// Sorts the entries of maps: their order has no meaning, and not every SDK preserves it.
fn sorted(value: &Value) -> Value {
    match value {
        Value::Map(entries) => {
            let mut entries: Vec<_> =
                entries.iter().map(|(key, value)| (key.clone(), sorted(value))).collect();
            entries.sort_by(|(one, _), (other, _)| one.cmp(other));
            Value::Map(entries)
        }
        Value::Array(values) => Value::Array(values.iter().map(sorted).collect()),
        other => other.clone(),
    }
}

fn events(span: &SpanData) -> String {
    let events = span.events.iter().map(|event| (&event.name, known(&event.attributes, &[])));
    show(events.collect::<Vec<_>>())
}

fn expected_event() -> String {
    let (name, attributes) = expected::noted();
    show([(name, known_of(&attributes))])
}

fn links(span: &SpanData) -> String {
    let links = span.links.iter().map(|link| {
        let ids = (
            link.trace_id.map(|id| id.to_string()).unwrap_or_default(),
            link.span_id.map(|id| id.to_string()).unwrap_or_default(),
        );
        (ids, link.trace_state.as_str(), link.flags, known(&link.attributes, &[]))
    });
    show(links.collect::<Vec<_>>())
}

fn expected_link(sdk: &Sdk) -> String {
    let flags = IS_REMOTE_KNOWN | IS_REMOTE | sdk.sampled;
    show([(LINKED, sdk.link_state, flags, known_of(&expected::link()))])
}
