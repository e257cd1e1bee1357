//! The server's own telemetry: converts the types of `model` to those of the library that exports it.
//!
//! With `metrics` and `log_context`, the only module that uses OpenTelemetry's types. The library delivers what an exporter accepts, through
//! outages and restarts. When a buffer is nearly full, [`Telemetry::is_pressed`] returns true and new runs are refused, since
//! a full buffer blocks a thread that ends a span. Deliberately absent: names of spans (`spans`).

use std::{
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, SystemTime},
};

use db::Db;
use drivers::receiver::ReceiverStats;
use model::{
    SpanId, Timestamp, TraceId, World,
    trace::{EventData, Kind, LinkData, SpanData, StatusCode, Value},
};
use telemetry::{
    FinishedSpan, Host, ParentState, Report, To,
    opentelemetry::{
        InstrumentationScope, KeyValue,
        logs::Severity,
        metrics::MeterProvider,
        trace::{Event, Link, SpanContext, SpanKind, Status, TraceFlags, TraceState},
    },
    plan::Level,
};

use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::{
    config,
    span_bus::SpanBus,
    telemetry::{
        catalogue::{SCOPE, attribute, event},
        events::{self, EventQueue, LogEvent},
        instance::Instance,
        metrics::{self, OwnMetrics, RunQueue},
        own_endpoint::{OwnEndpoint, TelemetryError, effective, not_sending, refuse_own_endpoints},
        traceparent::TraceParent,
    },
};

/// How often the database is queried for the number of queued runs.
const WAITING_POLL: Duration = Duration::from_secs(5);

/// The fill level of a buffer from which on new runs are refused; the rest is for active runs.
const PRESSURE_MAX: f64 = 0.8;

/// How long a shutdown waits until queued events have reached the exporters.
const FLUSH_MAX: Duration = Duration::from_secs(1);

const INSTANCE_ID: &str = "service.instance.id";
const VERSION: &str = "service.version";

/// The crates of this program, by the prefixes of their log targets.
pub const CRATES: &[&str] =
    &["qualitytrace", "server", "db", "bus", "drivers", "runner", "telemetry"];

/// The level of a span, and the state of its parent.
pub(crate) type SpanPlace = (Level, ParentState);

/// The server's exporters and instruments.
#[derive(Debug)]
pub struct Telemetry {
    inner: telemetry::Telemetry,
    /// The exporter of trigger spans; a reload may change it.
    application: Mutex<Option<String>>,
    /// The exporters that do not send.
    not_sending: Mutex<Vec<OwnEndpoint>>,
    prometheus: AtomicBool,
    metrics: OwnMetrics,
    events: EventQueue,
    /// Reserves the instance id until it is dropped.
    _instance: Instance,
}

impl Telemetry {
    /// Starts the exporters. None of them needs its Collector to be available; one that would send to the server itself is
    /// refused.
    pub fn start(config: &config::Config, mut host: Host) -> Result<Self, TelemetryError> {
        refuse_own_endpoints(&config.telemetry, config.listen)?;
        let (plan, roles, not_sending) = effective(&config.telemetry, config.listen);
        let instance = Instance::of(&config.data_directory, host.random);
        host.resource.push(KeyValue::new(INSTANCE_ID, instance.id.clone()));
        let config = &config.telemetry;
        let (events, reader) = events::event_queue();
        queue_notices(&mut host, events.clone());
        let inner = telemetry::Telemetry::start(&plan, &roles, host)?;
        reader.start(inner.logger_provider()).map_err(telemetry::StartError::Thread)?;
        let metrics = OwnMetrics::new(inner.meter_provider().meter(SCOPE));
        let application = Mutex::new(roles.others.first().cloned());
        let prometheus = AtomicBool::new(config.plan.prometheus);
        Ok(Self {
            inner,
            application,
            not_sending: Mutex::new(not_sending),
            prometheus,
            metrics,
            events,
            _instance: instance,
        })
    }

    /// Reloads the configuration; accepted telemetry is kept. `listen` has the actual addresses of the server.
    pub fn reload(
        &self,
        config: &config::Config,
        listen: config::Listen,
    ) -> Result<(), TelemetryError> {
        let config = &config.telemetry;
        refuse_own_endpoints(config, listen)?;
        let (plan, roles, not_sending) = effective(config, listen);
        self.inner.reload(&plan, &roles)?;
        *self.application.lock().unwrap_or_else(PoisonError::into_inner) =
            roles.others.into_iter().next();
        *self.not_sending.lock().unwrap_or_else(PoisonError::into_inner) = not_sending;
        self.prometheus.store(config.plan.prometheus, Ordering::Relaxed);
        Ok(())
    }

