//! Judges claims: statements about the complete trace.

use model::{ClaimJudgement, SpanEvidence, Verdict};

use super::{
    SPANS_LISTED_MAX,
    copies::conflict,
    decide::{About, TraceKnowledge, decide},
    evidence::begin,
    spec::{Listing, list},
    together,
    values::{NEAREST_MAX, near_misses},
    words::{self, StatementText, describe, side_times},
};
use crate::{
    eval::{
        aggregate,
        contrast::contrast,
        doubt::selection,
        expression::{ExprValue, Values},
        future::Truth,
        gap::gap_bounds,
        index::tally,
        lasting::{speaks_of_response, speaks_of_trace},
        misses::nearest_misses,
        relation::relate,
        truth::{held, is_grouped, truth},
        world::{EvalContext, EvalScope},
    },
    plan::Claim,
    syntax::ast::{Aggregate, Expr, ExprKind, Quantifier, Relation, Selector, Subject},
    value::shorten,
};

/// The maximum number of listed groups that break a comparison.
const GROUPS_MAX: usize = 5;

pub(super) fn judge<'a>(
    claim: &'a Claim,
    world: &EvalContext<'a>,
    seen: &TraceKnowledge,
) -> ClaimJudgement {
    let meaning = &claim.claim.meaning;
    let scene = world.scene();
    let mut found = truth(meaning, &scene);
    let about = match (speaks_of_response(meaning), speaks_of_trace(meaning)) {
        (false, _) => About::Spans,
        (true, false) => About::Response,
        (true, true) => About::Both,
    };
    let mut looked = ClaimSpans::new(&claim.claim.source);
    looked.at(meaning, Role { is_negated: false, is_deciding: true }, &scene);
    let reason = found.reason.as_deref().map(words::named);
    let is_told = looked.spans.iter().any(|one| Some(&one.found) == reason.as_ref());
    found.reason = found.reason.filter(|_| !is_told || found.truth == Truth::Open);
    let decision = decide(&found, about, seen, world);
    let is_missed = seen.is_known() && decision.verdict != Verdict::Passed;
    let misses = looked.empty.iter().filter(|_| is_missed);
    let misses: Vec<_> = misses
        .filter_map(|selector| Some((*selector, nearest_misses(selector, &scene)?)))
        .take(2)
        .collect();
    let nearest = misses.iter().flat_map(|(of, near)| near_misses(of, near, world));
    let evidence = begin(decision.verdict, (about, seen), nearest.take(NEAREST_MAX).collect());
    let misses = misses.into_iter().map(|(_, near)| near.words);
    let conflict = conflict(&looked.spans, world.trace);
    let is_nothing = matches!(seen, TraceKnowledge::Nothing | TraceKnowledge::NotAsked)
        && about != About::Response;
    ClaimJudgement {
        name: claim.name.clone(),
        claim: claim.claim.source.clone(),
        place: claim.claim.place.clone(),
        verdict: decision.verdict,
        decided: decision.decided,
        reason: together(decision.reason.into_iter().chain(misses).chain(conflict)),
        // A value that was never measured is no evidence.
        spans: if is_nothing { Vec::new() } else { looked.spans },
        more_spans: if is_nothing { 0 } else { looked.more_spans },
        evidence,
    }
}

/// The spans that a claim was evaluated on, as evidence.
struct ClaimSpans<'a> {
    source: &'a str,
    spans: Vec<SpanEvidence>,
    more_spans: u64,
    /// Selectors that match no span.
    empty: Vec<&'a Selector>,
}

impl<'a> ClaimSpans<'a> {
    fn new(source: &'a str) -> Self {
        Self { source, spans: Vec::new(), more_spans: 0, empty: Vec::new() }
    }

    /// Adds the evidence for a statement: the spans that decide it.
    fn at(&mut self, statement: &'a Expr, role: Role, scene: &EvalScope<'_, 'a>) {
        match &statement.kind {
            ExprKind::Not(part) => {
                self.at(part, Role { is_negated: !role.is_negated, ..role }, scene);
            }
            ExprKind::And(parts) | ExprKind::Or(parts) => {
                let whole = truth(statement, scene).truth;
                for part in parts {
                    let is_deciding = role.is_deciding && truth(part, scene).truth == whole;
                    self.at(part, Role { is_deciding, ..role }, scene);
                }
            }
            ExprKind::Quantified { subject, predicate } => {
                self.at_sentence(subject, predicate.as_deref(), (statement, role), scene);
            }
            ExprKind::Relation { left, relation, right } => {
                self.note_empty(&left.selector, role, scene);
                self.note_empty(&right.selector, role, scene);
                let pair = relate(left, *relation, right, scene).pair;
                self.say(statement, role, pair.map(|(left, _)| left), scene);
                self.add_other(pair, *relation, verdict(statement, role, scene), scene);
            }
            ExprKind::Compare { left, right, .. } if is_grouped(left) => {
                self.at_groups(statement, (left, right), role, scene);
            }
            ExprKind::Compare { left, right, .. } => {
                self.say(statement, role, None, scene);
                let verdict = verdict(statement, role, scene);
                for side in [left, right] {
                    self.at_value(side, (role, verdict), scene);
                }
            }
            ExprKind::Between { value, .. } | ExprKind::Exists { value, .. } => {
                self.say(statement, role, None, scene);
                let verdict = verdict(statement, role, scene);
                self.at_value(value, (role, verdict), scene);
            }
            _ => self.say(statement, role, None, scene),
        }
    }

