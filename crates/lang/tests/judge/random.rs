//! Random traces and random statements.

use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{
        EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status, StatusCode, Value,
    },
};
use proptest::prelude::{BoxedStrategy, Just, Strategy, prop, prop_oneof};

/// A generated span.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(crate) id: u8,
    /// 0 for no parent.
    pub(crate) parent: u8,
    pub(crate) name: usize,
    kind: i32,
    is_error: bool,
    pub(crate) times: (u64, u64),
    attributes: [Option<i64>; 2],
    pub(crate) host: usize,
    has_event: bool,
    link: Option<u8>,
}

/// Whether parents may form cycles.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Circles {
    Allowed,
    None,
}

pub(crate) fn span(circles: Circles) -> impl Strategy<Value = Drawn> {
    let head = (1u8..12, 0u8..12, 0usize..3, 0i32..7, prop::bool::weighted(0.2));
    let times = (0u64..20, 0u64..12);
    let attributes = [prop::option::of(0i64..3), prop::option::of(0i64..3)];
    let rest = (0usize..4, prop::bool::weighted(0.3), prop::option::weighted(0.3, 1u8..12));
    (head, times, attributes, rest).prop_map(move |(head, times, attributes, rest)| {
        let (id, parent, name, kind, is_error) = head;
        let (host, has_event, link) = rest;
        let parent = if circles == Circles::None { parent % id } else { parent };
        Drawn { id, parent, name, kind, is_error, times, attributes, host, has_event, link }
    })
}

impl Drawn {
    /// Puts the span on the only host, so that clocks and the order of siblings are reliable.
    pub(crate) fn on_one_host(self) -> Self {
        Self { host: 1, ..self }
    }
}

pub(crate) fn id(number: u8) -> Option<SpanId> {
    SpanId::from_bytes(u64::from(number).to_be_bytes())
}

/// Returns the trace of these spans, in this order.
pub(crate) fn trace(spans: &[Drawn]) -> Trace {
    trace_of(spans.iter().map(Drawn::data))
}

/// Returns the trace of these spans, in this order.
pub(crate) fn trace_of(spans: impl Iterator<Item = (ResourceData, SpanData)>) -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    for (resource, span) in spans {
        let resource = trace.resource(resource).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        trace.push(resource, scope, span).expect("room");
    }
    trace
}

impl Drawn {
    /// Returns the span and its resource.
    pub(crate) fn data(&self) -> (ResourceData, SpanData) {
        let span = self;
        let text = |text: &str| Value::Str(text.to_owned());
        let attributes = match span.host {
            0 => Vec::new(),
            host => vec![
                ("host.name".to_owned(), text(["", "n1", "n2", "n3"][host])),
                ("service.name".to_owned(), text(["", "s1", "s2", "s1"][host])),
            ],
        };
        let resource = ResourceData { attributes, ..ResourceData::default() };
        let own = id(span.id).expect("ids start at 1");
        let mut data = SpanData::new(own, id(span.parent), ["x", "y", "z"][span.name]);
        data.kind = Kind::from_number(span.kind);
        data.start = Timestamp::from_nanos(1_000 + span.times.0);
        data.end = Timestamp::from_nanos(998 + span.times.0 + span.times.1);
        if span.is_error {
            data.status = Status { code: StatusCode::Error, message: "boom".to_owned() };
        }
        for (key, value) in ["a", "b"].iter().zip(span.attributes) {
            data.attributes.extend(value.map(|value| ((*key).to_owned(), Value::Int(value))));
        }
        if span.has_event {
            let attributes = vec![("e".to_owned(), Value::Int(span.times.0 as i64 % 3))];
            let event = EventData { name: "ev".to_owned(), attributes, ..EventData::default() };
            data.events.push(event);
        }
        let link = span.link.and_then(id);
        data.links.extend(link.map(|id| LinkData { span_id: Some(id), ..LinkData::default() }));
        (resource, data)
    }
}

/// Generates one of these words.
fn any_of(words: &'static [&'static str]) -> BoxedStrategy<String> {
    prop::sample::select(words).prop_map(str::to_owned).boxed()
}

fn condition() -> BoxedStrategy<String> {
    let one = any_of(&[
        "a=1",
        "a!=1",
        "a exists",
        "b not exists",
        "a in [0, 2]",
        "b between 1 and 2",
        "name=\"x\"",
        "name!=\"y\"",
        "name =~ \"x|z\"",
        "kind=\"client\"",
        "status=\"error\"",
        "duration>3ns",
        "service=\"s1\"",
        "resource.host.name=\"n2\"",
        "event[e=1]",
        "event.e<2",
        "link[span_id exists]",
        "depth>1",
        "children=0",
        "self_time>2ns",
        "b<attr:a",
    ]);
    one.prop_recursive(2, 6, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("not ({one})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a} and {b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a} or {b})")),
        ]
    })
    .boxed()
}

fn step(depth: u32) -> BoxedStrategy<String> {
    let condition = prop_oneof![Just(String::new()), condition()];
    let plain =
        any_of(&["", "", "", "", ":root", ":leaf", ":orphan", ":first", ":last", ":nth_child(2)"]);
    let pseudo = match depth {
        0 => plain,
        _ => prop_oneof![
            6 => plain,
            1 => (any_of(&["", "> ", "+ ", "~ ", "< ", "<< ", "=> "]), step(depth - 1))
                .prop_map(|(combinator, step)| format!(":has({combinator}{step})")),
            1 => step(depth - 1).prop_map(|step| format!(":not({step})")),
        ]
        .boxed(),
    };
    (condition, pseudo).prop_map(|(condition, pseudo)| format!("span[{condition}]{pseudo}")).boxed()
}

