//! Judges traces in which several spans have the same id with different content.
//!
//! Such spans are copies of one span, for example one copy that arrived directly and one that arrived through a
//! Collector that added attributes. The judge does not guess which copy is correct, and never counts copies as several
//! spans. It evaluates every reading of the trace: the trace with one copy of each span. A statement on which the
//! readings disagree is inconclusive. Copies that the test cannot distinguish count as one. If there are too many
//! readings, every statement that spans decide is inconclusive. The same applies before the run waited for the trace:
//! where one span arrived twice, others will.
//!
//! A span with the trigger's id is not a copy: Qualitytrace creates the trigger span itself, so its content is known.

use std::collections::{BTreeMap, HashSet};

use model::{
    DecisionBasis, Judgement, OutputValue, SpanEvidence, SpanId, Trace, UnsettledReason, Verdict,
    trace::{Span, SpanData, SpanIx},
};

use super::{Evidence, StepOutput, judge_reading, over_all, parts, seen, take_outputs, together};
use crate::{
    eval::{
        queried::{queried_by, queried_within},
        world::EvalContext,
    },
    plan::ResolvedPlan,
    syntax::ast::Property,
};

/// The maximum number of readings of a trace.
const READINGS_MAX: usize = 64;
/// The maximum number of spans in all readings together. A large trace has only a few readings.
const SPANS_MAX: usize = 2_000_000;

/// The copies in a trace.
struct Copies<'a> {
    trace: &'a Trace,
    /// For each span with copies that differ for the test: one copy of each kind, in the order of arrival.
    choices: Vec<Vec<SpanIx>>,
    /// Copies that the test cannot distinguish from an earlier copy.
    alike: HashSet<SpanIx>,
}

/// One statement of a judgement.
struct Statement<'j> {
    verdict: &'j mut Verdict,
    decided: &'j mut DecisionBasis,
    reason: &'j mut Option<String>,
    spans: &'j [SpanEvidence],
}

/// Judges a trace with copies.
pub(super) fn judge(resolved: &ResolvedPlan, evidence: &Evidence<'_>, trace: &Trace) -> Judgement {
    let copies = Copies::of(resolved, evidence, trace);
    let readings = copies.readings(evidence);
    let mut judgement = copies.judged(0, resolved, evidence);
    match readings {
        Some(count) => {
            for number in 1..count {
                let mut other = copies.judged(number, resolved, evidence);
                copies.join(&mut judgement, &mut other);
            }
        }
        None => copies.leave_open(&mut judgement),
    }
    for statement in statements(&mut judgement) {
        let told = conflict(statement.spans, trace);
        let told = told.filter(|told| !statement.reason.iter().any(|said| said.contains(told)));
        *statement.reason = together(statement.reason.take().into_iter().chain(told));
    }
    for spec in &mut judgement.specs {
        spec.verdict = Verdict::over(spec.assertions.iter().map(|assertion| assertion.verdict));
    }
    let verdicts = judgement.specs.iter().map(|spec| spec.verdict);
    let verdict = Verdict::over(verdicts.chain(judgement.claims.iter().map(|claim| claim.verdict)));
    judgement.verdict = over_all(verdict, resolved, evidence, &seen(resolved, evidence));
    judgement
}

/// Returns the outputs of a trace with copies: those on which all readings agree.
pub(super) fn outputs(
    resolved: &ResolvedPlan,
    evidence: &Evidence<'_>,
    trace: &Trace,
) -> Vec<StepOutput> {
    let copies = Copies::of(resolved, evidence, trace);
    let Some(count) = copies.readings(evidence) else { return Vec::new() };
    let taken = |number| {
        let reading = copies.reading(number);
        take_outputs(resolved, &Evidence { trace: Some(&reading), ..*evidence })
    };
    let mut agreed = taken(0);
    for number in 1..count {
        let other = taken(number);
        agreed.retain(|one| other.contains(one));
    }
    agreed
}

/// Reports that a span of the evidence shares its id with spans of different content.
pub(super) fn conflict(spans: &[SpanEvidence], trace: &Trace) -> Option<String> {
    let conflicts = trace.conflicts();
    if conflicts.is_empty() {
        return None;
    }
    let ids: HashSet<SpanId> = conflicts.iter().map(|span| trace.span(*span).id()).collect();
    let id = spans.iter().filter_map(|evidence| evidence.span_id).find(|id| ids.contains(id))?;
    Some(words(id, trace))
}

fn words(id: SpanId, trace: &Trace) -> String {
    let others = trace.conflicts().iter().filter(|span| trace.span(**span).id() == id);
    format!("{} spans with different content bear the id `{id}`", 1 + others.count())
}

impl<'a> Copies<'a> {
    fn of(resolved: &ResolvedPlan, evidence: &Evidence<'_>, trace: &'a Trace) -> Self {
        let world = EvalContext::new(trace, evidence.trigger, None);
        let trigger = world.trigger().map(|place| world.span_at(place).id());
        let asked = queried_properties(resolved);
        let mut kinds: BTreeMap<SpanIx, Vec<SpanIx>> = BTreeMap::new();
        let mut alike = HashSet::new();
        for copy in trace.conflicts().iter().map(|copy| trace.span(*copy)) {
            let Some(first) = trace.find(copy.id()).filter(|span| Some(span.id()) != trigger)
            else {
                continue;
            };
            let known = kinds.entry(first.ix()).or_insert_with(|| vec![first.ix()]);
            let is_alike = |known: &SpanIx| is_alike(trace.span(*known), copy, &asked, &world);
            // Copies beyond the maximum number of kinds are not compared further.
            if known.len() > READINGS_MAX || known.iter().any(is_alike) {
                alike.insert(copy.ix());
            } else {
                known.push(copy.ix());
            }
        }
        let choices = kinds.into_values().filter(|kinds| kinds.len() > 1).collect();
        Self { trace, choices, alike }
    }