    /// The exporters that do not send, since their default endpoint is this server itself.
    pub fn not_sending(&self) -> Vec<OwnEndpoint> {
        self.not_sending.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Exports an event that the server is ready, or why it is not.
    pub fn tell_ready(&self, unready: Option<&str>) {
        let (name, severity, body) = match unready {
            None => (event::READY, Severity::Info, "ready".to_owned()),
            Some(why) => (event::NOT_READY, Severity::Warn, format!("not ready: {why}")),
        };
        self.events.push(LogEvent { name, severity, body, attributes: Vec::new() });
    }

    /// Exports an event that the configuration was reloaded.
    pub fn tell_reloaded(&self) {
        let body = "the configuration was read again".to_owned();
        let (name, severity) = (event::RELOADED, Severity::Info);
        self.events.push(LogEvent { name, severity, body, attributes: Vec::new() });
    }

    /// Exports a span of the server itself, as a part of this trace.
    pub(crate) fn own(&self, trace: &TraceParent, (level, parent): SpanPlace, span: SpanData) {
        if trace.sampled {
            let mut span = finished(trace.trace_id, trace.followed, span);
            (span.level, span.parent_state) = (level, parent);
            self.inner.emit(To::Own, span);
        }
    }

    /// Exports the trigger span of a run to the application's trace store.
    pub(crate) fn application(&self, trace: TraceId, span: SpanData) {
        let name = self.application.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(name) = name {
            self.inner.emit(To::Exporter(&name), finished(trace, false, span));
        }
    }

    /// The instruments of the server itself.
    pub(crate) fn metrics(&self) -> &OwnMetrics {
        &self.metrics
    }

    /// Updates the metrics of ingest and of the queue, until the server stops. Runs on threads with suppressed telemetry.
    pub(crate) fn watch(
        &self,
        (witness, bus): (ReceiverStats, Arc<SpanBus>),
        db: Db,
        world: World,
        stop: CancellationToken,
    ) -> impl Future<Output = ()> + use<> {
        let waiting = RunQueue::default();
        self.metrics.show_ingest(witness);
        self.metrics.show_lag(move || bus.lag());
        self.metrics.show_waiting(&waiting);
        async move {
            while stop.run_until_cancelled(sleep(WAITING_POLL)).await.is_some() {
                let known = timeout(WAITING_POLL, db.queue()).await.ok().and_then(Result::ok);
                let known = known.map(|it| (it.runs, metrics::age(it.oldest, world.now())));
                *waiting.lock().unwrap_or_else(PoisonError::into_inner) = known;
            }
        }
    }

    /// Whether a buffer is so full that new runs have to wait.
    pub(crate) fn is_pressed(&self) -> bool {
        self.inner.pressure() >= PRESSURE_MAX
    }

    /// Returns all metrics for Prometheus, unless the configuration turns them off.
    pub(crate) fn prometheus(&self) -> Option<String> {
        let is_served = self.prometheus.load(Ordering::Relaxed);
        is_served.then(|| self.inner.prometheus())
    }

    /// The telemetry library: the status of its exporters, and the layer that passes the program's log to them.
    pub fn library(&self) -> &telemetry::Telemetry {
        &self.inner
    }

    /// Sends queued telemetry, and shuts down. Blocks for up to `max`.
    pub(crate) fn shutdown(&self, max: Duration) -> Report {
        let flush = FLUSH_MAX.min(max / 10);
        self.events.flush(flush);
        self.inner.shutdown(max - flush)
    }
}

fn finished(trace: TraceId, followed: bool, span: SpanData) -> FinishedSpan {
    let mut finished = FinishedSpan::new(span_context(trace, span.id, false), span.name);
    finished.parent = span.parent.map(span_id);
    finished.followed = followed;
    finished.kind = match span.kind {
        Kind::Server => SpanKind::Server,
        Kind::Client => SpanKind::Client,
        Kind::Producer => SpanKind::Producer,
        Kind::Consumer => SpanKind::Consumer,
        Kind::Unspecified | Kind::Internal | Kind::Other(_) => SpanKind::Internal,
    };
    (finished.start, finished.end) = (system_time(span.start), system_time(span.end));
    finished.attributes = span.attributes.into_iter().map(key_value).collect();
    finished.events = span.events.into_iter().map(span_event).collect();
    finished.links = span.links.iter().filter_map(link).collect();
    finished.status = match span.status.code {
        StatusCode::Error => Status::error(span.status.message),
        StatusCode::Ok => Status::Ok,
        StatusCode::Unset | StatusCode::Other(_) => Status::Unset,
    };
    finished.scope = InstrumentationScope::builder(SCOPE).build();
    finished
}

fn span_event(event: EventData) -> Event {
    let attributes = event.attributes.into_iter().map(key_value).collect();
    Event::new(event.name, system_time(event.at), attributes, event.dropped_attributes)
}

fn link(link: &LinkData) -> Option<Link> {
    Some(Link::with_context(span_context(link.trace_id?, link.span_id?, true)))
}

fn key_value((key, value): (String, Value)) -> KeyValue {
    match value {
        Value::Bool(value) => KeyValue::new(key, value),
        Value::Int(value) => KeyValue::new(key, value),
        Value::Double(value) => KeyValue::new(key, value),
        Value::Str(value) => KeyValue::new(key, value),
        // The server's own spans have only scalar values.
        Value::Empty | Value::Bytes(_) | Value::Array(_) | Value::Map(_) => KeyValue::new(key, ""),
    }
}

pub(super) fn span_context(trace: TraceId, span: SpanId, remote: bool) -> SpanContext {
    let trace = telemetry::opentelemetry::TraceId::from_bytes(*trace.as_bytes());
    SpanContext::new(trace, span_id(span), TraceFlags::SAMPLED, remote, TraceState::NONE)
}

fn span_id(span: SpanId) -> telemetry::opentelemetry::SpanId {
    telemetry::opentelemetry::SpanId::from_bytes(*span.as_bytes())
}

fn system_time(at: Timestamp) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(at.as_nanos())
}

