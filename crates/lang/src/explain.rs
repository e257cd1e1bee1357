//! Explains how a selector narrows a trace, step by step, and what decides each statement of a test.
//!
//! The result is plain data for a caller to render. Deliberately absent: verdicts, which `judge` computes.

use model::{SpanId, Trace};
use source::{Diagnostic, Text};

use crate::{
    eval::{
        decided::{DecidedBy, decides_assertion, decides_claim},
        select::select,
        world::{EvalContext, EvalScope},
    },
    plan::Plan,
    selection,
    syntax::{
        ast::{Anchor, Combinator, CompoundSelector, Hop, Part, Position, Selector},
        number::Numbers,
        print,
    },
};

/// The maximum number of spans that a [`SpanSample`] names.
const NAMED_MAX: usize = 5;

/// An explanation of what a selector selects in a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorExplanation {
    /// The selector in canonical form.
    pub selector: String,
    /// The number of spans in the trace.
    pub spans: usize,
    /// The parts of the union; empty if the selector selects every span.
    pub parts: Vec<Vec<SelectorStep>>,
    /// The selected spans, each one once.
    pub selected: SpanSample,
}

/// The spans that remain after one step of a selector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectorStep {
    /// The relation to the previous step, in words; empty for the first step.
    pub way: &'static str,
    /// The step in canonical form, without its position.
    pub step: String,
    /// The number of spans that match this step alone, at any position in the trace.
    pub matching: usize,
    /// The matching spans that are reached from the previous step.
    pub reached: SpanSample,
    /// The position, and the spans that it picks.
    pub picked: Option<(String, SpanSample)>,
}

/// A set of spans: the count, and the names of the first few.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpanSample {
    /// The number of spans.
    pub count: usize,
    /// The first spans.
    pub first: Vec<(SpanId, String)>,
}

/// An explanation of a test on a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// The name of the test.
    pub test: String,
    /// The specs, in order.
    pub specs: Vec<ExplainedSpec>,
    /// The claims, in order.
    pub claims: Vec<ExplainedStatement>,
}

/// An explanation of a spec.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedSpec {
    /// The name, if the spec has one.
    pub name: Option<String>,
    /// The explanation of its selector.
    pub narrowing: SelectorExplanation,
    /// The assertions, in order.
    pub assertions: Vec<ExplainedStatement>,
}

/// An assertion or a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExplainedStatement {
    /// The name, if the statement has one.
    pub name: Option<String>,
    /// The statement as written.
    pub statement: String,
    /// The kind of evidence that decides the statement.
    pub decided_by: DecidedBy,
}

/// Explains a selector, or returns the diagnostics of its parse errors.
pub fn explain_selector(
    text: &Text,
    trace: &Trace,
) -> (Option<SelectorExplanation>, Vec<Diagnostic>) {
    let (selector, diagnostics) = selection::read(text);
    (selector.map(|selector| narrowing(&selector, trace)), diagnostics)
}

/// Explains all specs and claims of a test. Variables are not filled in: a step of a selector with a variable matches no span.
pub fn explain_plan(plan: &Plan, trace: &Trace) -> Explanation {
    let specs = plan.specs.iter().map(|spec| {
        let selector = &spec.selector.meaning;
        let assertions = spec.assertions.iter().map(|assertion| ExplainedStatement {
            name: None,
            statement: assertion.source.clone(),
            decided_by: decides_assertion(&assertion.meaning, selector),
        });
        let (name, assertions) = (spec.name.clone(), assertions.collect());
        ExplainedSpec { name, narrowing: narrowing(selector, trace), assertions }
    });
    let claims = plan.claims.iter().map(|claim| ExplainedStatement {
        name: claim.name.clone(),
        statement: claim.claim.source.clone(),
        decided_by: decides_claim(&claim.claim.meaning),
    });
    Explanation { test: plan.name.clone(), specs: specs.collect(), claims: claims.collect() }
}

/// One step, with the selectors that are evaluated to explain it.
struct Stage<'a> {
    hop: &'a Hop,
    alone: Selector,
    reached: Selector,
    picked: Option<(Position, Selector)>,
}

