//! Small traces with all defects of large ones: orphans, cycles, spans that are their own parent, duplicate ids with other
//! content, equal starts, ends before starts, several roots and several resources.

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};

use super::Dice;

/// A trace as a list.
#[derive(Clone, Debug)]
pub(crate) struct Sample {
    /// The spans in the order of arrival, each one once.
    pub(crate) spans: Vec<One>,
}

/// A span with its resource and scope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct One {
    pub(crate) resource: ResourceData,
    pub(crate) scope: ScopeData,
    pub(crate) span: SpanData,
}

/// The trace id of every sample.
pub(crate) const TRACE: [u8; 16] = [7; 16];

const NAMES: &[&str] = &["a", "b", "ab", "GET /x", "query", "exception"];
/// Some are also names of intrinsics.
const KEYS: &[&str] = &[
    "a",
    "b",
    "http.method",
    "db.system",
    "status",
    "duration",
    "x-y",
    "service.name",
    "type",
    "resource.a",
    "event.a",
];
/// Keys for events and links, so that several of a span share a key.
const FEW_KEYS: &[&str] = &["a", "b", "http.method"];
const TEXTS: &[&str] = &[
    "a",
    "b",
    "ab",
    "aba",
    "",
    "1",
    "1.0",
    "2.50",
    "007",
    "-1",
    "5ms",
    "5000000",
    "true",
    "é",
    "[1,2]",
    "{\"a\":1,\"b\":[1]}",
    "s1",
    "say \"so\"",
    "back\\slash",
];
const INTS: &[i64] = &[0, 1, 2, -1, 200, 5_000_000, 9_007_199_254_740_993, i64::MAX, i64::MIN];
const DOUBLES: &[f64] =
    &[0.0, 0.5, 1.0, -1.0, 2.5, 200.0, 9_007_199_254_740_992.0, f64::NAN, f64::INFINITY];

impl Sample {
    /// Generates a trace of 1 to 40 spans.
    pub(crate) fn throw(dice: &mut Dice) -> Self {
        let len = 1 + if dice.once_in(4) { dice.below(40) } else { dice.below(12) };
        let mut sample = Self { spans: Vec::new() };
        for number in 1..=len {
            let one = sample.one(number, len, dice);
            if !sample.spans.contains(&one) {
                sample.spans.push(one);
            }
        }
        sample
    }

    pub(crate) fn trace(&self) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes(TRACE).expect("not zero"));
        for One { resource, scope, span } in &self.spans {
            let resource = trace.resource(resource.clone()).expect("room");
            let scope = trace.scope(scope.clone()).expect("room");
            trace.push(resource, scope, span.clone()).expect("room");
        }
        trace
    }

    fn one(&self, number: usize, len: usize, dice: &mut Dice) -> One {
        let twin = (number > 1 && dice.once_in(20)).then(|| 1 + dice.below(number - 1));
        let parent = match dice.below(24) {
            0 => Some(number),
            1 => Some(1 + dice.below(len)),
            2 => Some(len + 1 + dice.below(2)),
            3 | 4 => None,
            5..=9 => (number > 1).then(|| number - 1),
            _ => (number > 1).then(|| 1 + dice.below(number - 1)),
        };
        let mut span = SpanData::new(id(twin.unwrap_or(number)), parent.map(id), dice.pick(NAMES));
        let start = 1_000_000 * dice.below(12) as u64;
        span.start = Timestamp::from_nanos(1_000_000_000 + start);
        let length = [0, 1, 1_000_000, 5_000_000, 7_500_000, 20_000_000][dice.below(6)];
        span.end = Timestamp::from_nanos(span.start.as_nanos() + length);
        if dice.once_in(24) {
            std::mem::swap(&mut span.start, &mut span.end);
        }
        span.kind = Kind::from_number(dice.below(7) as i32);
        span.status = status(dice);
        span.attributes = attributes(5, KEYS, dice);
        span.events = (0..few(4, dice)).map(|_| event(dice)).collect();
        span.links = (0..few(3, dice)).map(|_| link(len, dice)).collect();
        One { resource: resource(dice), scope: scope(dice), span }
    }
}

pub(crate) fn id(number: usize) -> SpanId {
    SpanId::from_bytes((number as u64).to_be_bytes()).expect("numbers start at 1")
}

fn few(end: usize, dice: &mut Dice) -> usize {
    if dice.once_in(3) { dice.below(end) } else { 0 }
}

fn status(dice: &mut Dice) -> Status {
    let code = StatusCode::from_number(dice.below(3) as i32);
    let message = if dice.once_in(2) { "boom" } else { "" };
    Status { code, message: message.to_owned() }
}

fn resource(dice: &mut Dice) -> ResourceData {
    let text = |key: &str, value: &str| (key.to_owned(), Value::Str(value.to_owned()));
    let mut attributes = match dice.below(5) {
        0 => vec![text("service.name", "s1"), text("host.name", "h1")],
        1 => vec![text("service.name", "s2"), ("a".to_owned(), Value::Int(1))],
        2 => vec![text("service.name", "s2"), text("b", "ab"), text("http.method", "GET")],
        3 => vec![("a".to_owned(), Value::Empty)],
        _ => Vec::new(),
    };
    // A single host, so that no result depends on clocks.
    attributes.push(text("host.id", "h1"));
    ResourceData { attributes, ..ResourceData::default() }
}

fn scope(dice: &mut Dice) -> ScopeData {
    let attributes = if dice.once_in(3) { attributes(2, KEYS, dice) } else { Vec::new() };
    let name = dice.pick(&["a", "lib", ""]).to_owned();
    let version = dice.pick(&["1.0", "2", ""]).to_owned();
    ScopeData { name, version, attributes, ..ScopeData::default() }
}

fn event(dice: &mut Dice) -> EventData {
    let at = Timestamp::from_nanos(1_000_000_000 + dice.below(9) as u64);
    let name = dice.pick(NAMES).to_owned();
    EventData { at, name, attributes: attributes(4, FEW_KEYS, dice), dropped_attributes: 0 }
}

fn link(len: usize, dice: &mut Dice) -> LinkData {
    let trace_id = match dice.below(6) {
        0 => None,
        1 => TraceId::from_bytes([9; 16]),
        _ => TraceId::from_bytes(TRACE),
    };
    let span_id = (!dice.once_in(8)).then(|| id(1 + dice.below(len + 1)));
    LinkData { trace_id, span_id, attributes: attributes(3, FEW_KEYS, dice), ..LinkData::default() }
}

/// Generates attributes. A key may be repeated; the last one counts.
fn attributes(end: usize, keys: &[&str], dice: &mut Dice) -> Vec<(String, Value)> {
    (0..dice.below(end)).map(|_| (dice.pick(keys).to_owned(), value(dice, 2))).collect()
}

fn value(dice: &mut Dice, depth: usize) -> Value {
    match dice.below(if depth == 0 { 12 } else { 16 }) {
        0..5 => Value::Str(dice.pick(TEXTS).to_owned()),
        5..8 => Value::Int(INTS[dice.below(INTS.len())]),
        8 | 9 => Value::Double(DOUBLES[dice.below(DOUBLES.len())]),
        10 => Value::Bool(dice.once_in(2)),
        11 if dice.once_in(2) => Value::Empty,
        11 => Value::Bytes(vec![0xab; dice.below(2)]),
        12..15 => Value::Array((0..dice.below(4)).map(|_| value(dice, depth - 1)).collect()),
        _ => {
            let keys = ["a", "b", "c"].iter().take(dice.below(3));
            Value::Map(keys.map(|key| ((*key).to_owned(), value(dice, depth - 1))).collect())
        }
    }
}
