//! The options of the four telemetry documents that only the complete program can show: roles of the server, the output of
//! `telemetry plan` before anything starts, and the check of `telemetry probe`. All parts are real: Postgres, Collectors,
//! the built binary. Deliberately absent: the options that the telemetry library shows by itself.

#[path = "../../../lib/telemetry/tests/options/collector.rs"]
mod collector;
#[path = "options/refusing.rs"]
mod refusing;

use std::{
    collections::BTreeSet,
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::Duration,
};

use anyhow::{Context, Result};
use bench::parts::{Database, Server, Target, free_port, qualitytrace};
use collector::Collector;
use refusing::Refusing;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// The spans of one run that `server.telemetry.exporter` exports, except for those of the database.
const OWN_SPANS: &[&str] = &[
    "POST /api/v1/tests/{test}/runs",
    "qualitytrace.run",
    "qualitytrace.run.queue",
    "qualitytrace.run.compile",
    "qualitytrace.run.resolve",
    "qualitytrace.run.trigger",
    "qualitytrace.run.settle",
    "qualitytrace.run.judge",
    "qualitytrace.run.record",
];
const TRIGGER: &str = "Qualitytrace trigger";

/// A server with this telemetry that has executed one run, and its database and folder.
struct Ran {
    server: Server,
    database: Database,
    _folder: TempDir,
}

impl Ran {
    /// `roles` is the content of `server.telemetry`; `sections` are `telemetry`, `tracer` and `metrics`.
    async fn one(purpose: &str, roles: &str, sections: &str) -> Result<Self> {
        let database = Database::create(purpose).await?;
        let folder = TempDir::new()?;
        let data = folder.path().display();
        let configuration = format!(
            "{}\nserver: {{dataDirectory: '{data}', telemetry: {{{roles}}}}}\n{sections}",
            database.section()?
        );
        let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
        let target = Target::start(Some(server.otlp_grpc)).await?;
        let file = folder.path().join("cart.yaml");
        fs::write(&file, target.test(Duration::from_millis(100)))?;
        let file = file.to_str().context("a path that is text")?;
        let run = ["run", file, "--server", &server.api];
        let passed = qualitytrace(Path::new(BINARY), &run).await?;
        assert_eq!(passed.code, Some(0), "{passed:?}");
        Ok(Self { server, database, _folder: folder })
    }

