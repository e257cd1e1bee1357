//! Describes why a selector selects nothing: the nearest misses.

use super::{
    bits::Bits,
    lookup::Lookup,
    renamed,
    select::{match_condition, match_numbers, matches, walk},
    world::{EvalContext, EvalScope},
};
use crate::{
    budget,
    syntax::{
        ast::{
            Anchor, At, Combinator, CompoundSelector, Expr, ExprKind, Hop, Part, Position,
            Property, Pseudo, Selector,
        },
        print,
    },
    value::{shorten, show_duration},
};

/// The maximum number of different values of a missed property that are listed.
const VALUES_MAX: usize = 5;

/// The maximum number of near spans that are returned.
const PLACES_MAX: usize = 3;

/// The maximum number of spans among which near spans with different values are searched.
const LOOKED_MAX: usize = 1_000;

/// Returns the position of a step, by the number of the step.
type Positions<'p> = &'p dyn Fn(usize, &CompoundSelector) -> Option<Position>;

/// The nearest misses of a selector that selects nothing.
#[derive(Clone, Debug)]
pub(crate) struct NearSpans<'a> {
    /// The description of all of them, in one sentence.
    pub(crate) words: String,
    /// The positions of the first of them.
    pub(crate) places: Vec<usize>,
    /// The condition that they do not meet, in the language, or the relation that they lack, in words.
    pub(crate) condition: String,
    /// The property that the condition compares, if it compares one.
    pub(crate) property: Option<&'a Property>,
}

impl NearSpans<'_> {
    fn new(words: String, places: impl Iterator<Item = usize>, condition: String) -> Self {
        Self { words, places: places.take(PLACES_MAX).collect(), condition, property: None }
    }
}

/// Returns the nearest misses of a selector that selects nothing; `None` if no span is near.
pub(crate) fn nearest_misses<'a>(
    selector: &'a Selector,
    scene: &EvalScope<'_, 'a>,
) -> Option<NearSpans<'a>> {
    let part =
        selector.parts.first().filter(|_| selector.parts.len() == 1 && !budget::is_over())?;
    at_another_position(part, scene).or_else(|| beside_the_way(part, scene))
}

/// Checks positions first: a description of conditions and combinators is true only if no position had an effect.
fn at_another_position<'a>(part: &'a Part, scene: &EvalScope<'_, 'a>) -> Option<NearSpans<'a>> {
    let last = part.hops.iter().rposition(|hop| hop.step.position.is_some())?;
    let only_last = |at: usize, step: &CompoundSelector| step.position.filter(|_| at != last);
    let none = |_: usize, _: &CompoundSelector| None;
    let kinds: [Positions<'_>; 2] = [&only_last, &none];
    kinds.into_iter().find_map(|position| {
        let found = walk(part, &part.hops, scene, position);
        let near = counted(found.len(), &written(part, &part.hops, position));
        let words = format!("{near}, none of them at this position");
        let condition = written(part, &part.hops, &|_, step| step.position);
        let places = found.iter().map(|place| *place as usize);
        (!found.is_empty()).then(|| NearSpans::new(words, places, condition))
    })
}

fn beside_the_way<'a>(part: &'a Part, scene: &EvalScope<'_, 'a>) -> Option<NearSpans<'a>> {
    let no_position = |_: usize, _: &CompoundSelector| None;
    let (Hop { combinator, step }, outer) = part.hops.split_last()?;
    let near = matches(step, scene);
    let found = near.bits.count();
    if found == 0 {
        return but_for_a_pseudo(step, scene.world).or_else(|| all_but_one(step, scene.world));
    }
    let alone = counted(found, &written_steps(std::slice::from_ref(step), &no_position));
    if outer.is_empty() && part.anchor == Anchor::Trace {
        return None;
    }
    let way = way(*combinator);
    let above = written(part, outer, &no_position);
    let is_reached = !walk(part, outer, scene, no_position).is_empty();
    let nothing = if is_reached { "" } else { ", which matches none" };
    let words = format!("{alone}, none of them {way} `{above}`{nothing}");
    Some(NearSpans::new(words, near.bits.ones(), format!("{way} `{above}`")))
}

