//! What a receiver answers, as bytes. The three signals share one form.

use crate::message::Message;

/// The answer to an export of which `rejected` items were not taken, for the reason given. The answer to an export
/// that was taken whole is empty.
pub fn partial_success(rejected: u64, reason: &str) -> Vec<u8> {
    let mut answer = Message::default();
    answer.message(1, |partial| {
        partial.some_number(1, rejected.min(i64::MAX as u64));
        partial.some_bytes(2, reason.as_bytes());
    });
    answer.bytes
}

/// The body of an answer that is an error, with a code of gRPC's, as OTLP over HTTP asks for: `google.rpc.Status`
/// without details.
pub fn status(code: i32, message: &str) -> Vec<u8> {
    let mut status = Message::default();
    status.some_number(1, i64::from(code) as u64);
    status.some_bytes(2, message.as_bytes());
    status.bytes
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
