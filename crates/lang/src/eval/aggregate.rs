//! Values of many spans made one: how many, their sum, their extremes, the one they share.
//!
//! Numbers are added to numbers and durations to durations; a text takes part if it holds one. Whole numbers are summed
//! exactly, doubles with the error of each step carried along (Neumaier). What is not a number is skipped, and told. A
//! percentile is the value at its nearest rank. A span without the value leaves the aggregate undefined, except that
//! `values` collects what is there. With keys behind `by` all of it is done in each group; a span that lacks a key is in
//! the group of those that lack it.

use std::{
    cell::{Cell, OnceCell},
    collections::{HashMap, HashSet},
    rc::Rc,
};

use model::trace::{NumberedAttribute, Span};

use super::{
    contrast::Contrast,
    expression::{Lack, Trend, Valued, Values, value_of},
    future::Truth,
    lasting::{is_fixed, is_lasting},
    members::Members,
    select::{count, doubt, is_anchored, select},
    summary::{Gathered, Missing, Summed},
    world::{Scene, TOO_MANY_LOOKS, duration},
};
use crate::{
    syntax::ast::{Aggregate, Comparator, Expr, ExprKind, Intrinsic, Property, Summary},
    value::{Number, TOO_LARGE, Value, compare::compare, shorten},
};

/// An aggregate over the whole trace, the same whichever span is spoken of.
#[derive(Debug)]
pub(crate) struct Constant<'a> {
    pub(crate) valued: Valued<'a>,
    note: Option<String>,
    grouped: Option<Grouped>,
    members: OnceCell<Members>,
    /// How many items were compared one by one.
    searched: Cell<usize>,
}

/// How many items of a list are compared one by one at the most, all spans together.
const SEARCHED_MAX: usize = 64_000_000;

/// The value of an aggregate.
pub(crate) fn aggregate<'a>(
    aggregate: &'a Aggregate,
    scene: &Scene<'_, 'a>,
) -> Result<Valued<'a>, Lack> {
    let valued = match constant(aggregate, scene) {
        Some(constant) => constant.map(|constant| constant.valued.clone()),
        None => of_span(aggregate, scene),
    };
    valued.map_err(|missing| missing.lack)
}

/// The value of an aggregate about the span that is spoken of, or whether it will ever have one.
pub(super) fn of_span<'a>(
    aggregate: &'a Aggregate,
    scene: &Scene<'_, 'a>,
) -> Result<Valued<'a>, Missing> {
    compute(aggregate, scene).map(|computed| computed.valued)
}

/// The value of an aggregate that is the same whichever span is spoken of; nothing for others.
pub(crate) fn constant<'a>(
    aggregate: &'a Aggregate,
    scene: &Scene<'_, 'a>,
) -> Option<Result<Rc<Constant<'a>>, Missing>> {
    let make = || {
        let Computed { valued, note, grouped } = compute(aggregate, scene)?;
        let (members, searched) = (OnceCell::new(), Cell::new(0));
        Ok(Rc::new(Constant { valued, note, grouped, members, searched }))
    };
    is_anchored(&aggregate.of).then(|| (*scene.world.constant(aggregate, make)).clone())
}

/// The value, what was skipped or converted for it, and the groups if there are any.
struct Computed<'a> {
    valued: Valued<'a>,
    note: Option<String>,
    grouped: Option<Grouped>,
}

fn compute<'a>(aggregate: &'a Aggregate, scene: &Scene<'_, 'a>) -> Result<Computed<'a>, Missing> {
    let computed = try_compute(aggregate, scene);
    // Whether a selection is in doubt is known once it was asked.
    if let Some(doubt) = doubt(&aggregate.of, scene.world) {
        return Err(Missing { lack: Lack::Open(doubt), is_for_good: false });
    }
    let is_lasting =
        is_lasting(&aggregate.of) && aggregate.value.iter().chain(&aggregate.by).all(is_fixed);
    computed
        .map_err(|missing| Missing { is_for_good: missing.is_for_good && is_lasting, ..missing })
}

fn try_compute<'a>(
    aggregate: &'a Aggregate,
    scene: &Scene<'_, 'a>,
) -> Result<Computed<'a>, Missing> {
    let trend = trend(aggregate);
    let alone = |summed: Summed<'a>| {
        let Summed { value, note, is_secret } = summed;
        let valued = Valued { values: Values::One(value), trend, is_secret };
        Computed { valued, note, grouped: None }
    };
    if aggregate.by.is_empty() && aggregate.function == Summary::Count {
        // Often known without looking at each span.
        let count = count(&aggregate.of, scene) as u64;
        return Ok(alone(Summed::new(Value::whole(count))));
    }
    let places = select(&aggregate.of, scene);
    if scene.span.is_some() && !scene.world.may_look(places.len()) {
        let lack = Lack::Open(TOO_MANY_LOOKS.to_owned());
        return Err(Missing { lack, is_for_good: false });
    }
    // Where nothing is grouped, nothing may hold of every group: it is the aggregate of no span.
    if aggregate.by.is_empty() || places.is_empty() {
        return over(aggregate, &places, scene).map(alone);
    }
    let grouped = Grouped::of(aggregate, &places, scene)?;
    let mut is_secret = false;
    // Whoever shows a group asks for its key by `key_of`.
    let keyed = |value| (String::new(), value);
    let values: Result<Vec<_>, Missing> = match aggregate.function {
        Summary::Count => Ok(grouped.sizes.iter().map(|n| keyed(Value::whole(*n))).collect()),
        _ => grouped
            .split(&places)
            .iter()
            .map(|places| {
                let summed = over(aggregate, places, scene)?;
                is_secret |= summed.is_secret;
                Ok(keyed(summed.value))
            })
            .collect(),
    };
    let valued = Valued { values: Values::Groups(values?), trend, is_secret };
    Ok(Computed { valued, note: None, grouped: Some(grouped) })
}

