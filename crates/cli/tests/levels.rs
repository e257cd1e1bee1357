//! The effect of `level` on exports: levels × signals × exporters, with real Collectors.
//!
//! One server has an exporter of each level beside one without. One run passes, and one gets no response, so it has a failed span.

use std::{collections::BTreeSet, fs, path::Path, time::Duration};

use anyhow::{Context, Result};
use bench::parts::{
    CollectedData, CollectedSpan, Collector, Database, Server, Target, free_port, qualitytrace,
};
use server::catalogue::SPANS;
use telemetry::plan::Level;
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");
const WAIT_MAX: Duration = Duration::from_secs(30);
const RUN: &str = "qualitytrace.run";
const TRIGGER: &str = "qualitytrace.run.trigger";

/// An exporter: its name, its level, and whether it is a tracer with logs, or has spans and metrics by its role.
struct Row {
    name: &'static str,
    level: Option<Level>,
    is_tracer: bool,
}

const ROWS: &[Row] = &[
    Row { name: "unsaid", level: None, is_tracer: true },
    Row { name: "trace", level: Some(Level::Trace), is_tracer: true },
    Row { name: "debug", level: Some(Level::Debug), is_tracer: true },
    Row { name: "info", level: Some(Level::Info), is_tracer: true },
    Row { name: "warn", level: Some(Level::Warn), is_tracer: true },
    Row { name: "error", level: Some(Level::Error), is_tracer: true },
    Row { name: "role", level: Some(Level::Warn), is_tracer: false },
];

impl Row {
    fn configuration(&self, port: u16) -> String {
        let level = self.level.map(|it| format!(", level: {}", it.as_str())).unwrap_or_default();
        match self.is_tracer {
            true => format!(
                "  {}: {{type: open-telemetry, endpoint: 'http://127.0.0.1:{port}', throttle: 50ms, enable: {{log-exporter: true}}{level}}}\n",
                self.name
            ),
            false => format!(
                "    {}: {{metricsReaderInterval: 1s, throttle: 50ms, exporter: {{type: collector, collector: {{endpoint: 'http://127.0.0.1:{port}'}}}}{level}}}\n",
                self.name
            ),
        }
    }

    /// Whether it exports spans of this level.
    fn gets(&self, level: Level) -> bool {
        self.level.is_none_or(|least| least <= level)
    }
}

fn configuration(database: &Database, data: &Path, ports: &[u16]) -> Result<String> {
    let rows = |is_tracer| {
        let rows = ROWS.iter().zip(ports).filter(move |(row, _)| row.is_tracer == is_tracer);
        rows.map(|(row, port)| row.configuration(*port)).collect::<String>()
    };
    Ok(format!(
        "{}\ntracer:\n{}telemetry:\n  exporters:\n{}\
         server: {{dataDirectory: '{}', telemetry: {{exporter: role}}}}\n",
        database.section()?,
        rows(true),
        rows(false),
        data.display()
    ))
}

/// Returns the span name in the catalogue.
fn catalogued(span: &CollectedSpan) -> &'static str {
    let kind = span.json["kind"].as_u64();
    let name = match kind {
        Some(2) => "<METHOD> <route>",
        Some(3) => "<OPERATION> <table>",
        Some(4) => "send <subject>",
        _ => span.name.as_str(),
    };
    let known = SPANS.iter().find(|known| known.name == name);
    known.map_or("not in the catalogue", |known| known.name)
}

/// Returns the spans of the trace in which the test with this name ran.
fn of_test<'a>(collected: &'a CollectedData, test: &str) -> Vec<&'a CollectedSpan> {
    let is_run = |span: &&CollectedSpan| span.name == RUN && span.json.to_string().contains(test);
    let run = collected.spans.iter().find(is_run);
    let trace = run.map_or("", |run| run.trace_id.as_str());
    collected.spans.iter().filter(|span| span.trace_id == trace).collect()
}

/// Checks the run that passed: it has the spans of the level, and each parent is present.
fn assert_passed(row: &Row, collected: &CollectedData) {
    let spans = of_test(collected, "the cart answers");
    let names: BTreeSet<_> = spans.iter().map(|span| catalogued(span)).collect();
    let is_expected = |name: &str| name != "qualitytrace.judgement";
    let expected: BTreeSet<_> = SPANS
        .iter()
        .filter(|span| row.gets(span.level) && is_expected(span.name))
        .map(|span| span.name)
        .collect();
    assert_eq!(names, expected, "`{}`", row.name);
    let roots = spans.iter().filter(|span| span.parent_id.is_empty()).count();
    assert_eq!(roots, usize::from(!names.is_empty()), "`{}`", row.name);
    assert_no_orphans(row, collected);
}