    /// Stops the server, which flushes its queue.
    async fn end(self) -> Result<()> {
        assert_eq!(self.server.terminate().await?, Some(0));
        self.database.remove().await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn own_spans_and_metrics_triggers_and_copies_go_where_each_is_told() -> Result<()> {
    let (own, application, copy) = (Collector::start(), Collector::start(), Collector::start());
    let (own_at, application_at, copy_at) = (&own.grpc, &application.grpc, &copy.http);
    let ran = Ran::one(
        "options_roles",
        "exporter: own, applicationExporter: application",
        &format!(
            "telemetry:
  exporters:
    own:
      serviceName: the-server
      metricsReaderInterval: 300ms
      exporter: {{type: collector, collector: {{endpoint: '{own_at}'}}}}
    application:
      serviceName: the-application
      exporter: {{type: collector, collector: {{endpoint: '{application_at}'}}}}
tracer:
  copy: {{type: open-telemetry, transport: http, endpoint: 'http://{copy_at}'}}
metrics:
  open-telemetry: {{transport: http, endpoint: 'http://{copy_at}', interval: 300ms}}
"
        ),
    )
    .await?;
    for (collector, service) in [(&own, "the-server"), (&copy, "quality-trace")] {
        collector.wait_for("own spans and metrics", |written| {
            written.spans.contains(&format!("{service}: qualitytrace.run"))
                && written.metrics.contains(&format!("{service}: qualitytrace.runs"))
        });
    }
    let page = reqwest::get(format!("{}/metrics", ran.server.api)).await?;
    let form = page.headers().get("content-type").cloned();
    assert_eq!(form.context("a form")?, "text/plain; version=0.0.4; charset=utf-8");
    let page = page.text().await?;
    for (verdict, runs) in [("passed", 1), ("failed", 0), ("inconclusive", 0)] {
        let counted = page.lines().any(|line| {
            line.starts_with("qualitytrace_runs_total{")
                && line.contains(&format!("\"{verdict}\""))
                && line.ends_with(&format!(" {runs}"))
        });
        assert!(counted, "{verdict}: {page}");
    }
    ran.end().await?;

    let ids = |collector: &Collector| BTreeSet::from_iter(collector.written().span_ids);
    own.wait_for("the same spans at both: a tracer has all own spans, too", |at_own| {
        at_own.spans.len() >= OWN_SPANS.len() && ids(&own) == ids(&copy)
    });
    application.wait_for("the trigger", |written| !written.spans.is_empty());
    let [at_own, at_application, at_copy] = [&own, &application, &copy].map(Collector::written);
    for name in OWN_SPANS {
        assert!(at_own.spans.contains(&format!("the-server: {name}")), "{name}: {at_own:?}");
    }
    assert!(at_own.spans.iter().all(|span| span.starts_with("the-server: ")), "{at_own:?}");
    assert!(at_copy.spans.iter().all(|span| span.starts_with("quality-trace: ")), "{at_copy:?}");
    assert_eq!(ids(&own).len(), at_own.spans.len(), "each once");
    assert_eq!(ids(&copy).len(), at_copy.spans.len(), "each once");
    assert_eq!(at_application.spans, [format!("the-application: {TRIGGER}")], "that alone");
    assert_eq!(at_application.metrics, [""; 0], "metrics are not the application's");
    assert_eq!((at_own.logs.len(), at_copy.logs.len()), (0, 0), "nobody asked for logs");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_role_an_exporter_gets_nothing() -> Result<()> {
    let (own, unused) = (Collector::start(), Collector::start());
    let exporter =
        |at: &str| format!("{{exporter: {{type: collector, collector: {{endpoint: '{at}'}}}}}}");
    let sections = format!(
        "telemetry: {{exporters: {{own: {}, unused: {}}}}}\n",
        exporter(&own.grpc),
        exporter(&unused.grpc)
    );
    let ran = Ran::one("options_unused", "exporter: own", &sections).await?;
    own.wait_for("own spans", |written| {
        written.spans.contains(&"quality-trace: qualitytrace.run".to_owned())
    });
    ran.end().await?;
    // The last push of metrics follows all spans.
    own.wait_for("own metrics", |written| {
        written.metrics.contains(&"quality-trace: qualitytrace.runs".to_owned())
    });
    let trigger = format!("quality-trace: {TRIGGER}");
    assert!(!own.written().spans.contains(&trigger), "without `applicationExporter` none leaves");
    assert_eq!(unused.written(), collector::Written::default());
    Ok(())
}

/// Runs `qualitytrace telemetry …` in a folder, with an empty environment.
fn telemetry(folder: &Path, arguments: &[&str]) -> Result<Output> {
    let mut command = Command::new(BINARY);
    command.env_clear().current_dir(folder).arg("telemetry").args(arguments);
    Ok(command.output()?)
}

/// Each example of the documents, unchanged, under the name that the document gives it (TOML has no name), with its
/// expected plan.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "000/quality-trace-config.yaml",
        &[
            "telemetry.exporters.collector\n",
            "service.name quality-trace\n",
            "spans of 100 % of traces",
            "OTLP over gRPC",
            "http://otel-collector:4317 (spans, metrics)",
            "the server's own spans and metrics: to `telemetry.exporters.collector`",
            "the trigger span of each run: to `telemetry.exporters.collector`",
        ],
    ),
    (
        "001/tracetest-config.yaml",
        &[
            "telemetry.exporters.collector\n",
            "service.name tracetest\n",
            "spans of 100 % of traces",
            "http://otel-collector:4317 (spans, metrics)",
            "the trigger span of each run: to `telemetry.exporters.collector`",
        ],
    ),
    (
        "002/quality-trace-config.toml",
        &[
            "metrics.open-telemetry\n",
            "metrics every 30s",
            "OTLP over gRPC",
            "https://otel-collector.example.com (metrics)",
            "gRPC has no paths, `/v1/metrics` of its endpoint is ignored",
        ],
    ),
    (
        "003-grpc/quality-trace-config.toml",
        &[
            "tracer.otel\n",
            "service.name quality-trace\n",
            "from level info on",
            "OTLP over gRPC",
            "https://127.0.0.1 (spans)",
            "others every 1s",
            "holds the producer until there is room",
            "gRPC has no paths, `/otel` of its endpoint is ignored",
        ],
    ),
    (
        "003-http/quality-trace-config.toml",
        &[
            "tracer.otel\n",
            "from level debug on",
            "OTLP over HTTP",
            "https://tracing.mydomain.test/v1/otel (spans)",
            "authorization: ***",
        ],
    ),
];

#[test]
fn every_example_of_the_documents_is_accepted_as_it_stands() -> Result<()> {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/options");
    for (example, words) in EXAMPLES {
        let path = examples.join(example);
        let folder = path.parent().context("a folder")?;
        let name = path.file_name().and_then(|name| name.to_str()).context("a name")?;
        let named = telemetry(folder, &["plan", "--config", name])?;
        let found = telemetry(folder, &["plan"])?;
        assert_eq!(named, found, "{example} is found by its name");
        let (out, err) = (String::from_utf8(named.stdout)?, String::from_utf8(named.stderr)?);
        assert_eq!((named.status.code(), err.as_str()), (Some(0), ""), "{example}");
        for word in *words {
            assert!(out.contains(word), "{example}: `{word}` is not in\n{out}");
        }
        assert!(!out.contains("place_auth_here"), "{example}: a header is a secret\n{out}");
    }
    Ok(())
}

#[test]
fn a_probe_says_of_each_destination_what_came_of_it() -> Result<()> {
    let (collector, refusing) = (Collector::start(), Refusing::start()?);
    let folder = TempDir::new()?;
    let tracer = |name: &str, transport: &str, endpoint: String| {
        format!(
            "  {name}: {{type: open-telemetry, transport: {transport}, endpoint: '{endpoint}', headers: ['X-Key: s3cr3t']}}\n"
        )
    };
    let arrives = tracer("arrives", "grpc", collector.grpc.clone());
    let others = [
        tracer("refused", "grpc", format!("127.0.0.1:{}", free_port()?)),
        tracer("denied", "http", format!("http://{}", refusing.address)),
        tracer("lost", "http", format!("http://{}/v1/otel", collector.http)),
        tracer("unknown", "http", "http://collector.invalid:4318".to_owned()),
    ];
    let metrics = format!(
        "metrics: {{open-telemetry: {{transport: http, endpoint: 'http://{}'}}}}\n",
        collector.http
    );
    let config = |text: String| -> Result<PathBuf> {
        let path = folder.path().join("config.yaml");
        fs::write(&path, text)?;
        Ok(path)
    };

    config(format!("tracer:\n{arrives}{}{metrics}", others.concat()))?;
    let probed = telemetry(folder.path(), &["probe", "--config", "config.yaml"])?;
    let (out, err) = (String::from_utf8(probed.stdout)?, String::from_utf8(probed.stderr)?);
    assert_eq!((probed.status.code(), err.as_str()), (Some(1), ""), "{out}");
    let expected: [(&str, &[&str]); 6] = [
        ("tracer.arrives: spans arrived at ", &[" ms"]),
        ("metrics.open-telemetry: metrics arrived at ", &["/v1/metrics in ", " ms"]),
        ("tracer.refused: spans did NOT arrive at ", &["refused the connection"]),
        ("tracer.denied: spans did NOT arrive at ", &["401", "check the headers"]),
        ("tracer.lost: spans did NOT arrive at ", &["/v1/otel", "404", "check the endpoint"]),
        ("tracer.unknown: spans did NOT arrive at ", &["collector.invalid", "has no address"]),
    ];
    for (start, words) in expected {
        let line = out.lines().find(|line| line.starts_with(start));
        let line = line.with_context(|| format!("`{start}` is not in\n{out}"))?;
        assert!(words.iter().all(|word| line.contains(word)), "{words:?}: {line}");
    }
    assert_eq!(out.lines().count(), expected.len(), "{out}");
    assert!(!out.contains("s3cr3t"), "{out}");

    config(format!("tracer:\n{arrives}{metrics}"))?;
    let probed = telemetry(folder.path(), &["probe", "--config", "config.yaml"])?;
    assert_eq!(probed.status.code(), Some(0), "all arrived: {probed:?}");
    collector.wait_for("two probes", |written| {
        written.spans == ["quality-trace: telemetry probe"; 2]
            && written.metrics == ["quality-trace: telemetry.probe"; 2]
    });
    Ok(())
}