/// How the value of an aggregate moves while further spans come.
pub(super) fn trend(aggregate: &Aggregate) -> Trend {
    let is_steady = is_lasting(&aggregate.of) && aggregate.value.as_ref().is_none_or(is_fixed);
    match aggregate.function {
        _ if !is_steady => Trend::Any,
        Summary::Count | Summary::Max | Summary::Values => Trend::Rising,
        Summary::Min => Trend::Falling,
        Summary::Value => Trend::Fixed,
        Summary::Sum | Summary::Average | Summary::Percentile(_) => Trend::Any,
    }
}

/// The aggregate of the spans at these places, and what is worth a word about it.
pub(crate) fn over<'a>(
    aggregate: &'a Aggregate,
    places: &[u32],
    scene: &Scene<'_, 'a>,
) -> Result<Summed<'a>, Missing> {
    let Some(value) = &aggregate.value else {
        return Ok(Summed::new(Value::whole(places.len() as u64)));
    };
    if places.is_empty() {
        let written = crate::syntax::print::selector(&aggregate.of);
        let lack = Lack::Undefined(format!("no span matches `{}`", shorten(&written)));
        return Err(Missing { lack, is_for_good: false });
    }
    let is_optional = aggregate.function == Summary::Values;
    let (mut gathered, mut is_secret) = (Gathered::new(aggregate.function), false);
    let column = Column::of(value, scene);
    let mut resources = HashSet::new();
    for place in places {
        let inner = scene.at(*place as usize);
        if let Some(found) = column.on(&inner) {
            gathered.add(found.value().into())?;
            continue;
        }
        if let (Column::Duration, Some(span)) = (&column, inner.span) {
            gathered.add(Value::Duration(duration(span)))?;
            continue;
        }
        // The different values of many spans are those of their few resources.
        if let (Column::Resource, true) = (&column, is_optional)
            && !resources.insert(inner.span.map(Span::resource_ix))
        {
            continue;
        }
        match value_of(value, &inner) {
            Ok(found) => {
                is_secret |= found.is_secret;
                match found.values {
                    Values::One(value) => gathered.add(value)?,
                    Values::Many(several) => {
                        several.into_iter().try_for_each(|value| gathered.add(value))?;
                    }
                    Values::Groups(groups) => {
                        groups.into_iter().try_for_each(|(_, value)| gathered.add(value))?;
                    }
                }
            }
            Err(Lack::Undefined(_)) if is_optional => {}
            Err(lack) => {
                let is_for_good = matches!(lack, Lack::Undefined(_));
                return Err(Missing { lack: on_span(lack, &inner), is_for_good });
            }
        }
    }
    Ok(Summed { is_secret, ..gathered.summarize()? })
}

fn on_span(lack: Lack, scene: &Scene<'_, '_>) -> Lack {
    let whose = scene
        .span
        .map_or(String::new(), |span| format!(" (`{}` {})", shorten(span.name()), span.id()));
    match lack {
        Lack::Undefined(reason) => Lack::Undefined(reason + &whose),
        Lack::Open(reason) => Lack::Open(reason + &whose),
    }
}

/// A property that is read from many spans, its name looked up once.
enum Column {
    /// Of the span itself, by the number of its key.
    Attribute(u32),
    /// Of the resource: the same for all of its spans.
    Resource,
    Duration,
    Other,
}

impl Column {
    fn of(value: &Expr, scene: &Scene<'_, '_>) -> Self {
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

    /// The value on the span itself; where it is not, it may still be on its resource.
    fn on<'a>(&self, scene: &Scene<'_, 'a>) -> Option<NumberedAttribute<'a>> {
        let Self::Attribute(key) = self else { return None };
        let mut attributes = scene.world.trace.numbered_attributes(scene.span?.ix());
        attributes.find(|attribute| attribute.key() == *key)
    }
}

/// The places of the selected spans, group by group in the order of their first.
pub(crate) fn groups<'a>(
    aggregate: &'a Aggregate,
    scene: &Scene<'_, 'a>,
) -> Result<Vec<Vec<u32>>, Missing> {
    let places = select(&aggregate.of, scene);
    if let Some(Ok(constant)) = constant(aggregate, scene)
        && let Some(grouped) = &constant.grouped
    {
        return Ok(grouped.split(&places));
    }
    Ok(Grouped::of(aggregate, &places, scene)?.split(&places))
}

