//! Assigns numbers to the nodes of trees that are evaluated together.
//!
//! An evaluation memoizes results of a node by this number, never by the memory address of the node. Code that changes a tree, or
//! builds one from parts of others, has to number it again. A node without a number is evaluated each time.

use std::num::NonZeroU32;

use super::ast::{Aggregate, At, Expr, ExprKind, NodeId, Piece, Pseudo, Selector, Subject};

/// The state of the numbering.
#[derive(Debug, Default)]
pub(crate) struct Numbers {
    last: u32,
}

impl Numbers {
    /// Numbers an expression and all nodes in it.
    pub(crate) fn expression(&mut self, expression: &mut Expr) {
        self.give(&mut expression.at);
        match &mut expression.kind {
            ExprKind::List(items) | ExprKind::And(items) | ExprKind::Or(items) => {
                self.expressions(items);
            }
            ExprKind::Call { arguments, .. } => self.expressions(arguments),
            ExprKind::Filter { input, arguments, .. } => {
                self.expression(input);
                self.expressions(arguments);
            }
            ExprKind::Minus(of) | ExprKind::Not(of) | ExprKind::Exists { value: of, .. } => {
                self.expression(of);
            }
            ExprKind::Arithmetic { left, right, .. } | ExprKind::Compare { left, right, .. } => {
                self.expression(left);
                self.expression(right);
            }
            ExprKind::Between { value, low, high, .. } => {
                [value, low, high].into_iter().for_each(|part| self.expression(part));
            }
            ExprKind::Within { condition, .. } => {
                condition.iter_mut().for_each(|condition| self.expression(condition));
            }
            ExprKind::Quantified { subject, predicate } => {
                self.subject(subject);
                predicate.iter_mut().for_each(|predicate| self.expression(predicate));
            }
            ExprKind::Relation { left, right, .. } => {
                self.subject(left);
                self.subject(right);
            }
            ExprKind::Aggregate(aggregate) => self.aggregate(aggregate),
            ExprKind::Gap { from, to } => {
                self.selector(from);
                self.selector(to);
            }
            ExprKind::Template(template) => {
                for piece in &mut template.pieces {
                    if let Piece::Value(value) = piece {
                        self.expression(value);
                    }
                }
            }
            ExprKind::Null
            | ExprKind::Bool(_)
            | ExprKind::Number { .. }
            | ExprKind::Duration(_)
            | ExprKind::Text(_)
            | ExprKind::Property(_)
            | ExprKind::Variable { .. }
            | ExprKind::Known(_)
            | ExprKind::Response(_) => {}
        }
    }

    /// Numbers a selector and all nodes in it.
    pub(crate) fn selector(&mut self, selector: &mut Selector) {
        self.give(&mut selector.at);
        for hop in selector.parts.iter_mut().flat_map(|part| &mut part.hops) {
            self.give(&mut hop.step.at);
            hop.step.condition.iter_mut().for_each(|condition| self.expression(condition));
            for pseudo in &mut hop.step.pseudos {
                if let Pseudo::Has(inner) | Pseudo::Not(inner) = pseudo {
                    self.selector(inner);
                }
            }
        }
    }

    fn expressions(&mut self, expressions: &mut [Expr]) {
        expressions.iter_mut().for_each(|expression| self.expression(expression));
    }

    fn subject(&mut self, subject: &mut Subject) {
        self.selector(&mut subject.selector);
    }

    fn aggregate(&mut self, aggregate: &mut Aggregate) {
        aggregate.value.iter_mut().for_each(|value| self.expression(value));
        self.selector(&mut aggregate.of);
        self.expressions(&mut aggregate.by);
    }

    /// Assigns the next number. After the last number a node gets none; no accepted document has that many nodes.
    fn give(&mut self, at: &mut At) {
        self.last = self.last.saturating_add(1);
        at.1 = NonZeroU32::new(self.last).filter(|number| number.get() < u32::MAX).map(NodeId);
    }
}