fn narrowing(selector: &Selector, trace: &Trace) -> SelectorExplanation {
    let mut parts: Vec<Vec<Stage<'_>>> = selector.parts.iter().map(stages).collect();
    // A selector that is built from parts of a tree has the ids of these parts but another meaning: renumber it.
    let mut numbers = Numbers::default();
    for selector in parts.iter_mut().flatten().flat_map(Stage::selectors_mut) {
        numbers.selector(selector);
    }
    let mut whole = selector.clone();
    numbers.selector(&mut whole);
    let mut world = EvalContext::new(trace, None, None);
    let selectors: Vec<_> = parts.iter().flatten().flat_map(Stage::selectors).collect();
    world.prepare(&[], &selectors);
    let scene =
        EvalScope { world: &world, span: None, count: None, inner: None, is_selecting: false };
    let mut narrowings: Vec<Vec<_>> = Vec::with_capacity(parts.len());
    for part in &parts {
        narrowings.push(part.iter().map(|stage| narrowed(stage, &scene)).collect());
    }
    for first in narrowings.iter_mut().filter_map(|part| part.first_mut()) {
        first.way = "";
    }
    SelectorExplanation {
        selector: print::selector(selector),
        spans: trace.len(),
        parts: narrowings,
        selected: seen(&whole, &scene),
    }
}

fn narrowed<'a>(stage: &'a Stage<'_>, scene: &EvalScope<'_, 'a>) -> SelectorStep {
    let Stage { hop, alone, reached, picked } = stage;
    SelectorStep {
        way: way(hop.combinator),
        step: print::selector(alone),
        matching: select(alone, scene).len(),
        reached: seen(reached, scene),
        picked: picked.as_ref().map(|(position, picked)| (shown(*position), seen(picked, scene))),
    }
}

impl Stage<'_> {
    fn selectors(&self) -> impl Iterator<Item = &Selector> {
        let picked = self.picked.as_ref().map(|(_, picked)| picked);
        [&self.alone, &self.reached].into_iter().chain(picked)
    }

    fn selectors_mut(&mut self) -> impl Iterator<Item = &mut Selector> {
        let picked = self.picked.as_mut().map(|(_, picked)| picked);
        [&mut self.alone, &mut self.reached].into_iter().chain(picked)
    }
}

fn stages(part: &Part) -> Vec<Stage<'_>> {
    let whole = |hops: Vec<Hop>| Selector {
        parts: vec![Part { anchor: Anchor::Trace, hops }],
        ..Selector::default()
    };
    let stage = |at: usize| {
        let hop = &part.hops[at];
        let bare =
            Hop { step: CompoundSelector { position: None, ..hop.step.clone() }, ..hop.clone() };
        let before = part.hops[..at].to_vec();
        let alone = whole(vec![Hop { combinator: Combinator::Descendant, ..bare.clone() }]);
        let reached = whole([before.clone(), vec![bare]].concat());
        let picked = hop
            .step
            .position
            .map(|position| (position, whole([before.clone(), vec![hop.clone()]].concat())));
        Stage { hop, alone, reached, picked }
    };
    (0..part.hops.len()).map(stage).collect()
}

fn seen<'a>(selector: &'a Selector, scene: &EvalScope<'_, 'a>) -> SpanSample {
    let places = select(selector, scene);
    let named = |place: &u32| {
        let span = scene.world.span_at(*place as usize);
        (span.id(), span.name().to_owned())
    };
    SpanSample { count: places.len(), first: places.iter().take(NAMED_MAX).map(named).collect() }
}

fn way(combinator: Combinator) -> &'static str {
    match combinator {
        Combinator::Descendant => "below",
        Combinator::Child => "directly below",
        Combinator::Adjacent => "the next sibling of",
        Combinator::Sibling => "a later sibling of",
        Combinator::Parent => "the parent of",
        Combinator::Ancestor => "above",
        Combinator::Linked => "linked to",
    }
}

fn shown(position: Position) -> String {
    match position {
        Position::First => ":first".to_owned(),
        Position::Last => ":last".to_owned(),
        Position::Nth(count) => format!(":nth_child({count})"),
    }
}
