//! Determines from the syntax alone what further spans can change.
//!
//! A selection is lasting if a selected span stays selected. Conditions on the span itself are lasting, and so is a path along
//! parents and links, since these only grow. (Parents that form a cycle contradict themselves, and are not considered here.)
//! Selectors that depend on the absence of other spans are not lasting: `:leaf`, `:orphan`, `:not`, the next sibling, and every
//! position. Nor is a path along later siblings: a further span may show that two clocks contradict each other.

use crate::syntax::ast::{
    Aggregate, Arithmetic, Combinator, Expr, ExprKind, Hop, Intrinsic, Piece, Property, Pseudo,
    Selector, Summary,
};

/// How further spans may change a value. Later variants include the earlier ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Steadiness {
    /// Not at all.
    Fixed,
    /// According to its trend; it stays defined.
    Total,
    /// It may also become undefined.
    Loose,
    /// In an unknown way.
    Wild,
}

use Steadiness::{Fixed, Loose, Total, Wild};

/// Whether a selected span stays selected, whatever further spans arrive.
pub(crate) fn is_lasting(selector: &Selector) -> bool {
    selector.parts.iter().flat_map(|part| &part.hops).all(is_lasting_hop)
}

fn is_lasting_hop(hop: &Hop) -> bool {
    let step = &hop.step;
    !matches!(hop.combinator, Combinator::Adjacent | Combinator::Sibling)
        && step.position.is_none()
        && step.condition.as_ref().is_none_or(is_fixed)
        && step.pseudos.iter().all(|pseudo| match pseudo {
            Pseudo::Root => true,
            Pseudo::Has(selector) => is_lasting(selector),
            Pseudo::Leaf | Pseudo::Orphan | Pseudo::Not(_) => false,
        })
}

/// Whether a statement or value about one span never changes.
pub(crate) fn is_fixed(expression: &Expr) -> bool {
    steadiness(expression) == Fixed
}

/// Returns how a value may change. Statements count as values that are fixed or wild.
pub(crate) fn steadiness(expression: &Expr) -> Steadiness {
    match &expression.kind {
        ExprKind::Null
        | ExprKind::Bool(_)
        | ExprKind::Number { .. }
        | ExprKind::Duration(_)
        | ExprKind::Text(_)
        | ExprKind::Variable { .. }
        | ExprKind::Known(_)
        | ExprKind::Response(_) => Fixed,
        ExprKind::Property(property) => of_property(property),
        ExprKind::Template(template) => {
            whole(template.pieces.iter().filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Value(value) => Some(value),
            }))
        }
        ExprKind::List(items)
        | ExprKind::Call { arguments: items, .. }
        | ExprKind::And(items)
        | ExprKind::Or(items) => whole(items.iter()),
        ExprKind::Filter { input, arguments, .. } => whole(arguments.iter().chain([&**input])),
        ExprKind::Minus(value) => calculated(steadiness(value), Arithmetic::Subtract),
        ExprKind::Arithmetic { left, operator, right } => {
            calculated(steadiness(left).max(steadiness(right)), *operator)
        }
        ExprKind::Aggregate(aggregate) => of_aggregate(aggregate),
        ExprKind::Gap { .. } | ExprKind::Quantified { .. } | ExprKind::Relation { .. } => Wild,
        ExprKind::Compare { left, right, .. } => whole([&**left, &**right].into_iter()),
        ExprKind::Between { value, low, high, .. } => {
            whole([&**value, &**low, &**high].into_iter())
        }
        ExprKind::Exists { value, .. } | ExprKind::Not(value) => whole([&**value].into_iter()),
        ExprKind::Within { condition, .. } => whole(condition.as_deref().into_iter()),
    }
}

/// Returns the steadiness of a sum or a difference. The trend of any other operation is not analyzed.
fn calculated(parts: Steadiness, operator: Arithmetic) -> Steadiness {
    match (parts, operator) {
        (Fixed, _) => Fixed,
        (Total, Arithmetic::Add | Arithmetic::Subtract) => Total,
        _ => Wild,
    }
}

/// Returns the steadiness of a value that depends on its parts in a way that is not analyzed.
fn whole<'e>(mut parts: impl Iterator<Item = &'e Expr>) -> Steadiness {
    if parts.all(is_fixed) { Fixed } else { Wild }
}

