//! Notes about a plan across its exporters.

use http::Uri;

use super::endpoint::address;
use crate::plan::{Destination, Exporter, Plan, Signal, Transport};

/// Adds a note for every two exporters that send the same signal to the same destination.
pub(super) fn same_destination(plan: &mut Plan) {
    let mut notes = Vec::new();
    for (at, second) in plan.exporters.iter().enumerate() {
        for first in &plan.exporters[..at] {
            let shared: Vec<_> = Signal::ALL
                .into_iter()
                .filter(|signal| {
                    target(first, *signal).is_some_and(|t| Some(t) == target(second, *signal))
                })
                .map(Signal::as_str)
                .collect();
            if !shared.is_empty() {
                let (first, second, shared) = (&first.name, &second.name, shared.join(" and "));
                notes.push(format!(
                    "`{first}` and `{second}` send {shared} to the same place: what both carry arrives twice"
                ));
            }
        }
    }
    plan.notes.extend(notes);
}

/// Returns the destination of a signal, if the exporter carries it.
fn target(exporter: &Exporter, signal: Signal) -> Option<(&str, u16, &str)> {
    let is_carried = match signal {
        Signal::Spans => exporter.signals.spans,
        Signal::Logs => exporter.signals.logs,
        Signal::Metrics => exporter.signals.metrics.is_some(),
    };
    let Destination::Otlp(otlp) = &exporter.destination else { return None };
    let uri: &Uri = otlp.endpoint(signal);
    let (host, port) = address(uri);
    let path = match otlp.transport {
        Transport::Grpc => "",
        Transport::Http => uri.path(),
    };
    is_carried.then_some((host, port, path))
}
