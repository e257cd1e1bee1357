//! Metrics: one reader from which all consumers collect, by push or by scrape.
//!
//! Sums are cumulative, so a lost collection costs resolution and no data, and consumers do not affect each other.
//! Deliberately absent: a timer (the push has its own), and a queue.

mod names;
mod prometheus;

use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{NumberDataPoint, metric::Data, number_data_point},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    metrics::{
        InstrumentKind, ManualReader, Pipeline, Temporality,
        data::{AggregatedMetrics, MetricData, ResourceMetrics},
        reader::MetricReader,
    },
};
use prost::Message;
use thiserror::Error;

const SERVICE_NAME: &str = "service.name";

/// A reader of all instruments of one meter provider. A clone reads the same instruments.
#[derive(Clone, Debug)]
pub(crate) struct Reader {
    reader: Arc<ManualReader>,
    /// Whether there is a provider that has not been shut down. The SDK's error does not distinguish an expected
    /// failure from an unexpected one.
    is_open: Arc<AtomicBool>,
}

/// Why there is no collection to push.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum CollectError {
    #[error("nothing has been measured")]
    Empty,
    #[error("{0}; an instrument's callback has panicked: mend it, and start the program again")]
    Broken(String),
}

impl Reader {
    pub(crate) fn new() -> Self {
        let reader = ManualReader::builder().with_temporality(Temporality::Cumulative).build();
        Self { reader: Arc::new(reader), is_open: Arc::default() }
    }

    /// Returns the export request of a new collection, with `service.name` set to this value, and its number of data
    /// points. Returns [`CollectError::Empty`] if there are none, and after shutdown.
    pub(crate) fn request(&self, service_name: &str) -> Result<(Vec<u8>, u64), CollectError> {
        let collected = self.collected()?;
        let mut request = ExportMetricsServiceRequest::from(&collected);
        restore_large(&mut request, &collected);
        let points = request
            .resource_metrics
            .iter()
            .flat_map(|resource| &resource.scope_metrics)
            .flat_map(|scope| &scope.metrics)
            .map(|metric| metric.data.as_ref().map_or(0, points))
            .sum::<usize>() as u64;
        for resource in request.resource_metrics.iter_mut().flat_map(|all| &mut all.resource) {
            resource.attributes.retain(|pair| pair.key != SERVICE_NAME);
            resource.attributes.push(service(service_name));
            resource.attributes.sort_by(|one, other| one.key.cmp(&other.key));
        }
        if points == 0 {
            return Err(CollectError::Empty);
        }
        Ok((request.encode_to_vec(), points))
    }

    /// Returns a new collection in Prometheus' text exposition format 0.0.4; empty after shutdown.
    pub(crate) fn prometheus(&self) -> String {
        self.collected().map(|collected| prometheus::text(&collected)).unwrap_or_default()
    }

    fn collected(&self) -> Result<ResourceMetrics, CollectError> {
        let mut collected = ResourceMetrics::default();
        match self.collect(&mut collected) {
            Ok(()) => Ok(collected),
            Err(error) if self.is_open.load(Ordering::Relaxed) => {
                Err(CollectError::Broken(error.to_string()))
            }
            Err(_) => Err(CollectError::Empty),
        }
    }
}

impl MetricReader for Reader {
    fn register_pipeline(&self, pipeline: Weak<Pipeline>) {
        self.is_open.store(true, Ordering::Relaxed);
        self.reader.register_pipeline(pipeline);
    }

    fn collect(&self, collected: &mut ResourceMetrics) -> OTelSdkResult {
        self.reader.collect(collected)
    }

    fn force_flush(&self) -> OTelSdkResult {
        self.reader.force_flush()
    }

    fn shutdown_with_timeout(&self, timeout: Duration) -> OTelSdkResult {
        self.is_open.store(false, Ordering::Relaxed);
        self.reader.shutdown_with_timeout(timeout)
    }

    fn temporality(&self, kind: InstrumentKind) -> Temporality {
        self.reader.temporality(kind)
    }
}

fn points(data: &Data) -> usize {
    match data {
        Data::Gauge(gauge) => gauge.data_points.len(),
        Data::Sum(sum) => sum.data_points.len(),
        Data::Histogram(histogram) => histogram.data_points.len(),
        Data::ExponentialHistogram(histogram) => histogram.data_points.len(),
        Data::Summary(summary) => summary.data_points.len(),
    }
}

fn service(name: &str) -> KeyValue {
    let value = any_value::Value::StringValue(name.to_owned());
    KeyValue {
        key: SERVICE_NAME.to_owned(),
        value: Some(AnyValue { value: Some(value) }),
        ..KeyValue::default()
    }
}

/// Encodes a number above the largest `i64` as a double, not as the zero that the SDK's transform returns.
fn restore_large(request: &mut ExportMetricsServiceRequest, collected: &ResourceMetrics) {
    let sent = request.resource_metrics.iter_mut().flat_map(|resource| &mut resource.scope_metrics);
    let sent = sent.flat_map(|scope| &mut scope.metrics);
    let metrics = collected.scope_metrics().flat_map(|scope| scope.metrics());
    for (sent, metric) in sent.zip(metrics) {
        match (&mut sent.data, metric.data()) {
            (Some(Data::Gauge(sent)), AggregatedMetrics::U64(MetricData::Gauge(gauge))) => {
                restore(&mut sent.data_points, gauge.data_points().map(|point| point.value()));
            }
            (Some(Data::Sum(sent)), AggregatedMetrics::U64(MetricData::Sum(sum))) => {
                restore(&mut sent.data_points, sum.data_points().map(|point| point.value()));
            }
            _ => {}
        }
    }
}

fn restore(sent: &mut [NumberDataPoint], values: impl Iterator<Item = u64>) {
    for (point, value) in sent.iter_mut().zip(values) {
        if i64::try_from(value).is_err() {
            point.value = Some(number_data_point::Value::AsDouble(value as f64));
        }
    }
}

#[cfg(test)]
mod tests;
