//! Logs and metrics are counted.

use opentelemetry_proto::tonic::{
    logs::v1::{LogRecord, LogsData, ResourceLogs, ScopeLogs},
    metrics::v1::{
        ExponentialHistogram, ExponentialHistogramDataPoint, Gauge, Histogram, HistogramDataPoint,
        Metric, MetricsData, NumberDataPoint, ResourceMetrics, ScopeMetrics, Sum, Summary,
        SummaryDataPoint, metric::Data,
    },
};
use otlp::{count_metrics, read_logs};
use proptest::{
    collection::vec,
    prelude::{any, proptest},
};
use prost::Message;

#[test]
fn log_records_are_counted() {
    let scope = |records| ScopeLogs {
        log_records: vec![LogRecord::default(); records],
        ..ScopeLogs::default()
    };
    let resource = |scopes| ResourceLogs { scope_logs: scopes, ..ResourceLogs::default() };
    let data = LogsData {
        resource_logs: vec![resource(vec![scope(2), scope(0)]), resource(vec![scope(3)])],
    };
    assert_eq!(read_logs(&data.encode_to_vec()).map(|logs| logs.count), Ok(5));
    assert_eq!(read_logs(&[]).map(|logs| logs.count), Ok(0));
    assert!(read_logs(&[1 << 3 | 2, 9]).is_err());
}

#[test]
fn data_points_of_every_kind_are_counted() {
    let kinds = [
        Data::Gauge(Gauge { data_points: vec![NumberDataPoint::default(); 1] }),
        Data::Sum(Sum { data_points: vec![NumberDataPoint::default(); 2], ..Sum::default() }),
        Data::Histogram(Histogram {
            data_points: vec![HistogramDataPoint::default(); 4],
            ..Histogram::default()
        }),
        Data::ExponentialHistogram(ExponentialHistogram {
            data_points: vec![ExponentialHistogramDataPoint::default(); 8],
            ..ExponentialHistogram::default()
        }),
        Data::Summary(Summary { data_points: vec![SummaryDataPoint::default(); 16] }),
    ];
    let metrics = kinds.map(|data| Metric { data: Some(data), ..Metric::default() }).to_vec();
    let scope_metrics = vec![ScopeMetrics { metrics, ..ScopeMetrics::default() }];
    let resource = ResourceMetrics { scope_metrics, ..ResourceMetrics::default() };
    let data = MetricsData { resource_metrics: vec![resource] };
    assert_eq!(count_metrics(&data.encode_to_vec()), Ok(31));
    assert!(count_metrics(&[1 << 3 | 2, 9]).is_err());
}

proptest! {
    #[test]
    fn noise_is_refused_or_counted_and_never_worse(bytes in vec(any::<u8>(), 0..200)) {
        read_logs(&bytes).ok();
        count_metrics(&bytes).ok();
    }
}
