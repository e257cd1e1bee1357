//! Executes one row of the table: reads its configuration and runs it against its own peers, in both formats.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    path::PathBuf,
    sync::LazyLock,
    thread,
    time::Duration,
};

use opentelemetry::{
    InstrumentationScope, KeyValue,
    logs::{AnyValue, LogRecord, Logger, LoggerProvider, Severity},
    metrics::MeterProvider,
    trace::{Span, SpanContext, Tracer, TracerProvider},
};
use source::{Colour, Fields, Text};
use telemetry::{
    Host, Report, Roles, Telemetry,
    config::{self, Defaults, Environment, KEYS, Overlay},
    plan::{Destination, Otlp, Plan},
};
use tempfile::TempDir;
use tracing::{Dispatch, level_filters::LevelFilter};
use tracing_subscriber::layer::SubscriberExt;

use crate::{
    collector::Collector,
    peer::{Certificates, Peer},
};

/// The name of the program, if a configuration does not set another.
pub(crate) const PROGRAM: &str = "program";
/// How long a shutdown may take to deliver.
const SHUTDOWN_MAX: Duration = Duration::from_secs(10);

/// While a process has only one subscriber, `tracing` queries the subscriber of the calling thread, and rows on other
/// threads would disable this one. With this one there are always two, and `tracing` queries all of them.
static SECOND: LazyLock<Dispatch> =
    LazyLock::new(|| Dispatch::new(tracing_subscriber::registry().with(LevelFilter::OFF)));

/// An option of a document in one configuration, written in both formats.
///
/// In texts and variables `PEER` and `OTHER` are addresses of two peers, `SECURE` that of one with a certificate of
/// `CAFILE`, `COLLECTOR_GRPC` and `COLLECTOR_HTTP` those of a real Collector, and `FILE` is the row's own path.
pub(crate) struct Row {
    /// `document: option`.
    pub(crate) option: &'static str,
    /// The case of the option.
    pub(crate) case: &'static str,
    pub(crate) yaml: &'static str,
    pub(crate) toml: &'static str,
    pub(crate) environment: &'static [(&'static str, &'static str)],
    /// Produces telemetry, checks the delivered data, and shuts the stage down.
    pub(crate) check: fn(&Stage) -> Report,
}

impl Row {
    pub(crate) const fn new(
        (option, case): (&'static str, &'static str),
        yaml: &'static str,
        toml: &'static str,
        check: fn(&Stage) -> Report,
    ) -> Self {
        Self { option, case, yaml, toml, environment: &[], check }
    }

    /// Returns the row with these variables.
    pub(crate) const fn with(self, environment: &'static [(&'static str, &'static str)]) -> Self {
        Self { environment, ..self }
    }
}

/// Telemetry that runs with a row's configuration.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) telemetry: Telemetry,
    pub(crate) peer: Peer,
    pub(crate) other: Peer,
    /// A path that a row may write.
    pub(crate) file: PathBuf,
    secure: Option<(Peer, Certificates)>,
    _folder: TempDir,
}

/// Executes rows in both formats, all at once, and reports each failure.
pub(crate) fn run(rows: &[Row], collector: Option<&Collector>) {
    for row in rows {
        let [yaml, toml] = [("t.yaml", row.yaml), ("t.toml", row.toml)]
            .map(|(name, content)| read(name, &anywhere(content), environment(row, &anywhere)));
        assert_eq!(yaml, toml, "{} ({}): both formats say the same", row.option, row.case);
    }
    let mut failed = Vec::new();
    thread::scope(|scope| {
        let mut running = Vec::new();
        for row in rows {
            for (name, content) in [("t.yaml", row.yaml), ("t.toml", row.toml)] {
                let title = format!("{} ({}), {name}", row.option, row.case);
                let run = move || {
                    catch_unwind(AssertUnwindSafe(|| play(row, name, content, collector))).is_ok()
                };
                let thread = thread::Builder::new().name(title.clone()).spawn_scoped(scope, run);
                running.push((title, thread.expect("a thread")));
            }
        }
        for (title, thread) in running {
            if !thread.join().unwrap_or(false) {
                failed.push(title);
            }
        }
    });
    assert!(failed.is_empty(), "failed:\n{}", failed.join("\n"));
}

/// Replaces the placeholders by addresses without a server.
fn anywhere(text: &str) -> String {
    ["PEER", "OTHER", "SECURE", "COLLECTOR_GRPC", "COLLECTOR_HTTP"]
        .iter()
        .fold(text.to_owned(), |text, word| text.replace(word, "nowhere:1"))
}

fn environment(row: &Row, filled: &dyn Fn(&str) -> String) -> Environment {
    row.environment.iter().map(|(name, value)| (*name, filled(value))).collect()
}

