//! The syntax tree of an expression.

use crate::{
    compare::Comparator,
    numeral::Number,
    property::Property,
    value::{Literal, Value},
};

#[derive(Clone, Debug)]
pub(crate) struct Assertion {
    pub(crate) left: Term,
    pub(crate) comparator: Comparator,
    pub(crate) right: Term,
}

#[derive(Clone, Debug)]
pub(crate) enum Term {
    Property {
        property: Property,
        /// As written, without `attr:`.
        name: String,
    },
    Literal(Literal),
}

impl Assertion {
    fn properties(&self) -> impl Iterator<Item = &Property> {
        [&self.left, &self.right].into_iter().filter_map(|term| match term {
            Term::Property { property, .. } => Some(property),
            Term::Literal(_) => None,
        })
    }

    /// Whether the number of selected spans is asked for.
    pub(crate) fn speaks_of_count(&self) -> bool {
        self.properties().any(|property| *property == Property::Count)
    }

    /// Whether the number of selected spans is asked for, and nothing of a single one.
    pub(crate) fn speaks_of_count_alone(&self) -> bool {
        self.speaks_of_count() && self.properties().all(|property| *property == Property::Count)
    }

    /// Whether the trigger's answer is asked for, and nothing else.
    pub(crate) fn speaks_of_response_alone(&self) -> bool {
        self.properties().next().is_some()
            && self.properties().all(|property| matches!(property, Property::Response(_)))
    }

    /// For a count compared with a whole number: the comparator, as if the count stood on the left, and the number.
    pub(crate) fn count_bound(&self) -> Option<(Comparator, Number)> {
        let number = |term: &Term| match term {
            Term::Literal(literal) => match literal.value() {
                Value::Number(number) => Some(number),
                _ => None,
            },
            Term::Property { .. } => None,
        };
        let is_count =
            |term: &Term| matches!(term, Term::Property { property: Property::Count, .. });
        if is_count(&self.left) {
            return Some((self.comparator, number(&self.right)?));
        }
        is_count(&self.right).then_some(())?;
        Some((self.comparator.mirrored()?, number(&self.left)?))
    }
}
