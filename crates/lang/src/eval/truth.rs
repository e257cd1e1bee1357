//! Evaluates whether a statement holds in a scope, and the results that it may still get.
//!
//! A property with several values (`event.name`) compares true if one of them does, negated if none does; of groups each has to.

use std::rc::Rc;

use super::{
    aggregate::{Constant, constant, of_span},
    contrast::{Contrast, contrast, contrast_between, future_of},
    doubt::{Selection, is_any_sure, selection},
    drop_count::{DropCount, is_kept, unseen},
    expression::{ExprValue, Lack, Trend, Values},
    future::{Evaluation, Future, Truth},
    gap::compare_gap,
    index::tally,
    lasting::{Steadiness, is_fixed, is_lasting, speaks_of_response, steadiness},
    lookup::Lookup,
    relation,
    select::is_anchored,
    several::found_of,
    summary::NoValue,
    world::{EvalScope, InnerRef, TOO_MANY_LOOKS},
};
use crate::{
    budget,
    syntax::ast::{Comparator, Expr, ExprKind, Inner, Quantifier, Subject},
    value::Value,
};

/// The budget steps to evaluate one statement on one span, in addition to those of its parts.
const STATEMENT_STEPS: u64 = 16;

/// A value of the scope, or one that is the same in all scopes.
#[derive(Clone, Debug)]
pub(crate) enum ExprOperand<'a> {
    Own(ExprValue<'a>),
    Shared(Rc<Constant<'a>>),
}

/// Returns whether a statement holds. A value alone is not a statement, and undefined.
pub(crate) fn truth<'a>(expression: &'a Expr, scene: &EvalScope<'_, 'a>) -> Evaluation {
    if !budget::spend(STATEMENT_STEPS) {
        return Evaluation::open(budget::OVER, Future::ANY);
    }
    // A statement about the complete trace is evaluated several times: for the verdict, the evidence and enclosing statements.
    if (scene.span.is_none() && scene.count.is_none()) || is_of_trace(expression) {
        return (*scene.world.statement(expression, || evaluate(expression, scene))).clone();
    }
    evaluate(expression, scene)
}

/// Whether a statement does not depend on the current span.
fn is_of_trace(statement: &Expr) -> bool {
    match &statement.kind {
        ExprKind::Quantified { subject, .. } => is_anchored(&subject.selector),
        ExprKind::Relation { left, right, .. } => {
            is_anchored(&left.selector) && is_anchored(&right.selector)
        }
        _ => false,
    }
}

fn evaluate<'a>(expression: &'a Expr, scene: &EvalScope<'_, 'a>) -> Evaluation {
    match &expression.kind {
        ExprKind::Not(part) => truth(part, scene).negated(),
        ExprKind::And(parts) => fold(parts, scene, Evaluation::and, Truth::False),
        ExprKind::Or(parts) => fold(parts, scene, Evaluation::or, Truth::True),
        ExprKind::Compare { left, comparator, is_negated, right } => {
            let found = compare_sides(left, *comparator, *is_negated, right, scene);
            let is_kept = is_kept(left, *comparator, right);
            unless_unseen(expression, found, (*is_negated, is_kept), scene)
        }
        ExprKind::Between { value, is_negated, low, high } => {
            let found = between(value, *is_negated, [low, high], scene);
            let is_kept = is_kept(value, Comparator::AtLeast, low);
            unless_unseen(expression, found, (*is_negated, is_kept), scene)
        }
        ExprKind::Exists { value, is_negated } => {
            let found = exists(value, scene);
            let found = if *is_negated { found.negated() } else { found };
            unless_unseen(expression, found, (*is_negated, true), scene)
        }
        ExprKind::Within { inner, condition } => within(*inner, condition.as_deref(), scene),
        ExprKind::Quantified { subject, predicate } => {
            sentence(subject, predicate.as_deref(), scene)
        }
        ExprKind::Relation { left, relation, right } => {
            relation::relate(left, *relation, right, scene).found.clone()
        }
        _ => Evaluation::undefined("a value alone is no condition", Future::only(Truth::Undefined)),
    }
}

