//! A fixed trace as columns, beside the reader of the web page, whose tests read the same file.

use std::path::Path;

use golden::Golden;
use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{EventData, Kind, LinkData, ResourceData, ResourceIx, SpanData, StatusCode, Value},
};
use serde_json::json;

use crate::reader::read;

/// 2026-05-28T18:53:20Z.
const START: u64 = 1_780_000_000_000_000_000;

#[test]
fn a_fixed_trace_has_the_columns_it_always_had() {
    let bytes = otlp::columns(&trace()).expect("few names");
    let (head, rows) = read(&bytes);
    let value = json!({
        "version": head.version,
        "spans": head.spans,
        "start": head.start,
        "duration": head.duration,
        "names": head.names,
        "services": head.services,
        "processes": head.processes,
        "rows": rows,
    });
    let text = serde_json::to_string_pretty(&value).expect("it can be written");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/src/trace/golden");
    let mut golden = Golden::default();
    golden.compare_bytes(&folder.join("columns.bin"), &bytes);
    golden.compare(&folder.join("columns.json"), &format!("{text}\n"));
    golden.finish(2);
}

#[test]
fn the_order_of_arrival_does_not_show() {
    // Of two spans with one id, the first to arrive has the children.
    let trace = trace().without(id(9)).expect("room");
    let mut reversed = Trace::new(trace.id());
    let spans: Vec<_> = trace.spans().collect();
    for span in spans.iter().rev() {
        let resource = reversed.resource(span.resource().to_data()).expect("room");
        let scope = reversed.scope(span.scope().to_data()).expect("room");
        reversed.push(resource, scope, span.to_data()).expect("room");
    }
    assert_eq!(otlp::columns(&reversed), otlp::columns(&trace));
}

/// Every flag, every kind, two processes of a service, and everything that can be wrong with a parent or with times.
fn trace() -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
    let gateway =
        resource(&mut trace, &[("service.name", "gateway"), ("service.instance.id", "g-1")]);
    let orders =
        [1, 2].map(|pid| resource_of(&mut trace, "orders", &format!("host-{pid}"), 40 + pid));
    let nameless = resource(&mut trace, &[]);
    let mut push = |resource: ResourceIx, data: SpanData| {
        let scope = trace.scope(Default::default()).expect("room");
        trace.push(resource, scope, data).expect("room");
    };
    push(gateway, SpanData { kind: Kind::Server, ..span(1, 0, "POST /orders", (0, 90)) });
    push(gateway, SpanData { kind: Kind::Client, ..span(2, 1, "POST", (5, 80)) });
    let mut failed = SpanData { kind: Kind::Server, ..span(3, 2, "create order", (10, 70)) };
    failed.status.code = StatusCode::Error;
    failed.events =
        vec![EventData { at: at(20), name: "exception".to_owned(), ..EventData::default() }];
    push(orders[0], failed);
    let mut sent = SpanData { kind: Kind::Producer, ..span(4, 3, "order.created send", (30, 31)) };
    sent.status.code = StatusCode::Ok;
    push(orders[0], sent);
    let mut consumed =
        SpanData { kind: Kind::Consumer, ..span(5, 4, "order.created process", (95, 120)) };
    consumed.links = vec![LinkData { span_id: Some(id(4)), trace_id: None, ..LinkData::default() }];
    push(orders[1], consumed);
    // Siblings that start together are in the order of their ids.
    push(orders[0], SpanData { kind: Kind::Internal, ..span(8, 3, "save \"order\"", (12, 20)) });
    push(orders[0], SpanData { kind: Kind::Internal, ..span(7, 3, "check", (12, 15)) });
    // Its clock is behind, and its end is before its start.
    push(orders[1], span(6, 3, "reserve", (9, 2)));
    // Two spans with one id: the first has the child.
    push(nameless, span(9, 1, "copy", (40, 50)));
    push(nameless, span(9, 1, "copy", (41, 50)));
    push(nameless, span(10, 9, "below the copy", (42, 43)));
    // An absent parent, a span that is its own parent, and a circle of three with a span below it.
    push(gateway, span(11, 99, "orphan", (60, 61)));
    push(gateway, span(12, 12, "own parent", (62, 63)));
    push(gateway, span(13, 15, "circle a", (66, 67)));
    push(gateway, span(14, 13, "circle b", (64, 65)));
    push(gateway, span(15, 14, "circle c", (65, 66)));
    push(gateway, span(16, 15, "below the circle", (66, 67)));
    push(gateway, SpanData { kind: Kind::Other(9), ..span(17, 1, &"é".repeat(600), (85, 88)) });
    trace
}

fn resource(trace: &mut Trace, attributes: &[(&str, &str)]) -> ResourceIx {
    let text = |(key, value): &(&str, &str)| ((*key).to_owned(), Value::Str((*value).to_owned()));
    let attributes = attributes.iter().map(text).collect();
    trace.resource(ResourceData { attributes, ..ResourceData::default() }).expect("room")
}

fn resource_of(trace: &mut Trace, service: &str, host: &str, pid: i64) -> ResourceIx {
    let attributes = vec![
        ("service.name".to_owned(), Value::Str(service.to_owned())),
        ("host.name".to_owned(), Value::Str(host.to_owned())),
        ("process.pid".to_owned(), Value::Int(pid)),
    ];
    trace.resource(ResourceData { attributes, ..ResourceData::default() }).expect("room")
}

/// Returns a span with these times in milliseconds; the parent 0 is none.
fn span(own: u8, parent: u8, name: &str, (start, end): (u64, u64)) -> SpanData {
    let parent = (parent > 0).then(|| id(parent));
    SpanData { start: at(start), end: at(end), ..SpanData::new(id(own), parent, name) }
}

fn id(number: u8) -> SpanId {
    SpanId::from_bytes([0xa0, 0, 0, 0, 0, 0, 0, number]).expect("not all zero")
}

fn at(ms: u64) -> Timestamp {
    Timestamp::from_nanos(START + ms * 1_000_000)
}