/// Describes the relation of two spans that a combinator requires.
fn way(combinator: Combinator) -> &'static str {
    match combinator {
        Combinator::Descendant => "below",
        Combinator::Child => "directly below",
        Combinator::Adjacent => "right behind",
        Combinator::Sibling => "behind",
        Combinator::Parent => "directly above",
        Combinator::Ancestor => "above",
        Combinator::Linked => "with a link to",
    }
}

fn but_for_a_pseudo<'a>(
    step: &'a CompoundSelector,
    world: &EvalContext<'a>,
) -> Option<NearSpans<'a>> {
    let near = match_condition(step, world);
    let found = near.count();
    if found == 0 || step.pseudos.is_empty() {
        return None;
    }
    let bare = CompoundSelector { pseudos: Vec::new(), position: None, ..step.clone() };
    let pseudos: Vec<_> = step.pseudos.iter().map(pseudo).collect();
    let bare = counted(found, &written_steps(&[bare], &|_, _| None));
    let condition = shorten(&pseudos.concat()).into_owned();
    let words = format!("{bare}, none of them `{condition}`");
    Some(NearSpans::new(words, near.ones(), condition))
}

/// Returns a pseudo-class as written.
pub(super) fn pseudo(pseudo: &Pseudo) -> String {
    let step = CompoundSelector {
        condition: None,
        pseudos: vec![pseudo.clone()],
        position: None,
        at: At::default(),
    };
    let written = written_steps(&[step], &|_, _| None);
    written.strip_prefix("span[]").unwrap_or(&written).to_owned()
}

fn counted(spans: usize, written: &str) -> String {
    match spans {
        1 => format!("1 span matches `{written}`"),
        _ => format!("{spans} spans match `{written}`"),
    }
}

/// Returns the first hops of a part as written, with these positions.
pub(super) fn written(part: &Part, hops: &[Hop], position: Positions<'_>) -> String {
    let hops = hops.iter().enumerate().map(|(at, hop)| {
        let step = CompoundSelector { position: position(at, &hop.step), ..hop.step.clone() };
        Hop { combinator: hop.combinator, step }
    });
    let part = Part { anchor: part.anchor, hops: hops.collect() };
    let selector = Selector { parts: vec![part], at: At::default() };
    shorten(&print::selector(&selector)).into_owned()
}

fn written_steps(steps: &[CompoundSelector], position: Positions<'_>) -> String {
    let hop =
        |step: &CompoundSelector| Hop { combinator: Combinator::Descendant, step: step.clone() };
    let hops: Vec<_> = steps.iter().map(hop).collect();
    written(&Part { anchor: Anchor::Trace, hops: Vec::new() }, &hops, position)
}

/// Describes the condition that alone excludes the most spans, and the values that these have instead.
fn all_but_one<'a>(step: &'a CompoundSelector, world: &EvalContext<'a>) -> Option<NearSpans<'a>> {
    let condition = step.condition.as_ref()?;
    let conditions = match &condition.kind {
        ExprKind::And(parts) => parts.as_slice(),
        _ => std::slice::from_ref(condition),
    };
    let all = Bits::all(world.len());
    let pairs = (conditions.len() * conditions.len()) as u64;
    if !budget::spend(pairs * (1 + all.len() as u64 / 64)) {
        return None;
    }
    let extents: Vec<_> =
        conditions.iter().map(|condition| match_numbers(condition, &all, world)).collect();
    let missed = |at: usize| {
        let mut missed = all.clone();
        for (other, yes) in extents.iter().enumerate() {
            if other == at {
                missed.remove(yes);
            } else {
                missed.keep(yes);
            }
        }
        missed
    };
    // Of conditions that exclude equally many spans, the first wins.
    let missed = (0..conditions.len()).rev().map(|at| (at, missed(at)));
    let (at, missed) = missed.max_by_key(|(_, missed)| missed.count())?;
    let (condition, places) = (&conditions[at], world.places_of(&missed));
    let near = || {
        let written = shorten(&print::expression(condition)).into_owned();
        let words = describe(condition, &places, world);
        match queried_property(condition) {
            None => NearSpans::new(words, places.ones(), written),
            Some((_, property)) => {
                let near = with_other_values(property, &places, world).into_iter();
                let property = Some(property);
                NearSpans { property, ..NearSpans::new(words, near, written) }
            }
        }
    };
    (!missed.is_empty()).then(near)
}

