//! Collects the evidence for a statement that did not pass, as values: what is compared, the groups of an aggregate, and
//! the spans that decide.
//!
//! A value that is not known is left out. Evidence has a budget of its own, apart from that of its statement: a statement
//! never loses its verdict because its evidence is expensive. Deliberately absent: prose, which is in `words`.

use model::{
    ComparisonEvidence, EvidenceRange, EvidenceValue, NearMiss, SpanId, StatementEvidence, Verdict,
};

use super::{
    decide::{About, TraceKnowledge},
    spec::SpecSelection,
    values::value_of,
    within_budget, words,
};
use crate::{
    budget,
    eval::{
        bits::Bits,
        doubt::{Selection, selection},
        future::Truth,
        gap::gap_bounds,
        index::tally,
        lasting::{parts, speaks_of_count},
        relation::relate,
        truth::{is_grouped, truth},
        world::{EvalContext, EvalScope},
    },
    plan::{Claim, SourceNode},
    syntax::ast::{Aggregate, Comparator, Expr, ExprKind, Quantifier, Selector, Subject, Summary},
};

/// The maximum number of comparisons of a statement.
const COMPARISONS_MAX: usize = 5;

/// The maximum number of deciding spans that are listed for a statement.
const DECIDING_MAX: usize = 10_000;

/// The approximate maximum size of the evidence of all statements of a judgement, serialized.
const EVIDENCE_BYTES_MAX: usize = 1 << 20;

/// The size of the id of a span, serialized.
const ID_BYTES: usize = 19;

/// Returns the beginning of the evidence for a statement; `None` if it passed, or if nothing that it needs was measured.
pub(super) fn begin(
    verdict: Verdict,
    (about, seen): (About, &TraceKnowledge),
    nearest: Vec<NearMiss>,
) -> Option<StatementEvidence> {
    let is_measured = match seen {
        TraceKnowledge::Whole | TraceKnowledge::Part(_) => true,
        TraceKnowledge::NotAsked | TraceKnowledge::NoTelemetry => about == About::Response,
        TraceKnowledge::Nothing => false,
    };
    (verdict != Verdict::Passed && is_measured)
        .then(|| StatementEvidence { nearest, ..StatementEvidence::default() })
}

/// Completes evidence that was begun, within a budget of its own.
pub(super) fn complete(
    begun: Option<StatementEvidence>,
    world: &EvalContext<'_>,
    collect: impl FnOnce() -> StatementEvidence,
) -> Option<StatementEvidence> {
    let StatementEvidence { nearest, .. } = begun?;
    let (collected, over) = within_budget(world, collect);
    let collected = if over.is_none() { collected } else { StatementEvidence::default() };
    let evidence = StatementEvidence { nearest, ..collected };
    (!evidence.is_empty()).then_some(evidence)
}

/// Removes what exceeds the size of all evidence of a judgement, in the order of the statements.
pub(super) fn bound<'j>(all: impl Iterator<Item = &'j mut Option<StatementEvidence>>) {
    let mut room = EVIDENCE_BYTES_MAX;
    for one in all {
        let Some(evidence) = one else { continue };
        let Some(rest) = room.checked_sub(evidence.weight()) else {
            *one = None;
            continue;
        };
        let most = rest / ID_BYTES;
        evidence.more_deciding += evidence.deciding.len().saturating_sub(most) as u64;
        evidence.deciding.truncate(most);
        room = rest - evidence.deciding.len() * ID_BYTES;
    }
}

/// Collects the evidence for a claim.
pub(super) fn of_claim<'a>(claim: &'a Claim, world: &EvalContext<'a>) -> StatementEvidence {
    let mut collector = EvidenceCollector::new(&claim.claim.source, world);
    collector.add(&claim.claim.meaning, false, &world.scene());
    collector.evidence
}

