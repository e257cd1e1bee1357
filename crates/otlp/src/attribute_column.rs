//! The values of one attribute of all spans, in the order of [`columns`](crate::columns): to group spans by it.

use std::collections::HashMap;

use model::{
    Trace,
    trace::{Tree, ValueRef},
};

use crate::columns::tree;

/// The number of a span without the attribute.
const ABSENT: u16 = u16::MAX;
/// The number of all values beyond the maximum.
const OTHER: u16 = u16::MAX - 1;

/// The values of an attribute.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeColumn {
    /// The different values, in the order of the spans that have them.
    pub values: Vec<String>,
    /// For each span the number of its value; [`AttributeColumn::ABSENT`] without one, [`AttributeColumn::OTHER`] for values beyond
    /// the maximum.
    pub spans: Vec<u16>,
}

impl AttributeColumn {
    /// The number of a span without the attribute.
    pub const ABSENT: u16 = ABSENT;
    /// The number of all values beyond the maximum.
    pub const OTHER: u16 = OTHER;
}

/// Returns the values of an attribute of each span, else of its resource; at most `values_max` different ones, as texts.
pub fn attribute_column(
    trace: &Trace,
    key: &str,
    values_max: usize,
    text: impl Fn(ValueRef<'_>) -> String,
) -> AttributeColumn {
    let order: Tree = tree(trace);
    let values_max = values_max.min(usize::from(OTHER));
    let (mut values, mut numbers) = (Vec::new(), HashMap::new());
    let mut number = |value: ValueRef<'_>| {
        let value = text(value);
        match numbers.get(&value) {
            Some(known) => *known,
            None if values.len() == values_max => OTHER,
            None => {
                let next = values.len() as u16;
                values.push(value.clone());
                numbers.insert(value, next);
                next
            }
        }
    };
    let of_span = |ix: &_| {
        let span = trace.span(*ix);
        let value = span.attributes().get(key).or_else(|| span.resource().attributes().get(key));
        value.map_or(ABSENT, &mut number)
    };
    let spans = order.order().iter().map(of_span).collect();
    AttributeColumn { values, spans }
}
