//! Compares with opentelemetry-proto's own transform of the same input; a test documents each case in which that
//! transform loses data.

mod strategies;

use std::time::{Duration, UNIX_EPOCH};

use opentelemetry::{
    InstrumentationScope, KeyValue, StringValue, Value, logs::Logger, logs::LoggerProvider,
};
use opentelemetry_proto::{
    tonic::{
        collector::{logs::v1::ExportLogsServiceRequest, trace::v1::ExportTraceServiceRequest},
        logs::v1::{LogRecord, ScopeLogs},
        resource::v1::Resource as ProtoResource,
        trace::v1::{ScopeSpans, Span},
    },
    transform::{
        common::tonic::ResourceAttributesWithSchema, logs::tonic::group_logs_by_resource_and_scope,
        trace::tonic::group_spans_by_resource_and_scope,
    },
};
use opentelemetry_sdk::{
    Resource,
    logs::{LogBatch, SdkLogRecord, SdkLoggerProvider},
    trace::SpanData,
};
use proptest::prelude::*;
use prost::Message;

use self::strategies as any;
use crate::{encode, plan::Signal, record};

/// Encodes spans as they are sent: each as a record of the journal, all of them as one request.
fn sent_spans(resource: &Resource, spans: &[SpanData]) -> ExportTraceServiceRequest {
    let records = spans.iter().map(|span| {
        let mut record = Vec::new();
        record::begin(&mut record, Signal::Spans, |out| {
            encode::scope(out, &span.instrumentation_scope);
        });
        encode::span(&mut record, span, None);
        record
    });
    let request = request(resource, &records.collect::<Vec<_>>());
    ExportTraceServiceRequest::decode(&*request).expect("a request of OTLP")
}

fn sent_logs(
    resource: &Resource,
    logs: &[(SdkLogRecord, InstrumentationScope)],
) -> ExportLogsServiceRequest {
    let records = logs.iter().map(|(log, scope)| {
        let mut record = Vec::new();
        record::begin(&mut record, Signal::Logs, |out| encode::scope_of_log(out, scope, log));
        encode::log(&mut record, log);
        record
    });
    let request = request(resource, &records.collect::<Vec<_>>());
    ExportLogsServiceRequest::decode(&*request).expect("a request of OTLP")
}

fn request(resource: &Resource, records: &[Vec<u8>]) -> Vec<u8> {
    let mut head = Vec::new();
    encode::resource(&mut head, resource);
    let read = |record| record::read(record).expect("one of ours");
    record::request(&head, &records.iter().map(|record| read(record)).collect::<Vec<_>>())
}

/// Our attributes are sorted, the official ones are in the order of a hash map.
fn sorted(resource: Option<ProtoResource>) -> Option<ProtoResource> {
    let mut resource = resource?;
    resource.attributes.sort_by(|one, other| one.key.cmp(&other.key));
    Some(resource)
}

fn one_span(span: &SpanData, omit: Option<&str>) -> Span {
    let mut bytes = Vec::new();
    encode::span(&mut bytes, span, omit);
    let scope = ScopeSpans::decode(&*bytes);
    scope.expect("a field of ScopeSpans").spans.remove(0)
}

fn one_log(record: &SdkLogRecord) -> LogRecord {
    let mut bytes = Vec::new();
    encode::log(&mut bytes, record);
    let scope = ScopeLogs::decode(&*bytes);
    scope.expect("a field of ScopeLogs").log_records.remove(0)
}