    /// Adds the result of a statement, at the span that shows it.
    fn say(
        &mut self,
        statement: &'a Expr,
        role: Role,
        place: Option<u32>,
        scene: &EvalScope<'_, 'a>,
    ) {
        let said = StatementText { source: self.source, is_negated: role.is_negated };
        let found = describe(statement, said, scene);
        self.add(place, verdict(statement, role, scene), found, scene);
    }

    /// Adds the right span of a pair.
    fn add_other(
        &mut self,
        pair: Option<(u32, u32)>,
        relation: Relation,
        verdict: Verdict,
        scene: &EvalScope<'_, 'a>,
    ) {
        if let Some((left, right)) = pair.filter(|(left, right)| left != right) {
            let [_, found] = side_times(relation, (left, right), scene);
            self.add(Some(right), verdict, found, scene);
        }
    }

    fn add(
        &mut self,
        place: Option<u32>,
        verdict: Verdict,
        found: String,
        scene: &EvalScope<'_, 'a>,
    ) {
        if self.spans.len() == SPANS_LISTED_MAX {
            self.more_spans += 1;
            return;
        }
        let span = place.map(|place| scene.world.span_at(place as usize));
        self.spans.push(SpanEvidence {
            span_id: span.map(|span| span.id()),
            name: span.map_or(String::new(), |span| shorten(span.name()).into_owned()),
            verdict,
            found,
        });
    }

    fn note_empty(&mut self, selector: &'a Selector, role: Role, scene: &EvalScope<'_, 'a>) {
        let selection = selection(selector, scene);
        if role.is_deciding && selection.sure.is_empty() && selection.doubt.is_none() {
            self.empty.push(selector);
        }
    }

