//! The responses of a receiver, as bytes. The three signals share one format.

use std::time::Duration;

use serde_json::json;

use crate::message::Message;

/// Encodes the response to an export of which `rejected` items were not accepted, with the reason. The response to an export
/// that was accepted completely is empty.
pub fn partial_success(rejected: u64, reason: &str) -> Vec<u8> {
    let mut answer = Message::default();
    answer.message(1, |partial| {
        partial.some_number(1, rejected.min(i64::MAX as u64));
        partial.some_bytes(2, reason.as_bytes());
    });
    answer.bytes
}

/// The same in JSON. The signals differ in the name of the number: `rejectedSpans` and so on.
pub fn partial_success_json(field: &str, rejected: u64, reason: &str) -> Vec<u8> {
    // The JSON mapping of protobuf encodes a 64-bit number as a string.
    let partial = json!({field: rejected.min(i64::MAX as u64).to_string(), "errorMessage": reason});
    json!({"partialSuccess": partial}).to_string().into_bytes()
}

/// Encodes the body of an error response, with a gRPC status code, as OTLP over HTTP requires: `google.rpc.Status`. Its one
/// detail is the retry delay, if a retry can help.
pub fn status(code: i32, message: &str, retry_after: Option<Duration>) -> Vec<u8> {
    let mut status = Message::default();
    status.some_number(1, i64::from(code) as u64);
    status.some_bytes(2, message.as_bytes());
    if let Some(delay) = retry_after {
        status.message(3, |any| {
            any.bytes(1, b"type.googleapis.com/google.rpc.RetryInfo");
            any.message(2, |info| {
                info.message(1, |duration| {
                    duration.some_number(1, delay.as_secs());
                    duration.some_number(2, delay.subsec_nanos().into());
                });
            });
        });
    }
    status.bytes
}

/// The same in JSON, without the detail.
pub fn status_json(code: i32, message: &str) -> Vec<u8> {
    json!({"code": code, "message": message}).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::collector::{
        logs::v1::ExportLogsServiceResponse, metrics::v1::ExportMetricsServiceResponse,
        trace::v1::ExportTraceServiceResponse,
    };
    use prost::Message;

    use super::partial_success;

    #[test]
    fn the_form_fits_all_three_signals() {
        let answer = partial_success(3, "why");
        let traces = ExportTraceServiceResponse::decode(answer.as_slice()).expect("traces");
        let logs = ExportLogsServiceResponse::decode(answer.as_slice()).expect("logs");
        let metrics = ExportMetricsServiceResponse::decode(answer.as_slice()).expect("metrics");
        let seen = [
            traces.partial_success.map(|it| (it.rejected_spans, it.error_message)),
            logs.partial_success.map(|it| (it.rejected_log_records, it.error_message)),
            metrics.partial_success.map(|it| (it.rejected_data_points, it.error_message)),
        ];
        for partial in seen {
            assert_eq!(partial, Some((3, "why".to_owned())));
        }
    }
}
