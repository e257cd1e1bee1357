//! Strategies for any span, log, scope and resource that the SDK can produce.

use std::{
    collections::HashMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use opentelemetry::{
    Array, InstrumentationScope, Key, KeyValue, SpanId, StringValue, TraceFlags, TraceId, Value,
    logs::{AnyValue, LogRecord as _, Logger, LoggerProvider, Severity},
    trace::{Event, Link, SpanContext, SpanKind, Status, TraceState},
};
use opentelemetry_sdk::{
    Resource,
    error::OTelSdkResult,
    logs::{LogProcessor, SdkLogRecord, SdkLoggerProvider},
    trace::{SpanData, SpanEvents, SpanLinks},
};
use proptest::{collection::vec, option, prelude::*};

/// Short texts, and some around the lengths where the length prefix needs another byte.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![8 => ".{0,12}", 2 => "[a-z]{90,140}", 1 => (16_300..16_400_usize).prop_map(|n| "x".repeat(n))]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![4 => any::<f64>(), 1 => Just(0.0), 1 => Just(-0.0), 1 => Just(f64::INFINITY)]
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![any::<i64>(), -3..300_i64]
}

fn time() -> impl Strategy<Value = SystemTime> {
    let nanos = prop_oneof![any::<u64>(), Just(0)];
    prop_oneof![
        9 => nanos.prop_map(|nanos| UNIX_EPOCH + Duration::from_nanos(nanos)),
        1 => Just(UNIX_EPOCH - Duration::from_secs(5)),
    ]
}

fn dropped() -> impl Strategy<Value = u32> {
    prop_oneof![Just(0), any::<u32>()]
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        4 => text().prop_map(Value::from),
        2 => number().prop_map(Value::I64),
        1 => float().prop_map(Value::F64),
        1 => any::<bool>().prop_map(Value::Bool),
        1 => vec(any::<bool>(), 0..200).prop_map(|values| Value::Array(Array::Bool(values))),
        1 => vec(number(), 0..40).prop_map(|values| Value::Array(Array::I64(values))),
        1 => vec(float(), 0..40).prop_map(|values| Value::Array(Array::F64(values))),
        1 => vec(text().prop_map(StringValue::from), 0..5)
            .prop_map(|values| Value::Array(Array::String(values))),
    ]
}

fn attributes() -> impl Strategy<Value = Vec<KeyValue>> {
    vec((text(), value()).prop_map(|(key, value)| KeyValue::new(key, value)), 0..6)
}

fn trace_state() -> impl Strategy<Value = TraceState> {
    let pairs = vec(("[a-z]{1,9}", "[a-z]{1,40}"), 0..5);
    prop_oneof![
        Just(TraceState::NONE),
        pairs.prop_map(|pairs| TraceState::from_key_value(pairs).expect("valid pairs")),
    ]
}

fn context() -> impl Strategy<Value = SpanContext> {
    (any::<u128>(), any::<u64>(), any::<u8>(), any::<bool>(), trace_state()).prop_map(
        |(trace, span, flags, remote, state)| {
            let (trace, span) = (TraceId::from(trace), SpanId::from(span));
            SpanContext::new(trace, span, TraceFlags::new(flags), remote, state)
        },
    )
}

fn kind() -> impl Strategy<Value = SpanKind> {
    prop_oneof![
        Just(SpanKind::Internal),
        Just(SpanKind::Server),
        Just(SpanKind::Client),
        Just(SpanKind::Producer),
        Just(SpanKind::Consumer),
    ]
}

fn status() -> impl Strategy<Value = Status> {
    prop_oneof![Just(Status::Unset), Just(Status::Ok), text().prop_map(Status::error)]
}

fn events() -> impl Strategy<Value = SpanEvents> {
    let event = (text(), time(), attributes(), dropped())
        .prop_map(|(name, time, attributes, dropped)| Event::new(name, time, attributes, dropped));
    (vec(event, 0..4), dropped()).prop_map(|(all, dropped_count)| {
        let mut events = SpanEvents::default();
        events.events = all;
        events.dropped_count = dropped_count;
        events
    })
}

