//! Checks that a statement over the budget is inconclusive, without effect on others, and the same each time and in any order.

use lang::{Evidence, Seed, Vars, Work, judge_measured, plans, resolve};
use model::{
    ClaimJudgement, Settlement, SpanId, Timestamp, Trace, TraceId, Verdict,
    trace::{ResourceData, ScopeData, SpanData, Value},
};
use source::Text;

/// Claims that are decided, next to claims with too many positions for a long text, and one on a body that is too large.
const CLAIMS: [(&str, Verdict, &str); 6] = [
    ("count(span[body exists]) = 1", Verdict::Passed, ""),
    (
        r#"no span[body=~"([a-z0-9]{1,100}[ab]){1,30}X"]"#,
        Verdict::Inconclusive,
        "it takes more than 2 billion steps on this trace",
    ),
    (
        r#"every span[body exists] has attr:body | regex "(?:[ab]{0,50}){0,40}c" exists"#,
        Verdict::Inconclusive,
        "it takes more than 2 billion steps on this trace",
    ),
    (
        r#"some span[attr:json | json_path "$[0]" = 1]"#,
        Verdict::Inconclusive,
        "it takes more than 1024 MiB of memory on this trace",
    ),
    (r#"no span[body=~"^ab+c$"]"#, Verdict::Passed, ""),
    (r#"some span[name="missing"]"#, Verdict::Failed, ""),
];

#[test]
fn what_is_over_is_inconclusive_and_the_others_are_decided() {
    let trace = trace();
    let (claims, work) = judged(&CLAIMS.map(|(claim, ..)| claim), &trace);
    for ((claim, verdict, reason), judged) in CLAIMS.iter().zip(&claims) {
        assert_eq!(judged.verdict, *verdict, "{claim}: {:?}", judged.reason);
        let told = judged.reason.as_deref().unwrap_or_default();
        assert!(told.starts_with(reason), "{claim}: {told}");
        assert!(*verdict != Verdict::Inconclusive || judged.spans.is_empty(), "{claim}");
    }
    assert!(work.statement_steps > Work::MAX.statement_steps, "{work:?}");
    // Judging a second time costs the same and gives the same result.
    assert_eq!(judged(&CLAIMS.map(|(claim, ..)| claim), &trace), (claims.clone(), work));
    let mut turned = CLAIMS.map(|(claim, ..)| claim);
    turned.reverse();
    let (mut others, _) = judged(&turned, &trace);
    others.reverse();
    let verdicts = |of: &[ClaimJudgement]| -> Vec<_> {
        of.iter().map(|claim| (claim.verdict, claim.reason.clone())).collect()
    };
    assert_eq!(verdicts(&others), verdicts(&claims));
}

fn judged(claims: &[&str], trace: &Trace) -> (Vec<ClaimJudgement>, Work) {
    let claims: String = claims.iter().map(|claim| format!("  - '{claim}'\n")).collect();
    let head =
        "type: Test\nspec:\n  name: x\n  trigger: {type: http, httpRequest: {url: http://x}}\n";
    let (planned, found) = plans(&Text::new("t.yaml", format!("{head}  trace:\n{claims}")));
    assert!(found.is_empty(), "{found:?}");
    let seed = Seed { now: Timestamp::default(), random: [7; 32] };
    let resolved = resolve(&planned[0].plan, &Vars::default(), &seed).expect("nothing is open");
    let settlement = Settlement { spans: trace.len() as u64, ..Settlement::default() };
    let evidence =
        Evidence { trace: Some(trace), trigger: None, answer: None, settlement: Some(&settlement) };
    let (judgement, work) = judge_measured(&resolved, &evidence);
    (judgement.claims, work)
}

fn trace() -> Trace {
    let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let mut span = SpanData::new(SpanId::from_bytes([1; 8]).expect("not zero"), None, "checkout");
    span.attributes = vec![
        ("body".to_owned(), Value::Str("ab".repeat(50_000))),
        ("json".to_owned(), Value::Str(format!("[1{}]", ",1".repeat(18 << 20)))),
    ];
    trace.push(resource, scope, span).expect("room");
    trace
}