/// Collects the evidence for an assertion, on the spans of its spec or on none of them.
pub(super) fn of_assertion<'a>(
    assertion: &'a SourceNode<Expr>,
    selected: &SpecSelection<'a>,
    is_of_spans: bool,
    world: &EvalContext<'a>,
) -> StatementEvidence {
    let SourceNode { meaning, source, .. } = assertion;
    let SpecSelection { selector, places, .. } = selected;
    let mut collector = EvidenceCollector::new(source, world);
    let scene = EvalScope { count: Some(places.len() as u64), ..world.scene() };
    if !is_of_spans {
        collector.add(meaning, false, &scene);
        if speaks_of_count(meaning) && is_broken(meaning, false, &scene) {
            collector.decide(places, &scene);
        }
    } else if places.is_empty() {
        collector.count(selector, (">=", 1), &scene);
    } else {
        let truths = tally(meaning, places, &scene).truths;
        let verdicts: Vec<_> = truths.into_iter().map(Truth::verdict).collect();
        let worst = Verdict::over(verdicts.iter().copied());
        if worst == Verdict::Passed {
            return collector.evidence;
        }
        let scopes = |place: u32| EvalScope {
            span: Some(world.span_at(place as usize)),
            count: scene.count,
            ..world.scene()
        };
        let deciding = of_verdict(places, &verdicts, worst);
        collector.compare_on(meaning, false, deciding.iter().map(|place| scopes(*place)));
        collector.decide(&deciding, &scene);
    }
    collector.evidence
}

/// The evidence for one statement so far.
pub(super) struct EvidenceCollector<'s> {
    pub(super) source: &'s str,
    pub(super) evidence: StatementEvidence,
    /// The positions of the deciding spans.
    deciding: Bits,
}

impl<'s> EvidenceCollector<'s> {
    fn new(source: &'s str, world: &EvalContext<'_>) -> Self {
        let (evidence, deciding) = (StatementEvidence::default(), Bits::none(world.len()));
        Self { source, evidence, deciding }
    }

