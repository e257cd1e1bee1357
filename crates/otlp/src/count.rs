//! How much is in a request for logs or metrics. What it says is not looked at.

use crate::{split::children, wire::DecodeError};

// Logs and metrics nest as traces do.
const RESOURCE: u8 = 1;
const SCOPE: u8 = 2;
const ITEM: u8 = 2;
/// Gauge, sum, histogram, exponential histogram and summary: the kinds of data of a metric.
const METRIC_DATA: [u8; 5] = [5, 7, 9, 10, 11];
/// The same number in each kind.
const DATA_POINTS: u8 = 1;

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
            for data in children(metric, kind) {
                for point in children(data?, DATA_POINTS) {
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
    mut item: impl FnMut(&[u8]) -> Result<(), DecodeError>,
) -> Result<(), DecodeError> {
    for resource in children(request, RESOURCE) {
        for scope in children(resource?, SCOPE) {
            for found in children(scope?, ITEM) {
                item(found?)?;
            }
        }
    }
    Ok(())
}