    /// Returns the number of readings; `None` if there are too many, or if the run did not wait for the trace.
    fn readings(&self, evidence: &Evidence<'_>) -> Option<usize> {
        let counts = self.choices.iter().map(Vec::len);
        let count = counts.fold(1usize, usize::saturating_mul);
        let is_few = count <= READINGS_MAX && count.saturating_mul(self.trace.len()) <= SPANS_MAX;
        let settlement = evidence.settlement;
        let is_waited =
            !settlement.is_some_and(|it| it.unsettled.contains(&UnsettledReason::NotWaited));
        (count == 1 || (is_few && is_waited)).then_some(count)
    }

    /// Returns the trace with one copy of each span. Reading 0 has the first copies.
    fn reading(&self, mut number: usize) -> Trace {
        let mut left_out = self.alike.clone();
        for choice in &self.choices {
            let chosen = number % choice.len();
            number /= choice.len();
            let others = choice.iter().enumerate().filter(|(at, _)| *at != chosen);
            left_out.extend(others.map(|(_, copy)| *copy));
        }
        let reading = self.trace.only(|span| !left_out.contains(&span.ix()));
        reading.expect("a part of a trace is no larger than the trace")
    }

    fn judged(&self, number: usize, resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Judgement {
        let reading = self.reading(number);
        judge_reading(resolved, &Evidence { trace: Some(&reading), ..*evidence })
    }

    /// Makes every statement and output inconclusive on which the other reading disagrees.
    fn join(&self, judgement: &mut Judgement, other: &mut Judgement) {
        for (one, other) in statements(judgement).into_iter().zip(statements(other)) {
            if *one.verdict != *other.verdict {
                self.open(one);
            } else if *other.decided == DecisionBasis::Absence {
                *one.decided = DecisionBasis::Absence;
            }
        }
        for (one, other) in judgement.outputs.iter_mut().zip(&other.outputs) {
            if one.value != other.value {
                self.open_output(one);
            }
        }
    }

    /// Makes every statement that spans decide, and every output, inconclusive.
    fn leave_open(&self, judgement: &mut Judgement) {
        let open = statements(judgement).into_iter();
        open.filter(|one| *one.decided != DecisionBasis::Response).for_each(|one| self.open(one));
        judgement.outputs.iter_mut().for_each(|output| self.open_output(output));
    }

    fn open(&self, statement: Statement<'_>) {
        let Statement { verdict, decided, reason, spans } = statement;
        (*verdict, *decided) = (Verdict::Inconclusive, DecisionBasis::Absence);
        *reason = Some(self.reason(spans));
    }

    fn open_output(&self, output: &mut OutputValue) {
        output.value = None;
        output.reason = Some(self.reason(&[]));
    }

    fn reason(&self, spans: &[SpanEvidence]) -> String {
        let id_of = |choice: &Vec<SpanIx>| self.trace.span(choice[0]).id();
        let mut ids = self.choices.iter().map(id_of);
        let is_listed = |id: &SpanId| spans.iter().any(|span| span.span_id == Some(*id));
        let id = ids.clone().find(is_listed).or_else(|| ids.next());
        let words = id.map_or_else(String::new, |id| words(id, self.trace));
        format!("{words}, and which of them is true may decide this")
    }
}

fn statements(judgement: &mut Judgement) -> Vec<Statement<'_>> {
    let Judgement { specs, claims, .. } = judgement;
    let assertions = specs.iter_mut().flat_map(|spec| &mut spec.assertions).map(|one| Statement {
        verdict: &mut one.verdict,
        decided: &mut one.decided,
        reason: &mut one.reason,
        spans: &one.spans,
    });
    let claims = claims.iter_mut().map(|one| Statement {
        verdict: &mut one.verdict,
        decided: &mut one.decided,
        reason: &mut one.reason,
        spans: &one.spans,
    });
    assertions.chain(claims).collect()
}

/// Returns the properties that the test queries, each once.
fn queried_properties(resolved: &ResolvedPlan) -> Vec<&Property> {
    let (expressions, selectors) = parts(resolved);
    let mut found = Vec::new();
    expressions.into_iter().for_each(|expression| queried_by(expression, &mut found));
    selectors.into_iter().for_each(|selector| queried_within(selector, &mut found));
    let mut asked: Vec<&Property> = Vec::new();
    for property in found {
        if !asked.contains(&property) {
            asked.push(property);
        }
    }
    asked
}

/// Whether the test cannot distinguish two copies: they are equal except for attributes that the test does not query.
fn is_alike<'a>(
    one: Span<'a>,
    other: Span<'a>,
    asked: &[&Property],
    world: &EvalContext<'a>,
) -> bool {
    let bare = |span: Span<'_>| {
        let attributes = Vec::new();
        SpanData { attributes, dropped_attributes: 0, ..span.to_data() }
    };
    let found = |property: &Property, span| world.look_up(property, &world.scene_of(span));
    bare(one) == bare(other)
        && asked.iter().all(|property| found(property, one) == found(property, other))
}