/// Returns the result, unless dropped data could change it: it cannot where one value is enough and a present one satisfies.
fn unless_unseen<'a>(
    expression: &'a Expr,
    found: Evaluation,
    (is_negated, is_kept): (bool, bool),
    scene: &EvalScope<'_, 'a>,
) -> Evaluation {
    let Some(span) = scene.span else { return found };
    match unseen(expression, scene) {
        Some(_) if is_kept && found.truth == Truth::from(!is_negated) => found,
        Some(dropped) => Evaluation::open(dropped.by(span), Future::only(Truth::Open)),
        None => found,
    }
}

/// Stops when one part makes the result final.
fn fold<'a>(
    parts: &'a [Expr],
    scene: &EvalScope<'_, 'a>,
    join: impl Fn(Evaluation, Evaluation) -> Evaluation,
    deciding: Truth,
) -> Evaluation {
    let mut all = Evaluation::fixed(deciding.negated());
    for part in parts {
        all = join(all, truth(part, scene));
        if all.future.is_only(deciding) {
            break;
        }
    }
    all
}

/// Returns the value of an expression. A value that is the same for every span is computed once.
pub(crate) fn held<'a>(
    expression: &'a Expr,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprOperand<'a>, NoValue> {
    match &expression.kind {
        ExprKind::Aggregate(aggregate) => match constant(aggregate, scene) {
            Some(shared) => shared.map(ExprOperand::Shared),
            None => of_span(aggregate, scene).map(ExprOperand::Own),
        },
        _ => found_of(expression, scene)
            .map(ExprOperand::Own)
            .map_err(|lack| NoValue { lack, is_for_good: is_fixed(expression) }),
    }
}

impl<'a> ExprOperand<'a> {
    pub(crate) fn valued(&self) -> &ExprValue<'a> {
        match self {
            Self::Own(valued) => valued,
            Self::Shared(shared) => &shared.valued,
        }
    }
}

/// Compares two expressions. Groups are negated one by one.
fn compare_sides<'a>(
    left: &'a Expr,
    comparator: Comparator,
    is_negated: bool,
    right: &'a Expr,
    scene: &EvalScope<'_, 'a>,
) -> Evaluation {
    if let Some(found) = compare_gap(left, comparator, right, scene) {
        return if is_negated { found.negated() } else { found };
    }
    match held_all([left, right], scene) {
        Ok([left_held, right_held]) => {
            let sides = [(left, &left_held), (right, &right_held)];
            compare_held(sides, comparator, is_negated)
        }
        Err(missing) => lacking(missing),
    }
}

/// Returns the values of several expressions. A permanent lack makes a statement undefined, whatever the others become.
fn held_all<'a, const N: usize>(
    sides: [&'a Expr; N],
    scene: &EvalScope<'_, 'a>,
) -> Result<[ExprOperand<'a>; N], NoValue> {
    let mut missing: Option<NoValue> = None;
    let all = sides.map(|side| {
        held(side, scene)
            .map_err(|one| {
                if missing.as_ref().is_none_or(|first| one.is_for_good && !first.is_for_good) {
                    missing = Some(one);
                }
            })
            .ok()
    });
    match missing {
        Some(missing) => Err(missing),
        None => Ok(all.map(|side| side.expect("a side that is not held is missing"))),
    }
}

