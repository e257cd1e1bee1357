//! Checks that no input causes a panic: inputs that are noise, random sequences of valid words, or valid inputs with changes.
//!
//! Each kind of input passes through every function that accepts it, and an accepted input goes further: a selector selects, a
//! test is formatted, resolved and judged, a trace is analyzed or encoded again. Deliberately absent: the expected results.

mod text;
mod words;

use lang::{Document, Evidence, Plan, ResolvedPlan, Rules, Seed, Vars};
use model::{
    Answer, Body, Response, Settlement, SpanId, Timestamp, Trace, TraceId, UnsettledReason,
};
use source::{Colour, Text, draw};

use super::chance::{
    Dice,
    sample::{Sample, TRACE},
};
use text::{bytes, line, lines};
use words::{ASSERTIONS, CLAIMS, DOCUMENT, JSON, SELECTORS, URLS, VALUES};

/// The kind of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Selector,
    Assertion,
    Claim,
    Value,
    Template,
    Document,
    Json,
    Protobuf,
    Judgement,
}

pub(crate) const KINDS: [Kind; 9] = [
    Kind::Selector,
    Kind::Assertion,
    Kind::Claim,
    Kind::Value,
    Kind::Template,
    Kind::Document,
    Kind::Json,
    Kind::Protobuf,
    Kind::Judgement,
];

/// The result for an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    Accepted,
    Refused,
}

/// Generates an input of a kind and passes it to every function that accepts it.
pub(crate) fn run(kind: Kind, dice: &mut Dice) -> Fate {
    match kind {
        Kind::Selector => {
            let trace = Sample::throw(dice).trace();
            fate(lang::select(&line(SELECTORS, dice), &trace).is_ok())
        }
        Kind::Assertion => test(&spec("span[]", &line(ASSERTIONS, dice)), dice),
        Kind::Claim => test(&format!("  trace: [{}]\n", quoted(&line(CLAIMS, dice))), dice),
        Kind::Value => {
            let value = quoted(&line(VALUES, dice));
            test(&format!("  outputs: [{{name: X, selector: 'span[]', value: {value}}}]\n"), dice)
        }
        Kind::Template => fate(judged(&head(&line(URLS, dice)), dice) == Fate::Accepted),
        Kind::Document => judged(&lines(DOCUMENT, dice), dice),
        Kind::Json => fate(otlp::read(&bytes(JSON.as_bytes(), dice)).is_ok()),
        Kind::Protobuf => {
            let sent = otlp::encode(&Sample::throw(dice).trace());
            let mut trace = Trace::new(TraceId::from_bytes(TRACE).expect("not zero"));
            let appended = otlp::append(&mut trace, &bytes(&sent, dice)).is_ok();
            otlp::encode(&trace);
            fate(appended)
        }
        Kind::Judgement => {
            let selector = SELECTORS[dice.below(SELECTORS.len())];
            let assertion = ASSERTIONS[dice.below(ASSERTIONS.len())];
            let claim = CLAIMS[dice.below(CLAIMS.len())];
            let claim = format!("  trace: [{}]\n", quoted(claim));
            test(&format!("{}{claim}", spec(selector, assertion)), dice)
        }
    }
}

fn spec(selector: &str, assertion: &str) -> String {
    let (selector, assertion) = (quoted(selector), quoted(assertion));
    format!("  specs: [{{selector: {selector}, assertions: [{assertion}]}}]\n")
}

fn head(url: &str) -> String {
    let url = quoted(url);
    format!(
        "type: Test\nspec:\n  name: x\n  trigger: {{type: http, httpRequest: {{url: {url}}}}}\n"
    )
}

fn test(body: &str, dice: &mut Dice) -> Fate {
    judged(&format!("{}{body}", head("http://x")), dice)
}

/// Parses, compiles, renders and formats a document. A plan is resolved and judged twice, with the same result.
fn judged(yaml: &str, dice: &mut Dice) -> Fate {
    let text = Text::new("t.yaml", yaml.to_owned());
    let (documents, mut found) = lang::read(&text);
    let mut fate = Fate::Refused;
    for document in &documents {
        let Document::Test(test) = document else { continue };
        let (plan, more) = lang::compile(test);
        found.extend(more);
        if let Some(plan) = plan {
            fate = Fate::Accepted;
            judge(&plan, dice);
        }
    }
    draw(&found, Colour::Never);
    if let Ok(formatted) = lang::format(&text) {
        let again = lang::format(&Text::new("t.yaml", formatted.text.clone()));
        let again = again.map(|again| again.text);
        assert_eq!(again.ok(), Some(formatted.text), "what is formatted stays as it is");
    }
    fate
}

fn judge(plan: &Plan, dice: &mut Dice) {
    let vars = Vars::default();
    let seed = Seed { now: Timestamp::from_nanos(dice.next()), random: [dice.next() as u8; 32] };
    lang::request(plan, &vars, &seed, &lang::Files::default()).ok();
    let Ok(resolved) = lang::resolve(plan, &vars, &seed) else { return };
    let trace = Sample::throw(dice).trace();
    let answer = answer(dice);
    let unsettled = if dice.once_in(2) { Vec::new() } else { vec![UnsettledReason::Partial] };
    let settlement = Settlement { unsettled, ..Settlement::default() };
    let trigger = SpanId::from_bytes((1 + dice.below(9) as u64).to_be_bytes());
    let evidence = Evidence {
        trace: (!dice.once_in(8)).then_some(&trace),
        trigger: trigger.filter(|_| dice.once_in(2)),
        answer: dice.once_in(2).then_some(&answer),
        settlement: (!dice.once_in(4)).then_some(&settlement),
    };
    same_twice(&resolved, &evidence);
    lang::analyze(&trace, &Rules::default());
}

fn same_twice(resolved: &ResolvedPlan, evidence: &Evidence<'_>) {
    let judgement = lang::judge(resolved, evidence);
    assert_eq!(judgement, lang::judge(resolved, evidence), "the same evidence, the same judgement");
}

fn answer(dice: &mut Dice) -> Answer {
    let bodies = ["", "{\"id\": 7, \"items\": [1, 2]}", "[", "plain", "1e999"];
    Answer::Response(Response {
        status: [200, 201, 404, 0, u16::MAX][dice.below(5)],
        headers: vec![("Content-Type".to_owned(), "application/json".to_owned())],
        body: Body::Text((*dice.pick(&bodies)).into()),
        duration_ns: dice.next(),
    })
}

fn fate(is_accepted: bool) -> Fate {
    if is_accepted { Fate::Accepted } else { Fate::Refused }
}

/// Returns a YAML scalar for any text.
fn quoted(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}
