//! Compiles all patterns of a test before the test is judged, and counts their memory.

use super::lasting::parts;
use crate::{
    budget,
    syntax::ast::{Comparator, Expr, ExprKind, Filter, Hop, Pseudo, Selector},
    value::Literal,
};

/// Counts the patterns in these expressions and selectors, and returns whether the budget has room for them.
pub(super) fn hold_patterns(expressions: &[&Expr], selectors: &[&Selector]) -> bool {
    let mut found = Vec::new();
    expressions.iter().for_each(|expression| in_expression(expression, &mut found));
    selectors.iter().for_each(|selector| in_selector(selector, &mut found));
    found.into_iter().filter_map(|literal| literal.pattern().ok()).all(|pattern| {
        budget::spend(pattern.compile_steps());
        budget::hold(pattern.bytes())
    })
}

fn in_expression<'a>(expression: &'a Expr, found: &mut Vec<&'a Literal>) {
    match &expression.kind {
        ExprKind::Compare { left, comparator: Comparator::Matches, right, .. } => {
            in_expression(left, found);
            found.extend(right.literal());
        }
        ExprKind::Filter { input, filter: Filter::Regex | Filter::RegexGroup, arguments } => {
            in_expression(input, found);
            found.extend(arguments.iter().filter_map(Expr::literal));
        }
        ExprKind::Aggregate(aggregate) => {
            in_selector(&aggregate.of, found);
            aggregate.value.iter().chain(&aggregate.by).for_each(|it| in_expression(it, found));
        }
        ExprKind::Gap { from, to } => {
            in_selector(from, found);
            in_selector(to, found);
        }
        ExprKind::Quantified { subject, predicate } => {
            in_selector(&subject.selector, found);
            predicate.iter().for_each(|predicate| in_expression(predicate, found));
        }
        ExprKind::Relation { left, right, .. } => {
            in_selector(&left.selector, found);
            in_selector(&right.selector, found);
        }
        ExprKind::Within { condition, .. } => {
            condition.iter().for_each(|condition| in_expression(condition, found));
        }
        _ => parts(expression).into_iter().for_each(|part| in_expression(part, found)),
    }
}

fn in_selector<'a>(selector: &'a Selector, found: &mut Vec<&'a Literal>) {
    for Hop { step, .. } in selector.parts.iter().flat_map(|part| &part.hops) {
        step.condition.iter().for_each(|condition| in_expression(condition, found));
        for pseudo in &step.pseudos {
            if let Pseudo::Has(inner) | Pseudo::Not(inner) = pseudo {
                in_selector(inner, found);
            }
        }
    }
}
