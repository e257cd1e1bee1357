//! Counts the items of a request for logs or metrics, and reads the trace ids of log records. Other content is ignored.

use model::TraceId;

use crate::wire::{DecodeError, Fields, bytes};

// Logs and metrics nest as traces do.
const RESOURCE: u32 = bytes(1);
const SCOPE: u32 = bytes(2);
const ITEM: u32 = bytes(2);
/// Gauge, sum, histogram, exponential histogram and summary: the kinds of data of a metric.
const METRIC_DATA: [u32; 5] = [bytes(5), bytes(7), bytes(9), bytes(10), bytes(11)];
/// The same field number in each kind.
const DATA_POINTS: u32 = bytes(1);

/// The trace id of a log record.
const TRACE_ID: u32 = bytes(9);

/// The records of a logs request: their number, and their trace ids, each as often as a record names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogRecords {
    /// The number of all records.
    pub count: u64,
    /// The trace ids of the records that have one.
    pub traces: Vec<TraceId>,
}

/// Counts the records of an OTLP logs request, and reads their trace ids.
pub fn read_logs(request: &[u8]) -> Result<LogRecords, DecodeError> {
    let mut records = LogRecords::default();
    each_item(request, |record| {
        records.count += 1;
        let mut fields = record.clone();
        while let Some(key) = fields.key()? {
            if key != TRACE_ID {
                fields.skip(key)?;
                continue;
            }
            let id = <[u8; 16]>::try_from(fields.bytes()?).ok();
            records.traces.extend(id.and_then(TraceId::from_bytes));
        }
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

#[cfg(test)]
mod tests {
    use model::TraceId;
    use opentelemetry_proto::tonic::{
        collector::logs::v1::ExportLogsServiceRequest,
        logs::v1::{LogRecord, ResourceLogs, ScopeLogs},
    };
    use prost::Message;

    use super::{LogRecords, read_logs};
    use crate::read_logs_json;

    #[test]
    fn log_records_are_counted_and_name_their_traces() {
        let record = |trace_id: Vec<u8>| LogRecord { trace_id, ..LogRecord::default() };
        let log_records = vec![record(vec![7; 16]), record(Vec::new()), record(vec![1; 3])];
        let scope_logs = vec![ScopeLogs { log_records, ..ScopeLogs::default() }];
        let resource_logs = vec![ResourceLogs { scope_logs, ..ResourceLogs::default() }];
        let request = ExportLogsServiceRequest { resource_logs }.encode_to_vec();
        let traces = vec![TraceId::from_bytes([7; 16]).expect("not zero")];
        let expected = LogRecords { count: 3, traces };
        assert_eq!(read_logs(&request), Ok(expected.clone()));
        let json = r#"{"resourceLogs": [{"scopeLogs": [{"logRecords": [
            {"traceId": "07070707070707070707070707070707"}, {}, {"traceId": "010101"}]}]}]}"#;
        assert_eq!(read_logs_json(json.as_bytes()).ok(), Some(expected));
    }
}