    /// Adds the parts of a statement that decide it.
    fn add<'a>(&mut self, statement: &'a Expr, is_negated: bool, scene: &EvalScope<'_, 'a>) {
        match &statement.kind {
            ExprKind::Not(part) => self.add(part, !is_negated, scene),
            ExprKind::And(_) | ExprKind::Or(_) => {
                deciding_parts(statement, scene)
                    .into_iter()
                    .for_each(|part| self.add(part, is_negated, scene));
            }
            ExprKind::Quantified { subject, predicate } => {
                let predicate = predicate.as_deref();
                self.add_quantified((statement, is_negated), (subject, predicate), scene);
            }
            ExprKind::Relation { left, relation, right } => {
                let pair = relate(left, *relation, right, scene).pair;
                if let Some((left, right)) =
                    pair.filter(|_| is_broken(statement, is_negated, scene))
                {
                    self.decide(&[left, right], scene);
                }
            }
            ExprKind::Compare { left, .. } if is_grouped(left) => {
                self.add_groups(statement, is_negated, scene);
            }
            ExprKind::Compare { left, right, .. } => {
                self.compare(statement, is_negated, scene);
                if is_broken(statement, is_negated, scene) {
                    [left, right].into_iter().for_each(|side| self.decide_by(side, scene));
                }
            }
            ExprKind::Between { value, .. } | ExprKind::Exists { value, .. } => {
                self.compare(statement, is_negated, scene);
                if is_broken(statement, is_negated, scene) {
                    self.decide_by(value, scene);
                }
            }
            _ => {}
        }
    }

    fn add_quantified<'a>(
        &mut self,
        (statement, is_negated): (&'a Expr, bool),
        (subject, predicate): (&'a Subject, Option<&'a Expr>),
        scene: &EvalScope<'_, 'a>,
    ) {
        let Subject { quantifier, selector } = subject;
        let places = selection(selector, scene).sure;
        let is_one = *quantifier != Quantifier::The || places.len() == 1;
        let (Some(predicate), false, true) = (predicate, places.is_empty(), is_one) else {
            let is_no = (*quantifier == Quantifier::No) != is_negated;
            let expected = match (predicate, quantifier) {
                (Some(_), Quantifier::The) => ("=", 1),
                (None, _) if is_no => ("=", 0),
                _ => (">=", 1),
            };
            self.count(selector, expected, scene);
            if is_broken(statement, is_negated, scene) {
                self.decide(&places, scene);
            }
            return;
        };
        let inner = EvalScope { count: None, inner: None, ..*scene };
        let is_turned = (*quantifier == Quantifier::No) != is_negated;
        let turned = |truth: Truth| if is_turned { truth.negated() } else { truth };
        let truths = tally(predicate, &places, &inner).truths;
        let verdicts: Vec<_> = truths.into_iter().map(|truth| turned(truth).verdict()).collect();
        let verdict = verdict(statement, is_negated, scene);
        if verdict == Verdict::Passed {
            return;
        }
        let deciding = of_verdict(&places, &verdicts, verdict);
        let scopes = deciding.iter().map(|place| inner.at(*place as usize));
        self.compare_on(predicate, is_turned, scopes);
        self.decide(&deciding, scene);
    }

    /// Adds the comparisons of a statement on several spans, until there are enough.
    fn compare_on<'w, 'a: 'w>(
        &mut self,
        statement: &'a Expr,
        is_negated: bool,
        scopes: impl Iterator<Item = EvalScope<'w, 'a>>,
    ) {
        for scene in scopes.take(COMPARISONS_MAX) {
            self.compare(statement, is_negated, &scene);
        }
    }

    /// Adds the comparisons that decide a statement in a scope.
    pub(super) fn compare<'a>(
        &mut self,
        statement: &'a Expr,
        is_negated: bool,
        scene: &EvalScope<'_, 'a>,
    ) {
        match &statement.kind {
            ExprKind::Not(part) => self.compare(part, !is_negated, scene),
            ExprKind::And(_) | ExprKind::Or(_) => {
                deciding_parts(statement, scene)
                    .into_iter()
                    .for_each(|part| self.compare(part, is_negated, scene));
            }
            ExprKind::Quantified { subject, predicate: None } => {
                let is_no = (subject.quantifier == Quantifier::No) != is_negated;
                let expected = if is_no { ("=", 0) } else { (">=", 1) };
                self.count(&subject.selector, expected, scene);
            }
            ExprKind::Compare { left, comparator, is_negated: is_turned, right } => {
                let (subject, comparator, other) = subject_first(left, *comparator, right);
                let operator = words::spelled(comparator, *is_turned != is_negated);
                let values = [value_of(other, scene), value_of(subject, scene)];
                self.push((subject, operator.to_owned()), values, scene);
            }
            ExprKind::Between { value, is_negated: is_turned, low, high } => {
                let is_not = *is_turned != is_negated;
                let operator = if is_not { "not between" } else { "between" };
                let range = value_of(low, scene).zip(value_of(high, scene));
                let range = range.map(|(low, high)| Box::new(EvidenceRange { low, high }));
                let values = [range.map(EvidenceValue::Between), value_of(value, scene)];
                self.push((value, operator.to_owned()), values, scene);
            }
            ExprKind::Exists { value, is_negated: is_turned } => {
                let operator = if *is_turned != is_negated { "not exists" } else { "exists" };
                self.push((value, operator.to_owned()), [None, value_of(value, scene)], scene);
            }
            _ => {}
        }
    }

    /// Adds a comparison of an expression.
    pub(super) fn push(
        &mut self,
        (subject, operator): (&Expr, String),
        [expected, found]: [Option<EvidenceValue>; 2],
        scene: &EvalScope<'_, '_>,
    ) {
        let subject = words::name(subject, self.source);
        self.push_named(ComparisonEvidence {
            span_id: scene.span.map(|span| span.id()),
            subject,
            operator,
            expected,
            found,
        });
    }

    fn push_named(&mut self, comparison: ComparisonEvidence) {
        if self.evidence.comparisons.len() < COMPARISONS_MAX {
            self.evidence.comparisons.push(comparison);
        }
    }

    /// Adds the comparison of the number of spans that a selector matches.
    fn count<'a>(
        &mut self,
        selector: &'a Selector,
        (operator, expected): (&str, u64),
        scene: &EvalScope<'_, 'a>,
    ) {
        let Selection { sure, doubt } = selection(selector, scene);
        let number = |count: usize| EvidenceValue::Number(count.to_string());
        let low = number(sure.len());
        let found = match doubt {
            None => low,
            Some(doubt) => {
                let high = number(doubt.possible);
                EvidenceValue::Between(Box::new(EvidenceRange { low, high }))
            }
        };
        self.push_named(ComparisonEvidence {
            span_id: scene.span.map(|span| span.id()),
            subject: format!("count({})", words::selector(selector)),
            operator: operator.to_owned(),
            expected: Some(EvidenceValue::Number(expected.to_string())),
            found: Some(found),
        });
    }

    /// Adds deciding spans.
    pub(super) fn decide(&mut self, places: &[u32], scene: &EvalScope<'_, '_>) {
        budget::spend(places.len() as u64);
        for place in places {
            let place = *place as usize;
            if self.deciding.has(place) {
                continue;
            }
            self.deciding.set(place);
            if self.evidence.deciding.len() < DECIDING_MAX {
                let id: SpanId = scene.world.span_at(place).id();
                self.evidence.deciding.push(id);
            } else {
                self.evidence.more_deciding += 1;
            }
        }
    }

    /// Adds the spans behind a value.
    pub(super) fn decide_by<'a>(&mut self, value: &'a Expr, scene: &EvalScope<'_, 'a>) {
        match &value.kind {
            ExprKind::Aggregate(aggregate) => {
                let places = selection(&aggregate.of, scene).sure;
                match extremes((value, aggregate), &places, scene) {
                    Some(extremes) => self.decide(&extremes, scene),
                    None => self.decide(&places, scene),
                }
            }
            ExprKind::Gap { from, to } => {
                if let Ok(bounds) = gap_bounds(from, to, scene) {
                    self.decide(&[bounds.pair.0, bounds.pair.1], scene);
                }
            }
            _ => parts(value).into_iter().for_each(|part| self.decide_by(part, scene)),
        }
    }
}

