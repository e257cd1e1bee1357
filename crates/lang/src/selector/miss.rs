//! Why a selector selects nothing: the spans that come nearest.

use super::{
    ast::{Part, Position, Selector, Step},
    eval::{matches, matching, select_part},
};
use crate::{
    property::{Lookup, World},
    value::shorten,
};

/// How many different values of a missed property are named.
const VALUES_MAX: usize = 5;

/// The nearest misses of a selector that selects nothing, in one sentence; none where nothing comes near.
pub(crate) fn nearest_misses(selector: &Selector, world: &World<'_>) -> Option<String> {
    let part = selector.parts.first().filter(|_| selector.parts.len() == 1)?;
    // Positions first: what is said of filters and ancestors is true only where no position had a say in it.
    let last = part.steps.iter().rposition(|step| step.position.is_some());
    let without_last = last.map(|last| without_positions(part, |at| at == last));
    let bare = without_positions(part, |_| true);
    for relaxed in without_last.iter().chain(last.map(|_| &bare)) {
        let found = select_part(relaxed, world).len();
        if found > 0 {
            return Some(format!("{}, none of them at this position", counted(found, relaxed)));
        }
    }
    let (last, outer) = bare.steps.split_last()?;
    let found = matching(last, world).len();
    if found == 0 {
        return all_but_one(last, world);
    }
    let alone = Part { steps: vec![last.clone()] };
    Some(format!("{}, none of them below `{}`", counted(found, &alone), written(outer)))
}

fn without_positions(part: &Part, is_left_out: impl Fn(usize) -> bool) -> Part {
    let mut part = part.clone();
    for (at, step) in part.steps.iter_mut().enumerate() {
        step.position = step.position.filter(|_| !is_left_out(at));
    }
    part
}

fn counted(spans: usize, part: &Part) -> String {
    match (spans, written(&part.steps)) {
        (1, written) => format!("1 span matches `{written}`"),
        (_, written) => format!("{spans} spans match `{written}`"),
    }
}

fn written(steps: &[Step]) -> String {
    let step = |step: &Step| match step.position {
        None => step.source.clone(),
        Some(Position::First) => format!("{}:first", step.source),
        Some(Position::Last) => format!("{}:last", step.source),
        Some(Position::Nth(count)) => format!("{}:nth_child({count})", step.source),
    };
    let steps: Vec<_> = steps.iter().map(step).collect();
    shorten(&steps.join(" ")).into_owned()
}

/// The spans that one filter alone keeps out.
#[derive(Clone, Default)]
struct Missed {
    count: usize,
    /// What they have instead, some of it.
    values: Vec<String>,
    has_more: bool,
}

impl Missed {
    fn add(&mut self, value: String) {
        if self.values.contains(&value) {
            return;
        }
        if self.values.len() < VALUES_MAX {
            self.values.push(value);
        } else {
            self.has_more = true;
        }
    }
}

/// The filter that alone keeps the most spans out, and what these have instead.
fn all_but_one(step: &Step, world: &World<'_>) -> Option<String> {
    let mut missed = vec![Missed::default(); step.filters.len()];
    for span in world.tree.order().iter().map(|ix| world.trace.span(*ix)) {
        let mut failing =
            (0..step.filters.len()).filter(|at| !matches(&step.filters[*at], world, span));
        let (Some(at), None) = (failing.next(), failing.next()) else { continue };
        missed[at].count += 1;
        if !missed[at].has_more {
            missed[at].add(match world.look_up(&step.filters[at].property, span) {
                Lookup::Found(value) => value.show(),
                Lookup::Absent | Lookup::Unknown => "absent".to_owned(),
            });
        }
    }
    // Of filters that keep out equally many, the first.
    let (at, missed) = missed.iter().enumerate().rev().max_by_key(|(_, missed)| missed.count)?;
    let (name, values) = (shorten(&step.filters[at].name), missed.values.join(", "));
    let more = if missed.has_more { " and more" } else { "" };
    match missed.count {
        0 => None,
        1 => Some(format!("1 span matches all but `{name}`, which is {values} there")),
        count => Some(format!("{count} spans match all but `{name}`; theirs are {values}{more}")),
    }
}
