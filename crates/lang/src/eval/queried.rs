//! Collects the properties that an expression or a selector queries, on any span.

use super::lasting::parts;
use crate::syntax::ast::{Expr, ExprKind, Hop, Property, Pseudo, Selector};

/// Adds the properties that an expression names, at any depth.
pub(crate) fn queried_by<'a>(expression: &'a Expr, found: &mut Vec<&'a Property>) {
    match &expression.kind {
        ExprKind::Property(property) => found.push(property),
        ExprKind::Aggregate(aggregate) => {
            queried_within(&aggregate.of, found);
            let values = aggregate.value.iter().chain(&aggregate.by);
            values.for_each(|value| queried_by(value, found));
        }
        ExprKind::Gap { from, to } => {
            queried_within(from, found);
            queried_within(to, found);
        }
        ExprKind::Quantified { subject, predicate } => {
            queried_within(&subject.selector, found);
            predicate.iter().for_each(|predicate| queried_by(predicate, found));
        }
        ExprKind::Relation { left, right, .. } => {
            queried_within(&left.selector, found);
            queried_within(&right.selector, found);
        }
        ExprKind::Within { condition, .. } => {
            condition.iter().for_each(|condition| queried_by(condition, found));
        }
        _ => parts(expression).into_iter().for_each(|part| queried_by(part, found)),
    }
}

/// Adds the properties that a selector names.
pub(crate) fn queried_within<'a>(selector: &'a Selector, found: &mut Vec<&'a Property>) {
    for Hop { step, .. } in selector.parts.iter().flat_map(|part| &part.hops) {
        step.condition.iter().for_each(|condition| queried_by(condition, found));
        for pseudo in &step.pseudos {
            if let Pseudo::Has(inner) | Pseudo::Not(inner) = pseudo {
                queried_within(inner, found);
            }
        }
    }
}
