//! Reports which spans each part of a test covers, to find the part that should have detected a change.

use std::collections::BTreeSet;

use model::{
    Place, Trace,
    trace::{Span, SpanIx},
};

use crate::{
    eval::{
        lasting::parts,
        select::{is_anchored, select},
        world::{EvalContext, EvalScope, TRIGGER_NAMES},
    },
    plan::ResolvedPlan,
    syntax::ast::{Expr, ExprKind, Selector},
};

/// A spec or a claim, and the spans that it covers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Coverage {
    /// The name; without a name, the selector or the claim as written.
    pub what: String,
    /// The location of the selector or of the claim.
    pub place: Place,
    /// The spans that its selectors select, as indexes into the trace.
    pub spans: Vec<SpanIx>,
}

/// Returns the coverage of each spec and claim of a test, in document order.
pub fn coverage(resolved: &ResolvedPlan, trace: &Trace) -> Vec<Coverage> {
    let mut all: Vec<(String, &Place, Vec<&Selector>)> = Vec::new();
    for spec in &resolved.specs {
        let written = &spec.selector;
        let what = spec.name.clone().unwrap_or_else(|| written.source.clone());
        let mut selectors = vec![&written.meaning];
        spec.assertions.iter().for_each(|it| selectors_of(&it.meaning, &mut selectors));
        all.push((what, &written.place, selectors));
    }
    for claim in &resolved.claims {
        let written = &claim.claim;
        let what = claim.name.clone().unwrap_or_else(|| written.source.clone());
        let mut selectors = Vec::new();
        selectors_of(&written.meaning, &mut selectors);
        all.push((what, &written.place, selectors));
    }
    let mut world = EvalContext::new(trace, None, None);
    let selectors: Vec<_> = all.iter().flat_map(|(_, _, selectors)| selectors).copied().collect();
    world.prepare(&[], &selectors);
    let scene = world.scene();
    let mut looked = Vec::with_capacity(all.len());
    for (what, place, selectors) in &all {
        let spans = selectors.iter().copied().flat_map(|selector| selected(selector, &scene));
        let spans: BTreeSet<_> = spans.collect();
        let spans = spans.into_iter().collect();
        looked.push(Coverage { what: what.clone(), place: (*place).clone(), spans });
    }
    looked
}

/// Returns the trigger span of a recorded trace.
pub fn trigger(trace: &Trace) -> Option<SpanIx> {
    let is_trigger =
        |span: &Span<'_>| TRIGGER_NAMES.contains(&span.name()) && span.parent().is_none();
    trace.spans().find(is_trigger).map(Span::ix)
}

/// Returns the selected spans. A selector that starts at another span selects nothing by itself.
fn selected<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> Vec<SpanIx> {
    if !is_anchored(selector) {
        return Vec::new();
    }
    let places = select(selector, scene);
    places.iter().map(|place| scene.world.tree.order()[*place as usize]).collect()
}

/// Collects the selectors of a statement. Selectors inside the conditions of a selector belong to that selector.
fn selectors_of<'a>(expression: &'a Expr, found: &mut Vec<&'a Selector>) {
    match &expression.kind {
        ExprKind::Aggregate(aggregate) => found.push(&aggregate.of),
        ExprKind::Gap { from, to } => found.extend([&**from, &**to]),
        ExprKind::Quantified { subject, predicate } => {
            found.push(&subject.selector);
            predicate.iter().for_each(|predicate| selectors_of(predicate, found));
        }
        ExprKind::Relation { left, right, .. } => {
            found.extend([&left.selector, &right.selector]);
        }
        _ => parts(expression).into_iter().for_each(|part| selectors_of(part, found)),
    }
}

#[cfg(test)]
mod tests {
    use model::Timestamp;
    use source::Text;

    use super::{coverage, trigger};
    use crate::{Seed, Vars, plans, resolve};

    const TEST: &str = r#"
type: Test
spec:
  name: a test
  trigger: {type: http, httpRequest: {url: http://localhost}}
  specs:
    - name: named
      selector: span[name="charge"]
      assertions: [duration < 1s]
  trace:
    - span[name="reserve"] before span[name="charge"]
    - response.status = 201
    - count(span[service="mailer"]) = 2 and no span[name="nobody"]
"#;

    #[test]
    fn each_part_names_the_spans_that_it_looks_at() {
        let file =
            concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/language/example/checkout.json");
        let bytes = std::fs::read(file).expect("the example is there");
        let trace = otlp::read(&bytes).expect("a trace").remove(0);
        let (mut planned, diagnostics) = plans(&Text::new("test.yaml", TEST));
        let plan = planned.pop().ok_or(diagnostics).expect("it compiles").plan;
        let seed = Seed { now: Timestamp::default(), random: [0; 32] };
        let resolved = resolve(&plan, &Vars::default(), &seed).expect("no variables");
        let names: Vec<(String, Vec<&str>)> = coverage(&resolved, &trace)
            .into_iter()
            .map(|it| (it.what, it.spans.iter().map(|span| trace.span(*span).name()).collect()))
            .collect();
        let expected = [
            ("named", vec!["charge"]),
            ("span[name=\"reserve\"] before span[name=\"charge\"]", vec!["reserve", "charge"]),
            ("response.status = 201", vec![]),
            (
                "count(span[service=\"mailer\"]) = 2 and no span[name=\"nobody\"]",
                vec!["orders process", "send mail"],
            ),
        ];
        assert_eq!(names, expected.map(|(what, spans)| (what.to_owned(), spans)));
        assert_eq!(trigger(&trace), None, "nothing was fired");
    }
}
