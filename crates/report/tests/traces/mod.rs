//! Traces to render.

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};

/// The start of the first span, in milliseconds.
const BEGAN_MS: u64 = 1_794_708_000_000;

/// A call through two services, with every field that a span can have.
pub(crate) fn small() -> Trace {
    let mut query = span(2, Some(1), "SELECT cart", (3, 9));
    query.kind = Kind::Client;
    query.status = Status { code: StatusCode::Error, message: "</script><b>lost".to_owned() };
    let list = vec![Value::Int(1), Value::Double(0.5), Value::Bool(true)];
    let map = vec![("inner".to_owned(), Value::Array(list))];
    query.attributes = vec![
        ("db.system.name".to_owned(), Value::Str("postgresql".to_owned())),
        ("</script>".to_owned(), Value::Map(map)),
        ("raw".to_owned(), Value::Bytes(vec![1, 2, 3])),
    ];
    query.events = vec![EventData {
        name: "exception".to_owned(),
        at: at(5),
        attributes: vec![("exception.type".to_owned(), Value::Str("Broken".to_owned()))],
        ..EventData::default()
    }];
    query.links =
        vec![LinkData { trace_id: Some(id()), span_id: Some(span_id(1)), ..LinkData::default() }];
    let backwards = span(3, Some(9), "ends before it starts", (12, 11));
    of([("gateway", span(1, None, "GET /cart", (0, 20))), ("cart", query), ("cart", backwards)])
}

/// A trace of `spans` spans; the outcomes refer to the last one.
pub(crate) fn long(spans: usize) -> Trace {
    let numbered = (0..spans - 1).map(|number| {
        let mut numbered =
            span(0, None, &format!("step {number}"), (number as u64, number as u64 + 2));
        let number = 0x1_0000_0000 + number as u64;
        numbered.id = SpanId::from_bytes(number.to_be_bytes()).expect("not zero");
        ("cart", numbered)
    });
    of(numbered.chain([("cart", span(1, None, "GET /cart", (90_000, 90_010)))]))
}

/// Spans of an untrusted sender: markup, hidden characters, long values, circles of parents, and impossible times.
pub(crate) fn hostile() -> Trace {
    let text = |text: &str| Value::Str(text.to_owned());
    let markup = "</script><img src=x onerror=alert(1)>";
    let mut root = span(1, None, markup, (5, 20));
    root.attributes = (0..70).map(|n| (format!("{markup}{n}"), text("&lt;b&gt;"))).collect();
    root.attributes[1].1 = text(&"x".repeat(1 << 20));
    root.attributes[2].1 = text("\u{202e}drowssap\u{2066}\u{200b}\u{feff}\u{0}\u{1b}[2J");
    root.attributes[3].1 = (0..50).fold(text("deep"), |inner, _| Value::Array(vec![inner]));
    root.status = Status { code: StatusCode::Error, message: "\u{2028}\u{202e}".to_owned() };
    let event = EventData { name: markup.to_owned(), at: at(0), ..EventData::default() };
    root.events = vec![event; 70];
    root.links = vec![LinkData::default(); 70];
    let circle =
        [span(2, Some(3), "first of a circle", (6, 7)), span(3, Some(2), "second", (7, 8))];
    let itself = span(4, Some(4), "its own parent", (8, 9));
    let mut backwards = span(5, Some(1), "\u{200b}", (12, 11));
    backwards.end = Timestamp::from_nanos(0);
    let mut far = span(6, Some(9), "far", (13, 14));
    far.end = Timestamp::from_nanos(u64::MAX);
    let [first, second] = circle;
    let spans = [root, first, second, itself, backwards, far];
    of(["<b>", "\u{202e}", "", "x", "y", "z"].into_iter().zip(spans))
}

/// A trace in which each of `spans` spans is below the one before.
pub(crate) fn deep(spans: u64) -> Trace {
    let id = |number: u64| SpanId::from_bytes((number + 1).to_be_bytes()).expect("not zero");
    of((0..spans).map(|number| {
        let mut span = span(1, None, &format!("level {number}"), (number, 2 * spans - number));
        span.id = id(number);
        span.parent = number.checked_sub(1).map(id);
        ("cart", span)
    }))
}

fn of<'a>(spans: impl IntoIterator<Item = (&'a str, SpanData)>) -> Trace {
    let mut trace = Trace::new(id());
    for (service, span) in spans {
        let name = ("service.name".to_owned(), Value::Str(service.to_owned()));
        let resource = ResourceData { attributes: vec![name], ..ResourceData::default() };
        let resource = trace.resource(resource).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        trace.push(resource, scope, span).expect("room");
    }
    trace
}

fn span(id: u8, parent: Option<u8>, name: &str, (from, to): (u64, u64)) -> SpanData {
    let mut span = SpanData::new(span_id(id.max(1)), parent.map(span_id), name);
    (span.start, span.end) = (at(from), at(to));
    span
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos((BEGAN_MS + millis) * 1_000_000)
}

fn id() -> TraceId {
    TraceId::from_bytes([0xab; 16]).expect("not zero")
}

fn span_id(byte: u8) -> SpanId {
    SpanId::from_bytes([byte; 8]).expect("not zero")
}
