//! Metrics about telemetry itself: the counts of each exporter.
//!
//! Names follow the semantic conventions where these exist (`otel.sdk.…`); the others are our own. Deliberately absent:
//! attributes that grow with traffic. The name of an exporter is the only attribute.

use std::sync::{Arc, Weak};

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider},
};
use opentelemetry_sdk::metrics::SdkMeterProvider;

use crate::{counts::Counts, pipeline::State};

/// An instrument: its name, unit, description and value.
struct InstrumentSpec {
    name: &'static str,
    unit: &'static str,
    meaning: &'static str,
    rises: bool,
    value: fn(&Counts) -> f64,
}

#[rustfmt::skip]
const SHOWN: &[InstrumentSpec] = &[
    InstrumentSpec { name: "otel.sdk.processor.span.processed", unit: "{span}", meaning: "Items given to the exporter, those from an earlier process included.", rises: true, value: |counts| counts.accepted as f64 },
    InstrumentSpec { name: "otel.sdk.exporter.span.exported", unit: "{span}", meaning: "Items that the destination acknowledged.", rises: true, value: |counts| counts.delivered as f64 },
    InstrumentSpec { name: "otel.sdk.processor.span.queue.size", unit: "{span}", meaning: "Items that wait for delivery.", rises: false, value: |counts| counts.queued as f64 },
    InstrumentSpec { name: "telemetry.exporter.rejected", unit: "{item}", meaning: "Items that the destination refused for good.", rises: true, value: |counts| counts.rejected as f64 },
    InstrumentSpec { name: "telemetry.exporter.dropped", unit: "{item}", meaning: "Items given up for lack of room.", rises: true, value: |counts| counts.dropped as f64 },
    InstrumentSpec { name: "telemetry.exporter.memory", unit: "By", meaning: "Bytes held in memory.", rises: false, value: |counts| counts.memory_bytes as f64 },
    InstrumentSpec { name: "telemetry.exporter.disk", unit: "By", meaning: "Bytes held on disk.", rises: false, value: |counts| counts.disk_bytes as f64 },
    InstrumentSpec { name: "telemetry.exporter.oldest", unit: "s", meaning: "Age of the oldest item that waits.", rises: false, value: |counts| counts.oldest.unwrap_or_default().as_secs_f64() },
    InstrumentSpec { name: "telemetry.exporter.retries", unit: "{request}", meaning: "Requests that were tried again.", rises: true, value: |counts| counts.retries as f64 },
    InstrumentSpec { name: "telemetry.exporter.held", unit: "s", meaning: "Time for which producers were held by a full buffer.", rises: true, value: |counts| counts.held.as_secs_f64() },
    InstrumentSpec { name: "telemetry.exporter.dead_letters", unit: "{request}", meaning: "Requests kept in the dead-letter folder.", rises: true, value: |counts| counts.dead_letters as f64 },
];

/// Registers the instruments. They show the exporters at the time of collection.
pub(crate) fn register(provider: &SdkMeterProvider, state: &Arc<State>) {
    let meter = provider.meter(env!("CARGO_PKG_NAME"));
    for shown in SHOWN {
        show(&meter, shown, Arc::downgrade(state));
    }
}

fn show(meter: &Meter, shown: &'static InstrumentSpec, state: Weak<State>) {
    let observe = move |record: &dyn Fn(f64, &[KeyValue])| {
        let Some(state) = state.upgrade() else { return };
        for counts in state.pipeline.load().counts() {
            let name = KeyValue::new("otel.component.name", counts.exporter.clone());
            record((shown.value)(&counts), &[name]);
        }
    };
    // The provider keeps the instrument with its callback; the handle is not needed any more.
    if shown.rises {
        meter
            .f64_observable_counter(shown.name)
            .with_unit(shown.unit)
            .with_description(shown.meaning)
            .with_callback(move |observer| {
                observe(&|value, attributes| observer.observe(value, attributes));
            })
            .build();
    } else {
        meter
            .f64_observable_gauge(shown.name)
            .with_unit(shown.unit)
            .with_description(shown.meaning)
            .with_callback(move |observer| {
                observe(&|value, attributes| observer.observe(value, attributes));
            })
            .build();
    }
}
