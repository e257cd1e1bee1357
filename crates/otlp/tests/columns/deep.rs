//! Traces that are deeper than a stack, and than the column of depths can count.

use model::{SpanId, Timestamp, Trace, TraceId, trace::SpanData};

use crate::reader::read;

const SPANS: u64 = 200_000;
const ORPHAN: u8 = 8;

/// A chain of spans below the first, which has this parent.
fn chain(first_parent: Option<u64>) -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
    let resource = trace.resource(Default::default()).expect("room");
    let scope = trace.scope(Default::default()).expect("room");
    let id = |number: u64| SpanId::from_bytes(number.to_be_bytes()).expect("not zero");
    for number in 1..=SPANS {
        let parent = if number == 1 { first_parent } else { Some(number - 1) };
        let at = Timestamp::from_nanos(1000 + number);
        let data =
            SpanData { start: at, end: at, ..SpanData::new(id(number), parent.map(id), "a") };
        trace.push(resource, scope, data).expect("room");
    }
    trace
}

#[test]
fn a_chain_ends_where_all_of_it_ends_and_its_depth_is_capped() {
    let (head, rows) = read(&otlp::columns(&chain(None)).expect("one name"));
    assert_eq!((head.spans as u64, &*head.names), (SPANS, &["a".to_owned()][..]));
    for (at, row) in rows.iter().enumerate() {
        assert_eq!(u64::from(row.end), SPANS);
        assert_eq!(usize::from(row.depth), at.min(65_535));
        assert_eq!(row.flags, 0);
    }
}

#[test]
fn a_circle_of_all_spans_begins_at_its_earliest() {
    let (_, rows) = read(&otlp::columns(&chain(Some(SPANS))).expect("one name"));
    assert_eq!((rows[0].id.as_str(), rows[0].flags), ("0000000000000001", ORPHAN));
    assert!(rows[1..].iter().all(|row| row.flags == 0 && u64::from(row.end) == SPANS));
}

#[test]
fn no_span_is_a_file_too() {
    let (head, rows) = read(
        &otlp::columns(&Trace::new(TraceId::from_bytes([7; 16]).expect("an id"))).expect("none"),
    );
    assert_eq!((head.spans, rows.len(), &*head.start, head.duration), (0, 0, "0", 0));
}

#[test]
fn services_beyond_what_a_column_can_name_are_another_one() {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("an id"));
    let scope = trace.scope(Default::default()).expect("room");
    for number in 1..=65_540u64 {
        let name = model::trace::Value::Str(format!("service {number}"));
        let attributes = vec![("service.name".to_owned(), name)];
        let data = model::trace::ResourceData { attributes, ..Default::default() };
        let resource = trace.resource(data).expect("room");
        let id = SpanId::from_bytes(number.to_be_bytes()).expect("not zero");
        trace.push(resource, scope, SpanData::new(id, None, "a")).expect("room");
    }
    let (head, rows) = read(&otlp::columns(&trace).expect("short names"));
    assert_eq!((head.services.len(), head.processes.len()), (65_535, 65_540));
    for (at, row) in rows.iter().enumerate() {
        assert_eq!((usize::from(row.service), row.process as usize), (at.min(65_535), at));
    }
}