proptest! {
    // A case is up to five complete spans, which cost more to generate than to check.
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn spans_are_what_the_official_transform_makes_of_them(
        resource in any::resource(),
        spans in any::scoped(any::span()),
    ) {
        let spans: Vec<SpanData> = spans
            .into_iter()
            .map(|(mut span, scope)| {
                span.instrumentation_scope = scope;
                span
            })
            .collect();
        let ours = sent_spans(&resource, &spans);
        let with_schema = ResourceAttributesWithSchema::from(&resource);
        let mut official = group_spans_by_resource_and_scope(spans, &with_schema);
        official[0].resource = sorted(official[0].resource.take());
        prop_assert_eq!(ours.resource_spans, official);
    }

    #[test]
    fn logs_are_what_the_official_transform_makes_of_them(
        resource in any::resource(),
        logs in any::scoped(any::log()),
    ) {
        let logs: Vec<_> =
            logs.into_iter().map(|(log, scope)| (log.emitted(scope.clone()), scope)).collect();
        let mut ours = sent_logs(&resource, &logs).resource_logs;
        let with_schema = ResourceAttributesWithSchema::from(&resource);
        let batch: Vec<_> = logs.iter().map(|(log, scope)| (log, scope)).collect();
        let mut official = group_logs_by_resource_and_scope(&LogBatch::new(&batch), &with_schema);
        official[0].resource = sorted(official[0].resource.take());
        // The official scopes are in the order of a hash map.
        for grouped in [&mut ours[0], &mut official[0]] {
            let order = |scope: &_| Option::as_ref(scope).map(Message::encode_to_vec);
            grouped.scope_logs.sort_by_key(|logs| (order(&logs.scope), logs.schema_url.clone()));
        }
        prop_assert_eq!(ours, official);
    }

    #[test]
    fn items_of_a_scope_stay_in_order(order in prop::collection::vec(0..4_usize, 1..40)) {
        let scopes = ["a", "b", "c", "d"].map(|name| InstrumentationScope::builder(name).build());
        let spans: Vec<SpanData> = order
            .iter()
            .enumerate()
            .map(|(at, scope)| SpanData {
                name: at.to_string().into(),
                instrumentation_scope: scopes[*scope].clone(),
                ..any::empty_span()
            })
            .collect();
        let ours = sent_spans(&Resource::builder_empty().build(), &spans);
        let grouped = &ours.resource_spans[0].scope_spans;
        let mut met: Vec<usize> = Vec::new();
        for scope in &order {
            if !met.contains(scope) {
                met.push(*scope);
            }
        }
        prop_assert_eq!(grouped.len(), met.len());
        for (group, scope) in grouped.iter().zip(met) {
            let names: Vec<_> = group.spans.iter().map(|span| span.name.clone()).collect();
            let expected: Vec<_> = order
                .iter()
                .enumerate()
                .filter(|(_, of)| **of == scope)
                .map(|(at, _)| at.to_string())
                .collect();
            prop_assert_eq!(&group.scope.as_ref().expect("a scope").name, scopes[scope].name());
            prop_assert_eq!(names, expected);
        }
    }

    #[test]
    fn what_is_omitted_is_what_was_named(span in any::span(), at in any::<prop::sample::Index>()) {
        let omit = match span.attributes.len() {
            0 => "nothing like it".to_owned(),
            length => span.attributes[at.index(length)].key.to_string(),
        };
        let mut without = span.clone();
        without.attributes.retain(|pair| pair.key.as_str() != omit);
        prop_assert_eq!(one_span(&span, Some(&omit)), Span::from(without));
    }

    #[test]
    fn what_was_in_the_buffer_stays(span in any::span(), before in prop::collection::vec(any::<u8>(), 0..300)) {
        let mut bytes = before.clone();
        encode::span(&mut bytes, &span, None);
        let mut alone = Vec::new();
        encode::span(&mut alone, &span, None);
        prop_assert_eq!(bytes, [before, alone].concat());
    }
}

/// Lengths around each power of 128, where the length prefix needs another byte, and not more than that byte.
#[test]
fn lengths_of_every_size_are_right() {
    let edges = [1 << 7, 1 << 14, 1 << 21];
    for length in edges.into_iter().flat_map(|edge: usize| edge - 80..edge + 4).chain(0..48) {
        let span = SpanData {
            attributes: vec![
                KeyValue::new("text", "x".repeat(length)),
                KeyValue::new(
                    "list",
                    Value::Array(vec![StringValue::from("x".repeat(length))].into()),
                ),
            ],
            start_time: UNIX_EPOCH + Duration::from_secs(1),
            end_time: UNIX_EPOCH + Duration::from_secs(2),
            ..any::empty_span()
        };
        let mut bytes = Vec::new();
        encode::span(&mut bytes, &span, None);
        let expected = ScopeSpans { spans: vec![span.into()], ..ScopeSpans::default() };
        assert_eq!(bytes.len(), expected.encoded_len(), "{length}");
        assert_eq!(ScopeSpans::decode(&*bytes), Ok(expected), "{length}");
    }
}

/// The official transform overflows for nanoseconds past the year 2554.
#[test]
fn a_time_that_nanoseconds_cannot_count_is_the_last_that_they_can() {
    let late = UNIX_EPOCH + Duration::from_secs(u64::MAX / 1_000_000_000 + 1);
    let span = SpanData {
        start_time: UNIX_EPOCH - Duration::from_secs(1),
        end_time: late,
        ..any::empty_span()
    };
    let sent = one_span(&span, None);
    assert_eq!((sent.start_time_unix_nano, sent.end_time_unix_nano), (0, u64::MAX));
}

/// The official transform panics on this record.
#[test]
fn a_log_that_nobody_observed_has_no_such_time() {
    let record = SdkLoggerProvider::builder().build().logger("any").create_log_record();
    assert_eq!(record.observed_timestamp(), None);
    assert_eq!(one_log(&record), LogRecord::default());
}

#[test]
fn not_a_number_keeps_its_bits() {
    let span = SpanData { attributes: vec![KeyValue::new("k", f64::NAN)], ..any::empty_span() };
    assert_eq!(one_span(&span, None).encode_to_vec(), Span::from(span).encode_to_vec());
}

#[test]
fn one_resource_is_always_the_same_bytes() {
    let pairs: Vec<_> = (0..32).map(|at| KeyValue::new(format!("k{at}"), at)).collect();
    let encoded = |pairs: Vec<KeyValue>| {
        let mut out = Vec::new();
        encode::resource(&mut out, &Resource::builder_empty().with_attributes(pairs).build());
        out
    };
    assert_eq!(encoded(pairs.clone()), encoded(pairs.into_iter().rev().collect()));
}
