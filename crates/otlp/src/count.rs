//! How much is in a request for logs or metrics. What it says is not looked at.

use crate::wire::{DecodeError, Fields, bytes};

// Logs and metrics nest as traces do.
const RESOURCE: u32 = bytes(1);
const SCOPE: u32 = bytes(2);
const ITEM: u32 = bytes(2);
/// Gauge, sum, histogram, exponential histogram and summary: the kinds of data of a metric.
const METRIC_DATA: [u32; 5] = [bytes(5), bytes(7), bytes(9), bytes(10), bytes(11)];
/// The same number in each kind.
const DATA_POINTS: u32 = bytes(1);

/// Counts the records of an OTLP logs request.
pub fn count_logs(request: &[u8]) -> Result<u64, DecodeError> {
    let mut records = 0;
    each_item(request, |_| {
        records += 1;
        Ok(())
    })?;
    Ok(records)
}

/// Counts the data points of an OTLP metrics request.
pub fn count_metrics(request: &[u8]) -> Result<u64, DecodeError> {
    let mut points = 0;
    each_item(request, |metric| {
        for kind in METRIC_DATA {
            for data in metric.children(kind) {
                for point in data?.children(DATA_POINTS) {
                    point?;
                    points += 1;
                }
            }
        }
        Ok(())
    })?;
    Ok(points)
}

fn each_item(
    request: &[u8],
    mut item: impl FnMut(&Fields<'_>) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    for resource in Fields::new(request).children(RESOURCE) {
        for scope in resource?.children(SCOPE) {
            for found in scope?.children(ITEM) {
                item(&found?)?;
            }
        }
    }
    Ok(())
}