/// Returns the host settings of the telemetry library: the resource, and the callback for errors of exporters.
pub fn host() -> Host {
    let mut host = Host::new(concat!("qualitytrace/", env!("CARGO_PKG_VERSION")));
    host.resource.push(KeyValue::new(VERSION, env!("CARGO_PKG_VERSION")));
    host.crates = CRATES.iter().map(|name| (*name).to_owned()).collect();
    // Called on a thread without export, so that an error of an exporter is not sent to it.
    host.notice = Arc::new(|notice| {
        let (exporter, topic, message) = (notice.exporter, notice.topic.as_str(), notice.message);
        if notice.is_over {
            tracing::info!(exporter, topic, "telemetry: `{exporter}` {message}");
        } else {
            tracing::warn!(exporter, topic, "telemetry: `{exporter}` {message}");
        }
    });
    host
}

/// Queues an event for all exporters when one of them fails; the failed one gets it too when it delivers again.
fn queue_notices(host: &mut Host, events: EventQueue) {
    let notice = Arc::clone(&host.notice);
    host.notice = Arc::new(move |said| {
        notice(said);
        let (name, severity) = match said.is_over {
            true => (event::EXPORTER_RECOVERED, Severity::Info),
            false => (event::EXPORTER_TROUBLE, Severity::Warn),
        };
        let attributes = vec![
            (attribute::EXPORTER, said.exporter.to_owned()),
            (attribute::TOPIC, said.topic.as_str().to_owned()),
        ];
        let body = format!("`{}` {}", said.exporter, said.message);
        events.push(LogEvent { name, severity, body, attributes });
    });
}

/// Describes the effect of a configuration for people; secrets are redacted.
pub fn describe(config: &config::Config) -> String {
    let telemetry = &config.telemetry;
    let own = match &telemetry.exporter {
        Some(name) => {
            format!("the server's own spans and metrics: to `{name}`, and to tracers and pushes\n")
        }
        None => "the server's own spans and metrics: to tracers and pushes, if there are any\n"
            .to_owned(),
    };
    let application = match &telemetry.application_exporter {
        Some(name) => format!("the trigger span of each run: to `{name}`\n"),
        None => "the trigger span of each run: kept in the run's own trace only\n".to_owned(),
    };
    let not_sending = not_sending(telemetry, config.listen).into_iter();
    let not_sending: String = not_sending.map(|own| format!("not sending: {own}\n")).collect();
    format!("{}\n{own}{application}{not_sending}", telemetry::config::describe(&telemetry.plan))
}

/// Sends one item of each signal to every exporter that the server uses, and returns those that do not send.
pub fn probe(config: &config::Config, host: &Host) -> (Vec<telemetry::Probe>, Vec<OwnEndpoint>) {
    let (plan, roles, not_sending) = effective(&config.telemetry, config.listen);
    (telemetry::probe(&plan, &roles, host), not_sending)
}