/// Returns the first spans with different values of a property, then those with equal values or without one.
fn with_other_values(property: &Property, missed: &Bits, world: &EvalContext<'_>) -> Vec<usize> {
    let (mut values, mut near, mut others) = (Vec::new(), Vec::new(), Vec::new());
    for place in missed.ones().take(LOOKED_MAX) {
        if near.len() == PLACES_MAX || !budget::spend(32) {
            break;
        }
        match world.look_up(property, &world.scene_at(place)) {
            Lookup::Absent | Lookup::Unknown => others.push(place),
            value if values.contains(&value) => others.push(place),
            value => {
                values.push(value);
                near.push(place);
            }
        }
    }
    near.into_iter().chain(others).take(PLACES_MAX).collect()
}

fn describe<'a>(condition: &'a Expr, missed: &Bits, world: &EvalContext<'a>) -> String {
    let count = missed.count();
    let matching = match count {
        1 => "1 span matches".to_owned(),
        _ => format!("{count} spans match"),
    };
    let Some((value, property)) = queried_property(condition) else {
        let written = print::expression(condition);
        return format!("{matching} all but `{}`", shorten(&written));
    };
    let name = print::expression(value);
    let name = shorten(name.strip_prefix("attr:").unwrap_or(&name)).into_owned();
    let (mut values, mut has_more) = (Vec::new(), false);
    for place in missed.ones() {
        if !budget::spend(32) {
            break;
        }
        let shown = match world.look_up(property, &world.scene_at(place)) {
            Lookup::One(value) => value.show(),
            Lookup::Many(several) => {
                several.iter().map(|value| value.show()).collect::<Vec<_>>().join(" and ")
            }
            Lookup::Untimed(lack) => format!("not known: the span {}", lack.words()),
            Lookup::Between(bounds, _) => {
                let [low, high] = [bounds.low, bounds.high].map(show_duration);
                format!("between {low} and {high}")
            }
            Lookup::Dropped(dropped) => {
                format!("not known: {}", dropped.by(world.span_at(place)))
            }
            Lookup::Encoded(encoding) => format!("encoded as `{encoding}`"),
            Lookup::Absent | Lookup::Unknown => "absent".to_owned(),
        };
        if values.contains(&shown) {
            continue;
        }
        has_more = values.len() == VALUES_MAX;
        if has_more {
            break;
        }
        values.push(shown);
    }
    let values = values.join(", ");
    let more = if has_more { " and more" } else { "" };
    let renamed = renamed_on(property, missed, world).unwrap_or_default();
    match count {
        1 => format!("{matching} all but `{name}`, which is {values} there{renamed}"),
        _ => format!("{matching} all but `{name}`; theirs are {values}{more}{renamed}"),
    }
}

/// Returns the property that a condition queries.
fn queried_property(condition: &Expr) -> Option<(&Expr, &Property)> {
    let value = match &condition.kind {
        ExprKind::Compare { left, .. } => left,
        ExprKind::Between { value, .. } | ExprKind::Exists { value, .. } => value,
        ExprKind::Not(inner) => return queried_property(inner),
        _ => return None,
    };
    match &value.kind {
        ExprKind::Property(property) => Some((value, property)),
        _ => None,
    }
}

/// Describes whether these spans have the attribute under its older or newer name.
fn renamed_on(property: &Property, missed: &Bits, world: &EvalContext<'_>) -> Option<String> {
    let Property::Attribute { name, .. } = property else { return None };
    renamed::others(name).find_map(|(other, age)| {
        world.trace.text_number(other)?;
        let has = |place: &usize| world.span_at(*place).attributes().get(other).is_some();
        let count = missed.ones().filter(has).count();
        let age = age.as_str();
        let have = if count == 1 { "1 span has" } else { "spans have" };
        match count {
            0 => None,
            1 => Some(format!("; {have} its {age} name `{other}`")),
            _ => Some(format!("; {count} {have} its {age} name `{other}`")),
        }
    })
}

/// Describes the attribute of a span under its older or newer name.
pub(crate) fn renamed_here(property: &Property, scene: &EvalScope<'_, '_>) -> Option<String> {
    let (Property::Attribute { name, .. }, Some(span)) = (property, scene.span) else {
        return None;
    };
    renamed::others(name).find_map(|(other, age)| {
        let value = span.attributes().get(other)?;
        let shown = crate::value::Value::from(value).show();
        Some(format!("its {} name `{other}` is, with {shown}", age.as_str()))
    })
}
