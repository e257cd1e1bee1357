//! Random traces: few names and services, so that spans are similar, and every kind of link and event.

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
};

/// A generated span without an id and a time.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) parent: u16,
    pub(crate) service: Option<String>,
    pub(crate) name: String,
    pub(crate) kind: i32,
    pub(crate) status: i32,
    pub(crate) value: Value,
    pub(crate) event: Option<String>,
    pub(crate) link: Option<u16>,
}

fn name() -> impl Strategy<Value = String> {
    prop_oneof![
        6 => "[a-c]",
        1 => "\\PC{0,6}",
        1 => "[ \"():×x0-9.\\[\\]#,=!→*\n-]{0,6}",
        1 => Just("GET /orders/42".to_owned()),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => Just(Value::Int(201)),
        2 => name().prop_map(Value::Str),
        1 => any::<f64>().prop_map(Value::Double),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => Just(Value::Empty),
        1 => vec(name().prop_map(Value::Str), 0..3).prop_map(Value::Array),
    ]
}

pub(crate) fn spans(most: usize) -> impl Strategy<Value = Vec<Drawn>> {
    let service =
        prop_oneof![1 => Just(None), 4 => "[st]".prop_map(Some), 1 => name().prop_map(Some)];
    let event = prop_oneof![4 => Just(None), 1 => name().prop_map(Some)];
    let link = prop_oneof![4 => Just(None), 1 => any::<u16>().prop_map(Some)];
    let status = prop_oneof![6 => Just(0), 2 => Just(2), 1 => Just(1), 1 => Just(7)];
    let kind = prop_oneof![3 => Just(1), 3 => 0i32..8];
    let one = (any::<u16>(), service, name(), kind, status, value(), event, link).prop_map(
        |(parent, service, name, kind, status, value, event, link)| Drawn {
            parent,
            service,
            name,
            kind,
            status,
            value,
            event,
            link,
        },
    );
    vec(one, 0..most)
}

/// Returns the trace: with ids from `seed`, times from `start`, and arrival in the order of `order`.
pub(crate) fn trace(drawn: &[Drawn], seed: u64, start: u64, order: &[usize]) -> Trace {
    let trace_id = TraceId::from_random([(seed % 251) as u8 + 1; 16]);
    let id = |number: usize| {
        let mixed = (number as u64 + 1).wrapping_mul(seed | 1).wrapping_add(seed << 32);
        SpanId::from_random(mixed.to_be_bytes())
    };
    let mut trace = Trace::new(trace_id);
    for &number in order {
        let one = &drawn[number];
        let service = one.service.iter();
        let service = service.map(|it| ("service.name".to_owned(), Value::Str(it.clone())));
        let attributes = service.collect();
        let resource =
            trace.resource(ResourceData { attributes, ..ResourceData::default() }).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        let parent = match usize::from(one.parent) % (number + 2) {
            0 => None,
            // The parent belongs to another trace, or is lost.
            at if at == number + 1 => Some(SpanId::from_random([255; 8])),
            at => Some(id(at - 1)),
        };
        let mut span = SpanData::new(id(number), parent, one.name.clone());
        span.kind = Kind::from_number(one.kind);
        span.status =
            Status { code: StatusCode::from_number(one.status), message: seed.to_string() };
        // Concurrent or sequential, depending on the seed.
        let begins = start.wrapping_add((number as u64).wrapping_mul(seed % 7)) % (1 << 60);
        span.start = Timestamp::from_nanos(begins);
        span.end = Timestamp::from_nanos(begins + 1 + seed % 1000);
        span.attributes = vec![
            ("http.route".to_owned(), one.value.clone()),
            ("unique".to_owned(), Value::Int(seed as i64)),
        ];
        span.events = one
            .event
            .iter()
            .map(|name| EventData {
                at: Timestamp::from_nanos(begins),
                name: name.clone(),
                ..EventData::default()
            })
            .collect();
        span.links = one
            .link
            .iter()
            .map(|at| match usize::from(*at) % (drawn.len() + 2) {
                at if at < drawn.len() => LinkData {
                    trace_id: Some(trace_id),
                    span_id: Some(id(at)),
                    ..LinkData::default()
                },
                at if at == drawn.len() => {
                    LinkData { trace_id: Some(trace_id), ..LinkData::default() }
                }
                _ => LinkData { trace_id: TraceId::from_bytes([255; 16]), ..LinkData::default() },
            })
            .collect();
        trace.push(resource, scope, span).expect("room");
    }
    trace
}
