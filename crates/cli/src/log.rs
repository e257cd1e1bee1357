//! The log of the server's process on stderr, as text lines or as JSON. Its level can change at run time.
//!
//! The JSON formatter is our own, since that of the subscriber has no trace ids: ours come from the current OpenTelemetry
//! context. Deliberately absent: other destinations of logs than stderr, which belong to telemetry.

use std::fmt;

use serde_json::{Map, Value};
use server::config::{Log, LogFormat};
use telemetry::{
    opentelemetry::{Context, trace::TraceContextExt},
    plan::Level,
};
use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    level_filters::LevelFilter,
};
use tracing_subscriber::{
    Layer,
    filter::Targets,
    fmt::{
        FmtContext, FormatEvent, FormatFields,
        format::Writer,
        time::{FormatTime, SystemTime},
    },
    layer::SubscriberExt,
    registry::LookupSpan,
    reload,
    util::SubscriberInitExt,
};

/// A handle to change the level.
pub(crate) type Levels = reload::Handle<Targets, tracing_subscriber::Registry>;

/// Starts to log: to stderr, and to the exporters that accept logs.
pub(crate) fn start(log: Log, telemetry: &server::Telemetry) -> Levels {
    let (levels, handle) = reload::Layer::new(targets(log.level));
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
    let lines = match log.format {
        LogFormat::Text => lines.with_target(false).boxed(),
        LogFormat::Json => lines.event_format(Json).boxed(),
    };
    tracing_subscriber::registry()
        .with(lines.with_filter(levels))
        .with(telemetry.library().tracing_layer())
        .init();
    handle
}

/// Returns the filter for this level.
pub(crate) fn targets(level: Level) -> Targets {
    let ours = match level {
        Level::Trace => LevelFilter::TRACE,
        Level::Debug => LevelFilter::DEBUG,
        Level::Info => LevelFilter::INFO,
        Level::Warn => LevelFilter::WARN,
        Level::Error => LevelFilter::ERROR,
    };
    // Libraries log from level warning only: their lower levels quote values.
    let others = ours.min(LevelFilter::WARN);
    Targets::new()
        .with_default(others)
        .with_targets(server::CRATES.iter().map(|name| (*name, ours)))
}

/// A formatter that writes one JSON object per line.
struct Json;

impl<S, N> FormatEvent<S, N> for Json
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(
        &self,
        _context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = Map::new();
        let mut time = String::new();
        SystemTime.format_time(&mut Writer::new(&mut time))?;
        line.insert("timestamp".to_owned(), time.into());
        let level = event.metadata().level().as_str().to_lowercase();
        line.insert("level".to_owned(), level.into());
        line.insert("target".to_owned(), event.metadata().target().into());
        event.record(&mut Fields(&mut line));
        let place = Context::current().span().span_context().clone();
        if place.is_valid() {
            line.insert("trace_id".to_owned(), place.trace_id().to_string().into());
            line.insert("span_id".to_owned(), place.span_id().to_string().into());
        }
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// A visitor that inserts the fields of an event beside the others.
struct Fields<'a>(&'a mut Map<String, Value>);

impl Visit for Fields<'_> {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}").into());
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.0.insert(field.name().to_owned(), value.into());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.0.insert(field.name().to_owned(), value.into());
    }
}