/// Generates a part of a selector.
pub(crate) fn part() -> BoxedStrategy<String> {
    let combinator = any_of(&[" ", " > ", " + ", " ~ ", " < ", " << ", " => "]);
    let more = prop::collection::vec((combinator, step(1)), 0..3);
    (step(1), more)
        .prop_map(|(first, more)| {
            more.into_iter()
                .fold(first, |all, (combinator, step)| format!("{all}{combinator}{step}"))
        })
        .boxed()
}

fn below_self() -> BoxedStrategy<String> {
    let combinator = any_of(&[" ", " > ", " ~ ", " < ", " << ", " => "]);
    (combinator, step(0)).prop_map(|(combinator, step)| format!("self{combinator}{step}")).boxed()
}

fn comparator() -> BoxedStrategy<String> {
    any_of(&["=", "!=", "<", "<=", ">", ">="])
}

/// Generates a predicate on one span.
pub(crate) fn predicate() -> BoxedStrategy<String> {
    let property = any_of(&[
        "attr:a",
        "attr:b",
        "duration",
        "depth",
        "children",
        "self_time",
        "critical_time",
    ]);
    let compared = (property, comparator(), 0u8..4)
        .prop_map(|(property, comparator, number)| format!("{property} {comparator} {number}"));
    let counted =
        (below_self(), comparator(), 0u8..3).prop_map(|(selector, comparator, number)| {
            format!("count({selector}) {comparator} {number}")
        });
    let said = (any_of(&["some", "no"]), below_self())
        .prop_map(|(quantifier, selector)| format!("{quantifier} {selector}"));
    let every = below_self().prop_map(|selector| format!("(every {selector} has attr:a = 1)"));
    let listed = part().prop_map(|part| format!("attr:a in values(attr:b of {part})"));
    let shared = part().prop_map(|part| format!("attr:a = value(attr:a of {part})"));
    let exists = any_of(&["attr:a exists", "attr:b not exists", "name = \"x\"", "event[e=1]"]);
    let one = prop_oneof![compared, counted, said, every, listed, shared, exists];
    one.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("not ({one})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) or ({b})")),
        ]
    })
    .boxed()
}

fn subject() -> BoxedStrategy<String> {
    (any_of(&["", "every ", "some ", "no "]), part())
        .prop_map(|(quantifier, part)| format!("{quantifier}{part}"))
        .boxed()
}

/// Generates a claim about a trace.
pub(crate) fn claim() -> BoxedStrategy<String> {
    let counted = (part(), comparator(), 0u8..4)
        .prop_map(|(part, comparator, number)| format!("count({part}) {comparator} {number}"));
    let grouped =
        (part(), any_of(&["parent_id", "attr:a", "name, attr:b", "depth"]), comparator(), 0u8..4)
            .prop_map(|(part, by, comparator, number)| {
                format!("count({part} by {by}) {comparator} {number}")
            });
    let function = any_of(&["sum", "min", "max", "avg", "p50", "value"]);
    let of = any_of(&["attr:a", "duration", "self_time", "start"]);
    let summed = (function, of, part(), (comparator(), 0u8..4)).prop_map(
        |(function, of, part, (comparator, number))| {
            format!("{function}({of} of {part}) {comparator} {number}")
        },
    );
    let listed = (part(), any_of(&["contains [0, 1]", "contains 1", "= [1]", "not-contains 2"]))
        .prop_map(|(part, rest)| format!("values(attr:a of {part}) {rest}"));
    let between = (part(), part(), comparator())
        .prop_map(|(a, b, comparator)| format!("count({a}) {comparator} count({b})"));
    let gap = (part(), part(), comparator(), 0u8..9)
        .prop_map(|(a, b, comparator, number)| format!("gap({a}, {b}) {comparator} {number}ns"));
    let relation = any_of(&["before", "after", "inside", "overlaps", "calls"]);
    let related = (subject(), relation, subject())
        .prop_map(|(left, relation, right)| format!("{left} {relation} {right}"));
    let said = (any_of(&["some", "no"]), part())
        .prop_map(|(quantifier, part)| format!("{quantifier} {part}"));
    let has = (subject(), predicate())
        .prop_map(|(subject, predicate)| format!("({subject} has {predicate})"));
    let exists = part().prop_map(|part| format!("value(attr:a of {part}) exists"));
    let one =
        prop_oneof![counted, grouped, summed, listed, between, gap, related, said, has, exists];
    one.prop_recursive(2, 4, 2, |inner| {
        prop_oneof![
            inner.clone().prop_map(|one| format!("not ({one})")),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| format!("({a}) and ({b})")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("({a}) or ({b})")),
        ]
    })
    .boxed()
}

/// Returns the inner part of a test.
pub(crate) fn test(selector: &str, assertions: &[String], claims: &[String]) -> String {
    let quoted = |text: &String| serde_json::Value::String(text.clone()).to_string();
    let list = |texts: &[String]| texts.iter().map(quoted).collect::<Vec<_>>().join(", ");
    let selector = quoted(&selector.to_owned());
    format!(
        "specs: [{{selector: {selector}, assertions: [{}]}}]\ntrace: [{}]",
        list(assertions),
        list(claims)
    )
}
