use model::{
    SpanId, Timestamp, Trace, TraceId,
    trace::{Kind, ResourceData, ScopeData, SpanData, Status, StatusCode, Value},
};
use proptest::{
    collection::vec,
    prelude::{Just, ProptestConfig, Strategy, any, prop_assert_eq, prop_oneof, proptest},
    sample::select,
};

use super::{Index, extent};
use crate::{
    eval::{bits::Bits, truth::truth, world::EvalContext},
    syntax::{number::Numbers, parse},
};

const KEYS: &[&str] = &["a", "name", "status", "duration", "service", "type", "resource.a"];

fn value() -> impl Strategy<Value = Value> {
    let text =
        select(vec!["", "x", "1", "1.0", "007", "5ms", "[1]", "{\"k\":1}", "true", "ok", "http"]);
    prop_oneof![
        Just(Value::Empty),
        any::<bool>().prop_map(Value::Bool),
        (-1i64..3).prop_map(Value::Int),
        Just(Value::Int(5_000_000)),
        select(vec![0.5, 1.0, f64::NAN, -0.0]).prop_map(Value::Double),
        text.prop_map(|text| Value::Str(text.to_owned())),
        Just(Value::Bytes(vec![1])),
        vec(Just(Value::Int(1)), 0..2).prop_map(Value::Array),
        vec(Just(("k".to_owned(), Value::Int(1))), 0..2).prop_map(Value::Map),
    ]
}

/// The kind and status, the span's own attributes, and those of its resource.
type SpanParts = ((i32, i32), Vec<(String, Value)>, Vec<(String, Value)>);

fn attributes() -> impl Strategy<Value = Vec<(String, Value)>> {
    vec((select(KEYS).prop_map(str::to_owned), value()), 0..4)
}

fn trace(spans: Vec<SpanParts>) -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    for (number, ((kind, code), attributes, resource)) in (1u64..).zip(spans) {
        let resource = ResourceData { attributes: resource, ..ResourceData::default() };
        let resource = trace.resource(resource).expect("room");
        let scope = trace.scope(ScopeData { name: "x".to_owned(), ..ScopeData::default() });
        let id = SpanId::from_bytes(number.to_be_bytes()).expect("numbers start at 1");
        let name = ["x", "documentLoad", "Tracetest trigger"][number as usize % 3];
        let mut span = SpanData::new(id, None, name);
        span.kind = Kind::from_number(kind);
        span.status = Status { code: StatusCode::from_number(code), message: "x".to_owned() };
        span.end = Timestamp::from_nanos(number * 2_500_000);
        span.attributes = attributes;
        trace.push(resource, scope.expect("room"), span).expect("room");
    }
    trace
}

fn statements() -> Vec<String> {
    let properties = [
        "a",
        "name",
        "kind",
        "status",
        "status_message",
        "duration",
        "service",
        "type",
        "resource.a",
        "scope.name",
        "start",
        "tracetest.span.status_code",
        "tracetest.span.type",
    ];
    let rests = [
        "exists",
        "not exists",
        "= \"x\"",
        "!= \"x\"",
        "= 1",
        "= \"1\"",
        "= 007",
        "= true",
        "= null",
        "= 5ms",
        "< 1",
        ">= 1.0",
        "> 4ms",
        "<= \"5ms\"",
        "contains \"o\"",
        "not-contains \"\"",
        "contains \"[1]\"",
        "contains 1",
        "starts-with \"x\"",
        "ends-with \"l\"",
        "=~ \"^[x1]\"",
        "in [1, \"x\", 5ms]",
        "not in [\"ok\"]",
        "between 0 and 1",
        "not between 1ms and 6ms",
        "= [1]",
    ];
    let pairs = properties.iter().flat_map(|p| rests.iter().map(move |r| format!("span[{p} {r}]")));
    pairs.collect()
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    /// The evaluation of all spans at once returns the same results as the evaluation of each span by itself.
    #[test]
    fn one_pass_says_what_each_span_says(
        spans in vec(((0i32..8, 0i32..5), attributes(), attributes()), 1..70)
    ) {
        let trace = trace(spans);
        let mut selectors: Vec<_> =
            statements().iter().filter_map(|source| parse::selector(source).tree).collect();
        let mut numbers = Numbers::default();
        selectors.iter_mut().for_each(|selector| numbers.selector(selector));
        assert!(selectors.len() > 250, "most of these are right");
        let mut world = EvalContext::new(&trace, None, None);
        world.prepare(&[], &selectors.iter().collect::<Vec<_>>());
        for selector in &selectors {
            let condition = selector.parts[0].hops[0].step.condition.as_ref().expect("one");
            let all = Bits::all(world.len());
            let answers = extent(condition, &all, &world.scene());
            for span in trace.spans() {
                let alone = truth(condition, &world.scene_of(span)).truth;
                let written = crate::syntax::print::expression(condition);
                prop_assert_eq!(answers.at(span.ix().number()), alone, "{} on {:?}", written, span.to_data());
            }
        }
        assert!(matches!(world.index, Index { ref extents, .. } if extents.len() > 200));
    }
}
