//! Why a selector selects nothing: the spans that come nearest.

use std::collections::HashSet;

use super::{
    ast::{Selector, Step},
    eval::{matches, matching},
};
use crate::property::{Lookup, World};

/// How many different values of a missed property are named.
const VALUES_MAX: usize = 5;

/// The nearest misses of a selector that selects nothing, in one sentence; none where nothing comes near.
pub(crate) fn nearest_misses(selector: &Selector, world: &World<'_>) -> Option<String> {
    let part = selector.parts.first().filter(|_| selector.parts.len() == 1)?;
    let (last, outer) = part.steps.split_last()?;
    let found = matching(last, world).len();
    if found == 0 {
        return all_but_one(last, world);
    }
    let spans = match found {
        1 => format!("1 span matches `{}`", last.source),
        _ => format!("{found} spans match `{}`", last.source),
    };
    if outer.is_empty() {
        return Some(format!("{spans}, none of them at this position"));
    }
    let outer: Vec<_> = outer.iter().map(|step| step.source.as_str()).collect();
    Some(format!("{spans}, none of them below `{}`", outer.join(" ")))
}

/// The filter that alone keeps the most spans out, and what these have instead.
fn all_but_one(step: &Step, world: &World<'_>) -> Option<String> {
    let mut missed: Vec<Vec<_>> = vec![Vec::new(); step.filters.len()];
    for span in world.tree.order().iter().map(|ix| world.trace.span(*ix)) {
        let mut failing =
            (0..step.filters.len()).filter(|at| !matches(&step.filters[*at], world, span));
        if let (Some(at), None) = (failing.next(), failing.next()) {
            missed[at].push(span);
        }
    }
    // Of filters that keep out equally many, the first.
    let (at, spans) = missed.iter().enumerate().rev().max_by_key(|(_, spans)| spans.len())?;
    let filter = &step.filters[at];
    let mut seen = HashSet::new();
    let mut values = Vec::new();
    for span in spans {
        let value = match world.look_up(&filter.property, *span) {
            Lookup::Found(value) => value.show(),
            Lookup::Absent | Lookup::Unknown => "absent".to_owned(),
        };
        if seen.insert(value.clone()) && values.len() < VALUES_MAX {
            values.push(value);
        }
    }
    let more = match seen.len() - values.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (name, values) = (&filter.name, values.join(", "));
    match spans.len() {
        0 => None,
        1 => Some(format!("1 span matches all but `{name}`, which is {values} there")),
        count => Some(format!("{count} spans match all but `{name}`; theirs are {values}{more}")),
    }
}