/// Returns the comparison of two values, and whether it stays the same while a list grows. Reports call it too.
pub(crate) fn contrast_held(
    [left_held, right_held]: [&ExprOperand<'_>; 2],
    comparator: Comparator,
    is_negated: bool,
) -> (Contrast, bool) {
    match (left_held, comparator, right_held) {
        (
            ExprOperand::Own(ExprValue { values: Values::One(value), .. }),
            Comparator::In,
            ExprOperand::Shared(list),
        ) if !list.is_grouped() => {
            let (contrast, is_kept) = list.contrast_in(value);
            (contrast.negated_if(is_negated), is_kept)
        }
        (
            ExprOperand::Shared(list),
            Comparator::Contains,
            ExprOperand::Own(ExprValue { values: Values::One(Value::List(wanted)), .. }),
        ) if !list.is_grouped() => (list.contrast_all_in(wanted).negated_if(is_negated), true),
        _ => (contrast(left_held.valued(), comparator, is_negated, right_held.valued()), false),
    }
}

fn compare_held<'a>(
    [(left, left_held), (right, right_held)]: [(&'a Expr, &ExprOperand<'a>); 2],
    comparator: Comparator,
    is_negated: bool,
) -> Evaluation {
    let steady = steadiness(left).max(steadiness(right));
    let (left_valued, right_valued) = (left_held.valued(), right_held.valued());
    let (contrast, is_kept) = contrast_held([left_held, right_held], comparator, is_negated);
    let is_held = contrast.truth == Truth::from(!is_negated);
    let is_kept_list = is_kept;
    let is_kept = is_kept && is_held && steady == Steadiness::Total;
    let future = match steady {
        Steadiness::Fixed => Future::only(contrast.truth),
        _ if is_kept => Future::only(contrast.truth),
        _ => future_of(&contrast, (left_valued, comparator, right_valued), is_negated),
    };
    let is_grouped = is_grouped(left) || is_grouped(right);
    let future = if is_grouped { Future::DEFINED_OR_OPEN.and(future) } else { future };
    let future = match steady {
        Steadiness::Fixed | Steadiness::Total => future,
        Steadiness::Loose => future.with(Future::only(Truth::Undefined)),
        Steadiness::Wild => Future::ANY,
    };
    let found = Evaluation { truth: contrast.truth, future, reason: contrast.reason.clone() };
    let Some(reason) = [left_valued, right_valued].into_iter().find_map(|side| side.doubt.as_ref())
    else {
        return found;
    };
    // Values that are possibly missing count as values that may still arrive, while everything else stays the same.
    let moving = [left_valued, right_valued].map(|side| {
        let trend = side.doubt.as_ref().map_or(Trend::Fixed, |doubt| doubt.trend);
        ExprValue { trend, ..side.clone() }
    });
    let kept = is_held && is_kept_list;
    let possible = match kept {
        true => Future::only(contrast.truth),
        false => future_of(&contrast, (&moving[0], comparator, &moving[1]), is_negated),
    };
    let possible = if is_grouped { Future::DEFINED_OR_OPEN.and(possible) } else { possible };
    found.doubted(possible, &reason.reason)
}

/// Returns whether a value lies between two others. It is one comparison: undefined if either side of it is undefined.
fn between<'a>(
    value: &'a Expr,
    is_negated: bool,
    [low, high]: [&'a Expr; 2],
    scene: &EvalScope<'_, 'a>,
) -> Evaluation {
    if matches!(value.kind, ExprKind::Gap { .. }) {
        let found = both_bounds(
            [(low, Comparator::AtLeast), (high, Comparator::AtMost)]
                .map(|(bound, comparator)| compare_sides(value, comparator, false, bound, scene)),
        );
        return if is_negated { found.negated() } else { found };
    }
    let [value_held, low_held, high_held] = match held_all([value, low, high], scene) {
        Ok(held) => held,
        Err(missing) => return lacking(missing),
    };
    if matches!(value_held.valued().values, Values::Many(_) | Values::Groups(_)) {
        let bounds = [low_held.valued(), high_held.valued()];
        let contrast = contrast_between(value_held.valued(), is_negated, bounds);
        let is_fixed = [value, low, high].iter().all(|side| is_fixed(side));
        let future = if is_fixed { Future::only(contrast.truth) } else { Future::ANY };
        return Evaluation { truth: contrast.truth, future, reason: contrast.reason };
    }
    let side = (value, &value_held);
    let found = both_bounds([
        compare_held([side, (low, &low_held)], Comparator::AtLeast, false),
        compare_held([side, (high, &high_held)], Comparator::AtMost, false),
    ]);
    if is_negated { found.negated() } else { found }
}

fn both_bounds([low, high]: [Evaluation; 2]) -> Evaluation {
    if let Some(undefined) = [&low, &high].into_iter().find(|it| it.truth == Truth::Undefined) {
        return undefined.clone();
    }
    let may_lack = [&low, &high].into_iter().any(|it| it.future.has(Truth::Undefined));
    let mut found = low.and(high);
    if may_lack {
        found.future = found.future.with(Future::only(Truth::Undefined));
    }
    found
}

