//! Converts values of evaluated expressions to evidence.
//!
//! A value that is not known has none; a long one is truncated; a secret is masked.

use model::{EvidenceList, EvidenceRange, EvidenceValue, NearMiss};

use super::words;
use crate::{
    eval::{
        expression::{ExprValue, Lack, Values},
        gap::gap_bounds,
        lookup::Lookup,
        misses::NearSpans,
        truth::held,
        world::{EvalContext, EvalScope},
    },
    secrets::MASK,
    syntax::ast::{Expr, ExprKind, Property, Selector},
    value::{Value, shorten, show_duration},
};

/// The maximum number of near misses of a statement.
pub(super) const NEAREST_MAX: usize = 3;

/// The maximum number of listed items of a list.
const ITEMS_MAX: usize = 20;

/// Returns the near misses of a selector, as evidence.
pub(super) fn near_misses<'a>(
    selector: &'a Selector,
    near: &NearSpans<'a>,
    world: &EvalContext<'a>,
) -> Vec<NearMiss> {
    let miss = |place: &usize| {
        let span = world.span_at(*place);
        let found = near.property.and_then(|property| on_span(property, *place, world));
        NearMiss {
            span_id: span.id(),
            name: shorten(span.name()).into_owned(),
            selector: words::selector(selector),
            condition: near.condition.clone(),
            found,
        }
    };
    near.places.iter().take(NEAREST_MAX).map(miss).collect()
}

/// Returns the value of a property on a span; `None` if it is not known.
fn on_span(property: &Property, place: usize, world: &EvalContext<'_>) -> Option<EvidenceValue> {
    match world.look_up(property, &world.scene_at(place)) {
        Lookup::One(value) => Some(shown(&value)),
        Lookup::Many(values) => Some(EvidenceValue::AnyOf(listed(&values))),
        Lookup::Between(bounds, _) => {
            let [low, high] = [bounds.low, bounds.high].map(duration);
            Some(EvidenceValue::Between(Box::new(EvidenceRange { low, high })))
        }
        Lookup::Absent => Some(EvidenceValue::Absent),
        Lookup::Untimed(_) | Lookup::Dropped(_) | Lookup::Encoded(_) | Lookup::Unknown => None,
    }
}

/// Returns the value of an expression; `None` if it is not known.
pub(super) fn value_of<'a>(value: &'a Expr, scene: &EvalScope<'_, 'a>) -> Option<EvidenceValue> {
    if let ExprKind::Gap { from, to } = &value.kind {
        let bounds = gap_bounds(from, to, scene).ok().filter(|bounds| bounds.unsure.is_none())?;
        return bounds.is_bounded().then(|| match bounds.low == bounds.high {
            true => duration(bounds.low),
            false => {
                let [low, high] = [bounds.low, bounds.high].map(duration);
                EvidenceValue::Between(Box::new(EvidenceRange { low, high }))
            }
        });
    }
    match held(value, scene) {
        Ok(held) => valued(held.valued()),
        Err(missing) => {
            let is_property = matches!(value.kind, ExprKind::Property(_) | ExprKind::Response(_));
            let is_absent = is_property && matches!(missing.lack, Lack::Undefined(_));
            is_absent.then_some(EvidenceValue::Absent)
        }
    }
}

/// Returns the value of an evaluated expression; `None` for groups, and if data may be missing in it.
fn valued(valued: &ExprValue<'_>) -> Option<EvidenceValue> {
    if valued.doubt.is_some() {
        return None;
    }
    if valued.is_secret {
        return Some(EvidenceValue::Text(MASK.to_owned()));
    }
    match &valued.values {
        Values::One(value) => Some(shown(value)),
        Values::Many(values) => Some(EvidenceValue::AnyOf(listed(values))),
        Values::Between(interval) => {
            let (low, high) = (shown(&interval.low), shown(&interval.high));
            Some(EvidenceValue::Between(Box::new(EvidenceRange { low, high })))
        }
        Values::Groups(_) => None,
    }
}

fn listed(values: &[Value<'_>]) -> EvidenceList {
    let items = values.iter().take(ITEMS_MAX).map(item).collect();
    EvidenceList { items, more: values.len().saturating_sub(ITEMS_MAX) as u64 }
}

/// Returns an item of a list. A list in a list is JSON, so that values do not nest further.
fn item(value: &Value<'_>) -> EvidenceValue {
    match value {
        Value::List(_) => EvidenceValue::Json(shorten(&value.text()).into_owned()),
        value => shown(value),
    }
}

/// Returns a value for evidence, truncated if it is too long.
pub(super) fn shown(value: &Value<'_>) -> EvidenceValue {
    let text = || shorten(&value.text()).into_owned();
    match value {
        Value::Nothing => EvidenceValue::Absent,
        Value::Null => EvidenceValue::Null,
        Value::Bool(bool) => EvidenceValue::Boolean(*bool),
        Value::Number(number) | Value::Numeral { number, .. } => {
            EvidenceValue::Number(shorten(&number.to_string()).into_owned())
        }
        Value::Duration(nanos) => duration(*nanos),
        Value::Text(_) | Value::Quoted(_) | Value::Bytes(_) => EvidenceValue::Text(text()),
        Value::Json(_) => EvidenceValue::Json(text()),
        Value::List(items) => EvidenceValue::List(listed(items)),
    }
}

fn duration(nanos: i128) -> EvidenceValue {
    match i64::try_from(nanos) {
        Ok(nanos) => EvidenceValue::DurationNs(nanos),
        Err(_) => EvidenceValue::Text(show_duration(nanos)),
    }
}
