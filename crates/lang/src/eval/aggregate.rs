//! Evaluates aggregates: one value from the values of many spans, such as their count, sum, extremes or common value.
//!
//! Numbers are added to numbers and durations to durations; a text counts if it contains one of them. Integers are summed
//! exactly, doubles with compensated summation (Neumaier). Other values are skipped, and a note reports them. A percentile is the
//! value at its nearest rank. A span without the value makes the aggregate undefined, except that `values` collects the present
//! values. With keys after `by`, each group has its own aggregate; a span that lacks a key is in the group of spans that lack it.

use std::{
    cell::{Cell, OnceCell},
    collections::HashSet,
    rc::Rc,
};

use model::trace::Span;

use super::{
    contrast::Contrast,
    doubt::{Selection, SelectionDoubt, count_sure, selection},
    drop_count::unseen,
    expression::{Doubt, ExprValue, Interval, Lack, Trend, Values, value_of},
    future::Truth,
    group::{Column, GroupIndex},
    lasting::{is_fixed, is_lasting},
    members::Members,
    select::is_anchored,
    several::found_of,
    span_time::duration,
    summary::{NoValue, SummaryValue, ValueCollector, over_budget},
    world::{EvalScope, TOO_MANY_LOOKS},
};
use crate::{
    budget,
    syntax::ast::{Aggregate, Comparator, Expr, Summary},
    value::{
        Number, TOO_LARGE, Value,
        compare::{compare, is_among},
        shorten,
    },
};

/// An aggregate over the complete trace, which does not depend on the current span.
#[derive(Debug)]
pub(crate) struct Constant<'a> {
    pub(crate) valued: ExprValue<'a>,
    note: Option<String>,
    grouped: Option<GroupIndex>,
    members: OnceCell<Members>,
    /// The number of items that were compared one by one.
    searched: Cell<usize>,
}

/// The maximum number of list items that are compared one by one, for all spans together.
const SEARCHED_MAX: usize = 64_000_000;

/// The budget steps to evaluate a value on one span.
pub(super) const VALUE_STEPS: u64 = 16;

/// Returns the value of an aggregate.
pub(crate) fn aggregate<'a>(
    aggregate: &'a Aggregate,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprValue<'a>, Lack> {
    let valued = match constant(aggregate, scene) {
        Some(constant) => constant.map(|constant| {
            budget::spend(constant.valued.values.bytes() / 8);
            constant.valued.clone()
        }),
        None => of_span(aggregate, scene),
    };
    match valued {
        // Only a comparison can determine whether the doubt matters.
        Ok(ExprValue { doubt: Some(doubt), .. }) => Err(Lack::Open(doubt.reason)),
        valued => valued.map_err(|missing| missing.lack),
    }
}

/// Returns the value of an aggregate relative to the current span. The error states whether it can ever have one.
pub(super) fn of_span<'a>(
    aggregate: &'a Aggregate,
    scene: &EvalScope<'_, 'a>,
) -> Result<ExprValue<'a>, NoValue> {
    compute(aggregate, scene).map(|computed| computed.valued)
}

/// Returns the value of an aggregate that does not depend on the current span; `None` for other aggregates.
pub(crate) fn constant<'a>(
    aggregate: &'a Aggregate,
    scene: &EvalScope<'_, 'a>,
) -> Option<Result<Rc<Constant<'a>>, NoValue>> {
    let make = || {
        let AggregateValue { valued, note, grouped } = compute(aggregate, scene)?;
        let (members, searched) = (OnceCell::new(), Cell::new(0));
        Ok(Rc::new(Constant { valued, note, grouped, members, searched }))
    };
    is_anchored(&aggregate.of).then(|| (*scene.world.constant(aggregate, make)).clone())
}

/// A value, a note on values that were skipped or converted for it, and the groups if there are any.
struct AggregateValue<'a> {
    valued: ExprValue<'a>,
    note: Option<String>,
    grouped: Option<GroupIndex>,
}

fn compute<'a>(
    aggregate: &'a Aggregate,
    scene: &EvalScope<'_, 'a>,
) -> Result<AggregateValue<'a>, NoValue> {
    let is_lasting =
        is_lasting(&aggregate.of) && aggregate.value.iter().chain(&aggregate.by).all(is_fixed);
    try_compute(aggregate, scene)
        .map_err(|missing| NoValue { is_for_good: missing.is_for_good && is_lasting, ..missing })
}