/// Checks that no span has a parent that this exporter did not receive.
fn assert_no_orphans(row: &Row, collected: &CollectedData) {
    for span in collected.spans.iter().filter(|span| !span.parent_id.is_empty()) {
        let mut others = collected.spans.iter();
        let has_parent = others.any(|it| it.span_id == span.parent_id);
        assert!(has_parent, "`{}`: {}", row.name, span.json);
    }
}

/// Checks the run without a response: at every level it has the failed span, below its run.
fn assert_failed(row: &Row, collected: &CollectedData) -> Result<()> {
    let spans = of_test(collected, "nobody answers");
    let named = |name: &str| spans.iter().find(|span| span.name == name).copied();
    let run = named(RUN).with_context(|| format!("`{}` has no run", row.name))?;
    let trigger = named(TRIGGER).with_context(|| format!("`{}` has no trigger", row.name))?;
    assert_eq!(trigger.json["status"]["code"], 2, "{}", trigger.json);
    assert_eq!(trigger.parent_id, run.span_id, "`{}`", row.name);
    if !row.gets(Level::Info) {
        let names: Vec<_> = spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(BTreeSet::from_iter(names), BTreeSet::from([RUN, TRIGGER]), "`{}`", row.name);
        assert_eq!(run.parent_id, "", "the request that started it did not fail: it is not sent");
    }
    Ok(())
}

/// Checks the logs of the level, if the exporter has logs.
fn assert_logs(row: &Row, collected: &CollectedData) {
    let least = row.level.unwrap_or(Level::Info);
    let first = match least {
        Level::Trace => 1,
        Level::Debug => 5,
        Level::Info => 9,
        Level::Warn => 13,
        Level::Error => 17,
    };
    let finest = collected.logs.iter().map(|log| log.severity()).min();
    assert!(finest.is_none_or(|finest| finest >= first), "`{}`: {finest:?}", row.name);
    let is_ready = |name: &str| collected.logs.iter().any(|log| log.event() == name);
    let expected = row.is_tracer && least <= Level::Info;
    assert_eq!(is_ready("qualitytrace.server.ready"), expected, "`{}`", row.name);
    assert_eq!(is_ready("qualitytrace.run.ended"), expected, "`{}`", row.name);
}

fn has_both(it: &CollectedData) -> bool {
    it.named(RUN).count() >= 2
}

#[tokio::test(flavor = "multi_thread")]
async fn each_level_sends_its_spans_and_logs_and_what_failed_and_no_orphans() -> Result<()> {
    let database = Database::create("levels").await?;
    let folder = TempDir::new()?;
    let mut ports = Vec::new();
    let mut collectors = Vec::new();
    for _ in ROWS {
        let port = free_port()?;
        ports.push(port);
        collectors.push(Collector::start_for_all(port).await?);
    }
    let text = configuration(&database, folder.path(), &ports)?;
    let server = Server::start_with(Path::new(BINARY), &text, "127.0.0.1:0").await?;
    let target = Target::start(Some(server.otlp_grpc)).await?;
    let passes = target.test(Duration::from_millis(100));
    let fails = passes
        .replace("id: cart", "id: nobody")
        .replace("the cart answers", "nobody answers")
        .replace(&target.url, &format!("http://127.0.0.1:{}", free_port()?));
    for (name, document, code) in [("passes", passes, 0), ("fails", fails, 3)] {
        let file = folder.path().join(format!("{name}.yaml"));
        fs::write(&file, document)?;
        let file = file.to_str().context("a path that is text")?;
        let run = ["run", file, "--server", &server.api];
        let ran = qualitytrace(Path::new(BINARY), &run).await?;
        assert_eq!(ran.code, Some(code), "{ran:?}");
    }
    collectors[0].wait_for(WAIT_MAX, has_both).await?;
    // At its end the server has delivered everything to every exporter.
    assert_eq!(server.terminate().await?, Some(0));
    for (row, collector) in ROWS.iter().zip(&collectors) {
        let is_written = |it: &CollectedData| !of_test(it, "nobody answers").is_empty();
        let collected = collector.wait_for(WAIT_MAX, is_written).await?;
        assert_passed(row, &collected);
        assert_failed(row, &collected)?;
        assert_logs(row, &collected);
        let has_metrics = collector.written()?.contains("resourceMetrics");
        assert_eq!(has_metrics, !row.is_tracer, "metrics have no level: `{}`", row.name);
    }
    for collector in collectors {
        collector.kill().await?;
    }
    database.remove().await
}
