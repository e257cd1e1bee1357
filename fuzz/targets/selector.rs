//! Any text as a selector, over a small trace.

#![no_main]

use libfuzzer_sys::fuzz_target;
use model::{
    SpanId, Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData, Value},
};

fuzz_target!(|text: &str| {
    lang::select(text, &trace()).ok();
});

fn trace() -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let id = |number: u64| SpanId::from_bytes(number.to_be_bytes()).expect("not zero");
    for (number, parent) in [(1, None), (2, Some(1)), (3, Some(1)), (4, Some(3)), (5, Some(9))] {
        let mut span = SpanData::new(id(number), parent.map(id), format!("span {number}"));
        span.attributes = vec![
            ("a".to_owned(), Value::Int(number as i64)),
            ("b".to_owned(), Value::Str("[1, {\"c\": 2}]".to_owned())),
        ];
        trace.push(resource, scope, span).expect("room");
    }
    trace
}
