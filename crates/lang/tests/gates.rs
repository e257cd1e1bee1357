//! Tests of gates on spans that report dropped attributes: a dropped attribute could break a rule, or satisfy it.

use lang::{Document, Evidence, Gates, Seed, Vars, compile, judge, read, resolve};
use model::{
    Settlement, SpanId, Timestamp, Trace, TraceId, Verdict,
    trace::{ResourceData, ScopeData, SpanData, Value},
};
use source::Text;

const DOCUMENTS: &str = "
type: Test
spec: {name: a, trigger: {type: http, httpRequest: {url: http://x}}, trace: ['some span[name=\"GET\"]']}
---
type: QualityGate
spec: {requiredGates: [test-specs, analyzer-rules]}
";

/// Returns the verdict for a trace of one client span to `host` that reports `dropped` dropped attributes.
fn verdict(host: &str, dropped: u32) -> Verdict {
    let (documents, _) = read(&Text::new("a.yaml", DOCUMENTS));
    let [Document::Test(test), Document::QualityGate(runner)] = documents.as_slice() else {
        return Verdict::Inconclusive;
    };
    let mut plan = compile(test).0.expect("the test is right");
    plan.require(Gates::new(None, Some(runner)));
    let seed = Seed { now: Timestamp::from_nanos(0), random: [7; 32] };
    let resolved = resolve(&plan, &Vars::default(), &seed).expect("nothing is open");
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let mut span = SpanData::new(SpanId::from_bytes([1; 8]).expect("not zero"), None, "GET");
    span.attributes = vec![("server.address".to_owned(), Value::Str(host.to_owned()))];
    span.kind = model::trace::Kind::Client;
    span.dropped_attributes = dropped;
    trace.push(resource, scope, span).expect("room");
    let settlement = Settlement { spans: 1, ..Settlement::default() };
    let evidence = Evidence {
        trace: Some(&trace),
        trigger: None,
        answer: None,
        settlement: Some(&settlement),
    };
    judge(&resolved, &evidence).verdict
}

#[test]
fn what_was_dropped_leaves_a_gate_open() {
    let cases = [
        ("stock", 0, Verdict::Passed),
        ("stock", 3, Verdict::Inconclusive),
        ("10.0.0.7", 0, Verdict::Failed),
        ("10.0.0.7", 3, Verdict::Inconclusive),
    ];
    for (host, dropped, expected) in cases {
        assert_eq!(verdict(host, dropped), expected, "{host}, {dropped} dropped");
    }
}
