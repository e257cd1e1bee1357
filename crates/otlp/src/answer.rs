//! What a receiver answers, as bytes. The three signals share one form.

use prost::Message;

use crate::wire::write_field;

/// The content of `ExportTracePartialSuccess` and of its two sisters.
#[derive(Message)]
struct PartialSuccess {
    #[prost(int64, tag = "1")]
    rejected: i64,
    #[prost(string, tag = "2")]
    error_message: String,
}

/// `google.rpc.Status` without details.
#[derive(Message)]
struct Status {
    #[prost(int32, tag = "1")]
    code: i32,
    #[prost(string, tag = "2")]
    message: String,
}

/// The answer to an export of which `rejected` items were not taken, for the reason given. The answer to an export
/// that was taken whole is empty.
pub fn partial_success(rejected: u64, reason: &str) -> Vec<u8> {
    let rejected = i64::try_from(rejected).unwrap_or(i64::MAX);
    let partial = PartialSuccess { rejected, error_message: reason.to_owned() };
    let mut answer = Vec::new();
    write_field(1, &partial.encode_to_vec(), &mut answer);
    answer
}

/// The body of an answer that is an error, with a code of gRPC's, as OTLP over HTTP asks for.
pub fn status(code: i32, message: &str) -> Vec<u8> {
    Status { code, message: message.to_owned() }.encode_to_vec()
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
