//! Oversized traces: their analysis stays small, and takes seconds in a debug build.

use lang::{Rules, analyze};
use model::{
    Analysis, SpanId, Trace,
    trace::{Kind, ResourceData, ScopeData, SpanData, Value},
};
use proptest::{prelude::*, test_runner::Config};

use crate::notation::{id, trace_id};

const SPANS: u64 = 100_000;

#[test]
fn a_chain_of_spans() {
    let made = made(SPANS, |number| {
        let mut span = SpanData::new(id(number), (number > 1).then(|| id(number - 1)), "SELECT 1");
        span.kind = Kind::Client;
        span.attributes = attributes(&[
            ("db.system.name", "postgresql"),
            ("db.query.text", "SELECT * FROM orders WHERE id = 1"),
            ("server.address", "10.0.0.7"),
        ]);
        span
    });
    bounded(&analyze(&made, &Rules::default()));
}

/// Half of the spans are calls below the first, the others are statements without a parent in the trace.
#[test]
fn a_fan_that_breaks_everything() {
    let made = made(SPANS, |number| {
        let is_call = number % 2 == 0;
        let parent = (number > 1).then(|| if is_call { id(1) } else { id(u64::MAX) });
        let mut span = SpanData::new(id(number), parent, format!("GET /users/{number}"));
        span.kind = if number == 1 { Kind::Server } else { Kind::Client };
        let url = format!("http://a:secret1@10.0.0.7/users/{number}?token=abcdef{number}");
        let statement = format!("SELECT * FROM users WHERE id = {number}");
        span.attributes = if is_call {
            let header = "Bearer abcdefghijklmnop1234";
            attributes(&[
                ("http.method", "GET"),
                ("http.url", &url),
                ("http.request.header.authorization", header),
                ("Empty", ""),
            ])
        } else {
            attributes(&[("db.statement", &statement), ("user.password", "abcdefgh")])
        };
        span
    });
    let analysis = analyze(&made, &Rules::default());
    bounded(&analysis);
    let mut rules = analysis.plugins.iter().flat_map(|plugin| &plugin.rules);
    let mut told = |id: &str| {
        let rule = rules.find(|rule| rule.id == id).expect("in the order of the table");
        rule.findings.len() as u64 + rule.more_findings
    };
    assert_eq!(told("low-cardinality-names"), SPANS);
    assert_eq!(told("prefer-dns"), SPANS / 2);
    assert_eq!(told("no-api-key-leak"), SPANS / 2);
    assert_eq!(told("no-secrets"), SPANS / 2 * 3);
    assert_eq!(told("no-orphans"), SPANS / 2 - 1);
    // Each orphaned statement counts as a separate request.
    assert_eq!(told("repeated-statements"), 0);
    assert_eq!(told("repeated-calls"), 1);
}

/// One span with equally many attributes, and texts that force a second check of every character.
#[test]
fn attributes_and_texts_without_end() {
    let mut span = SpanData::new(id(1), None, "a/1-2_3".repeat(100_000));
    span.kind = Kind::Client;
    let keys = (0..SPANS).map(|number| (format!("a.b{number}.c"), Value::Int(4)));
    span.attributes = keys.collect();
    let texts = [
        "token=/",
        "\"token\":\"/",
        "eyJabcdefghij.eyJabcdefghij",
        "-----BEGIN ",
        "bearer   ",
        "4111 ",
        "://a:",
        "AKIA",
        "'1,'?",
    ];
    for (number, text) in texts.iter().enumerate() {
        let text = Value::Str(text.repeat(100_000));
        span.attributes.push((format!("x.y{number}"), text.clone()));
        span.attributes
            .push((["db.statement", "http.url", "user.password"][number % 3].to_owned(), text));
    }
    let deep = (0..200).fold(Value::Str("x".to_owned()), |inner, _| Value::Array(vec![inner]));
    span.attributes.push(("x.deep".to_owned(), deep));
    let made = made(1, |_| span.clone());
    bounded(&analyze(&made, &Rules::default()));
}