/// Whether an expression is an aggregate with groups.
pub(crate) fn is_grouped(expression: &Expr) -> bool {
    matches!(&expression.kind, ExprKind::Aggregate(aggregate) if !aggregate.by.is_empty())
}

pub(super) fn lacking(missing: NoValue) -> Evaluation {
    let future = |truth| if missing.is_for_good { Future::only(truth) } else { Future::ANY };
    match missing.lack {
        Lack::Undefined(reason) => Evaluation::undefined(reason, future(Truth::Undefined)),
        Lack::Open(reason) => Evaluation::open(reason, future(Truth::Open)),
    }
}

fn exists<'a>(value: &'a Expr, scene: &EvalScope<'_, 'a>) -> Evaluation {
    let (truth, reason) = match held(value, scene) {
        Ok(held) => (Truth::from(is_something(&held.valued().values)), None),
        // A property that is queried itself may be absent; a value computed from an absent one is undefined.
        Err(NoValue { lack: Lack::Undefined(reason), .. }) => match &value.kind {
            ExprKind::Property(_) | ExprKind::Response(_) | ExprKind::Aggregate(_) => {
                (Truth::False, None)
            }
            _ => (Truth::Undefined, Some(reason)),
        },
        Err(NoValue { lack: Lack::Open(reason), .. }) => match looked_up(value, scene) {
            // A time that the span does not report is absent; a comparison with it is open.
            Some(Lookup::Untimed(_)) => (Truth::False, None),
            Some(Lookup::Encoded(_)) => (Truth::True, None),
            _ => (Truth::Open, Some(reason)),
        },
    };
    let future = match steadiness(value) {
        Steadiness::Fixed => Future::only(truth),
        _ if speaks_of_response(value) => Future::ANY,
        _ => Future::DEFINED_OR_OPEN.with(Future::only(truth)),
    };
    Evaluation { truth, future, reason }
}

/// Looks up a property, or a part of the response, that is queried itself.
fn looked_up<'a>(value: &'a Expr, scene: &EvalScope<'_, 'a>) -> Option<Lookup<'a>> {
    match &value.kind {
        ExprKind::Property(property) => Some(scene.world.look_up(property, scene)),
        ExprKind::Response(part) => Some(scene.world.response(part)),
        _ => None,
    }
}

pub(crate) fn is_something(values: &Values<'_>) -> bool {
    match values {
        Values::One(value) => *value != Value::Nothing,
        Values::Many(values) => values.iter().any(|value| *value != Value::Nothing),
        Values::Groups(groups) => !groups.is_empty(),
        Values::Between(_) => true,
    }
}

/// Evaluates `event[…]` or `link[…]`: the events and links of a span never change.
fn within<'a>(inner: Inner, condition: Option<&'a Expr>, scene: &EvalScope<'_, 'a>) -> Evaluation {
    let Some(span) = scene.span else {
        return Evaluation::undefined("no span is spoken of", Future::only(Truth::Undefined));
    };
    let events = span.events().map(InnerRef::Event).filter(|_| inner == Inner::Event);
    let links = span.links().map(InnerRef::Link).filter(|_| inner == Inner::Link);
    let mut any = Evaluation::fixed(Truth::False);
    for one in events.chain(links) {
        let found = match condition {
            None => Evaluation::fixed(Truth::True),
            Some(condition) => truth(condition, &EvalScope { inner: Some(one), ..*scene }),
        };
        any = any.or(found);
        if any.is_true() {
            return any;
        }
    }
    let dropped = match inner {
        Inner::Event => DropCount::events(span, scene.world.logs),
        Inner::Link => DropCount::links(span),
    };
    match dropped {
        Some(dropped) => Evaluation::open(dropped.by(span), Future::only(Truth::Open)),
        None => any,
    }
}