/// Returns the spans whose value is the minimum or the maximum; `None` for every other aggregate.
fn extremes<'a>(
    (expression, aggregate): (&'a Expr, &'a Aggregate),
    places: &[u32],
    scene: &EvalScope<'_, 'a>,
) -> Option<Vec<u32>> {
    let is_extreme = matches!(aggregate.function, Summary::Min | Summary::Max);
    let value = aggregate.value.as_ref().filter(|_| is_extreme)?;
    let extreme = value_of(expression, scene)?;
    let is_one =
        |place: &u32| value_of(value, &scene.at(*place as usize)).as_ref() == Some(&extreme);
    let found: Vec<_> = places.iter().copied().filter(is_one).collect();
    (!found.is_empty()).then_some(found)
}

/// Returns the positions with this verdict.
fn of_verdict(places: &[u32], verdicts: &[Verdict], verdict: Verdict) -> Vec<u32> {
    let with = places.iter().zip(verdicts).filter(|(_, one)| **one == verdict);
    with.map(|(place, _)| *place).collect()
}

/// Returns the parts of a conjunction or a disjunction that decide it.
fn deciding_parts<'a>(statement: &'a Expr, scene: &EvalScope<'_, 'a>) -> Vec<&'a Expr> {
    let whole = truth(statement, scene).truth;
    let all = parts(statement).into_iter();
    all.filter(|part| truth(part, scene).truth.decides(whole)).collect()
}

fn verdict<'a>(statement: &'a Expr, is_negated: bool, scene: &EvalScope<'_, 'a>) -> Verdict {
    let truth = truth(statement, scene).truth;
    if is_negated { truth.negated().verdict() } else { truth.verdict() }
}

pub(super) fn is_broken<'a>(
    statement: &'a Expr,
    is_negated: bool,
    scene: &EvalScope<'_, 'a>,
) -> bool {
    verdict(statement, is_negated, scene) != Verdict::Passed
}

/// Returns the operands with a value of the test on the right, if the comparator can be turned.
fn subject_first<'e>(
    left: &'e Expr,
    comparator: Comparator,
    right: &'e Expr,
) -> (&'e Expr, Comparator, &'e Expr) {
    match comparator.turned() {
        Some(turned) if words::is_literal(left) && !words::is_literal(right) => {
            (right, turned, left)
        }
        _ => (left, comparator, right),
    }
}
