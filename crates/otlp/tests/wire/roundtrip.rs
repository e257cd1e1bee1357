//! Appending and encoding lose nothing.

use std::collections::BTreeSet;

use model::{
    Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData},
};
use opentelemetry_proto::tonic::{
    common::v1::{AnyValue, ArrayValue, KeyValue, any_value},
    trace::v1::{ResourceSpans, ScopeSpans, Span, TracesData, span::Link},
};
use otlp::{AppendError, append, encode};
use proptest::{
    collection::vec,
    prelude::{any, prop_assert, prop_assert_eq, proptest},
    sample::Index,
};
use prost::Message;

use crate::strategy::{TRACE, any_traces, is_parent, traces};

proptest! {
    #[test]
    fn nothing_is_lost(data in traces()) {
        let trace = read(&data.encode_to_vec());
        let written = encode(&trace);
        let again = read(&written);
        prop_assert_eq!(content(&again), content(&trace));
        prop_assert_eq!(again.conflicts(), trace.conflicts());
        prop_assert_eq!(encode(&again), written.clone(), "the form is fixed");
        let written = TracesData::decode(written.as_slice()).expect("our own message");
        let triples = triples(data);
        prop_assert_eq!(trace.len(), triples.len());
        prop_assert_eq!(self::triples(written), triples);
    }

    #[test]
    fn what_is_there_is_not_added_again(data in traces()) {
        let bytes = data.encode_to_vec();
        let mut trace = read(&bytes);
        let before = content(&trace);
        prop_assert_eq!(append(&mut trace, &bytes), Ok(0));
        prop_assert_eq!(content(&trace), before);
    }

    #[test]
    fn only_spans_of_the_trace_are_taken(data in any_traces(), byte in 1u8..4) {
        let ours = |span: &Span| {
            span.trace_id == [byte; 16]
                && span.span_id.len() == 8
                && span.span_id != [0; 8]
                && is_parent(&span.parent_span_id)
        };
        let mut trace = Trace::new(TraceId::from_bytes([byte; 16]).expect("an id"));
        append(&mut trace, &data.encode_to_vec()).expect("appended");
        let mut expected = data;
        for scope_spans in expected.resource_spans.iter_mut().flat_map(|it| &mut it.scope_spans) {
            scope_spans.spans.retain(ours);
        }
        prop_assert_eq!(trace.len(), triples(expected).len());
    }

    #[test]
    fn noise_is_refused_or_read_and_never_worse(bytes in vec(any::<u8>(), 0..200)) {
        let mut trace = Trace::new(id());
        append(&mut trace, &bytes).ok();
    }

    #[test]
    fn a_broken_message_is_refused_or_read_and_never_worse(
        data in traces(), at in any::<Index>(), flip in 1u8..=255, cut in any::<Index>(),
    ) {
        let mut bytes = data.encode_to_vec();
        if !bytes.is_empty() {
            let at = at.index(bytes.len());
            bytes[at] ^= flip;
            bytes.truncate(cut.index(bytes.len()) + 1);
        }
        let mut trace = Trace::new(id());
        append(&mut trace, &bytes).ok();
        let again = read(&encode(&trace));
        prop_assert!(content(&again) == content(&trace));
    }
}

#[test]
fn values_nested_too_deep_are_refused() {
    let mut value = AnyValue::default();
    for _ in 0..200 {
        let array = ArrayValue { values: vec![value] };
        value = AnyValue { value: Some(any_value::Value::ArrayValue(array)) };
    }
    let error = append(&mut Trace::new(id()), &one_attribute(value).encode_to_vec());
    let Err(AppendError::Decode(error)) = error else { panic!("not refused") };
    assert!(error.to_string().contains("messages nest deeper than 100"), "{error}");
}

#[test]
fn what_many_spans_share_is_written_once() {
    let span = |number: u64| Span {
        trace_id: TRACE.to_vec(),
        span_id: number.to_be_bytes().to_vec(),
        name: number.to_string(),
        ..Span::default()
    };
    // Different scopes, of which the first is large, in a resource that is large too.
    let scope = |letter: &str, times, range| ScopeSpans {
        spans: Iterator::map(range, span).collect(),
        schema_url: letter.repeat(times),
        ..ScopeSpans::default()
    };
    let data = TracesData {
        resource_spans: vec![ResourceSpans {
            scope_spans: vec![scope("a", 100_000, 1..2_501), scope("b", 1, 2_501..2_601)],
            schema_url: "r".repeat(100_000),
            ..ResourceSpans::default()
        }],
    };
    let sent = data.encode_to_vec();
    let trace = read(&sent);
    let written = encode(&trace);
    // A few bytes for each span and its resource and scope messages, where the encoder writes what the sender omitted.
    assert!(written.len() < sent.len() + 3 * 2_600, "{} from {}", written.len(), sent.len());
    assert_eq!(content(&read(&written)), content(&trace));
    let written = TracesData::decode(written.as_slice()).expect("our own message");
    let sizes: Vec<Vec<usize>> = written
        .resource_spans
        .iter()
        .map(|it| it.scope_spans.iter().map(|it| it.spans.len()).collect())
        .collect();
    assert_eq!(sizes, [[2_500, 100]]);
}