fn try_compute<'a>(
    aggregate: &'a Aggregate,
    scene: &EvalScope<'_, 'a>,
) -> Result<AggregateValue<'a>, NoValue> {
    if aggregate.by.is_empty() && aggregate.function == Summary::Count && aggregate.value.is_none()
    {
        let (count, doubt) = count_sure(&aggregate.of, scene);
        let count = Value::whole(count as u64);
        let values = match doubt {
            None => Values::One(count),
            Some(doubt) => Values::Between(Box::new(Interval {
                low: count,
                high: Value::whole(doubt.possible as u64),
                reason: doubt.reason.clone(),
            })),
        };
        let valued = valued(aggregate, (values, false), Vec::new())?;
        return Ok(AggregateValue { valued, note: None, grouped: None });
    }
    let Selection { sure: places, doubt } = selection(&aggregate.of, scene);
    let mut doubts: Vec<String> = doubt.iter().map(|doubt| doubt.reason.clone()).collect();
    if let Some(doubt) = doubt.as_ref().filter(|_| places.is_empty()) {
        let lack = Lack::Open(doubt.reason.clone());
        return Err(NoValue { lack, is_for_good: false });
    }
    if scene.span.is_some() && !scene.world.may_look(places.len()) {
        let lack = Lack::Open(TOO_MANY_LOOKS.to_owned());
        return Err(NoValue { lack, is_for_good: false });
    }
    let over = |places: &[u32]| {
        let summed = over(aggregate, places, scene);
        summed.map_err(|missing| open_beside(missing, aggregate.function, doubt.as_deref()))
    };
    // Without spans there are no groups, and nothing may hold vacuously for every group: it is the aggregate of no span.
    if aggregate.by.is_empty() || places.is_empty() {
        let SummaryValue { value, high, note, is_secret, doubt, between } = over(&places)?;
        let values = match (high, between) {
            (Some(high), Some(reason)) if high != value => {
                Values::Between(Box::new(Interval { low: value, high, reason }))
            }
            _ => Values::One(value),
        };
        doubts.extend(doubt);
        let valued = valued(aggregate, (values, is_secret), doubts)?;
        return Ok(AggregateValue { valued, note, grouped: None });
    }
    let grouped = GroupIndex::of(aggregate, &places, scene);
    doubts.extend(grouped.doubt.clone());
    let mut is_secret = false;
    // The caller that shows a group gets its key from `key_of`.
    let keyed = |value| (String::new(), value);
    let values: Result<Vec<_>, NoValue> = match (aggregate.function, &aggregate.value) {
        (Summary::Count, None) => {
            Ok(grouped.sizes.iter().map(|n| keyed(Value::whole(*n))).collect())
        }
        _ => grouped
            .split(&places)
            .iter()
            .map(|places| {
                let summed = over(places)?;
                is_secret |= summed.is_secret;
                doubts.extend(summed.doubt);
                match summed.between {
                    Some(reason) if summed.high.as_ref() != Some(&summed.value) => {
                        Err(NoValue { lack: Lack::Open(reason), is_for_good: false })
                    }
                    _ => Ok(keyed(summed.value)),
                }
            })
            .collect(),
    };
    let valued = valued(aggregate, (Values::Groups(values?), is_secret), doubts)?;
    Ok(AggregateValue { valued, note: None, grouped: Some(grouped) })
}

/// If no known span has a value, a span that possibly matches too may have the first value.
fn open_beside(missing: NoValue, function: Summary, doubt: Option<&SelectionDoubt>) -> NoValue {
    match (&missing.lack, doubt) {
        (Lack::Undefined(_), Some(doubt)) if function == Summary::Values => {
            NoValue { lack: Lack::Open(doubt.reason.clone()), is_for_good: false }
        }
        _ => missing,
    }
}

/// Returns the value with its doubt. Whether all spans share one value is unknown if one of the values is unknown.
fn valued<'a>(
    aggregate: &Aggregate,
    (values, is_secret): (Values<'a>, bool),
    doubts: Vec<String>,
) -> Result<ExprValue<'a>, NoValue> {
    let doubt = doubts.into_iter().next().map(|reason| {
        // An unknown value may also be absent, which leaves all functions but these without a value.
        let trend = match aggregate.function {
            Summary::Count | Summary::Values => trend_of(aggregate.function),
            _ => Trend::Any,
        };
        Doubt { reason, trend }
    });
    match doubt {
        Some(Doubt { reason, .. }) if aggregate.function == Summary::Value => {
            Err(NoValue { lack: Lack::Open(reason), is_for_good: false })
        }
        doubt => Ok(ExprValue {
            values,
            trend: trend(aggregate),
            is_secret,
            doubt,
            literal: None,
            is_several: false,
        }),
    }
}

/// Returns how further spans change the value of an aggregate.
pub(super) fn trend(aggregate: &Aggregate) -> Trend {
    let is_steady = is_lasting(&aggregate.of) && aggregate.value.as_ref().is_none_or(is_fixed);
    if is_steady { trend_of(aggregate.function) } else { Trend::Any }
}