/// Which span is in which group.
#[derive(Debug)]
struct Grouped {
    /// In the order of the places.
    numbers: Vec<u32>,
    /// By group.
    sizes: Vec<u64>,
}

impl Grouped {
    fn of<'a>(
        aggregate: &'a Aggregate,
        places: &[u32],
        scene: &Scene<'_, 'a>,
    ) -> Result<Self, Missing> {
        let columns: Vec<_> = aggregate.by.iter().map(|by| (by, Column::of(by, scene))).collect();
        let Some((last, first)) = columns.split_last() else {
            return Ok(Self { numbers: vec![0; places.len()], sizes: vec![places.len() as u64] });
        };
        let mut keys = Keys::default();
        let mut grouped = Self { numbers: Vec::with_capacity(places.len()), sizes: Vec::new() };
        for place in places {
            let inner = scene.at(*place as usize);
            let mut beginning = 0;
            for (by, column) in first {
                let part = keys.part(by, column, &inner)?;
                beginning = keys.begin(beginning, part);
            }
            let part = keys.part(last.0, &last.1, &inner)?;
            let key = keys.finish(beginning, part);
            if key as usize == grouped.sizes.len() {
                grouped.sizes.push(0);
            }
            grouped.sizes[key as usize] += 1;
            grouped.numbers.push(key);
        }
        Ok(grouped)
    }

    fn split(&self, places: &[u32]) -> Vec<Vec<u32>> {
        let mut groups = vec![Vec::new(); self.sizes.len()];
        for (number, place) in self.numbers.iter().zip(places) {
            groups[*number as usize].push(*place);
        }
        groups
    }
}

/// The key of a span's group, for people.
pub(crate) fn key_of<'a>(aggregate: &'a Aggregate, scene: &Scene<'_, 'a>) -> String {
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
    }
}

/// Keys by number: equal ones have equal numbers.
#[derive(Default)]
struct Keys {
    /// A key without its last part, and that part.
    whole: HashMap<u128, u32>,
    /// The same of what stands before the last part; 0 is nothing.
    beginnings: HashMap<u128, u32>,
    texts: HashMap<String, u64>,
}

/// One part of a key.
#[derive(Clone, Copy)]
enum Part {
    Absent,
    /// A text of the trace, by its number.
    Text(u32),
    Id([u8; 8]),
    /// Anything else, by a number of its own.
    Other(u64),
}

impl Part {
    /// The part behind a beginning as one number.
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
    fn part<'a>(
        &mut self,
        by: &'a Expr,
        column: &Column,
        scene: &Scene<'_, 'a>,
    ) -> Result<Part, Missing> {
        if let Some(number) = column.on(scene).and_then(NumberedAttribute::text) {
            return Ok(Part::Text(number));
        }
        if let ExprKind::Property(Property::Intrinsic(Intrinsic::ParentId, _)) = by.kind
            && let Some(parent) = scene.span.and_then(Span::parent)
        {
            return Ok(Part::Id(*parent.as_bytes()));
        }
        let text = match value_of(by, scene) {
            Ok(Valued { values: Values::One(Value::Text(text)), .. }) => {
                match scene.world.trace.text_number(&text) {
                    Some(number) => return Ok(Part::Text(number)),
                    None => format!("text {text}"),
                }
            }
            Ok(found) => format!("{:?}", found.values),
            Err(Lack::Undefined(_)) => return Ok(Part::Absent),
            Err(lack) => return Err(Missing { lack, is_for_good: false }),
        };
        let next = self.texts.len() as u64;
        Ok(Part::Other(*self.texts.entry(text).or_insert(next)))
    }

    fn begin(&mut self, key: u32, part: Part) -> u32 {
        let next = self.beginnings.len() as u32 + 1;
        *self.beginnings.entry(part.behind(key)).or_insert(next)
    }

    fn finish(&mut self, key: u32, part: Part) -> u32 {
        let next = self.whole.len() as u32;
        *self.whole.entry(part.behind(key)).or_insert(next)
    }
}

impl Constant<'_> {
    /// Whether a value is among these, and whether it will stay so while they become more.
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

    /// Whether all of several values are among these: with each alone, so that no length is too large.
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
                let is_same = |item: &&Value<'_>| compare(value, Comparator::Equal, item).holds();
                let same = items.iter().find(is_same);
                Contrast { truth: same.is_some().into(), reason: None, remark: None }
            }
            Values::One(list) => compare(value, Comparator::In, list).into(),
            Values::Many(_) | Values::Groups(_) => Contrast {
                truth: Truth::Undefined,
                reason: Some("`in` needs a list on its right".to_owned()),
                remark: None,
            },
        }
    }
}

/// What an aggregate skipped or converted, for whoever shows it.
pub(crate) fn note<'a>(aggregate: &'a Aggregate, scene: &Scene<'_, 'a>) -> Option<String> {
    match constant(aggregate, scene) {
        Some(constant) => constant.ok()?.note.clone(),
        None => compute(aggregate, scene).ok()?.note,
    }
}
