//! Encodes spans as OTLP.
//!
//! Hand-written for speed, and so that the run does not decode with the code that encoded. Deliberately absent: everything that
//! the simulated systems do not send.

use model::{SpanId, TraceId, trace::Kind};
use runner::MARKER;

use super::{
    play::{CallTarget, Parent, SimulatedRun, SimulatedSpan},
    system::{Identity, Peer, System},
};

/// The value of the marker of started processes.
pub(super) const TOKEN: &str = "token";

/// The caller's context: the data that all spans of a run share.
pub(super) struct TraceOrigin {
    pub(super) trace: TraceId,
    /// None where the caller has no span.
    pub(super) trigger: Option<SpanId>,
    /// When the trigger was fired, in nanoseconds since 1970.
    pub(super) fired: u64,
}

/// Encodes a `TracesData` of these spans of one process.
pub(super) fn encode(
    (system, played): (&System, &SimulatedRun<'_>),
    process: usize,
    numbers: &[usize],
    asked: &TraceOrigin,
) -> Vec<u8> {
    let mut spans = Vec::with_capacity(192 * numbers.len());
    let mut span = Vec::with_capacity(192);
    for number in numbers {
        span.clear();
        write_span(&mut span, &played.spans[*number], system, played, asked);
        bytes(&mut spans, 2, &span);
    }
    let mut all = Vec::with_capacity(spans.len() + 160);
    bytes(&mut all, 1, &resource(system, process));
    bytes(&mut all, 2, &spans);
    let mut data = Vec::with_capacity(all.len() + 8);
    bytes(&mut data, 1, &all);
    data
}

/// Returns the id of a trace that began because a context was lost.
pub(super) fn lost_trace(trace: u64) -> [u8; 16] {
    let mut id = [0xee; 16];
    id[8..].copy_from_slice(&trace.to_be_bytes());
    id
}

fn resource(system: &System, process: usize) -> Vec<u8> {
    let mut resource = Vec::with_capacity(128);
    each_of_resource(system, process, |key, value| given(&mut resource, 1, key, value));
    resource
}

/// The value of an attribute.
#[derive(Clone, Copy)]
pub(super) enum AttributeValue<'a> {
    Text(&'a str),
    Int(i64),
}

/// Visits the resource attributes of a process.
pub(super) fn each_of_resource(
    system: &System,
    process: usize,
    mut add: impl FnMut(&'static str, AttributeValue<'_>),
) {
    let it = &system.processes[process];
    add("service.name", AttributeValue::Text(&system.service_of(process).name));
    match it.identity {
        Identity::Instance(id) => {
            add("service.instance.id", AttributeValue::Text(&format!("{id:016x}")));
        }
        Identity::HostAndPid(host, pid) => {
            add("host.name", AttributeValue::Text(&format!("host-{host}")));
            add("process.pid", AttributeValue::Int(pid as i64));
        }
        Identity::Unsaid => {}
    }
    if it.is_marked {
        add(MARKER, AttributeValue::Text(TOKEN));
    }
}

/// Visits the attributes of a span.
pub(super) fn each_of_span(
    system: &System,
    span: &SimulatedSpan<'_>,
    mut add: impl FnMut(&'static str, AttributeValue<'_>),
) {
    if let Some(value) = span.value.filter(|_| !span.is_dropping) {
        add("v", AttributeValue::Int(value));
    }
    match (span.kind, span.place) {
        (Kind::Server, Some(path)) => {
            add("url.path", AttributeValue::Text(path));
            let service = system.service_of(span.process);
            if service.says_address {
                add("server.address", AttributeValue::Text(&format!("{}.test", service.name)));
                add("server.port", AttributeValue::Int(8080));
            }
        }
        (Kind::Consumer, Some(queue)) => {
            add("messaging.destination.name", AttributeValue::Text(queue));
        }
        _ => {}
    }
    match span.target {
        CallTarget::None | CallTarget::Peer(Peer::Unsaid) => {}
        CallTarget::Database => {
            add("db.system", AttributeValue::Text("postgresql"));
            add("server.address", AttributeValue::Text("db.test"));
        }
        CallTarget::Peer(Peer::Service(name)) => add("peer.service", AttributeValue::Text(name)),
        CallTarget::Peer(Peer::Address(host, port)) => {
            add("server.address", AttributeValue::Text(host));
            add("server.port", AttributeValue::Int(i64::from(*port)));
            if let Some(path) = span.place {
                add("url.full", AttributeValue::Text(&format!("http://{host}:{port}{path}")));
            }
        }
        CallTarget::Queue(name) => {
            add("messaging.system", AttributeValue::Text("kafka"));
            add("messaging.destination.name", AttributeValue::Text(name));
        }
    }
}

fn write_span(
    to: &mut Vec<u8>,
    span: &SimulatedSpan<'_>,
    system: &System,
    played: &SimulatedRun<'_>,
    asked: &TraceOrigin,
) {
    match span.trace {
        0 => bytes(to, 1, asked.trace.as_bytes()),
        trace => bytes(to, 1, &lost_trace(trace)),
    }
    bytes(to, 2, &span.id.to_be_bytes());
    match span.parent {
        Parent::Lost(_) => {}
        Parent::Trigger => {
            asked.trigger.iter().for_each(|trigger| bytes(to, 4, trigger.as_bytes()));
        }
        Parent::Span(parent) => bytes(to, 4, &played.spans[parent].id.to_be_bytes()),
        Parent::Absent(id) => bytes(to, 4, &id.to_be_bytes()),
    }
    bytes(to, 5, span.name.as_bytes());
    number(to, 6, span.kind.number() as u64);
    let skew = system.processes[span.process].skew;
    let clock = |at: u64| (asked.fired + at).saturating_add_signed(skew);
    fixed(to, 7, clock(span.start));
    fixed(to, 8, clock(span.end.unwrap_or(span.start)));
    each_of_span(system, span, |key, value| given(to, 9, key, value));
    if span.is_dropping && span.value.is_some() {
        number(to, 10, 1);
    }
    if span.has_exception && !span.is_dropping {
        let mut event = Vec::with_capacity(24);
        fixed(&mut event, 1, clock(span.end.unwrap_or(span.start)));
        bytes(&mut event, 2, b"exception");
        bytes(to, 11, &event);
    } else if span.has_exception {
        number(to, 12, 1);
    }
    if let Some(link) = span.link {
        let mut to_it = Vec::with_capacity(32);
        match played.spans[link].trace {
            0 => bytes(&mut to_it, 1, asked.trace.as_bytes()),
            trace => bytes(&mut to_it, 1, &lost_trace(trace)),
        }
        bytes(&mut to_it, 2, &played.spans[link].id.to_be_bytes());
        bytes(to, 13, &to_it);
    }
    if span.is_error {
        bytes(to, 15, &[3 << 3, 2]);
    }
    if system.processes[span.process].tells_remote {
        let is_remote = span.is_entry() && !matches!(span.parent, Parent::Lost(_));
        let flags: u32 = if is_remote { 0x301 } else { 0x101 };
        varint(to, 16 << 3 | 5);
        to.extend_from_slice(&flags.to_le_bytes());
    }
}

fn given(to: &mut Vec<u8>, field: u64, key: &str, value: AttributeValue<'_>) {
    let mut any = Vec::with_capacity(32);
    match value {
        AttributeValue::Text(text) => bytes(&mut any, 1, text.as_bytes()),
        AttributeValue::Int(value) => number(&mut any, 3, value as u64),
    }
    attribute(to, field, key, &any);
}

fn attribute(to: &mut Vec<u8>, field: u64, key: &str, any: &[u8]) {
    let mut pair = Vec::with_capacity(key.len() + any.len() + 4);
    bytes(&mut pair, 1, key.as_bytes());
    bytes(&mut pair, 2, any);
    bytes(to, field, &pair);
}

fn bytes(to: &mut Vec<u8>, field: u64, value: &[u8]) {
    varint(to, field << 3 | 2);
    varint(to, value.len() as u64);
    to.extend_from_slice(value);
}

fn number(to: &mut Vec<u8>, field: u64, value: u64) {
    varint(to, field << 3);
    varint(to, value);
}

fn fixed(to: &mut Vec<u8>, field: u64, value: u64) {
    varint(to, field << 3 | 1);
    to.extend_from_slice(&value.to_le_bytes());
}

fn varint(to: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        to.push(value as u8 | 0x80);
        value >>= 7;
    }
    to.push(value as u8);
}
