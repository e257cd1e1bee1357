//! Telemetry does not export its own activity: with the bridge as the subscriber of the entire process, senders
//! included, at level trace, an idle program sends its own telemetry and then nothing.
//!
//! A separate program, because a process has one global subscriber. The destination is a real Collector in a separate
//! process: a peer in this process would use the same subscriber, and its telemetry would correctly be sent.

#[path = "options/collector.rs"]
mod collector;

use std::{thread, time::Duration};

use collector::Collector;
use source::Text;
use telemetry::{
    Host, Roles, Telemetry,
    config::{self, Defaults, Environment},
    plan::Plan,
};
use tracing_subscriber::layer::SubscriberExt;

/// How long no telemetry may arrive.
const QUIET: Duration = Duration::from_secs(10);
/// Exporters that carry spans; two of them carry logs.
const OF_SPANS: usize = 3;
const OF_LOGS: usize = 2;

fn plan(collector: &Collector) -> Plan {
    let Collector { grpc, http, .. } = collector;
    let content = format!(
        "
tracer:
  one: {{type: open-telemetry, transport: grpc, endpoint: '{grpc}', level: trace, throttle: 50ms, enable: {{log-exporter: true}}}}
  two: {{type: open-telemetry, transport: http, endpoint: '{http}', level: trace, throttle: 50ms, enable: {{log-exporter: true}}}}
telemetry:
  exporters:
    three:
      level: trace
      metricsReaderInterval: 200ms
      exporter: {{type: collector, collector: {{transport: http, endpoint: '{http}'}}}}
metrics:
  open-telemetry: {{transport: grpc, endpoint: '{grpc}', interval: 200ms}}
"
    );
    let (service_name, environment) = ("program".to_owned(), Environment::default());
    let defaults = Defaults { service_name, directory: None, own_directory: None, environment };
    config::plan(&Text::new("t.yaml", &content), &defaults).expect("no mistakes")
}

#[test]
#[expect(clippy::disallowed_methods, reason = "that nothing happens takes time")]
fn an_idle_program_says_nothing_of_its_own_delivery() {
    let collector = Collector::start();
    let roles = Roles { own: Some("telemetry.exporters.three".to_owned()), others: Vec::new() };
    let host = Host::new("program/1.0");
    let telemetry = Telemetry::start(&plan(&collector), &roles, host).expect("it starts");
    let subscriber = tracing_subscriber::registry().with(telemetry.tracing_layer());
    tracing::subscriber::set_global_default(subscriber).expect("the first");
    tracing::trace_span!("work").in_scope(|| tracing::trace!("said"));
    collector.wait_for("the first flush", |written| {
        written.spans.len() >= OF_SPANS && written.logs.len() >= OF_LOGS
    });

    // Metrics keep both transports busy all the time.
    let pushed = || {
        let written = collector.written();
        written.metrics.iter().filter(|it| it.ends_with("otel.sdk.exporter.span.exported")).count()
    };
    let before = pushed();
    // That nothing else arrives takes time.
    thread::sleep(QUIET);
    assert!(pushed() > before + 20, "{before} pushes, then {}", pushed());

    let report = telemetry.shutdown(Duration::from_secs(5));
    assert!(report.is_delivered(), "{report:?}");
    assert!(report.exporters.iter().all(|counts| counts.is_balanced()), "{report:?}");
    assert_eq!(report.sum(|counts| counts.accepted), (OF_SPANS + OF_LOGS) as u64);
    let written = collector.written();
    assert_eq!(written.spans, ["program: work"; OF_SPANS]);
    assert_eq!(written.logs, ["program: said"; OF_LOGS]);
}
