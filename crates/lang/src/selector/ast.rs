//! The syntax tree of a selector.

use crate::{
    property::{Intrinsic, Property, TRIGGER_NAMES},
    value::Literal,
};

/// A union of parts; none at all selects every span.
#[derive(Clone, Debug, Default)]
pub(crate) struct Selector {
    pub(crate) parts: Vec<Part>,
}

/// Steps from the outside in; never empty.
#[derive(Clone, Debug)]
pub(crate) struct Part {
    pub(crate) steps: Vec<Step>,
}

#[derive(Clone, Debug)]
pub(crate) struct Step {
    pub(crate) filters: Vec<Filter>,
    pub(crate) position: Option<Position>,
    /// The step as written, for evidence.
    pub(crate) source: String,
}

#[derive(Clone, Debug)]
pub(crate) struct Filter {
    pub(crate) property: Property,
    /// The property as written.
    pub(crate) name: String,
    pub(crate) operator: Operator,
    pub(crate) value: Literal,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Equals,
    Contains,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Position {
    First,
    Last,
    /// From 1; there is no 0th.
    Nth(u64),
}

impl Selector {
    /// Whether a span that is selected stays selected whatever further spans come.
    ///
    /// Filters only look at the span itself, and a span keeps its ancestors; a position depends on all the others.
    pub(crate) fn is_lasting(&self) -> bool {
        self.parts.iter().flat_map(|part| &part.steps).all(|step| step.position.is_none())
    }

    /// Whether the trigger span is asked for by its name, and nothing else.
    pub(crate) fn is_trigger(&self) -> bool {
        !self.parts.is_empty()
            && self.parts.iter().all(|part| {
                part.steps.len() == 1 && part.steps[0].filters.iter().any(Filter::is_trigger_name)
            })
    }
}

impl Filter {
    /// Whether this is `name = "Tracetest trigger"`, in any of its spellings.
    fn is_trigger_name(&self) -> bool {
        self.property == Property::Intrinsic(Intrinsic::Name)
            && self.operator == Operator::Equals
            && TRIGGER_NAMES.contains(&&*self.value.text())
    }
}
