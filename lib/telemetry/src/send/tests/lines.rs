//! Items formatted as lines.

use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value::Value},
    logs::v1::LogRecord,
    trace::v1::{Span, Status, span::Event},
};
use prost::Message;

use super::{Bench, exporter, span};
use crate::plan::{Destination, Signal};

fn pair(key: &str, value: Value) -> KeyValue {
    let value = Some(AnyValue { value: Some(value) });
    KeyValue { key: key.to_owned(), value, ..KeyValue::default() }
}

fn text(text: &str) -> Value {
    Value::StringValue(text.to_owned())
}

#[test]
fn a_log_file_has_a_line_for_each_item() {
    let mut bench = Bench::idle();
    let path = bench.folder.path().join("telemetry.log");
    let list = [1, 2].map(|it| AnyValue { value: Some(Value::IntValue(it)) });
    let span = Span {
        name: "GET /cart".to_owned(),
        kind: 2,
        parent_span_id: vec![4; 8],
        attributes: vec![
            pair("http.route", text("/cart")),
            pair("user", text("Ann \"x\"\nB")),
            pair("ok", Value::BoolValue(true)),
            pair("list", Value::ArrayValue(ArrayValue { values: list.to_vec() })),
        ],
        status: Some(Status { message: "too late".to_owned(), code: 2 }),
        events: vec![Event { name: "retried".to_owned(), ..Event::default() }],
        ..span()
    };
    bench.append(Signal::Spans, &span.encode_to_vec());
    let log = LogRecord {
        observed_time_unix_nano: 1_700_000_000_000_000_000,
        severity_number: 13,
        body: Some(AnyValue { value: Some(text("disk is full")) }),
        attributes: vec![
            pair("left", Value::DoubleValue(0.5)),
            pair("raw", Value::BytesValue(vec![0xab])),
        ],
        ..LogRecord::default()
    };
    bench.append(Signal::Logs, &log.encode_to_vec());
    bench.send_to(&exporter(Destination::Log(path.clone())));
    bench.drain();
    let ids =
        "trace=07070707070707070707070707070707 span=0303030303030303 parent=0404040404040404";
    let lines = [
        format!(
            "2023-11-14T22:13:20.000000000Z server \"GET /cart\" took=1.5ms {ids} error=\"too late\" \
             http.route=/cart user=\"Ann \\\"x\\\"\\nB\" ok=true list=[1,2] event=retried\n"
        ),
        "2023-11-14T22:13:20.000000000Z WARN \"disk is full\" left=0.5 raw=ab\n".to_owned(),
    ];
    assert_eq!(std::fs::read_to_string(&path).unwrap(), lines.concat());
    bench.end(2, 0);
}

#[test]
fn a_file_that_cannot_be_written_holds_the_lane() {
    let mut bench = Bench::idle();
    let folder = bench.folder.path().join("missing");
    bench.send_to(&exporter(Destination::Log(folder.join("telemetry.log"))));
    bench.spans(["one"]);
    bench.sender().drain(super::after(0.3));
    let why = bench.tally().trouble().expect("trouble");
    assert!(why.message.contains("cannot write to `"), "{why:?}");
    std::fs::create_dir(&folder).unwrap();
    bench.drain();
    assert!(std::fs::read_to_string(folder.join("telemetry.log")).unwrap().contains(" one "));
    bench.end(1, 0);
}

#[test]
fn standard_output_takes_lines() {
    let mut bench = Bench::idle();
    bench.spans(["one"]);
    bench.send_to(&exporter(Destination::Stdout));
    bench.drain();
    bench.end(1, 0);
}