fn of_property(property: &Property) -> Steadiness {
    match property {
        Property::Attribute { otherwise, .. } => {
            otherwise.as_ref().map_or(Fixed, |otherwise| of_property(otherwise))
        }
        Property::Intrinsic(
            Intrinsic::Depth | Intrinsic::Children | Intrinsic::SelfTime | Intrinsic::CriticalTime,
            _,
        )
        | Property::Count => Total,
        _ => Fixed,
    }
}

fn of_aggregate(aggregate: &Aggregate) -> Steadiness {
    let is_keyed_well = aggregate.by.iter().all(is_fixed);
    let value = match (&aggregate.value, aggregate.function) {
        _ if !is_keyed_well => return Wild,
        (None, _) | (_, Summary::Count) => return Total,
        _ if !is_lasting(&aggregate.of) => return Wild,
        (Some(value), _) => value,
    };
    match (steadiness(value), aggregate.function) {
        (Fixed | Total, _) if speaks_of_response(value) => Wild,
        (Fixed, Summary::Values) => Total,
        (Fixed | Total, Summary::Value | Summary::Values) => Loose,
        (Fixed | Total, _) if is_amount(value) => Total,
        (Fixed | Total, _) => Loose,
        (Loose | Wild, _) => Wild,
    }
}

/// Whether every span has the value, as a number or a duration.
fn is_amount(value: &Expr) -> bool {
    matches!(
        value.kind,
        ExprKind::Property(Property::Intrinsic(
            Intrinsic::Duration
                | Intrinsic::Start
                | Intrinsic::End
                | Intrinsic::Depth
                | Intrinsic::Children
                | Intrinsic::SelfTime
                | Intrinsic::CriticalTime,
            _,
        ))
    )
}

/// Whether an expression queries the response of the trigger.
pub(crate) fn speaks_of_response(expression: &Expr) -> bool {
    has(expression, &|one| {
        matches!(one.kind, ExprKind::Response(_) | ExprKind::Property(Property::Response(_)))
    })
}

/// Whether an expression queries a property of the current span, or the span itself.
pub(crate) fn speaks_of_span(expression: &Expr) -> bool {
    has(expression, &|one| match &one.kind {
        ExprKind::Property(Property::Count) => false,
        ExprKind::Property(_) | ExprKind::Within { .. } => true,
        ExprKind::Aggregate(aggregate) => !super::select::is_anchored(&aggregate.of),
        ExprKind::Gap { from, to } => {
            ![from, to].into_iter().all(|selector| super::select::is_anchored(selector))
        }
        ExprKind::Quantified { subject, .. } => !super::select::is_anchored(&subject.selector),
        ExprKind::Relation { left, right, .. } => {
            ![left, right].into_iter().all(|one| super::select::is_anchored(&one.selector))
        }
        _ => false,
    })
}

/// Whether an expression queries other spans of the trace: aggregates, quantified statements, relations.
pub(crate) fn speaks_of_trace(expression: &Expr) -> bool {
    has(expression, &|one| {
        matches!(
            one.kind,
            ExprKind::Aggregate(_)
                | ExprKind::Gap { .. }
                | ExprKind::Quantified { .. }
                | ExprKind::Relation { .. }
        )
    })
}

/// Whether an expression queries the number of selected spans.
pub(crate) fn speaks_of_count(expression: &Expr) -> bool {
    has(expression, &|one| matches!(one.kind, ExprKind::Property(Property::Count)))
}

/// Whether some part of an expression satisfies the predicate. Parts that refer to other spans are not visited.
fn has(expression: &Expr, is_so: &dyn Fn(&Expr) -> bool) -> bool {
    is_so(expression) || parts(expression).into_iter().any(|part| has(part, is_so))
}

/// Returns the parts of an expression that refer to the same span.
pub(crate) fn parts(expression: &Expr) -> Vec<&Expr> {
    match &expression.kind {
        ExprKind::Template(template) => template
            .pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Text(_) => None,
                Piece::Value(value) => Some(value),
            })
            .collect(),
        ExprKind::List(items)
        | ExprKind::Call { arguments: items, .. }
        | ExprKind::And(items)
        | ExprKind::Or(items) => items.iter().collect(),
        ExprKind::Filter { input, arguments, .. } => {
            [&**input].into_iter().chain(arguments).collect()
        }
        ExprKind::Minus(value) | ExprKind::Not(value) | ExprKind::Exists { value, .. } => {
            vec![value]
        }
        ExprKind::Arithmetic { left, right, .. } | ExprKind::Compare { left, right, .. } => {
            vec![left, right]
        }
        ExprKind::Between { value, low, high, .. } => vec![value, low, high],
        _ => Vec::new(),
    }
}
