//! Judges specs: assertions about each span that a selector matches.

use std::rc::Rc;

use model::{AssertionJudgement, DecisionBasis, SpanEvidence, SpecJudgement, Verdict};

use super::{
    SPANS_LISTED_MAX,
    copies::conflict,
    decide::{About, TraceKnowledge, by_response, decide},
    evidence::{self, begin},
    needs::StoreLacks,
    together,
    values::near_misses,
    within_budget,
    words::{StatementText, describe},
};
use crate::{
    eval::{
        doubt::{Selection, SelectionDoubt, selection},
        future::{Evaluation, Future, Truth},
        index::{Tally, tally},
        lasting::{
            is_lasting, speaks_of_count, speaks_of_response, speaks_of_span, speaks_of_trace,
        },
        misses::{NearSpans, nearest_misses},
        truth::{QuantifiedEvaluation, quantify, truth},
        world::{EvalContext, EvalScope, TRIGGER_NAMES},
    },
    plan::{SourceNode, Spec},
    syntax::ast::{
        Comparator, CompoundSelector, Expr, ExprKind, Intrinsic, Property, Quantifier, Selector,
    },
    value::shorten,
};

/// The maximum number of counts for which an assertion is evaluated, if the number of selected spans is uncertain.
const COUNTS_MAX: u64 = 64;

/// The result of a spec's selector.
pub(super) struct SpecSelection<'a> {
    pub(super) selector: &'a Selector,
    /// The spans that certainly match.
    pub(super) places: Rc<Vec<u32>>,
    /// The nearest misses, if no span matches.
    misses: Option<NearSpans<'a>>,
    /// Why it is uncertain which other spans match.
    doubt: Option<Rc<SelectionDoubt>>,
}

/// The result of an assertion, with spans as evidence.
struct AssertionResult {
    found: Evaluation,
    spans: Vec<SpanEvidence>,
    more_spans: u64,
}

pub(super) fn judge<'a>(
    spec: &'a Spec,
    world: &EvalContext<'a>,
    seen: &TraceKnowledge,
) -> SpecJudgement {
    let selector = &spec.selector.meaning;
    let (matched, over) = within_budget(world, || {
        let Selection { sure: places, doubt } = selection(selector, &world.scene());
        let is_missed = places.is_empty() && doubt.is_none() && seen.is_known();
        let misses = is_missed.then(|| nearest_misses(selector, &world.scene())).flatten();
        SpecSelection { selector, places, misses, doubt }
    });
    let assertions: Vec<_> = spec
        .assertions
        .iter()
        .map(|assertion| {
            let judge = || judge_assertion(assertion, &matched, world, seen);
            let (judged, over_alone) = within_budget(world, judge);
            match over.or(over_alone) {
                Some(over) => inconclusive(judged, over.reason()),
                None => with_evidence(judged, assertion, &matched, world),
            }
        })
        .collect();
    SpecJudgement {
        name: spec.name.clone(),
        selector: spec.selector.source.clone(),
        place: spec.selector.place.clone(),
        verdict: Verdict::over(assertions.iter().map(|assertion| assertion.verdict)),
        matched: matched.places.len() as u64,
        assertions,
    }
}

/// Returns an assertion that did not pass with its evidence.
fn with_evidence<'a>(
    judged: AssertionJudgement,
    assertion: &'a SourceNode<Expr>,
    matched: &SpecSelection<'a>,
    world: &EvalContext<'a>,
) -> AssertionJudgement {
    let collect = || {
        let about = about(&assertion.meaning, matched, world);
        let is_of_spans = is_of_spans(&assertion.meaning, matched, about);
        evidence::of_assertion(assertion, matched, is_of_spans, world)
    };
    let evidence = evidence::complete(judged.evidence, world, collect);
    AssertionJudgement { evidence, ..judged }
}

/// Returns the judgement of a spec whose trace comes from stores that do not keep all of spans.
pub(super) fn without(judged: SpecJudgement, spec: &Spec, lacks: &StoreLacks<'_>) -> SpecJudgement {
    let assertions = judged.assertions.into_iter().zip(&spec.assertions);
    let assertions: Vec<_> = assertions
        .map(|(judged, written)| {
            let is_of_response = speaks_of_response(&written.meaning)
                && !speaks_of_others(&written.meaning)
                && is_trigger(&spec.selector.meaning);
            let selectors = [&spec.selector.meaning].into_iter().filter(|_| !is_of_response);
            match lacks.reason(selectors, &written.meaning) {
                Some(reason) => inconclusive(judged, reason),
                None => judged,
            }
        })
        .collect();
    let verdict = Verdict::over(assertions.iter().map(|assertion| assertion.verdict));
    SpecJudgement { assertions, verdict, ..judged }
}

/// Returns an assertion that is inconclusive for a reason, without evidence.
fn inconclusive(judged: AssertionJudgement, reason: String) -> AssertionJudgement {
    AssertionJudgement {
        verdict: Verdict::Inconclusive,
        decided: DecisionBasis::Absence,
        reason: Some(reason),
        spans: Vec::new(),
        more_spans: 0,
        evidence: None,
        ..judged
    }
}

