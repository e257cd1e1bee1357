//! Checks that the recorded values are read back: as a request, and as text that a strict Prometheus parser accepts.

mod exposition;
mod text;

use opentelemetry::{
    KeyValue,
    metrics::{Meter, MeterProvider},
};
use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    metrics::v1::{AggregationTemporality, Metric, metric::Data, number_data_point::Value},
};
use opentelemetry_sdk::{Resource, metrics::SdkMeterProvider};
use prost::Message;

use super::{CollectError, Reader};

struct TestMeter {
    reader: Reader,
    provider: SdkMeterProvider,
}

impl TestMeter {
    fn new(resource: impl IntoIterator<Item = KeyValue>) -> Self {
        let reader = Reader::new();
        let provider = SdkMeterProvider::builder()
            .with_reader(reader.clone())
            .with_resource(Resource::builder_empty().with_attributes(resource).build())
            .build();
        Self { reader, provider }
    }

    fn meter(&self) -> Meter {
        self.provider.meter("app")
    }

    fn sent(&self) -> (ExportMetricsServiceRequest, u64) {
        let (bytes, points) = self.reader.request("shop").expect("there is something");
        (ExportMetricsServiceRequest::decode(&*bytes).expect("a request of OTLP"), points)
    }
}

fn metrics(request: &ExportMetricsServiceRequest) -> Vec<&Metric> {
    let scopes = request.resource_metrics.iter().flat_map(|resource| &resource.scope_metrics);
    scopes.flat_map(|scope| &scope.metrics).collect()
}

#[test]
fn a_request_holds_everything_each_time() {
    let metered = TestMeter::new([KeyValue::new("service.name", "other"), KeyValue::new("a", "b")]);
    let counter = metered.meter().u64_counter("hits").build();
    let histogram = metered.meter().f64_histogram("wait").build();
    counter.add(2, &[KeyValue::new("k", "v")]);
    counter.add(3, &[KeyValue::new("k", "w")]);
    histogram.record(1.5, &[]);
    for round in 0..2 {
        let (request, points) = metered.sent();
        assert_eq!(points, 3, "in round {round}");
        let resource = request.resource_metrics[0].resource.as_ref().expect("a resource");
        let attributes: Vec<_> = resource.attributes.iter().map(|pair| pair.key.as_str()).collect();
        assert_eq!(attributes, ["a", "service.name"]);
        assert_eq!(resource.attributes[1], super::service("shop"));
        let metrics = metrics(&request);
        let Some(Data::Sum(sum)) = &metrics[0].data else { panic!("a sum: {metrics:?}") };
        assert_eq!(sum.aggregation_temporality(), AggregationTemporality::Cumulative);
        let total: i64 = sum
            .data_points
            .iter()
            .map(|point| match point.value {
                Some(Value::AsInt(value)) => value,
                _ => 0,
            })
            .sum();
        assert_eq!(total, 5);
        let Some(Data::Histogram(wait)) = &metrics[1].data else {
            panic!("a histogram: {metrics:?}")
        };
        assert_eq!((wait.data_points[0].count, wait.data_points[0].sum), (1, Some(1.5)));
    }
}

/// The official transform sends zero.
#[test]
fn a_number_that_is_too_large_for_an_integer_of_otlp_is_a_double() {
    let metered = TestMeter::new([]);
    metered.meter().u64_gauge("limit").build().record(u64::MAX, &[]);
    metered.meter().u64_counter("many").build().add(i64::MAX as u64 + 1, &[]);
    metered.meter().u64_counter("fits").build().add(i64::MAX as u64, &[]);
    let (request, _) = metered.sent();
    let values = metrics(&request).into_iter().map(|metric| match &metric.data {
        Some(Data::Gauge(gauge)) => gauge.data_points[0].value,
        Some(Data::Sum(sum)) => sum.data_points[0].value,
        _ => None,
    });
    let limit = Some(Value::AsDouble(u64::MAX as f64));
    let many = Some(Value::AsDouble(i64::MAX as f64));
    assert_eq!(values.collect::<Vec<_>>(), [limit, many, Some(Value::AsInt(i64::MAX))]);
}

#[test]
fn nothing_makes_no_request() {
    assert_eq!(Reader::new().request("shop"), Err(CollectError::Empty), "before a provider has it");
    assert_eq!(Reader::new().prometheus(), "");
    let metered = TestMeter::new([]);
    assert_eq!(metered.reader.request("shop"), Err(CollectError::Empty), "without an instrument");
    let counter = metered.meter().u64_counter("hits").build();
    assert_eq!(metered.reader.request("shop"), Err(CollectError::Empty), "without a measurement");
    counter.add(1, &[]);
    assert_eq!(metered.sent().1, 1);
    metered.provider.shutdown().expect("a first shutdown");
    assert_eq!(metered.reader.request("shop"), Err(CollectError::Empty), "after shutdown");
    assert_eq!(metered.reader.prometheus(), "");
}

#[test]
fn what_a_panic_has_broken_is_told_from_nothing() {
    let metered = TestMeter::new([]);
    let meter = metered.meter();
    let _gauge = meter.u64_observable_gauge("broken").with_callback(|_| panic!("planned")).build();
    let reader = metered.reader.clone();
    std::thread::spawn(move || reader.request("shop")).join().expect_err("a panic");
    let again = metered.reader.request("shop");
    assert!(matches!(again, Err(CollectError::Broken(_))), "{again:?}");
}
