//! Checks the catalogue against the metrics that the server records, and against all files that use its names.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use drivers::receiver::{self, LostSignal, Sender, Sink, SinkError};
use golden::Golden;
use model::{Judgement, Outcome, Settlement, SpanId, Step, StepTime, Timestamp, TraceId, Verdict};
use otlp::Batch;
use telemetry::plan::Level;

use super::{EVENTS, Instrument, METRICS, SPANS, TRIGGER, attribute, markdown};
use crate::{
    Telemetry,
    config::{self, Environment},
    telemetry::{
        call::{Call, HttpSpan},
        traceparent::TraceParent,
    },
};

const BEGIN: &str = "<!-- catalogue: made from crates/server/src/telemetry/catalogue -->\n";
const END: &str = "<!-- end of the catalogue -->";

/// The words of PromQL and Prometheus.
const WORDS: &[&str] = &[
    "and",
    "by",
    "histogram_quantile",
    "increase",
    "job",
    "le",
    "max",
    "or",
    "otel_component_name",
    "rate",
    "sum",
    "unless",
    "up",
    "__range",
    "m",
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

#[test]
fn the_page_has_the_catalogue() {
    let file = root().join("docs/telemetry.md");
    let page = fs::read_to_string(&file).expect("the page");
    let (head, rest) = page.split_once(BEGIN).expect("where the catalogue begins");
    let (_, tail) = rest.split_once(END).expect("where it ends");
    let mut golden = Golden::default();
    golden.compare(&file, &format!("{head}{BEGIN}{}{END}{tail}", markdown()));
    golden.finish_among_others();
}

#[test]
fn every_step_of_a_run_is_a_span() {
    use Step::{Compile, Judge, Linger, Queue, Record, Resolve, Settle, Trigger};
    let steps = [Queue, Compile, Resolve, Trigger, Settle, Judge, Linger, Record];
    let named: Vec<_> =
        SPANS.iter().filter(|span| span.parent == crate::telemetry::catalogue::RUN).collect();
    let expected: Vec<_> =
        steps.map(|step| format!("{}.{}", crate::telemetry::catalogue::RUN, step.as_str())).into();
    assert_eq!(named.iter().map(|span| span.name).collect::<Vec<_>>(), expected);
}

/// A sink that drops everything.
struct NullSink;

impl Sink for NullSink {
    fn wants(&self, _: &TraceId, _: &Sender) -> bool {
        false
    }

    fn lost(&self, _: &TraceId, _: &Sender) {}

    async fn accept(&self, _: Vec<Batch>, _: &Sender) -> Result<(), SinkError> {
        Ok(())
    }

    fn lost_unread(&self, _: &Sender, _: LostSignal) {}

    fn logged(&self, _: &TraceId, _: &Sender) {}
}

fn outcome() -> Outcome {
    let verdict = Verdict::Passed;
    Outcome {
        run_id: None,
        test: "a test".to_owned(),
        verdict,
        provisional: false,
        superseded: None,
        earlier: Vec::new(),
        reasons: Vec::new(),
        diagnoses: Vec::new(),
        trace_id: None,
        request: None,
        answer: None,
        settlement: Some(Settlement {
            last_at: Some(Timestamp::from_nanos(2)),
            ..Settlement::default()
        }),
        overtaken: None,
        judgement: Judgement::bare(verdict),
        analysis: None,
        steps: Vec::new(),
    }
}

/// Returns all metric families of a server's Prometheus endpoint after every event happened once, each with its labels.
async fn shown() -> BTreeMap<String, BTreeSet<String>> {
    let folder = tempfile::TempDir::new().expect("a folder");
    let text = format!(
        "server: {{dataDirectory: '{}', telemetry: {{exporter: one}}}}\n\
         telemetry: {{exporters: {{one: {{exporter: {{type: collector, collector: {{endpoint: '127.0.0.1:9'}}}}}}}}}}",
        folder.path().display()
    );
    let read = config::read(&source::Text::new("config.yaml", text), &Environment::default());
    let config = read.config.expect("it is right");
    let telemetry = Telemetry::start(&config, crate::host()).expect("it starts");
    let metrics = telemetry.metrics();
    let at = Timestamp::from_nanos;
    let step = |step| StepTime { step, began: at(1), ended: at(3) };
    metrics.ran(&outcome(), &[step(Step::Queue), step(Step::Record)]);
    let context = TraceParent {
        trace_id: TraceId::from_random([1; 16]),
        span_id: SpanId::from_random([1; 8]),
        sampled: false,
        followed: false,
        level: Level::Info,
    };
    metrics.served(&HttpSpan {
        context,
        parent: None,
        method: "BREW",
        route: Some("/api/v1/runs/{run}"),
        path: "/api/v1/runs/1",
        status: 503,
        fault: None,
        began: at(1),
        ended: at(2),
    });
    metrics.count_statement(Call("SELECT", "runs"), Duration::from_millis(1), Some("upstream"));
    let address: SocketAddr = "127.0.0.1:0".parse().expect("an address");
    let receiver = receiver::start(receiver::Config::new(vec![address]), Arc::new(NullSink)).await;
    let receiver = receiver.expect("it listens");
    metrics.show_ingest(receiver.witness());
    metrics.leased(Duration::from_millis(1));
    metrics.proved(Duration::from_millis(1), Some("markerLate"));
    metrics.show_lag(|| Some(1));
    metrics.show_waiting(&Arc::new(Mutex::new(Some((2, Duration::from_secs(3))))));
    let text = telemetry.prometheus().expect("it is served");
    let report = telemetry.shutdown(Duration::ZERO);
    assert!(
        report.exporters.iter().all(|counts| counts.accepted == 0),
        "no span was made: {report:?}"
    );
    families(&text)
}

fn families(text: &str) -> BTreeMap<String, BTreeSet<String>> {
    let mut families: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            families.entry(rest.split(' ').next().unwrap_or_default().to_owned()).or_default();
        } else if let Some((name, labels)) = line.split_once('{')
            && let Some((_, labels)) = families
                .iter_mut()
                .find(|(family, _)| {
                    ["", "_bucket", "_sum", "_count"]
                        .iter()
                        .any(|end| name == format!("{family}{end}"))
                })
                .map(|(family, known)| (family, (known, labels)))
        {
            let (known, labels) = labels;
            let names = labels.split("\",").filter_map(|label| label.split_once("=\""));
            known.extend(names.map(|(name, _)| name.trim_start_matches([',', '{']).to_owned()));
        }
    }
    families
}