    fn at_sentence(
        &mut self,
        subject: &'a Subject,
        predicate: Option<&'a Expr>,
        (statement, role): (&'a Expr, Role),
        scene: &EvalScope<'_, 'a>,
    ) {
        let places = selection(&subject.selector, scene).sure;
        let is_broken = verdict(statement, role, scene) != Verdict::Passed;
        self.note_empty(&subject.selector, role.broken(is_broken), scene);
        let is_one = subject.quantifier != Quantifier::The || places.len() == 1;
        let (Some(predicate), false, true) = (predicate, places.is_empty(), is_one) else {
            self.say(statement, role, None, scene);
            let verdict = verdict(statement, role, scene);
            let written = words::selector(&subject.selector);
            return self.add_all(&places, verdict, &format!("matches `{written}`"), scene);
        };
        let inner = EvalScope { count: None, inner: None, ..*scene };
        let tally = tally(predicate, &places, &inner);
        // The spans that decide the result come first.
        let is_every = matches!(subject.quantifier, Quantifier::Every | Quantifier::The);
        let order: &[Truth] = match is_every {
            true => &[Truth::False, Truth::Undefined, Truth::Unmet, Truth::Open, Truth::True],
            false => &[Truth::True, Truth::Open, Truth::False, Truth::Unmet, Truth::Undefined],
        };
        let is_turned = (subject.quantifier == Quantifier::No) != role.is_negated;
        let listing =
            Listing { statement: predicate, source: self.source, order, is_negated: is_turned };
        let (spans, more) = list(&listing, &places, &tally, &inner);
        let room = SPANS_LISTED_MAX - self.spans.len();
        self.more_spans += more + spans.len().saturating_sub(room) as u64;
        self.spans.extend(spans.into_iter().take(room));
    }

    fn add_all(
        &mut self,
        places: &[u32],
        verdict: Verdict,
        found: &str,
        scene: &EvalScope<'_, 'a>,
    ) {
        let room = SPANS_LISTED_MAX - self.spans.len();
        for place in places.iter().take(room) {
            self.add(Some(*place), verdict, found.to_owned(), scene);
        }
        self.more_spans += places.len().saturating_sub(room) as u64;
    }

    /// Adds the spans behind a value, if the value breaks a statement or leaves it open.
    fn at_value(
        &mut self,
        value: &'a Expr,
        (role, verdict): (Role, Verdict),
        scene: &EvalScope<'_, 'a>,
    ) {
        let role = role.broken(verdict != Verdict::Passed);
        match &value.kind {
            ExprKind::Aggregate(aggregate) => {
                self.note_empty(&aggregate.of, role, scene);
                if role.is_deciding {
                    let places = selection(&aggregate.of, scene).sure;
                    self.add_values(aggregate, &places, verdict, scene);
                }
            }
            ExprKind::Gap { from, to } => {
                self.note_empty(from, role, scene);
                self.note_empty(to, role, scene);
                if role.is_deciding
                    && let Ok(bounds) = gap_bounds(from, to, scene)
                {
                    let (left, right) = bounds.pair;
                    let [ends, starts] = side_times(Relation::Before, bounds.pair, scene);
                    self.add(Some(left), verdict, ends, scene);
                    self.add(Some(right), verdict, starts, scene);
                }
            }
            _ => {
                let parts = crate::eval::lasting::parts(value);
                parts.into_iter().for_each(|part| self.at_value(part, (role, verdict), scene));
            }
        }
    }

    /// Adds the value that each of several spans contributes to an aggregate.
    fn add_values(
        &mut self,
        aggregate: &'a Aggregate,
        places: &[u32],
        verdict: Verdict,
        scene: &EvalScope<'_, 'a>,
    ) {
        let written = words::selector(&aggregate.of);
        let room = SPANS_LISTED_MAX - self.spans.len();
        for place in places.iter().take(room) {
            let inner = scene.at(*place as usize);
            let found = match &aggregate.value {
                None => format!("matches `{written}`"),
                Some(value) => words::value(value, self.source, &inner),
            };
            self.add(Some(*place), verdict, found, scene);
        }
        self.more_spans += places.len().saturating_sub(room) as u64;
    }

    /// Adds the groups that break a comparison, and some of their spans.
    fn at_groups(
        &mut self,
        statement: &'a Expr,
        (left, right): (&'a Expr, &'a Expr),
        role: Role,
        scene: &EvalScope<'_, 'a>,
    ) {
        let ExprKind::Aggregate(aggregate) = &left.kind else { return };
        let verdict = verdict(statement, role, scene);
        self.note_empty(&aggregate.of, role.broken(verdict != Verdict::Passed), scene);
        self.say(statement, role, None, scene);
        if verdict == Verdict::Passed {
            return;
        }
        let (Ok(left), Ok(right)) = (held(left, scene), held(right, scene)) else { return };
        let Values::Groups(values) = &left.valued().values else { return };
        let groups = aggregate::groups(aggregate, scene);
        let ExprKind::Compare { comparator, is_negated: is_turned, .. } = &statement.kind else {
            return;
        };
        let is_broken = |value: &crate::value::Value<'a>| {
            let ExprValue { trend, is_secret, .. } = *left.valued();
            let values = Values::One(value.clone());
            let one = ExprValue {
                values,
                trend,
                is_secret,
                doubt: None,
                literal: None,
                is_several: false,
            };
            let truth = contrast(&one, *comparator, false, right.valued()).truth;
            (truth == Truth::True) == *is_turned
        };
        let broken: Vec<_> = values
            .iter()
            .zip(&groups)
            .filter(|((_, value), _)| is_broken(value))
            .take(GROUPS_MAX)
            .collect();
        for ((_, value), places) in broken {
            let Some(first) = places.first() else { continue };
            let key = aggregate::key_of(aggregate, &scene.at(*first as usize));
            let shown = if left.valued().is_secret { "***".to_owned() } else { value.show() };
            self.add(None, verdict, format!("{shown} with {key}"), scene);
            let count = places.len().min(GROUPS_MAX);
            self.add_values(aggregate, &places[..count], verdict, scene);
            self.more_spans += (places.len() - count) as u64;
        }
    }
}

/// Returns the verdict of a part of a claim, with the negation of the part applied.
fn verdict<'a>(statement: &'a Expr, role: Role, scene: &EvalScope<'_, 'a>) -> Verdict {
    let truth = truth(statement, scene).truth;
    if role.is_negated { truth.negated().verdict() } else { truth.verdict() }
}

/// The role of a part within its claim.
#[derive(Clone, Copy)]
struct Role {
    /// Whether `not` applies to the part.
    is_negated: bool,
    /// Whether this part decides the result of the claim.
    is_deciding: bool,
}

impl Role {
    /// Returns the role of a part that is examined further only if it breaks the claim.
    fn broken(self, is_broken: bool) -> Self {
        Self { is_deciding: self.is_deciding && is_broken, ..self }
    }
}