/// Returns how one more value changes the result.
fn trend_of(function: Summary) -> Trend {
    match function {
        Summary::Count | Summary::Max | Summary::Values => Trend::Rising,
        Summary::Min => Trend::Falling,
        Summary::Value => Trend::Fixed,
        Summary::Sum | Summary::Average | Summary::Percentile(_) => Trend::Any,
    }
}

/// Aggregates the spans at these positions.
pub(crate) fn over<'a>(
    aggregate: &'a Aggregate,
    places: &[u32],
    scene: &EvalScope<'_, 'a>,
) -> Result<SummaryValue<'a>, NoValue> {
    let Some(value) = &aggregate.value else {
        return Ok(SummaryValue::new(Value::whole(places.len() as u64)));
    };
    if places.is_empty() {
        let written = crate::syntax::print::selector(&aggregate.of);
        let lack = Lack::Undefined(format!("no span matches `{}`", shorten(&written)));
        return Err(NoValue { lack, is_for_good: false });
    }
    let is_optional = aggregate.function == Summary::Values;
    let mut gathered = ValueCollector::new(aggregate.function);
    let mut is_secret = false;
    // Why some value is unknown, and why some value is known only between bounds.
    let (mut doubt, mut between): (Option<String>, Option<String>) = (None, None);
    let column = Column::of(value, scene);
    let mut resources = HashSet::new();
    for place in places {
        if !budget::spend(VALUE_STEPS) {
            return Err(over_budget());
        }
        let inner = scene.at(*place as usize);
        if let Some(found) = column.on(&inner) {
            gathered.add(found.value().into())?;
            continue;
        }
        if let (Column::Duration, Some(span)) = (&column, inner.span)
            && let Ok(nanos) = duration(span)
        {
            gathered.add(Value::Duration(nanos))?;
            continue;
        }
        // All spans of a resource have the same value, so each resource is read once.
        if let (Column::Resource, true) = (&column, is_optional)
            && !resources.insert(inner.span.map(Span::resource_ix))
        {
            continue;
        }
        match known(value, &inner) {
            Ok(found) => {
                is_secret |= found.is_secret;
                if let (Some(dropped), Some(span)) = (unseen(value, &inner), inner.span) {
                    doubt.get_or_insert_with(|| dropped.by(span));
                }
                match add(&mut gathered, found.values, aggregate.function)? {
                    Some(Unsure::Between(reason)) => drop(between.get_or_insert(reason)),
                    Some(Unsure::Unknown(reason)) => drop(doubt.get_or_insert(reason)),
                    None => {}
                }
            }
            Err(Lack::Undefined(_)) if is_optional => {}
            Err(Lack::Undefined(reason)) => {
                let lack = Lack::Undefined(on_span(&reason, &inner));
                return Err(NoValue { lack, is_for_good: true });
            }
            // There is a value, but it is unknown.
            Err(Lack::Open(reason)) => {
                doubt.get_or_insert(reason);
            }
        }
    }
    match (gathered.summarize(), doubt) {
        (Ok(summed), doubt) => Ok(SummaryValue { is_secret, doubt, between, ..summed }),
        (Err(_), Some(reason)) => Err(NoValue { lack: Lack::Open(reason), is_for_good: false }),
        (Err(missing), None) => Err(missing),
    }
}

/// Why a value is not known exactly.
enum Unsure {
    /// The value lies between two bounds.
    Between(String),
    Unknown(String),
}

/// Adds the value of an expression on one span.
fn add<'a>(
    gathered: &mut ValueCollector<'a>,
    values: Values<'a>,
    function: Summary,
) -> Result<Option<Unsure>, NoValue> {
    match values {
        Values::One(value) => gathered.add(value)?,
        Values::Many(several) => {
            several.into_iter().try_for_each(|value| gathered.add(value))?;
        }
        Values::Groups(groups) => {
            groups.into_iter().try_for_each(|(_, value)| gathered.add(value))?;
        }
        Values::Between(interval) => match function {
            Summary::Count => gathered.add(interval.low)?,
            Summary::Value | Summary::Values => return Ok(Some(Unsure::Unknown(interval.reason))),
            _ => {
                gathered.add_between(&interval.low, &interval.high)?;
                return Ok(Some(Unsure::Between(interval.reason)));
            }
        },
    }
    Ok(None)
}

/// Returns the value on a span. A path or pattern without a match counts as absent.
fn known<'a>(value: &'a Expr, scene: &EvalScope<'_, 'a>) -> Result<ExprValue<'a>, Lack> {
    match found_of(value, scene)? {
        ExprValue { values: Values::One(Value::Nothing), .. } => {
            let written = crate::syntax::print::expression(value);
            Err(Lack::Undefined(format!("`{}` finds nothing", shorten(&written))))
        }
        found => Ok(found),
    }
}

fn on_span(reason: &str, scene: &EvalScope<'_, '_>) -> String {
    let whose = |span: Span<'_>| format!(" (`{}` {})", shorten(span.name()), span.id());
    format!("{reason}{}", scene.span.map_or_else(String::new, whose))
}