/// Converts an OpenTelemetry name to a Prometheus name.
fn plain(name: &str) -> String {
    name.replace('.', "_")
}

#[tokio::test]
async fn every_metric_is_measured_by_its_name_and_no_other() {
    let shown = shown().await;
    for metric in METRICS {
        let unit = if metric.unit == "s" { "_seconds" } else { "" };
        let end = if metric.instrument == Instrument::Counter { "_total" } else { "" };
        let name = format!("{}{unit}{end}", plain(metric.name));
        let labels = shown.get(&name).unwrap_or_else(|| panic!("`{name}` of {shown:?}"));
        let known: BTreeSet<_> = metric.attributes.iter().map(|name| plain(name)).collect();
        let own = |label: &&String| !label.starts_with("otel_scope_") && *label != "le";
        let labels: BTreeSet<_> = labels.iter().filter(own).cloned().collect();
        assert_eq!(labels, known, "{name}");
        for id in ["run_id", "run.id", "test.id", "test.case", "trace_id", "trace.id"] {
            assert!(!metric.attributes.iter().any(|it| it.contains(id)), "{name} has {id}");
        }
    }
    let own = shown.keys().filter(|name| name.starts_with("qualitytrace_"));
    let counted = METRICS.iter().filter(|metric| metric.name.starts_with("qualitytrace."));
    assert_eq!(own.count(), counted.count(), "{shown:?}");
}

