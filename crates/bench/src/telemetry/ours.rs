//! Our exporter, by a plan with the defaults of a configuration: the only module here that uses `lib/telemetry`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use opentelemetry_sdk::trace::SdkTracerProvider;
use telemetry::{
    Host, Roles, Telemetry,
    plan::{
        Buffer, Compression, Destination, Endpoints, Exporter, Otlp, Plan, Retry, Signals, Tls,
    },
};

use super::subject::{self, EmitterOrder, ExporterKind, SpanCounts, Transport};

/// Concurrent requests.
const CONCURRENCY: usize = 4;
/// The timeout of a request.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Telemetry with one exporter.
#[derive(Debug)]
pub(crate) struct Ours(Box<Telemetry>);

impl Ours {
    /// Starts it by the order, but with the Collector on this port.
    pub(crate) fn start(order: &EmitterOrder, port: u16) -> Result<Self> {
        let host = Host::new("emitter/1.0");
        let telemetry = Telemetry::start(&plan(order, port)?, &Roles::default(), host)?;
        Ok(Self(Box::new(telemetry)))
    }

    pub(crate) fn provider(&self) -> &SdkTracerProvider {
        self.0.tracer_provider()
    }

    /// Reloads it with the Collector on this port.
    pub(crate) fn change(&self, order: &EmitterOrder, port: u16) -> Result<()> {
        Ok(self.0.reload(&plan(order, port)?, &Roles::default())?)
    }

    pub(crate) fn queued(&self) -> u64 {
        self.0.counts().iter().map(|counts| counts.queued).sum()
    }

    /// Shuts it down; an unaccounted span is an error.
    pub(crate) fn shutdown(self, max: Duration) -> Result<SpanCounts> {
        let report = self.0.shutdown(max);
        for counts in &report.exporters {
            ensure!(counts.is_balanced(), "the counts do not add up: {counts:?}");
        }
        Ok(SpanCounts {
            accepted: report.sum(|counts| counts.accepted),
            delivered: report.sum(|counts| counts.delivered),
            queued: report.sum(|counts| counts.queued),
            rejected: report.sum(|counts| counts.rejected),
            dropped: report.sum(|counts| counts.dropped),
        })
    }
}

fn plan(order: &EmitterOrder, port: u16) -> Result<Plan> {
    let ExporterKind::Ours(durability) = order.subject.kind else {
        anyhow::bail!("`{}` is not ours", order.subject)
    };
    let buffer = match durability {
        subject::Durability::Memory => Buffer::default(),
        subject::Durability::Process => on_disk(order, telemetry::plan::Durability::Process),
        subject::Durability::WriteThrough => {
            on_disk(order, telemetry::plan::Durability::WriteThrough)
        }
    };
    let exporter = Exporter {
        name: "tracer.collector".to_owned(),
        service_name: "emitter".to_owned(),
        always: true,
        signals: Signals { spans: true, ..Signals::default() },
        sampling: 100.0,
        level: None,
        throttle: Duration::from_millis(order.throttle_ms),
        lossy: order.lossy,
        buffer,
        destination: Destination::Otlp(otlp(order, port)?),
    };
    Ok(Plan { exporters: vec![exporter], ..Plan::default() })
}

fn on_disk(order: &EmitterOrder, durability: telemetry::plan::Durability) -> Buffer {
    Buffer { directory: Some(order.directory.clone()), durability, ..Buffer::default() }
}

fn otlp(order: &EmitterOrder, port: u16) -> Result<Otlp> {
    let (transport, [traces, logs, metrics]) = match order.subject.transport {
        Transport::Grpc => (telemetry::plan::Transport::Grpc, ["", "", ""]),
        Transport::Http => {
            (telemetry::plan::Transport::Http, ["v1/traces", "v1/logs", "v1/metrics"])
        }
    };
    let url =
        |path: &str| format!("http://127.0.0.1:{port}/{path}").parse().context("it is an URL");
    Ok(Otlp {
        transport,
        endpoints: Endpoints { traces: url(traces)?, logs: url(logs)?, metrics: url(metrics)? },
        headers: Vec::new(),
        tls: Tls::default(),
        timeout: TIMEOUT,
        compression: if order.gzip { Compression::Gzip } else { Compression::None },
        retry: Retry::default(),
        concurrency: CONCURRENCY,
    })
}