/// Returns the positions of the selected spans by group, in the order of the first span of each group.
pub(crate) fn groups<'a>(aggregate: &'a Aggregate, scene: &EvalScope<'_, 'a>) -> Vec<Vec<u32>> {
    let places = selection(&aggregate.of, scene).sure;
    if let Some(Ok(constant)) = constant(aggregate, scene)
        && let Some(grouped) = &constant.grouped
    {
        return grouped.split(&places);
    }
    GroupIndex::of(aggregate, &places, scene).split(&places)
}

/// Formats the key of a span's group for messages.
pub(crate) fn key_of<'a>(aggregate: &'a Aggregate, scene: &EvalScope<'_, 'a>) -> String {
    let part = |by: &'a Expr| {
        let name = crate::syntax::print::expression(by);
        let name = name.strip_prefix("attr:").unwrap_or(&name);
        match value_of(by, scene) {
            Ok(found) if found.is_secret => format!("`{name}` ***"),
            Ok(found) => format!("`{name}` {}", show_all(&found.values)),
            Err(_) => format!("`{name}` absent"),
        }
    };
    aggregate.by.iter().map(part).collect::<Vec<_>>().join(", ")
}

fn show_all(values: &Values<'_>) -> String {
    match values {
        Values::One(value) => value.show(),
        Values::Many(values) => values.iter().map(Value::show).collect::<Vec<_>>().join(", "),
        Values::Groups(groups) => {
            groups.iter().map(|(_, value)| value.show()).collect::<Vec<_>>().join(", ")
        }
        Values::Between(interval) => {
            format!("{} to {}", interval.low.show(), interval.high.show())
        }
    }
}

impl Constant<'_> {
    /// Whether there is a value for each group: a comparison is then evaluated in each.
    pub(super) fn is_grouped(&self) -> bool {
        self.grouped.is_some()
    }

    /// Returns the size in bytes.
    pub(super) fn bytes(&self) -> u64 {
        let grouped = self.grouped.as_ref();
        let groups = grouped.map_or(0, GroupIndex::bytes);
        // A search stores the members a second time.
        2 * self.valued.values.bytes() + groups
    }

    /// Returns whether a value is among the items, and whether that stays so while items are added.
    pub(super) fn contrast_in(&self, value: &Value<'_>) -> (Contrast, bool) {
        let members = self.members.get_or_init(|| Members::of(&self.valued.values));
        let is_known = match value {
            Value::Text(text) => Some(members.texts.contains(&**text)),
            Value::Quoted(text) => Some(members.texts.contains(*text)),
            Value::Number(Number::Int(int)) => Some(members.wholes.contains(int)),
            _ => None,
        };
        let decided = |truth: Truth| Contrast { truth, reason: None, remark: None };
        match (is_known, value) {
            (Some(true), _) => (decided(Truth::True), true),
            (Some(false), Value::Text(_) | Value::Quoted(_)) if members.are_texts() => {
                (decided(Truth::False), false)
            }
            (Some(false), Value::Number(_)) if members.are_wholes() => {
                (decided(Truth::False), false)
            }
            _ => (self.search(value), false),
        }
    }

    /// Returns whether all of several values are among the items. Each is searched alone, so that no length is too large.
    pub(super) fn contrast_all_in(&self, wanted: &[Value<'_>]) -> Contrast {
        let mut all = Contrast { truth: Truth::True, reason: None, remark: None };
        for value in wanted {
            let (one, _) = self.contrast_in(value);
            if all.truth.and(one.truth) != all.truth {
                all = one;
            }
        }
        all
    }

    fn search(&self, value: &Value<'_>) -> Contrast {
        match &self.valued.values {
            Values::One(Value::List(items)) => {
                self.searched.set(self.searched.get().saturating_add(items.len()));
                if self.searched.get() > SEARCHED_MAX {
                    let reason = Some(TOO_LARGE.to_owned());
                    return Contrast { truth: Truth::Open, reason, remark: None };
                }
                Contrast { remark: None, ..is_among(value, items).into() }
            }
            Values::One(list) => compare(value, Comparator::In, list).into(),
            Values::Many(_) | Values::Groups(_) | Values::Between(_) => Contrast {
                truth: Truth::Undefined,
                reason: Some("`in` needs a list on its right".to_owned()),
                remark: None,
            },
        }
    }
}

/// Returns a note on the values that an aggregate skipped or converted.
pub(crate) fn note<'a>(aggregate: &'a Aggregate, scene: &EvalScope<'_, 'a>) -> Option<String> {
    match constant(aggregate, scene) {
        Some(constant) => constant.ok()?.note.clone(),
        None => compute(aggregate, scene).ok()?.note,
    }
}
