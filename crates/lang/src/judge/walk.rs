//! Goes through the parts of a statement: every hop and every expression, those inside of its selectors included.

use crate::{
    eval::lasting::parts,
    syntax::ast::{Expr, ExprKind, Hop, Property, Pseudo, Selector},
};

/// What is done with the parts of a statement.
pub(super) trait Visitor {
    /// Visits a hop of a selector, before its conditions.
    fn hop(&mut self, _hop: &Hop) {}

    /// Visits an expression, before its parts.
    fn expression(&mut self, expression: &Expr);
}

/// Visits these parts of a statement.
pub(super) fn all<'e>(
    selectors: impl IntoIterator<Item = &'e Selector>,
    statements: impl IntoIterator<Item = &'e Expr>,
    visitor: &mut impl Visitor,
) {
    selectors.into_iter().for_each(|selector| in_selector(selector, visitor));
    statements.into_iter().for_each(|statement| in_expression(statement, visitor));
}

fn in_selector(selector: &Selector, visitor: &mut impl Visitor) {
    for hop in selector.parts.iter().flat_map(|part| &part.hops) {
        visitor.hop(hop);
        hop.step.condition.iter().for_each(|condition| in_expression(condition, visitor));
        for pseudo in &hop.step.pseudos {
            match pseudo {
                Pseudo::Has(inner) | Pseudo::Not(inner) => in_selector(inner, visitor),
                Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => {}
            }
        }
    }
}

fn in_expression(expression: &Expr, visitor: &mut impl Visitor) {
    visitor.expression(expression);
    match &expression.kind {
        ExprKind::Aggregate(aggregate) => {
            in_selector(&aggregate.of, visitor);
            let values = aggregate.value.iter().chain(&aggregate.by);
            values.for_each(|value| in_expression(value, visitor));
        }
        ExprKind::Gap { from, to } => {
            [from, to].into_iter().for_each(|side| in_selector(side, visitor));
        }
        ExprKind::Quantified { subject, predicate } => {
            in_selector(&subject.selector, visitor);
            predicate.iter().for_each(|predicate| in_expression(predicate, visitor));
        }
        ExprKind::Relation { left, right, .. } => {
            [left, right].into_iter().for_each(|it| in_selector(&it.selector, visitor));
        }
        _ => parts(expression).into_iter().for_each(|part| in_expression(part, visitor)),
    }
}

/// Whether an expression has a property like this, of the same span or of others.
pub(super) fn speaks_of(expression: &Expr, is_such: &dyn Fn(&Property) -> bool) -> bool {
    match &expression.kind {
        ExprKind::Property(property) => is_such(property),
        ExprKind::Aggregate(aggregate) => {
            aggregate.value.as_ref().is_some_and(|value| speaks_of(value, is_such))
        }
        _ => parts(expression).into_iter().any(|part| speaks_of(part, is_such)),
    }
}