#[tokio::test]
async fn every_name_in_the_examples_is_one_of_the_catalogue() {
    let shown = shown().await;
    let folder = root().join("deploy/compose/observability");
    let mut expressions = Vec::new();
    for path in golden::files(&folder.join("dashboards"), &["json"]) {
        let board: serde_json::Value =
            serde_json::from_str(&fs::read_to_string(&path).expect("a file")).expect("JSON");
        let panels = board["panels"].as_array().expect("panels");
        let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
        expressions.extend(targets.filter_map(|it| it["expr"].as_str()).map(str::to_owned));
    }
    let dashboards = expressions.len();
    assert!(dashboards > 20, "{dashboards}");
    let alerts = fs::read_to_string(folder.join("alerts.yaml")).expect("the alerts");
    for rule in alerts.split("- alert:").skip(1) {
        let (_, expression) = rule.split_once("expr:").expect("an expression");
        let end = expression.find("\n        for:").or(expression.find("\n        labels:"));
        expressions
            .push(expression[..end.expect("what follows")].trim_start_matches(" >-").to_owned());
    }
    assert!(expressions.len() > dashboards + 5, "{expressions:?}");
    let mut known: BTreeSet<String> = WORDS.iter().map(|word| (*word).to_owned()).collect();
    for (family, labels) in &shown {
        known.extend(["", "_bucket", "_sum", "_count"].map(|end| format!("{family}{end}")));
        known.extend(labels.iter().cloned());
    }
    for expression in &expressions {
        for word in words(expression) {
            assert!(known.contains(&word), "`{word}` in `{expression}` is no name of ours");
        }
    }
}

/// Returns the words of an expression, without the quoted parts.
fn words(expression: &str) -> Vec<String> {
    let bare: String = expression.split('"').step_by(2).collect::<Vec<_>>().join(" ");
    bare.split(|c: char| !c.is_ascii_alphanumeric() && c != '_')
        .map(|word| word.trim_start_matches(|c: char| c.is_ascii_digit()))
        .filter(|word| !word.is_empty())
        .map(str::to_owned)
        .collect()
}

#[test]
fn pages_name_only_what_is_in_the_catalogue() {
    let own = |name: &&str| name.starts_with("qualitytrace.") || name.starts_with("test.case");
    let spans = SPANS.iter().flat_map(|span| span.attributes.iter().chain([&span.name]));
    let metrics = METRICS.iter().flat_map(|metric| metric.attributes.iter().chain([&metric.name]));
    let events = EVENTS.iter().flat_map(|event| event.attributes.iter().chain([&event.name]));
    let known: BTreeSet<&str> = spans.chain(metrics).chain(events).copied().filter(own).collect();
    assert!(known.contains(attribute::VERDICT));
    for page in ["docs/telemetry.md", "docs/deploy/compose.md"] {
        let text = fs::read_to_string(root().join(page)).expect("a page");
        let quoted: Vec<&str> = text.split('`').skip(1).step_by(2).filter(own).collect();
        assert!(!quoted.is_empty(), "{page}");
        for name in quoted {
            assert!(known.contains(name), "`{name}` in {page}");
        }
        if page == "docs/telemetry.md" {
            assert!(text.contains(TRIGGER), "{page}");
        }
    }
}

#[test]
fn the_claims_about_every_trace_have_these_attributes() {
    let claims = include_str!("../../../../../tests/dogfood/always/catalogue.yaml");
    for kind in ["server", "internal", "client", "producer"] {
        let ours = SPANS.iter().filter(|span| span.kind == kind);
        let ours: BTreeSet<_> = ours.flat_map(|span| span.attributes).copied().collect();
        let (_, list) = claims
            .split_once(&format!("every span[service=\"quality-trace\" kind=\"{kind}\"] has ["))
            .expect("a claim about each kind");
        let (list, _) = list.split_once(']').expect("a list");
        let theirs: BTreeSet<_> = list.split('"').skip(1).step_by(2).collect();
        assert_eq!(theirs, ours, "{kind}");
    }
}