proptest! {
    #![proptest_config(Config { failure_persistence: None, ..Config::with_cases(200) })]

    #[test]
    fn no_trace_makes_it_stumble(
        spans in prop::collection::vec((any_text(), 0..8u64, 0..6i32, any_attributes()), 0..6)
    ) {
        let mut trace = Trace::new(trace_id());
        let resource = trace.resource(ResourceData::default()).expect("it fits");
        let scope = trace.scope(ScopeData::default()).expect("it fits");
        for (number, (name, parent, kind, attributes)) in (1..).zip(spans) {
            let mut span = SpanData::new(id(number), (parent > 0).then(|| id(parent)), name);
            (span.kind, span.attributes) = (Kind::from_number(kind), attributes);
            trace.push(resource, scope, span).expect("it fits");
        }
        bounded(&analyze(&trace, &Rules::default()));
    }
}

/// Generates texts of fragments that rules search for, with characters of every length between.
fn any_text() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "GET",
        "/",
        "?",
        "=",
        ":",
        "//",
        "@",
        "'",
        "\"",
        ".",
        "-",
        " ",
        "1",
        "4111111111111111",
        "eyJabcdefghijk",
        "Bearer ",
        "basic ",
        "AKIA",
        "-----BEGIN ",
        "PRIVATE KEY-----",
        "token",
        "password",
        "é",
        "€",
        "😀",
        "[::1]",
        "10.0.0.7",
        "{id}",
        "%",
        "\u{0}",
    ]);
    prop::collection::vec(piece, 0..10).prop_map(|pieces| pieces.concat())
}

fn any_attributes() -> impl Strategy<Value = Vec<(String, Value)>> {
    let known = prop::sample::select(vec![
        "http.method",
        "http.route",
        "http.url",
        "url.full",
        "url.scheme",
        "server.address",
        "db.system",
        "db.statement",
        "db.query.text",
        "db.operation",
        "rpc.method",
        "rpc.service",
        "messaging.system",
        "messaging.destination",
        "db.connection_string",
        "peer.service",
        "http.request.header.authorization",
        "user.password",
        "card.number",
    ]);
    let key = prop_oneof![known.prop_map(str::to_owned), any_text()];
    let value = prop_oneof![
        any_text().prop_map(Value::Str),
        any::<i64>().prop_map(Value::Int),
        Just(Value::Empty),
        prop::collection::vec(any_text().prop_map(Value::Str), 0..3).prop_map(Value::Array),
    ];
    prop::collection::vec((key, value), 0..8)
}

fn made(spans: u64, span: impl Fn(u64) -> SpanData) -> Trace {
    let mut trace = Trace::new(trace_id());
    let resource = trace.resource(ResourceData::default()).expect("it fits");
    let scope = trace.scope(ScopeData::default()).expect("it fits");
    for number in 1..=spans {
        trace.push(resource, scope, span(number)).expect("it fits");
    }
    trace
}

fn attributes(all: &[(&str, &str)]) -> Vec<(String, Value)> {
    all.iter().map(|(key, text)| ((*key).to_owned(), Value::Str((*text).to_owned()))).collect()
}

fn bounded(analysis: &Analysis) {
    let mut ids: Vec<Option<SpanId>> = Vec::new();
    for rule in analysis.plugins.iter().flat_map(|plugin| &plugin.rules) {
        assert!(rule.findings.len() <= 20, "{}", rule.id);
        assert!(rule.more_findings == 0 || rule.findings.len() == 20, "{}", rule.id);
        for finding in &rule.findings {
            let bytes = finding.name.len() + finding.message.len();
            assert!(bytes < 4_000, "{bytes}: {finding:?}");
            ids.push(finding.span_id);
        }
    }
    assert!(analysis.score <= 100 && ids.iter().all(Option::is_some));
}