fn links() -> impl Strategy<Value = SpanLinks> {
    let link = (context(), attributes(), dropped())
        .prop_map(|(context, attributes, dropped)| Link::new(context, attributes, dropped));
    (vec(link, 0..3), dropped()).prop_map(|(all, dropped_count)| {
        let mut links = SpanLinks::default();
        links.links = all;
        links.dropped_count = dropped_count;
        links
    })
}

/// An empty span.
pub(super) fn empty_span() -> SpanData {
    SpanData {
        span_context: SpanContext::empty_context(),
        parent_span_id: SpanId::INVALID,
        parent_span_is_remote: false,
        span_kind: SpanKind::Internal,
        name: "".into(),
        start_time: UNIX_EPOCH,
        end_time: UNIX_EPOCH,
        attributes: Vec::new(),
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: Status::Unset,
        instrumentation_scope: InstrumentationScope::default(),
    }
}

pub(super) fn span() -> impl Strategy<Value = SpanData> {
    let parent = (prop_oneof![Just(0), any::<u64>()], any::<bool>());
    let head = (context(), parent, kind(), text(), (time(), time()));
    let rest = (attributes(), dropped(), events(), links(), status());
    (head, rest).prop_map(|(head, rest)| {
        let (span_context, (parent, remote), span_kind, name, (start_time, end_time)) = head;
        let (attributes, dropped_attributes_count, events, links, status) = rest;
        SpanData {
            span_context,
            parent_span_id: SpanId::from(parent),
            parent_span_is_remote: remote,
            span_kind,
            name: name.into(),
            start_time,
            end_time,
            attributes,
            dropped_attributes_count,
            events,
            links,
            status,
            instrumentation_scope: InstrumentationScope::default(),
        }
    })
}

fn any_value() -> impl Strategy<Value = AnyValue> {
    let leaf = prop_oneof![
        text().prop_map(AnyValue::from),
        number().prop_map(AnyValue::Int),
        float().prop_map(AnyValue::Double),
        any::<bool>().prop_map(AnyValue::Boolean),
        vec(any::<u8>(), 0..200).prop_map(|bytes| AnyValue::Bytes(Box::new(bytes))),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let map = vec((text().prop_map(Key::from), inner.clone()), 0..4);
        prop_oneof![
            vec(inner, 0..4).prop_map(|values| AnyValue::ListAny(Box::new(values))),
            map.prop_map(|pairs| AnyValue::Map(Box::new(HashMap::from_iter(pairs)))),
        ]
    })
}

/// The parts of a log record; only the SDK can create one.
#[derive(Clone, Debug)]
pub(super) struct Log {
    names: (Option<&'static str>, Option<&'static str>, Option<String>),
    times: (Option<SystemTime>, SystemTime),
    severity: Option<Severity>,
    body: Option<AnyValue>,
    attributes: Vec<(String, AnyValue)>,
    context: Option<(u128, u64, Option<u8>)>,
}

#[derive(Clone, Debug, Default)]
struct Capture(Arc<Mutex<Vec<SdkLogRecord>>>);

impl LogProcessor for Capture {
    fn emit(&self, record: &mut SdkLogRecord, _scope: &InstrumentationScope) {
        self.0.lock().expect("no test panics here").push(record.clone());
    }

    fn force_flush(&self) -> OTelSdkResult {
        Ok(())
    }

    fn shutdown_with_timeout(&self, _timeout: Duration) -> OTelSdkResult {
        Ok(())
    }
}

