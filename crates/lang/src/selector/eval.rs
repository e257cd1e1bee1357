//! Which spans a selector selects.

use model::trace::{Span, SpanIx};

use super::ast::{Filter, Operator, Part, Position, Selector, Step};
use crate::{
    compare::{Comparator, Operand, compare},
    property::{Intrinsic, Lookup, Property, TRIGGER_NAMES, World},
    value::{Literal, Value},
};

/// The selected spans, each once: part by part, each part in document order.
pub(crate) fn select(selector: &Selector, world: &World<'_>) -> Vec<SpanIx> {
    let order = world.tree.order();
    if selector.parts.is_empty() {
        return order.to_vec();
    }
    let mut is_selected = vec![false; order.len()];
    let mut selected = Vec::new();
    for part in &selector.parts {
        for place in select_part(part, world) {
            if !std::mem::replace(&mut is_selected[place], true) {
                selected.push(order[place]);
            }
        }
    }
    selected
}

/// The places, in the tree's order, of the spans that match one step by its filters alone.
pub(super) fn matching(step: &Step, world: &World<'_>) -> Vec<usize> {
    let order = world.tree.order();
    (0..order.len())
        .filter(|place| {
            let span = world.trace.span(order[*place]);
            step.filters.iter().all(|filter| matches(filter, world, span))
        })
        .collect()
}

/// Whether one filter holds for a span.
pub(super) fn matches<'a>(filter: &Filter, world: &World<'a>, span: Span<'a>) -> bool {
    let is_name = filter.property == Property::Intrinsic(Intrinsic::Name);
    if is_name && world.is_trigger(span.ix()) {
        // The trigger span answers to both of its names, and to its own if it came with another.
        let mut names = TRIGGER_NAMES.iter().copied().chain([span.name()]);
        return names.any(|name| holds(filter, &Value::Text(name.into())));
    }
    match world.look_up(&filter.property, span) {
        Lookup::Found(value) => holds(filter, &value),
        Lookup::Absent | Lookup::Unknown => false,
    }
}

fn holds(filter: &Filter, value: &Value<'_>) -> bool {
    match (filter.operator, value) {
        (_, Value::Nothing) => false,
        (Operator::Contains, Value::List(items)) => {
            items.iter().any(|item| equals(&filter.value, &item.into()))
        }
        (Operator::Contains, _) => value.text().contains(&*filter.value.text()),
        (Operator::Equals, _) => equals(&filter.value, value),
    }
}

fn equals(literal: &Literal, value: &Value<'_>) -> bool {
    match literal {
        _ if matches!(value, Value::Nothing) => false,
        Literal::Text(text) => value.text() == text.as_str(),
        _ => {
            let found = Operand::Found(value.clone());
            compare(&found, Comparator::Equal, &Operand::Literal(literal)).holds
        }
    }
}

/// The places of the spans that a part selects, in document order.
pub(super) fn select_part(part: &Part, world: &World<'_>) -> Vec<usize> {
    let mut ancestors: Option<Vec<usize>> = None;
    for step in &part.steps {
        let found = matching(step, world);
        ancestors = Some(match (ancestors, step.position) {
            (None, None) => found,
            (None, Some(position)) => pick(&found, position).into_iter().collect(),
            (Some(ancestors), None) => below(&ancestors, &found, world),
            (Some(ancestors), Some(position)) => picked_below(&ancestors, &found, position, world),
        });
    }
    ancestors.unwrap_or_default()
}

/// Those of `found` that have an ancestor among `ancestors`. Both are sorted.
fn below(ancestors: &[usize], found: &[usize], world: &World<'_>) -> Vec<usize> {
    if let Some(trigger) = ancestors.iter().find(|place| is_trigger(**place, world)) {
        return found.iter().copied().filter(|place| place != trigger).collect();
    }
    // A subtree is a stretch of the order, so a span is below one of the ancestors that stand before it exactly if
    // it stands before the furthest end of their subtrees.
    let mut ancestors = ancestors.iter().peekable();
    let mut end = 0;
    let is_below = |place: &usize| {
        while let Some(ancestor) = ancestors.next_if(|ancestor| *ancestor < place) {
            end = end.max(world.tree.subtree(world.tree.order()[*ancestor]).end);
        }
        *place < end
    };
    found.iter().copied().filter(is_below).collect()
}

/// What the position picks from `found` below each of the ancestors.
fn picked_below(
    ancestors: &[usize],
    found: &[usize],
    position: Position,
    world: &World<'_>,
) -> Vec<usize> {
    let picked = |ancestor: &usize| {
        if is_trigger(*ancestor, world) {
            return pick(&below(&[*ancestor], found, world), position);
        }
        let subtree = world.tree.subtree(world.tree.order()[*ancestor]);
        let start = found.partition_point(|place| *place <= subtree.start);
        let end = found.partition_point(|place| *place < subtree.end);
        pick(&found[start..end.max(start)], position)
    };
    let mut places: Vec<usize> = ancestors.iter().filter_map(picked).collect();
    places.sort_unstable();
    places.dedup();
    places
}

/// Everything in the trace is the trigger's doing, so it counts as an ancestor also of spans whose parent is absent.
fn is_trigger(place: usize, world: &World<'_>) -> bool {
    world.is_trigger(world.tree.order()[place])
}

fn pick(found: &[usize], position: Position) -> Option<usize> {
    match position {
        Position::First => found.first().copied(),
        Position::Last => found.last().copied(),
        Position::Nth(count) => found.get(usize::try_from(count.checked_sub(1)?).ok()?).copied(),
    }
}