fn play(row: &Row, name: &str, content: &str, collector: Option<&Collector>) {
    let (peer, other) = (Peer::start(), Peer::start());
    let secure = content.contains("SECURE").then(|| {
        let certificates = Certificates::make();
        (Peer::start_tls(&certificates), certificates)
    });
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("lines.log");
    let filled = |text: &str| {
        let mut text = text
            .replace("PEER", &peer.address().to_string())
            .replace("OTHER", &other.address().to_string());
        if let Some((peer, certificates)) = &secure {
            text = text
                .replace("SECURE", peer.endpoint().trim_start_matches("https://"))
                .replace("CAFILE", &certificates.ca_file().display().to_string());
        }
        if let Some(collector) = collector {
            text = text
                .replace("COLLECTOR_GRPC", &collector.grpc)
                .replace("COLLECTOR_HTTP", &collector.http);
        }
        text.replace("FILE", &file.display().to_string())
    };
    let plan = read(name, &filled(content), environment(row, &filled));
    // An exporter that is not always active gets the program's own telemetry by a role.
    let roles = Roles {
        own: plan.exporters.iter().find(|it| !it.always).map(|it| it.name.clone()),
        others: Vec::new(),
    };
    let active = plan.active(&roles).count();
    let telemetry = Telemetry::start(&plan, &roles, Host::new("program/1.0")).expect("it starts");
    let stage = Stage { plan, telemetry, peer, other, file, secure, _folder: folder };
    let report = (row.check)(&stage);
    assert_eq!(report.exporters.len(), active, "the check ends the stage");
    for counts in &report.exporters {
        assert!(counts.is_balanced(), "{counts:?}");
    }
}

/// Reads a configuration file into a plan, as the documentation of `config` shows.
pub(crate) fn read(name: &str, content: &str, environment: Environment) -> Plan {
    let text = Text::new(name, content);
    let (root, mistakes) = source::read_one(&text);
    let overlay = Overlay { prefix: "APP", keys: &[KEYS], environment: &environment, taken: &[] };
    let overlaid = overlay.apply(&text, root);
    let found = overlaid.found(mistakes);
    let defaults = Defaults {
        service_name: PROGRAM.to_owned(),
        directory: None,
        own_directory: None,
        environment,
    };
    let mut root = Fields::of(&overlaid.root, "the configuration", &found).expect("a table");
    let plan = config::read(&mut root, &defaults, &found);
    root.finish();
    let is_wrong = found.has_errors();
    assert!(!is_wrong, "{content}\n{}", source::draw(&found.into_vec(), Colour::Never));
    plan
}

impl Stage {
    /// The peer with a certificate.
    pub(crate) fn secure(&self) -> &Peer {
        &self.secure.as_ref().expect("the text names it").0
    }

    /// The endpoint of the first exporter.
    pub(crate) fn otlp(&self) -> &Otlp {
        match &self.plan.exporters[0].destination {
            Destination::Otlp(otlp) => Some(otlp),
            Destination::Stdout | Destination::Log(_) => None,
        }
        .expect("it sends to an endpoint")
    }

    /// Creates a root span with the bare API; returns its context whether or not it is sampled.
    pub(crate) fn span(&self, name: &'static str) -> SpanContext {
        let mut span = self.telemetry.tracer_provider().tracer("shop").start(name);
        span.end();
        span.span_context().clone()
    }

    /// Creates root spans with the bare API, each with an attribute of `bytes` bytes.
    pub(crate) fn spans(&self, count: usize, bytes: usize) {
        let tracer = self.telemetry.tracer_provider().tracer("shop");
        for number in 0..count {
            let attributes = [KeyValue::new("padding", "x".repeat(bytes))];
            let span = tracer.span_builder(number.to_string()).with_attributes(attributes);
            span.start(&tracer).end();
        }
    }

    /// Emits a log record with the bare API.
    pub(crate) fn log(&self, severity: Severity, body: &'static str) {
        let scope = InstrumentationScope::builder("shop").build();
        let logger = self.telemetry.logger_provider().logger_with_scope(scope);
        let mut record = logger.create_log_record();
        record.set_severity_number(severity);
        record.set_body(AnyValue::from(body));
        logger.emit(record);
    }

    /// Records a metric.
    pub(crate) fn count(&self) {
        let meter = self.telemetry.meter_provider().meter("shop");
        meter.u64_counter("orders").build().add(1, &[]);
    }

    /// Calls `produce` with the bridge as the subscriber of this thread.
    pub(crate) fn bridged<T>(&self, produce: impl FnOnce() -> T) -> T {
        LazyLock::force(&SECOND);
        let subscriber = tracing_subscriber::registry().with(self.telemetry.tracing_layer());
        tracing::subscriber::with_default(subscriber, produce)
    }

    /// Delivers, and shuts down.
    pub(crate) fn end(&self) -> Report {
        self.telemetry.shutdown(SHUTDOWN_MAX)
    }

    /// Delivers everything, and shuts down.
    pub(crate) fn deliver(&self) -> Report {
        let report = self.end();
        assert!(report.is_delivered(), "{report:?}");
        report
    }
}
