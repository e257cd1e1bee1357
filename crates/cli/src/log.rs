//! The log of the server's process on stderr, as text lines or as JSON. Its level can change at run time.
//!
//! The JSON formatter is our own, since that of the subscriber has no trace ids: ours come from the current OpenTelemetry
//! context, as does the id of the run. With it, everything that the server writes to stderr is a JSON object a line: messages of the
//! command and panics too. Deliberately absent: other destinations of logs than stderr, which belong to telemetry.

use std::{
    backtrace::{Backtrace, BacktraceStatus},
    fmt,
    io::{self, Write as _},
    panic::{self, PanicHookInfo},
    thread,
};

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
        LogFormat::Json => {
            panic::set_hook(Box::new(|panic| {
                // In one call, so that no other line comes between. If stderr is closed, there is no reader to lose it.
                let _closed = io::stderr().lock().write_all(of_panic(panic).as_bytes());
            }));
            lines.event_format(Json).boxed()
        }
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
        let level = event.metadata().level().as_str().to_lowercase();
        let mut line = head(&level, event.metadata().target());
        event.record(&mut Fields(&mut line));
        locate(&mut line);
        writeln!(writer, "{}", Value::Object(line))
    }
}

/// Returns a message of the command as a line of the log. Its first word states its level.
pub(crate) fn of_message(message: &str) -> String {
    let (level, message) = match message.split_once(": ") {
        Some(("error", rest)) => ("error", rest),
        Some(("warning", rest)) => ("warn", rest),
        Some(("note", rest)) => ("info", rest),
        _ => ("info", message),
    };
    let mut line = head(level, crate::NAME);
    line.insert("message".to_owned(), message.into());
    Value::Object(line).to_string()
}

fn of_panic(panic: &PanicHookInfo<'_>) -> String {
    let mut line = head("error", "panic");
    let message = panic.payload_as_str().unwrap_or("a panic without a message");
    line.insert("message".to_owned(), message.into());
    let location = panic.location().map(ToString::to_string).unwrap_or_default();
    line.insert("location".to_owned(), location.into());
    line.insert("thread".to_owned(), thread::current().name().unwrap_or_default().into());
    let backtrace = Backtrace::capture();
    if backtrace.status() == BacktraceStatus::Captured {
        line.insert("backtrace".to_owned(), backtrace.to_string().into());
    }
    locate(&mut line);
    format!("{}\n", Value::Object(line))
}

/// Returns the fields that every line has.
fn head(level: &str, target: &str) -> Map<String, Value> {
    let mut time = String::new();
    // Writing to a text does not fail.
    let _written = SystemTime.format_time(&mut Writer::new(&mut time));
    let fields = [("timestamp", time.as_str()), ("level", level), ("target", target)];
    fields.map(|(name, value)| (name.to_owned(), value.into())).into_iter().collect()
}

/// Inserts the ids of trace, span and run that the work of this moment is for. A run that the line names itself stays.
fn locate(line: &mut Map<String, Value>) {
    let place = Context::current().span().span_context().clone();
    if place.is_valid() {
        line.insert("trace_id".to_owned(), place.trace_id().to_string().into());
        line.insert("span_id".to_owned(), place.span_id().to_string().into());
    }
    if let Some((name, run)) = server::current_run() {
        line.entry(name).or_insert_with(|| run.to_string().into());
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_a_line_with_its_level() {
        for (message, level, rest) in [
            ("error: it is gone [unavailable]", "error", "it is gone [unavailable]"),
            ("warning: `a` does not send", "warn", "`a` does not send"),
            ("note: a key", "info", "a key"),
            ("stopping: runs may end", "info", "stopping: runs may end"),
            ("two\nlines \"quoted\"", "info", "two\nlines \"quoted\""),
        ] {
            let line = of_message(message);
            assert!(!line.contains('\n'), "{line}");
            let line: Value = serde_json::from_str(&line).expect("JSON");
            assert_eq!((&line["level"], &line["message"]), (&level.into(), &rest.into()), "{line}");
            assert!(line["timestamp"].as_str().is_some_and(|it| it.ends_with('Z')), "{line}");
        }
    }

    #[test]
    fn a_panic_is_a_line() {
        let lines = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
        let (hook, written) = (panic::take_hook(), std::sync::Arc::clone(&lines));
        panic::set_hook(Box::new(move |it| written.lock().expect("written").push(of_panic(it))));
        let caught = panic::catch_unwind(|| panic!("the shelf {} broke", 3));
        panic::set_hook(hook);
        assert!(caught.is_err());
        // A test beside this one may panic too.
        let lines = lines.lock().expect("written");
        let line = lines.iter().find(|it| it.contains("the shelf 3 broke")).expect("a line");
        let line: Value = serde_json::from_str(line).expect("JSON");
        assert_eq!((&line["level"], &line["target"]), (&"error".into(), &"panic".into()), "{line}");
        assert!(line["location"].as_str().is_some_and(|it| it.contains("log.rs:")), "{line}");
    }
}
