//! Random OTLP messages.

use opentelemetry_proto::tonic::{
    common::v1::{
        AnyValue, ArrayValue, EntityRef, InstrumentationScope, KeyValue, KeyValueList, any_value,
    },
    resource::v1::Resource,
    trace::v1::{
        ResourceSpans, ScopeSpans, Span, Status, TracesData,
        span::{Event, Link},
    },
};
use proptest::{
    collection::vec,
    option,
    prelude::{Just, Strategy, any, prop_oneof},
};

pub(crate) const TRACE: [u8; 16] = [7; 16];

/// Generates messages in which all spans belong to [`TRACE`] and have ids.
pub(crate) fn traces() -> impl Strategy<Value = TracesData> {
    traces_with(Just(TRACE.to_vec()), few_span_ids(), Just(Vec::new()))
}

/// Generates messages in which spans belong to any trace, or to none.
pub(crate) fn any_traces() -> impl Strategy<Value = TracesData> {
    let trace_id = prop_oneof![
        4 => (1u8..4).prop_map(|byte| vec![byte; 16]),
        1 => Just(vec![0; 16]),
        1 => vec(any::<u8>(), 0..20),
    ];
    let span_id =
        prop_oneof![6 => few_span_ids(), 1 => vec(any::<u8>(), 0..10), 1 => Just(vec![0; 8])];
    let parent_id = prop_oneof![2 => Just(Vec::new()), 1 => vec(0..2u8, 0..10)];
    traces_with(trace_id, span_id, parent_id)
}

/// Whether this is a valid parent id, or means that there is no parent.
pub(crate) fn is_parent(id: &[u8]) -> bool {
    id.len() == 8 || id.iter().all(|byte| *byte == 0)
}

fn traces_with(
    trace_id: impl Strategy<Value = Vec<u8>> + Clone + 'static,
    span_id: impl Strategy<Value = Vec<u8>> + Clone + 'static,
    parent_id: impl Strategy<Value = Vec<u8>> + Clone + 'static,
) -> impl Strategy<Value = TracesData> {
    let span =
        (trace_id, span_id, parent_id, span()).prop_map(|(trace_id, span_id, parent_id, span)| {
            Span {
                trace_id,
                span_id,
                // An empty id keeps the parent that the span was generated with.
                parent_span_id: if parent_id.is_empty() { span.parent_span_id } else { parent_id },
                ..span
            }
        });
    let scope_spans = (option::of(scope()), vec(span, 0..4), text())
        .prop_map(|(scope, spans, schema_url)| ScopeSpans { scope, spans, schema_url });
    let resource_spans = (option::of(resource()), vec(scope_spans, 0..3), text()).prop_map(
        |(resource, scope_spans, schema_url)| ResourceSpans { resource, scope_spans, schema_url },
    );
    vec(resource_spans, 0..4).prop_map(|resource_spans| TracesData { resource_spans })
}

/// Few enough that ids repeat, with equal and with other content.
fn few_span_ids() -> impl Strategy<Value = Vec<u8>> + Clone {
    (1u8..20).prop_map(|byte| vec![byte; 8])
}

fn resource() -> impl Strategy<Value = Resource> {
    (attributes(), few(), vec(entity(), 0..2)).prop_map(|(attributes, dropped, entity_refs)| {
        Resource { attributes, dropped_attributes_count: dropped, entity_refs }
    })
}

fn entity() -> impl Strategy<Value = EntityRef> {
    (text(), text(), vec(text(), 0..3), vec(text(), 0..3)).prop_map(
        |(schema_url, r#type, id_keys, description_keys)| EntityRef {
            schema_url,
            r#type,
            id_keys,
            description_keys,
        },
    )
}

fn scope() -> impl Strategy<Value = InstrumentationScope> {
    (text(), text(), attributes(), few()).prop_map(|(name, version, attributes, dropped)| {
        InstrumentationScope { name, version, attributes, dropped_attributes_count: dropped }
    })
}

fn span() -> impl Strategy<Value = Span> {
    let ids = (option::of(few_span_ids()), text(), any::<u32>());
    let times = (any::<u64>(), any::<u64>());
    let lists = (attributes(), vec(event(), 0..3), vec(link(), 0..3));
    let dropped = (few(), few(), few());
    let status =
        option::of((text(), number()).prop_map(|(message, code)| Status { message, code }));
    (ids, text(), number(), times, lists, dropped, status).prop_map(
        |(ids, name, kind, times, lists, dropped, status)| Span {
            trace_id: Vec::new(),
            span_id: Vec::new(),
            parent_span_id: ids.0.unwrap_or_default(),
            trace_state: ids.1,
            flags: ids.2,
            name,
            kind,
            start_time_unix_nano: times.0,
            end_time_unix_nano: times.1,
            attributes: lists.0,
            events: lists.1,
            links: lists.2,
            dropped_attributes_count: dropped.0,
            dropped_events_count: dropped.1,
            dropped_links_count: dropped.2,
            status,
        },
    )
}

fn event() -> impl Strategy<Value = Event> {
    (any::<u64>(), text(), attributes(), few()).prop_map(|(at, name, attributes, dropped)| Event {
        time_unix_nano: at,
        name,
        attributes,
        dropped_attributes_count: dropped,
    })
}

fn link() -> impl Strategy<Value = Link> {
    let ids = (option::of(1u8..9), option::of(few_span_ids()));
    (ids, text(), attributes(), few(), any::<u32>()).prop_map(
        |((trace_id, span_id), trace_state, attributes, dropped, flags)| Link {
            trace_id: trace_id.map(|byte| vec![byte; 16]).unwrap_or_default(),
            span_id: span_id.unwrap_or_default(),
            trace_state,
            attributes,
            dropped_attributes_count: dropped,
            flags,
        },
    )
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec(attribute(value()), 0..4)
}

fn attribute(value: impl Strategy<Value = AnyValue>) -> impl Strategy<Value = KeyValue> {
    (text(), option::of(value)).prop_map(|(key, value)| KeyValue { key, value, key_strindex: 0 })
}

fn value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        Just(None),
        any::<bool>().prop_map(|value| Some(any_value::Value::BoolValue(value))),
        any::<i64>().prop_map(|value| Some(any_value::Value::IntValue(value))),
        any::<u64>().prop_map(|bits| Some(any_value::Value::DoubleValue(f64::from_bits(bits)))),
        text().prop_map(|text| Some(any_value::Value::StringValue(text))),
        vec(any::<u8>(), 0..5).prop_map(|bytes| Some(any_value::Value::BytesValue(bytes))),
    ];
    leaf.prop_map(|value| AnyValue { value }).prop_recursive(4, 12, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..3)
                .prop_map(|values| any_value::Value::ArrayValue(ArrayValue { values })),
            vec(attribute(inner), 0..3)
                .prop_map(|values| any_value::Value::KvlistValue(KeyValueList { values })),
        ]
        .prop_map(|value| AnyValue { value: Some(value) })
    })
}

/// Few enough that texts repeat, and sometimes any text.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![4 => "[ab]{0,2}", 1 => ".{0,8}"]
}

/// Generates the number of an enumeration, often one that does not exist.
fn number() -> impl Strategy<Value = i32> {
    prop_oneof![-1..8, any::<i32>()]
}

fn few() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), any::<u32>()]
}
