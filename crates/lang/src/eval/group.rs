//! Groups spans by the keys that they share.

use std::collections::HashMap;

use model::trace::{NumberedAttribute, Span};

use super::{
    aggregate::VALUE_STEPS,
    expression::{ExprValue, Lack, Values, value_of},
    world::EvalScope,
};
use crate::{
    budget,
    syntax::ast::{Aggregate, Expr, ExprKind, Intrinsic, Property},
    value::{Value, key::key},
};

/// The group of each span.
#[derive(Debug)]
pub(super) struct GroupIndex {
    /// The number of the group, in the order of the spans.
    numbers: Vec<u32>,
    /// The number of spans, by group.
    pub(super) sizes: Vec<u64>,
    /// Why the group of some span is unknown; that span is in no group.
    pub(super) doubt: Option<String>,
}

/// Marks a span that is in no group.
const NO_GROUP: u32 = u32::MAX;

impl GroupIndex {
    pub(super) fn of<'a>(
        aggregate: &'a Aggregate,
        places: &[u32],
        scene: &EvalScope<'_, 'a>,
    ) -> Self {
        let columns: Vec<_> = aggregate.by.iter().map(|by| (by, Column::of(by, scene))).collect();
        let Some((last, first)) = columns.split_last() else {
            let (numbers, sizes) = (vec![0; places.len()], vec![places.len() as u64]);
            return Self { numbers, sizes, doubt: None };
        };
        let mut keys = Keys::default();
        let numbers = Vec::with_capacity(places.len());
        let mut grouped = Self { numbers, sizes: Vec::new(), doubt: None };
        for place in places {
            if !budget::spend(VALUE_STEPS * columns.len() as u64) {
                grouped.doubt = Some(budget::OVER.to_owned());
                break;
            }
            let inner = scene.at(*place as usize);
            let key = match keys.of_span(first, last, &inner) {
                Ok(key) => key,
                Err(reason) => {
                    grouped.doubt.get_or_insert(reason);
                    grouped.numbers.push(NO_GROUP);
                    continue;
                }
            };
            if key as usize == grouped.sizes.len() {
                grouped.sizes.push(0);
            }
            grouped.sizes[key as usize] += 1;
            grouped.numbers.push(key);
        }
        grouped
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        (4 * self.numbers.len() + 8 * self.sizes.len()) as u64
    }

    pub(super) fn split(&self, places: &[u32]) -> Vec<Vec<u32>> {
        let mut groups = vec![Vec::new(); self.sizes.len()];
        for (number, place) in self.numbers.iter().zip(places) {
            if let Some(group) = groups.get_mut(*number as usize) {
                group.push(*place);
            }
        }
        groups
    }
}

/// Keys by number: equal keys have equal numbers.
#[derive(Default)]
struct Keys {
    /// By the key without its last part, and that part.
    whole: HashMap<u128, u32>,
    /// The same for the parts before the last one; 0 means none.
    beginnings: HashMap<u128, u32>,
    texts: HashMap<String, u64>,
}

/// One part of a key.
#[derive(Clone, Copy)]
enum KeyPart {
    Absent,
    /// A text of the trace, by its number.
    Text(u32),
    Id([u8; 8]),
    /// Any other value, by its own number.
    Other(u64),
}

impl KeyPart {
    /// Combines the part with the number of the parts before it.
    fn behind(self, beginning: u32) -> u128 {
        let (kind, number) = match self {
            Self::Absent => (0, 0),
            Self::Text(number) => (1, number.into()),
            Self::Id(id) => (2, u64::from_be_bytes(id)),
            Self::Other(number) => (3, number),
        };
        u128::from(beginning) << 96 | kind << 64 | u128::from(number)
    }
}

impl Keys {
    /// Returns the key of a span. The error states why it is unknown.
    fn of_span<'a>(
        &mut self,
        first: &[(&'a Expr, Column)],
        (last, column): &(&'a Expr, Column),
        scene: &EvalScope<'_, 'a>,
    ) -> Result<u32, String> {
        let mut beginning = 0;
        for (by, column) in first {
            let part = self.part(by, column, scene)?;
            beginning = self.begin(beginning, part);
        }
        let part = self.part(last, column, scene)?;
        Ok(self.finish(beginning, part))
    }

    fn part<'a>(
        &mut self,
        by: &'a Expr,
        column: &Column,
        scene: &EvalScope<'_, 'a>,
    ) -> Result<KeyPart, String> {
        if let Some(number) = column.on(scene).and_then(NumberedAttribute::text) {
            return Ok(KeyPart::Text(number));
        }
        if let ExprKind::Property(Property::Intrinsic(Intrinsic::ParentId, _)) = by.kind
            && let Some(parent) = scene.span.and_then(Span::parent)
        {
            return Ok(KeyPart::Id(*parent.as_bytes()));
        }
        let text = match value_of(by, scene) {
            Ok(ExprValue { values: Values::One(Value::Text(text)), .. }) => {
                match scene.world.trace.text_number(&text) {
                    Some(number) => return Ok(KeyPart::Text(number)),
                    None => format!("text {text}"),
                }
            }
            Ok(ExprValue { values: Values::One(value), .. }) => key(&value),
            Ok(ExprValue { values: Values::Many(values), .. }) => {
                format!("many {}", key(&Value::List(values)))
            }
            Ok(ExprValue { values: Values::Between(interval), .. }) => return Err(interval.reason),
            Ok(found) => format!("groups {:?}", found.values),
            Err(Lack::Undefined(_)) => return Ok(KeyPart::Absent),
            Err(Lack::Open(reason)) => return Err(reason),
        };
        budget::spend(text.len() as u64);
        let next = self.texts.len() as u64;
        Ok(KeyPart::Other(*self.texts.entry(text).or_insert(next)))
    }

    fn begin(&mut self, key: u32, part: KeyPart) -> u32 {
        let next = self.beginnings.len() as u32 + 1;
        *self.beginnings.entry(part.behind(key)).or_insert(next)
    }

    fn finish(&mut self, key: u32, part: KeyPart) -> u32 {
        let next = self.whole.len() as u32;
        *self.whole.entry(part.behind(key)).or_insert(next)
    }
}

/// A property that is read from many spans, with its name looked up once.
pub(super) enum Column {
    /// An attribute of the span itself, by the number of its key.
    Attribute(u32),
    /// A value of the resource: the same for all of its spans.
    Resource,
    Duration,
    Other,
}

impl Column {
    pub(super) fn of(value: &Expr, scene: &EvalScope<'_, '_>) -> Self {
        match &value.kind {
            ExprKind::Property(Property::Attribute { name, .. }) => {
                scene.world.trace.text_number(name).map_or(Self::Other, Self::Attribute)
            }
            ExprKind::Property(
                Property::Resource(_) | Property::Intrinsic(Intrinsic::Service, _),
            ) => Self::Resource,
            ExprKind::Property(Property::Intrinsic(Intrinsic::Duration, _)) => Self::Duration,
            _ => Self::Other,
        }
    }

    /// Returns the value on the span itself. If it is absent there, the resource may still have it.
    pub(super) fn on<'a>(&self, scene: &EvalScope<'_, 'a>) -> Option<NumberedAttribute<'a>> {
        let Self::Attribute(key) = self else { return None };
        let mut attributes = scene.world.trace.numbered_attributes(scene.span?.ix());
        // As everywhere: if a key occurs twice, the last value counts.
        attributes.rfind(|attribute| attribute.key() == *key)
    }
}
