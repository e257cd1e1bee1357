//! The environment variables that make OpenTelemetry SDKs export all their spans here, at once.

use std::{collections::BTreeMap, net::SocketAddr, time::Duration};

use runner::{MARKER, StartedProcesses};

use crate::args::Protocol;

/// The batch delay that is set for a command.
pub(crate) const BATCH_DELAY: Duration = Duration::from_millis(5);
/// The export interval for metrics that is set for a command; metrics are only counted.
const METRIC_INTERVAL: Duration = Duration::from_secs(1);

/// Variables that could send one signal to another destination, or sample it.
const ELSEWHERE: &[&str] = &[
    "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT",
    "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    "OTEL_TRACES_SAMPLER_ARG",
];

/// Returns the changes to our environment for a command: a value, or none to remove a variable.
pub(crate) fn environment(
    ours: &BTreeMap<String, String>,
    receiver: SocketAddr,
    protocol: Option<Protocol>,
    started: &StartedProcesses,
) -> Vec<(String, Option<String>)> {
    let is_set = |name: &str| ours.get(name).is_some_and(|value| !value.is_empty());
    let millis = |time: Duration| time.as_millis().to_string();
    let mut changed: Vec<(&str, String)> = vec![
        ("OTEL_EXPORTER_OTLP_ENDPOINT", format!("http://{receiver}")),
        ("OTEL_TRACES_EXPORTER", "otlp".to_owned()),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_on".to_owned()),
        ("OTEL_BSP_SCHEDULE_DELAY", millis(started.batch_delay)),
        ("OTEL_BLRP_SCHEDULE_DELAY", millis(started.batch_delay)),
        ("OTEL_METRIC_EXPORT_INTERVAL", millis(METRIC_INTERVAL)),
    ];
    let asked = protocol.map(Protocol::as_str);
    if let Some(protocol) =
        asked.or((!is_set("OTEL_EXPORTER_OTLP_PROTOCOL")).then_some("http/protobuf"))
    {
        changed.push(("OTEL_EXPORTER_OTLP_PROTOCOL", protocol.to_owned()));
    }
    if !is_set("OTEL_PROPAGATORS") {
        changed.push(("OTEL_PROPAGATORS", "tracecontext,baggage".to_owned()));
    }
    let marker = format!("{MARKER}={}", started.marker);
    let attributes = match ours.get("OTEL_RESOURCE_ATTRIBUTES") {
        Some(theirs) if !theirs.trim().is_empty() => format!("{theirs},{marker}"),
        _ => marker,
    };
    changed.push(("OTEL_RESOURCE_ATTRIBUTES", attributes));
    let removed = ELSEWHERE.iter().map(|name| ((*name).to_owned(), None));
    let changed = changed.into_iter().map(|(name, value)| (name.to_owned(), Some(value)));
    changed.chain(removed).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use runner::StartedProcesses;

    use super::{BATCH_DELAY, environment};
    use crate::args::Protocol;

    #[test]
    fn what_is_set_and_what_is_left() {
        let started = StartedProcesses { marker: "t".to_owned(), batch_delay: BATCH_DELAY };
        let shown = |ours: &[(&str, &str)], protocol| {
            let ours: BTreeMap<_, _> = ours
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect();
            let receiver = "127.0.0.1:4317".parse().expect("an address");
            let changed = environment(&ours, receiver, protocol, &started);
            let line = |(name, value): &(String, Option<String>)| match value {
                Some(value) => format!("{name}={value}"),
                None => format!("-{name}"),
            };
            changed.iter().map(line).collect::<Vec<_>>().join("\n")
        };
        let bare = shown(&[], None);
        for expected in [
            "OTEL_EXPORTER_OTLP_ENDPOINT=http://127.0.0.1:4317",
            "OTEL_EXPORTER_OTLP_PROTOCOL=http/protobuf",
            "OTEL_TRACES_EXPORTER=otlp",
            "OTEL_BSP_SCHEDULE_DELAY=5",
            "OTEL_BLRP_SCHEDULE_DELAY=5",
            "OTEL_METRIC_EXPORT_INTERVAL=1000",
            "OTEL_TRACES_SAMPLER=parentbased_always_on",
            "OTEL_RESOURCE_ATTRIBUTES=qualitytrace.started=t",
            "OTEL_PROPAGATORS=tracecontext,baggage",
            "-OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        ] {
            assert!(bare.contains(expected), "{expected} is not in\n{bare}");
        }
        let theirs = [
            ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            ("OTEL_PROPAGATORS", "b3"),
            ("OTEL_RESOURCE_ATTRIBUTES", "team=a"),
        ];
        let kept = shown(&theirs, None);
        assert!(!kept.contains("OTEL_EXPORTER_OTLP_PROTOCOL"), "{kept}");
        assert!(!kept.contains("OTEL_PROPAGATORS"), "{kept}");
        assert!(kept.contains("OTEL_RESOURCE_ATTRIBUTES=team=a,qualitytrace.started=t"), "{kept}");
        let asked = shown(&theirs, Some(Protocol::HttpJson));
        assert!(asked.contains("OTEL_EXPORTER_OTLP_PROTOCOL=http/json"), "{asked}");
    }
}
