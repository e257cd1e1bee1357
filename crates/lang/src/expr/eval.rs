//! What an expression is worth on a span.

use model::{Verdict, trace::Span};

use super::ast::{Assertion, Term};
use crate::{
    compare::{Compared, Operand, compare},
    property::{Lookup, Property, World},
    value::{Value, shorten},
};

/// What an assertion comes to on one span, or on none where it speaks of the count alone.
#[derive(Debug)]
pub(crate) enum Evaluated<'a> {
    Compared {
        left: Operand<'a>,
        right: Operand<'a>,
        compared: Compared,
    },
    /// The span has no such property.
    Absent(&'a str),
    /// The trigger has no answer, and this property speaks of it.
    Unknown(&'a str),
}

/// Why nobody knows whether an assertion holds on a span that is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Doubt {
    /// The trigger has no answer, which the assertion speaks of.
    NoAnswer,
    /// The comparison would take too long, so that it was not made.
    TooLarge,
}

/// Evaluates an assertion; `count` is the number of selected spans.
pub(crate) fn evaluate<'a>(
    assertion: &'a Assertion,
    world: &World<'a>,
    span: Option<Span<'a>>,
    count: u64,
) -> Evaluated<'a> {
    let operand = |term| operand(term, world, span, count);
    let (left, right) = match (operand(&assertion.left), operand(&assertion.right)) {
        (Ok(left), Ok(right)) => (left, right),
        (Err(missing), _) | (_, Err(missing)) => return missing,
    };
    let compared = compare(&left, assertion.comparator, &right);
    Evaluated::Compared { left, right, compared }
}

/// The value of a term on a span, as text; or why there is none.
pub(crate) fn output<'a>(
    term: &'a Term,
    world: &World<'a>,
    span: Span<'a>,
    count: u64,
) -> Result<String, String> {
    match operand(term, world, Some(span), count) {
        Ok(Operand::Found(Value::Nothing)) => Err("the attribute has no value".to_owned()),
        Ok(operand) => Ok(operand.text().into_owned()),
        Err(missing) => Err(missing.obstacle()),
    }
}

impl Doubt {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::NoAnswer => "the trigger has no answer",
            Self::TooLarge => "too large to compare",
        }
    }
}

impl Evaluated<'_> {
    pub(crate) fn verdict(&self) -> Verdict {
        match self {
            Self::Compared { compared, .. } if !compared.is_made() => Verdict::Inconclusive,
            Self::Compared { compared, .. } if compared.holds => Verdict::Passed,
            Self::Compared { .. } | Self::Absent(_) => Verdict::Failed,
            Self::Unknown(_) => Verdict::Inconclusive,
        }
    }

    /// Why it is open whether the assertion holds; none where the verdict says it.
    pub(crate) fn doubt(&self) -> Option<Doubt> {
        match self {
            Self::Compared { compared, .. } if !compared.is_made() => Some(Doubt::TooLarge),
            Self::Unknown(_) => Some(Doubt::NoAnswer),
            Self::Compared { .. } | Self::Absent(_) => None,
        }
    }

    /// The comparison that was made, with both values, or what stood in its way.
    pub(crate) fn describe(&self, assertion: &Assertion) -> String {
        let Self::Compared { left, right, compared } = self else { return self.obstacle() };
        let left = match &assertion.left {
            Term::Property { name, .. } => format!("`{}` is {}", shorten(name), left.show()),
            Term::Literal(_) => left.show(),
        };
        let right = match &assertion.right {
            Term::Property { name, .. } => {
                format!("`{}`, which is {}", shorten(name), right.show())
            }
            Term::Literal(_) => right.show(),
        };
        let remark = compared.remark.map_or(String::new(), |remark| format!(" ({remark})"));
        format!("{left}, expected {} {right}{remark}", assertion.comparator.as_str())
    }

    fn obstacle(&self) -> String {
        match self {
            Self::Absent(name) => format!("`{}` is not on this span", shorten(name)),
            Self::Unknown(name) => {
                format!("`{}` is not known: the trigger has no answer", shorten(name))
            }
            Self::Compared { .. } => String::new(),
        }
    }
}

fn operand<'a>(
    term: &'a Term,
    world: &World<'a>,
    span: Option<Span<'a>>,
    count: u64,
) -> Result<Operand<'a>, Evaluated<'a>> {
    let (property, name) = match term {
        Term::Literal(literal) => return Ok(Operand::Literal(literal)),
        Term::Property { property: Property::Count, .. } => {
            return Ok(Operand::Found(Value::whole(count)));
        }
        Term::Property { property, name } => (property, name),
    };
    match span.map(|span| world.look_up(property, span)) {
        Some(Lookup::Found(value)) => Ok(Operand::Found(value)),
        Some(Lookup::Unknown) => Err(Evaluated::Unknown(name)),
        Some(Lookup::Absent) | None => Err(Evaluated::Absent(name)),
    }
}