fn sentence<'a>(
    subject: &'a Subject,
    predicate: Option<&'a Expr>,
    scene: &EvalScope<'_, 'a>,
) -> Evaluation {
    let is_lasting = is_lasting(&subject.selector);
    let Some(predicate) = predicate else {
        let is_some = match is_any_sure(&subject.selector, scene) {
            Ok(is_any) => Truth::from(is_any),
            Err(reason) => return Evaluation::open(reason, Future::ANY),
        };
        let future = if is_lasting && is_some == Truth::True {
            Future::only(Truth::True)
        } else {
            Future::DEFINED_OR_OPEN
        };
        let found = Evaluation::new(is_some, future);
        return if subject.quantifier == Quantifier::No { found.negated() } else { found };
    };
    let Selection { sure: places, doubt } = selection(&subject.selector, scene);
    if let Some(doubt) = doubt.as_ref().filter(|_| places.is_empty()) {
        return Evaluation::open(&*doubt.reason, Future::ANY);
    }
    let expected = &subject.selector;
    if let Err(lack) = expect_spans(subject.quantifier, places.len(), is_lasting, expected) {
        return lack;
    }
    if scene.span.is_some() && !scene.world.may_look(places.len()) {
        return Evaluation::open(TOO_MANY_LOOKS, Future::ANY);
    }
    let inner = EvalScope { count: None, inner: None, ..*scene };
    let tally = tally(predicate, &places, &inner);
    let found = quantify(subject.quantifier, &tally.found, is_lasting);
    match doubt {
        None => found,
        Some(doubt) => {
            let frozen = QuantifiedEvaluation::frozen(&tally.truths);
            found.doubted(quantify(subject.quantifier, &frozen, true).future, &doubt.reason)
        }
    }
}

/// A quantified statement needs a span; one without a quantifier needs exactly one.
pub(super) fn expect_spans(
    quantifier: Quantifier,
    count: usize,
    is_lasting: bool,
    selector: &crate::syntax::ast::Selector,
) -> Result<(), Evaluation> {
    let written = || crate::value::shorten(&crate::syntax::print::selector(selector)).into_owned();
    if count == 0 {
        return Err(Evaluation::undefined(format!("no span matches `{}`", written()), Future::ANY));
    }
    if quantifier == Quantifier::The && count > 1 {
        let future = if is_lasting { Future::only(Truth::Undefined) } else { Future::ANY };
        let written = written();
        return Err(Evaluation::undefined(
            format!("{count} spans match `{written}`; say `every` or `some`"),
            future,
        ));
    }
    Ok(())
}

/// Returns the result over a selection from the results of its spans, which are joined by `and` and by `or`.
pub(crate) fn quantify(
    quantifier: Quantifier,
    spans: &QuantifiedEvaluation,
    is_lasting: bool,
) -> Evaluation {
    let (every, some) = (&spans.every, &spans.some);
    let found = match quantifier {
        Quantifier::Every | Quantifier::The => every.clone(),
        Quantifier::Some => some.clone(),
        Quantifier::No => some.clone().negated(),
    };
    let further = match quantifier {
        _ if !is_lasting => Future::ANY,
        Quantifier::The => found.future.with(Future::only(Truth::Undefined)),
        Quantifier::Every => found.future.and(Future::ANY),
        Quantifier::Some => some.future.or(Future::ANY),
        Quantifier::No => some.future.or(Future::ANY).negated(),
    };
    Evaluation { future: further, ..found }
}

/// The joined results of several spans: for every span, and for some.
#[derive(Clone, Debug)]
pub(crate) struct QuantifiedEvaluation {
    pub(crate) every: Evaluation,
    pub(crate) some: Evaluation,
}

impl QuantifiedEvaluation {
    pub(crate) fn nothing() -> Self {
        Self { every: Evaluation::fixed(Truth::True), some: Evaluation::fixed(Truth::False) }
    }

    /// Joins the results of spans that do not change any more.
    pub(crate) fn frozen(truths: &[Truth]) -> Self {
        let mut joined = Self::nothing();
        for kind in Truth::ALL.into_iter().filter(|kind| truths.contains(kind)) {
            joined.add(Evaluation::fixed(kind));
        }
        joined
    }

    pub(crate) fn add(&mut self, one: Evaluation) {
        let every = std::mem::replace(&mut self.every, Evaluation::fixed(Truth::True));
        let some = std::mem::replace(&mut self.some, Evaluation::fixed(Truth::False));
        self.every = every.and(one.clone());
        self.some = some.or(one);
    }
}
