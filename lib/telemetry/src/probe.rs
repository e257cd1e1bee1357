//! Checks whether each destination is reachable as configured: sends one item of each signal that it carries,
//! immediately.
//!
//! Nothing is queued or retried: the result is the response of the destination, or the exact reason why there was none.

use std::{
    fmt,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use opentelemetry::{
    InstrumentationScope, SpanId, TraceFlags, TraceId,
    logs::{AnyValue, LogRecord as _, Logger, LoggerProvider, Severity},
    metrics::MeterProvider,
    trace::{SpanContext, TraceState},
};
use opentelemetry_sdk::{logs::SdkLoggerProvider, metrics::SdkMeterProvider};

use crate::{
    encode,
    exporter::head,
    host::Host,
    life::carriers,
    metrics::Reader,
    plan::{Destination, Exporter, Otlp, Plan, Roles, Signal, shown},
    record,
    send::{Answer, Client},
    span::FinishedSpan,
};

const SCOPE: &str = "probe";

/// The result of one probe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The name of the exporter.
    pub exporter: String,
    /// The signal that was sent.
    pub signal: Signal,
    /// The endpoint.
    pub endpoint: String,
    /// How long the response took.
    pub took: Duration,
    /// Why the item was not delivered; `None` if it was.
    pub failure: Option<String>,
}

impl Probe {
    /// Returns whether the destination accepted the item.
    pub fn arrived(&self) -> bool {
        self.failure.is_none()
    }
}

impl fmt::Display for Probe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { exporter, signal, endpoint, took, failure } = self;
        let millis = took.as_millis();
        match failure {
            None => {
                write!(f, "{exporter}: {} arrived at {endpoint} in {millis} ms", signal.as_str())
            }
            Some(why) => {
                write!(
                    f,
                    "{exporter}: {} did NOT arrive at {endpoint} ({millis} ms): {why}",
                    signal.as_str()
                )
            }
        }
    }
}

/// Sends one item of each signal that the exporters of a plan carry by these roles. Blocks for up to each exporter's
/// timeout; runs on its own threads, so that it can be called from any context.
pub fn probe(plan: &Plan, roles: &Roles, host: &Host) -> Vec<Probe> {
    let mut probes = Vec::new();
    std::thread::scope(|scope| {
        let threads: Vec<_> = carriers(plan, roles)
            .map(|(exporter, _)| scope.spawn(move || probe_one(&exporter, host)))
            .collect();
        for thread in threads {
            probes.extend(thread.join().unwrap_or_default());
        }
    });
    probes
}

fn probe_one(exporter: &Exporter, host: &Host) -> Vec<Probe> {
    let _suppressed = opentelemetry::Context::enter_telemetry_suppressed_scope();
    // A destination on this machine needs no probe.
    let Destination::Otlp(otlp) = &exporter.destination else { return Vec::new() };
    let signals = || exporter.signals.carried();
    let failed = |signal: Signal, why: String| Probe {
        exporter: exporter.name.clone(),
        signal,
        endpoint: shown(otlp.endpoint(signal)),
        took: Duration::ZERO,
        failure: Some(why),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => return signals().map(|it| failed(it, error.to_string())).collect(),
    };
    runtime.block_on(async {
        let client = match Client::new(otlp, &host.user_agent) {
            Ok(client) => client,
            Err(error) => {
                return signals().map(|it| failed(it, error.to_string())).collect();
            }
        };
        let mut probes = Vec::new();
        for signal in signals() {
            probes.push(send(exporter, otlp, &client, signal, host).await);
        }
        probes
    })
}

async fn send(
    exporter: &Exporter,
    otlp: &Otlp,
    client: &Client,
    signal: Signal,
    host: &Host,
) -> Probe {
    let body = match signal {
        Signal::Spans => span(exporter, host),
        Signal::Logs => log(exporter, host),
        Signal::Metrics => metric(exporter),
    };
    let began: Instant = (host.now)();
    let answer = client.send(signal, Bytes::from(body)).await;
    Probe {
        exporter: exporter.name.clone(),
        signal,
        endpoint: shown(otlp.endpoint(signal)),
        took: (host.now)().duration_since(began),
        failure: match answer {
            Answer::Accepted => None,
            Answer::Partial { rejected, message } => {
                Some(format!("the destination rejected {rejected} item of it: {message}"))
            }
            Answer::Later { why, .. }
            | Answer::Misconfigured(why)
            | Answer::TooLarge(why)
            | Answer::Poison(why) => Some(why.message),
        },
    }
}

fn span(exporter: &Exporter, host: &Host) -> Vec<u8> {
    let mut trace = [0; 16];
    trace[..8].copy_from_slice(&(host.random)().to_be_bytes());
    trace[8..].copy_from_slice(&((host.random)() | 1).to_be_bytes());
    let context = SpanContext::new(
        TraceId::from_bytes(trace),
        SpanId::from((host.random)() | 1),
        TraceFlags::SAMPLED,
        false,
        TraceState::NONE,
    );
    let mut span = FinishedSpan::new(context, "telemetry probe");
    let now: SystemTime = (host.wall)();
    (span.start, span.end) = (now, now);
    let span = span.into_data();
    let mut out = Vec::new();
    record::begin(&mut out, Signal::Spans, |out| {
        encode::scope(out, &InstrumentationScope::builder(SCOPE).build());
    });
    encode::span(&mut out, &span, None);
    request(exporter, host, &out)
}

fn log(exporter: &Exporter, host: &Host) -> Vec<u8> {
    // Only a logger can create an SDK record; it does not matter that this one has no processor.
    let logger = SdkLoggerProvider::builder().build().logger(SCOPE);
    let mut record = logger.create_log_record();
    record.set_timestamp((host.wall)());
    record.set_observed_timestamp((host.wall)());
    record.set_severity_number(Severity::Info);
    record.set_severity_text("INFO");
    record.set_body(AnyValue::from("telemetry probe"));
    let mut out = Vec::new();
    record::begin(&mut out, Signal::Logs, |out| {
        encode::scope(out, &InstrumentationScope::builder(SCOPE).build());
    });
    encode::log(&mut out, &record);
    request(exporter, host, &out)
}

fn metric(exporter: &Exporter) -> Vec<u8> {
    let reader = Reader::new();
    let provider = SdkMeterProvider::builder().with_reader(reader.clone()).build();
    provider.meter(SCOPE).u64_counter("telemetry.probe").build().add(1, &[]);
    reader.request(&exporter.service_name).map(|(body, _)| body).unwrap_or_default()
}

fn request(exporter: &Exporter, host: &Host, record: &[u8]) -> Vec<u8> {
    let items: Vec<_> = record::read(record).into_iter().collect();
    record::request(&head(exporter, host), &items)
}