impl Log {
    /// Returns the record as a processor receives it.
    pub(super) fn emitted(self, scope: InstrumentationScope) -> SdkLogRecord {
        let captured = Capture::default();
        let provider = SdkLoggerProvider::builder().with_log_processor(captured.clone()).build();
        let logger = provider.logger_with_scope(scope);
        let mut record = logger.create_log_record();
        let (event, severity_text, target) = self.names;
        event.into_iter().for_each(|name| record.set_event_name(name));
        severity_text.into_iter().for_each(|text| record.set_severity_text(text));
        target.into_iter().for_each(|target| record.set_target(target));
        self.times.0.into_iter().for_each(|time| record.set_timestamp(time));
        record.set_observed_timestamp(self.times.1);
        self.severity.into_iter().for_each(|severity| record.set_severity_number(severity));
        self.body.into_iter().for_each(|body| record.set_body(body));
        record.add_attributes(self.attributes);
        if let Some((trace, span, flags)) = self.context {
            let flags = flags.map(TraceFlags::new);
            record.set_trace_context(TraceId::from(trace), SpanId::from(span), flags);
        }
        logger.emit(record);
        let record = captured.0.lock().expect("no test panics here").pop();
        record.expect("the processor was called")
    }
}

fn severity() -> impl Strategy<Value = Severity> {
    prop::sample::select(vec![
        Severity::Trace,
        Severity::Trace2,
        Severity::Trace3,
        Severity::Trace4,
        Severity::Debug,
        Severity::Debug2,
        Severity::Debug3,
        Severity::Debug4,
        Severity::Info,
        Severity::Info2,
        Severity::Info3,
        Severity::Info4,
        Severity::Warn,
        Severity::Warn2,
        Severity::Warn3,
        Severity::Warn4,
        Severity::Error,
        Severity::Error2,
        Severity::Error3,
        Severity::Error4,
        Severity::Fatal,
        Severity::Fatal2,
        Severity::Fatal3,
        Severity::Fatal4,
    ])
}

pub(super) fn log() -> impl Strategy<Value = Log> {
    let names = prop::sample::select(vec![None, Some(""), Some("event"), Some("WARN")]);
    let target = option::of("[a-c]{0,2}");
    (
        (names.clone(), names, target),
        (option::of(time()), time()),
        option::of(severity()),
        option::of(any_value()),
        vec((text(), any_value()), 0..8),
        option::of((any::<u128>(), any::<u64>(), option::of(any::<u8>()))),
    )
        .prop_map(|(names, times, severity, body, attributes, context)| Log {
            names,
            times,
            severity,
            body,
            attributes,
            context,
        })
}

fn scope() -> impl Strategy<Value = InstrumentationScope> {
    // An empty version and an absent one are equal on the wire, but different in the SDK.
    (text(), option::of("[0-9.]{1,9}"), option::of("https://[a-z]{1,150}"), attributes()).prop_map(
        |(name, version, schema_url, attributes)| {
            let mut scope = InstrumentationScope::builder(name).with_attributes(attributes);
            if let Some(version) = version {
                scope = scope.with_version(version);
            }
            if let Some(url) = schema_url {
                scope = scope.with_schema_url(url);
            }
            scope.build()
        },
    )
}

/// Several items, each with one of a few scopes.
pub(super) fn scoped<T: Clone + Debug>(
    item: impl Strategy<Value = T>,
) -> impl Strategy<Value = Vec<(T, InstrumentationScope)>> {
    (vec(scope(), 1..4), vec((item, any::<prop::sample::Index>()), 1..6)).prop_map(
        |(scopes, items)| {
            let pick = |at: prop::sample::Index| scopes[at.index(scopes.len())].clone();
            items.into_iter().map(|(item, at)| (item, pick(at))).collect()
        },
    )
}

pub(super) fn resource() -> impl Strategy<Value = Resource> {
    (attributes(), option::of("https://[a-z]{1,150}")).prop_map(|(attributes, url)| {
        let builder = Resource::builder_empty();
        match url {
            Some(url) => builder.with_schema_url(attributes, url),
            None => builder.with_attributes(attributes),
        }
        .build()
    })
}