#[test]
fn malformed_ids_of_a_link_are_none() {
    let mut data = one_attribute(AnyValue::default());
    let link = Link { trace_id: vec![1; 4], span_id: vec![1; 9], ..Link::default() };
    data.resource_spans[0].scope_spans[0].spans[0].links = vec![link];
    let [(_, _, span)] = &content(&read(&data.encode_to_vec()))[..] else { panic!("one span") };
    assert_eq!((span.links[0].trace_id, span.links[0].span_id), (None, None));
}

#[test]
fn a_reference_to_a_profile_is_read_as_absent() {
    let value = AnyValue { value: Some(any_value::Value::StringValueStrindex(3)) };
    let trace = read(&one_attribute(value).encode_to_vec());
    let absent = read(&one_attribute(AnyValue::default()).encode_to_vec());
    assert_eq!(content(&trace), content(&absent));
}

fn one_attribute(value: AnyValue) -> TracesData {
    let attributes = vec![KeyValue { key: "a".to_owned(), value: Some(value), key_strindex: 0 }];
    let (trace_id, span_id) = (TRACE.to_vec(), vec![1; 8]);
    let spans = vec![Span { trace_id, span_id, attributes, ..Span::default() }];
    let scope_spans = vec![ScopeSpans { spans, ..ScopeSpans::default() }];
    TracesData { resource_spans: vec![ResourceSpans { scope_spans, ..ResourceSpans::default() }] }
}

fn id() -> TraceId {
    TraceId::from_bytes(TRACE).expect("an id")
}

fn read(bytes: &[u8]) -> Trace {
    let mut trace = Trace::new(id());
    let new = append(&mut trace, bytes).expect("appended");
    assert_eq!(new, trace.len() as u64);
    trace
}

fn content(trace: &Trace) -> Vec<(ResourceData, ScopeData, SpanData)> {
    let spans = trace.spans();
    spans.map(|it| (it.resource().to_data(), it.scope().to_data(), it.to_data())).collect()
}

/// Returns each span with its resource and scope, as bytes (so that `NaN` equals itself), however they were grouped.
fn triples(data: TracesData) -> BTreeSet<[Vec<u8>; 3]> {
    let mut triples = BTreeSet::new();
    for resource_spans in data.resource_spans {
        let mut resource = resource_spans.resource.unwrap_or_default();
        say_empty(&mut resource.attributes);
        let around = ResourceSpans {
            resource: Some(resource),
            schema_url: resource_spans.schema_url,
            ..ResourceSpans::default()
        };
        for scope_spans in resource_spans.scope_spans {
            let mut scope = scope_spans.scope.unwrap_or_default();
            say_empty(&mut scope.attributes);
            let schema_url = scope_spans.schema_url;
            let within = ScopeSpans { scope: Some(scope), schema_url, ..ScopeSpans::default() };
            for mut span in scope_spans.spans {
                span.status.get_or_insert_default();
                say_empty(&mut span.attributes);
                span.events.iter_mut().for_each(|event| say_empty(&mut event.attributes));
                span.links.iter_mut().for_each(|link| say_empty(&mut link.attributes));
                let triple = [around.encode_to_vec(), within.encode_to_vec(), span.encode_to_vec()];
                triples.insert(triple);
            }
        }
    }
    triples
}

/// Replaces omitted values by values without content, which are the same in OTLP.
fn say_empty(attributes: &mut [KeyValue]) {
    for attribute in attributes {
        say_empty_within(attribute.value.get_or_insert_default());
    }
}

fn say_empty_within(value: &mut AnyValue) {
    match &mut value.value {
        Some(any_value::Value::ArrayValue(array)) => {
            array.values.iter_mut().for_each(say_empty_within);
        }
        Some(any_value::Value::KvlistValue(map)) => say_empty(&mut map.values),
        _ => {}
    }
}