fn judge_assertion<'a>(
    assertion: &'a SourceNode<Expr>,
    matched: &SpecSelection<'a>,
    world: &EvalContext<'a>,
    seen: &TraceKnowledge,
) -> AssertionJudgement {
    let meaning = &assertion.meaning;
    let about = about(meaning, matched, world);
    let is_of_spans = is_of_spans(meaning, matched, about);
    let looked = if is_of_spans {
        look_at_spans(assertion, matched, world)
    } else {
        look_once(assertion, matched, world)
    };
    let is_asked = matches!(seen, TraceKnowledge::NotAsked) && !matched.places.is_empty();
    let decision = match about {
        // The trigger span, the only span of a test without a trace.
        _ if is_asked => by_response(&looked.found, world),
        _ => decide(&looked.found, about, seen, world),
    };
    let is_missed = looked.found.truth.verdict() == Verdict::Failed || is_of_spans;
    let misses = matched.misses.as_ref().filter(|_| is_missed && about != About::Response);
    let nearest = misses.map(|near| near_misses(matched.selector, near, world));
    // Without a trace, the trigger span is the only one, and the response decides.
    let subject = if is_asked { About::Response } else { about };
    let evidence = begin(decision.verdict, (subject, seen), nearest.unwrap_or_default());
    let misses = misses.map(|near| near.words.clone());
    let conflict = conflict(&looked.spans, world.trace);
    AssertionJudgement {
        assertion: assertion.source.clone(),
        place: assertion.place.clone(),
        verdict: decision.verdict,
        decided: decision.decided,
        reason: together(decision.reason.into_iter().chain(misses).chain(conflict)),
        // A value that was never measured is no evidence.
        spans: if matches!(seen, TraceKnowledge::Nothing) { Vec::new() } else { looked.spans },
        more_spans: looked.more_spans,
        evidence,
    }
}

/// Whether an assertion is evaluated on each selected span. It holds for every selected span, so it needs at least one, even
/// if it does not refer to the span.
fn is_of_spans(assertion: &Expr, matched: &SpecSelection<'_>, about: About) -> bool {
    let needs_span = about != About::Response && !speaks_of_count(assertion);
    speaks_of_span(assertion) || (needs_span && matched.places.is_empty())
}

/// The response alone decides an assertion that refers to it directly, or on a trigger span that is selected by name.
fn about(assertion: &Expr, matched: &SpecSelection<'_>, world: &EvalContext<'_>) -> About {
    if !speaks_of_response(assertion) {
        return About::Spans;
    }
    let is_more =
        speaks_of_count(assertion) || speaks_of_trace(assertion) || speaks_of_others(assertion);
    let is_trigger = || {
        let only =
            matches!(matched.places.as_slice(), [one] if world.trigger() == Some(*one as usize));
        only && is_trigger(matched.selector)
    };
    match is_more {
        true => About::Both,
        false if !speaks_of_span(assertion) || is_trigger() => About::Response,
        false => About::Both,
    }
}

/// Whether an expression queries properties other than those of the response.
fn speaks_of_others(expression: &Expr) -> bool {
    match &expression.kind {
        ExprKind::Property(property) => !matches!(property, Property::Response(_)),
        ExprKind::Within { .. } => true,
        _ => crate::eval::lasting::parts(expression).into_iter().any(speaks_of_others),
    }
}

/// Whether a selector selects the trigger span by its name, and nothing else.
fn is_trigger(selector: &Selector) -> bool {
    let names =
        |step: &CompoundSelector| match step.condition.as_ref().map(|condition| &condition.kind) {
            Some(ExprKind::And(parts)) => parts.iter().any(is_trigger_name),
            _ => step.condition.as_ref().is_some_and(is_trigger_name),
        };
    !selector.parts.is_empty()
        && selector.parts.iter().all(|part| match part.hops.as_slice() {
            [hop] => names(&hop.step),
            _ => false,
        })
}

/// Whether a condition is `name = "Tracetest trigger"`, in any of its spellings.
fn is_trigger_name(condition: &Expr) -> bool {
    let ExprKind::Compare { left, comparator: Comparator::Equal, is_negated: false, right } =
        &condition.kind
    else {
        return false;
    };
    matches!(left.kind, ExprKind::Property(Property::Intrinsic(Intrinsic::Name, _)))
        && matches!(&right.kind, ExprKind::Text(text) if TRIGGER_NAMES.contains(&text.as_str()))
}

