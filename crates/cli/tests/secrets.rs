//! No report and no line of output contains a secret: planted in every text of an outcome and of a trace, and in a real run.

use std::{
    fs,
    io::{Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::Command,
    thread,
};

use anyhow::{Context, Result, ensure};
use lang::{Secrets, Vars};
use model::{
    Answer, Outcome, SpanId, Timestamp, Trace, TraceId,
    trace::{EventData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value},
};
use report::{FORMATS, Format, ReportInput, Waterfall};
use serde_json::json;
use source::Colour;

const SECRET: &str = "sup3r-s3cr3t-0f-ada";
/// The rest of the secret after truncation.
const BEGINNING: &str = "sup3r-";

fn secrets() -> Secrets {
    Secrets::of(&Vars {
        variables: [("TOKEN".to_owned(), SECRET.to_owned())].into(),
        secrets: ["TOKEN".to_owned()].into(),
        ..Vars::default()
    })
}

fn read<T: serde::de::DeserializeOwned>(name: &str) -> T {
    let file = Path::new("../model/tests/golden").join(name);
    let text = fs::read_to_string(&file).expect(name);
    serde_json::from_str(&text).expect(name)
}

/// Returns the outcome with the secret in every text; each step plants it in one more text.
fn planted(outcome: &Outcome) -> Outcome {
    let mut json = serde_json::to_value(outcome).expect("it can be written");
    let mut places = Vec::new();
    leaves(&json, String::new(), &mut places);
    let (mut planted, before) = (0, places.len());
    for place in places {
        let leaf = json.pointer_mut(&place).expect("it is there");
        let kept = std::mem::replace(leaf, format!("a {SECRET} b").into());
        if serde_json::from_value::<Outcome>(json.clone()).is_ok() {
            planted += 1;
        } else {
            // An id, a number or an enum variant: no text.
            *json.pointer_mut(&place).expect("it is there") = kept;
        }
    }
    assert!(planted > 20 && planted < before, "{planted} of {before}");
    serde_json::from_value(json).expect("it is an outcome")
}

/// Collects the JSON pointers of all leaves.
fn leaves(json: &serde_json::Value, place: String, places: &mut Vec<String>) {
    match json {
        serde_json::Value::Array(values) => {
            for (at, value) in values.iter().enumerate() {
                leaves(value, format!("{place}/{at}"), places);
            }
        }
        serde_json::Value::Object(values) => {
            values.iter().for_each(|(key, value)| leaves(value, format!("{place}/{key}"), places));
        }
        _ => places.push(place),
    }
}

/// Returns a trace with the secret in everything that a page may show.
fn trace() -> Trace {
    let said = || format!("a {SECRET} b");
    let text = || Value::Str(said());
    let attributes = || {
        let map = vec![(said(), Value::Array(vec![text()]))];
        let long = Value::Str(format!("{}{SECRET}", "x".repeat(290)));
        vec![(said(), text()), ("map".to_owned(), Value::Map(map)), ("long".to_owned(), long)]
    };
    let mut span = SpanData::new(SpanId::from_random([7; 8]), None, said());
    span.status = Status { code: StatusCode::Error, message: said() };
    span.attributes = attributes();
    let at = Timestamp::from_nanos(1);
    span.events =
        vec![EventData { name: said(), at, attributes: attributes(), ..EventData::default() }];
    let mut trace = Trace::new(TraceId::from_random([7; 16]));
    let mut of = attributes();
    of.push(("service.name".to_owned(), text()));
    let resource = ResourceData { attributes: of, ..ResourceData::default() };
    let resource = trace.resource(resource).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    trace.push(resource, scope, span).expect("room");
    trace
}

fn every_form(outcome: &Outcome, trace: &Trace, hide: &dyn Fn(&str) -> String) -> Vec<String> {
    let outcomes = std::slice::from_ref(outcome);
    let waterfall = Waterfall::of(trace, outcome, &|text| hide(text).into());
    let waterfalls = &[Some(waterfall)];
    let input = ReportInput { outcomes, waterfalls, colour: Colour::Never };
    let whole = FORMATS.iter().map(|format| report::render(format, &input));
    let parts = FORMATS.iter().map(|format| report::part(format, outcome, Colour::Never));
    whole.chain(parts).collect()
}

#[test]
fn no_form_shows_what_is_planted_in_every_text() {
    let outcome: Outcome = read("outcome-v1.json");
    let answers: Vec<Answer> = read("answers-v1.json");
    let (secrets, trace) = (secrets(), trace());
    for answer in answers {
        let mut outcome = planted(&Outcome { answer: Some(answer), ..outcome.clone() });
        let shows = |outcome: &Outcome, hide: &dyn Fn(&str) -> String| {
            let written = every_form(outcome, &trace, hide);
            written.iter().filter(|text| text.contains(BEGINNING)).count()
        };
        assert!(shows(&outcome, &str::to_owned) > FORMATS.len(), "it is planted");
        secrets.hide_all(outcome.texts_mut());
        assert_eq!(shows(&outcome, &|text| secrets.hide(text).into_owned()), 0, "{outcome:?}");
    }
}

#[test]
fn a_trace_is_kept_without_what_is_planted_in_every_text() {
    let shows = |trace: &Trace| {
        let bytes = otlp::encode(trace);
        bytes.windows(BEGINNING.len()).any(|part| part == BEGINNING.as_bytes())
    };
    let trace = trace();
    assert!(shows(&trace), "it is planted");
    let masked = secrets().masked_trace(&trace).expect("room").expect("a secret is in it");
    assert!(!shows(&masked));
    assert_eq!(masked.len(), trace.len());
    let span = masked.spans().next().expect("a span");
    assert_eq!((span.name(), span.status_message()), ("a *** b", "a *** b"));
    // A trace without a secret is not rewritten.
    assert!(secrets().masked_trace(&masked).expect("room").is_none());
}

/// All output of a run.
struct Written {
    code: Option<i32>,
    /// The texts by name: both streams, and the report of each format.
    texts: Vec<(String, String)>,
}

/// Runs a test with the secret, and `--verbose`, and writes every report.
fn run(test: &str, more: &[&str]) -> Result<Written> {
    let folder = tempfile::tempdir()?;
    fs::write(folder.path().join("t.yaml"), test)?;
    let mut command = Command::new(env!("CARGO_BIN_EXE_qualitytrace"));
    command.current_dir(folder.path()).env("TOKEN", SECRET);
    command.args(["run", "t.yaml", "--secret", "TOKEN"]);
    for format in Format::names() {
        command.args(["--report", &format!("{format}=out.{format}")]);
    }
    let output = command.args(more).output()?;
    let mut texts = vec![
        ("stdout".to_owned(), String::from_utf8_lossy(&output.stdout).into_owned()),
        ("stderr".to_owned(), String::from_utf8_lossy(&output.stderr).into_owned()),
    ];
    for format in Format::names() {
        let text = fs::read_to_string(folder.path().join(format!("out.{format}")));
        texts.push((format.to_owned(), text.context(format!("{texts:?}"))?));
    }
    Ok(Written { code: output.status.code(), texts })
}

impl Written {
    fn shows_none(&self) {
        for (name, text) in &self.texts {
            assert!(!text.contains(BEGINNING), "{name}: {text}");
        }
    }

    fn shows(&self, name: &str, said: &str) {
        let text = self.texts.iter().find(|(of, _)| of == name).map(|(_, text)| text);
        assert!(text.is_some_and(|text| text.contains(said)), "{name}: {text:?}");
    }
}

#[test]
fn a_command_that_tells_a_secret_and_ends_is_not_quoted() -> Result<()> {
    let test = "type: Test\nspec:\n  name: t\n  trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}\n";
    for more in [&["--verbose"][..], &[]] {
        let command = ["--", "sh", "-c", "echo using $TOKEN; sleep 0.5; exit 1", SECRET];
        let written = run(test, &[more, &command].concat())?;
        assert_eq!(written.code, Some(3), "{:?}", written.texts);
        written.shows_none();
        written.shows("json", "it wrote: using ***");
        written.shows("stderr", "| using ***");
    }
    Ok(())
}

#[test]
fn a_system_that_tells_a_secret_in_its_spans_is_not_quoted() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let target = listener.local_addr()?;
    let otlp = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let system = thread::spawn(move || telling(&listener, &otlp.to_string()));
    let test = format!(
        "type: Test
spec:
  name: t
  trigger:
    type: http
    httpRequest: {{url: 'http://{target}/', auth: {{type: basic, basic: {{username: ada, password: '${{env:TOKEN}}'}}}}}}
  settle: {{timeout: 1s}}
  specs:
    - selector: span[name=\"absent\"]
      assertions: ['attr:tracetest.selected_spans.count = 1']
    - selector: span[]
      assertions: ['attr:long = \"b\"', 'name = \"b\"']
"
    );
    let written = run(&test, &["--verbose", "--otlp", &otlp.to_string()])?;
    system.join().expect("it does not panic")?;
    assert_eq!(written.code, Some(1), "{:?}", written.texts);
    written.shows_none();
    written.shows("html", r#"["url.full","a *** b"]"#);
    written.shows("html", r#"["authorization","Basic ***"]"#);
    written.shows("pretty", "`a *** b`");
    Ok(())
}

/// Responds to one request, after a span that contains the secret in every text and has a parent that never arrives.
fn telling(listener: &TcpListener, otlp: &str) -> Result<()> {
    let head = loop {
        let (mut stream, _) = listener.accept()?;
        let mut head = [0; 4096];
        let read = stream.read(&mut head)?;
        if read > 0 {
            break (String::from_utf8_lossy(&head[..read]).into_owned(), stream);
        }
    };
    let (head, mut stream) = head;
    let of = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let trace = of("traceparent: 00-").context("a parent")?[..32].to_owned();
    let authorization = of("authorization: ").context("who asks")?;
    let attribute = |key: &str, text: String| json!({"key": key, "value": {"stringValue": text}});
    let said = format!("a {SECRET} b");
    let attributes = [
        attribute("url.full", said.clone()),
        attribute("authorization", authorization),
        attribute("long", format!("{}{SECRET}", "x".repeat(50))),
        attribute(&said, said.clone()),
    ];
    let span = json!({
        "traceId": trace, "spanId": "00000000000000a1", "parentSpanId": "00000000000000a2", "name": said,
        "kind": 2, "startTimeUnixNano": "1", "endTimeUnixNano": "2", "attributes": attributes,
        "status": {"code": 2, "message": said},
    });
    let resource = json!({"attributes": [attribute("service.name", said.clone())]});
    let export =
        json!({"resourceSpans": [{"resource": resource, "scopeSpans": [{"spans": [span]}]}]});
    let export = export.to_string();
    let mut exporting = TcpStream::connect(otlp)?;
    write!(
        exporting,
        "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/json\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{export}",
        export.len()
    )?;
    let mut answer = String::new();
    exporting.read_to_string(&mut answer)?;
    ensure!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    write!(
        stream,
        "HTTP/1.1 200 OK\r\nx-said: {SECRET}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{SECRET}",
        SECRET.len()
    )?;
    Ok(())
}