/// Evaluates an assertion that refers to no span once, for any number of selected spans.
fn look_once<'a>(
    assertion: &'a SourceNode<Expr>,
    matched: &SpecSelection<'a>,
    world: &EvalContext<'a>,
) -> AssertionResult {
    let SourceNode { meaning: assertion, source, .. } = assertion;
    let scene = EvalScope { count: Some(matched.places.len() as u64), ..world.scene() };
    let found = truth(assertion, &scene);
    let mut found = for_every_count(found, assertion, matched, |count| {
        truth(assertion, &EvalScope { count: Some(count), ..scene }).truth
    });
    if !is_lasting(matched.selector) && about(assertion, matched, world) != About::Response {
        found.future = Future::ANY;
    }
    let evidence = SpanEvidence {
        span_id: None,
        name: String::new(),
        verdict: found.truth.verdict(),
        found: describe(assertion, StatementText { source, is_negated: false }, &scene),
    };
    // The evidence already contains the reason.
    found.reason = found.reason.filter(|_| found.truth == Truth::Open);
    AssertionResult { found, spans: vec![evidence], more_spans: 0 }
}

/// Returns `found`, if the result is the same for every possible number of selected spans.
fn for_every_count(
    found: Evaluation,
    assertion: &Expr,
    matched: &SpecSelection<'_>,
    truth: impl Fn(u64) -> Truth,
) -> Evaluation {
    let Some(doubt) = matched.doubt.as_ref().filter(|_| speaks_of_count(assertion)) else {
        return found;
    };
    let (least, most) = (matched.places.len() as u64, doubt.possible as u64);
    let is_same =
        most - least <= COUNTS_MAX && (least + 1..=most).all(|count| truth(count) == found.truth);
    if is_same { found } else { Evaluation::open(&*doubt.reason, Future::ANY) }
}

/// Evaluates an assertion that every selected span must satisfy.
fn look_at_spans<'a>(
    assertion: &'a SourceNode<Expr>,
    matched: &SpecSelection<'a>,
    world: &EvalContext<'a>,
) -> AssertionResult {
    let SourceNode { meaning: assertion, source, .. } = assertion;
    let scene = EvalScope { count: Some(matched.places.len() as u64), ..world.scene() };
    if matched.places.is_empty() {
        let found = match &matched.doubt {
            Some(doubt) => Evaluation::open(&*doubt.reason, Future::ANY),
            None => Evaluation::undefined("no span matches the selector", Future::ANY),
        };
        return AssertionResult { found, spans: Vec::new(), more_spans: 0 };
    }
    let tally = tally(assertion, &matched.places, &scene);
    let mut found = quantify(Quantifier::Every, &tally.found, is_lasting(matched.selector));
    if let Some(doubt) = &matched.doubt {
        let frozen =
            quantify(Quantifier::Every, &QuantifiedEvaluation::frozen(&tally.truths), true);
        found = found.doubted(frozen.future, &doubt.reason);
    }
    found = for_every_count(found, assertion, matched, |count| {
        let scene = EvalScope { count: Some(count), ..scene };
        self::tally(assertion, &matched.places, &scene).found.every.truth
    });
    found.reason = found.reason.filter(|_| found.truth == Truth::Open);
    let order = [Truth::False, Truth::Undefined, Truth::Unmet, Truth::Open, Truth::True];
    let listing = Listing { statement: assertion, source, order: &order, is_negated: false };
    let (spans, more_spans) = list(&listing, &matched.places, &tally, &scene);
    AssertionResult { found, spans, more_spans }
}

/// The parameters of a list of evidence.
pub(super) struct Listing<'s, 'a> {
    pub(super) statement: &'a Expr,
    pub(super) source: &'s str,
    /// The truth values, those listed first at the front.
    pub(super) order: &'s [Truth],
    /// Whether a span passes if the statement does not hold.
    pub(super) is_negated: bool,
}

/// Returns the evidence of spans by result, failures and open results first, and the number of spans that are left out.
pub(super) fn list<'a>(
    listing: &Listing<'_, 'a>,
    places: &[u32],
    tally: &Tally,
    scene: &EvalScope<'_, 'a>,
) -> (Vec<SpanEvidence>, u64) {
    let Listing { statement, source, order, is_negated } = *listing;
    // False and undefined both fail, and stay in document order.
    let rank = |truth: &Truth| {
        let verdict = |truth: &Truth| truth.verdict();
        order.iter().position(|one| verdict(one) == verdict(truth))
    };
    let mut listed: Vec<Vec<(u32, Truth)>> = vec![Vec::new(); order.len()];
    for (place, truth) in places.iter().zip(&tally.truths) {
        if let Some(rank) = rank(truth)
            && listed[rank].len() < SPANS_LISTED_MAX
        {
            listed[rank].push((*place, *truth));
        }
    }
    let listed = listed.into_iter().flatten().take(SPANS_LISTED_MAX);
    let spans: Vec<_> = listed
        .map(|(place, truth)| {
            let span = scene.world.span_at(place as usize);
            let scene = EvalScope { span: Some(span), ..*scene };
            let truth = if is_negated { truth.negated() } else { truth };
            SpanEvidence {
                span_id: Some(span.id()),
                name: shorten(span.name()).into_owned(),
                verdict: truth.verdict(),
                found: describe(statement, StatementText { source, is_negated }, &scene),
            }
        })
        .collect();
    let more = places.len() as u64 - spans.len() as u64;
    (spans, more)
}
