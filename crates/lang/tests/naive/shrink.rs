//! Minimizes a failing case: removes parts as long as it still fails.

use super::{
    super::chance::sample::{One, Sample},
    selector::{Condition, Part, Pseudo, Selector, Step},
};

/// Removes spans, data of spans, and parts of the selector, while `fails` returns `true` for the rest.
pub(crate) fn shrink(
    mut sample: Sample,
    mut selector: Selector,
    fails: impl Fn(&Sample, &Selector) -> bool,
) -> (Sample, Selector) {
    loop {
        if let Some(smaller) = samples(&sample).into_iter().find(|it| fails(it, &selector)) {
            sample = smaller;
        } else if let Some(smaller) = selectors(&selector).into_iter().find(|it| fails(&sample, it))
        {
            selector = smaller;
        } else {
            return (sample, selector);
        }
    }
}

fn samples(sample: &Sample) -> Vec<Sample> {
    let mut found = Vec::new();
    for at in 0..sample.spans.len() {
        if sample.spans.len() > 1 {
            let mut smaller = sample.clone();
            smaller.spans.remove(at);
            found.push(smaller);
        }
        let one = &sample.spans[at];
        let mut push = |change: &dyn Fn(&mut One)| {
            let mut smaller = sample.clone();
            change(&mut smaller.spans[at]);
            // Spans that became equal would be one.
            let is_new = smaller.spans.iter().filter(|it| **it == smaller.spans[at]).count() == 1;
            if smaller.spans[at] != *one && is_new {
                found.push(smaller);
            }
        };
        push(&|one| one.span.events.clear());
        push(&|one| one.span.links.clear());
        push(&|one| one.resource.attributes.clear());
        push(&|one| one.scope.attributes.clear());
        for attribute in 0..one.span.attributes.len() {
            push(&|one| drop(one.span.attributes.remove(attribute)));
        }
        for event in 0..one.span.events.len() {
            push(&|one| drop(one.span.events.remove(event)));
        }
    }
    found
}

fn selectors(selector: &Selector) -> Vec<Selector> {
    let mut found = Vec::new();
    for at in 0..selector.parts.len() {
        if selector.parts.len() > 1 {
            let mut smaller = selector.clone();
            smaller.parts.remove(at);
            found.push(smaller);
        }
        for part in parts(&selector.parts[at]) {
            let mut smaller = selector.clone();
            smaller.parts[at] = part;
            found.push(smaller);
        }
    }
    found
}

fn parts(part: &Part) -> Vec<Part> {
    let mut found = Vec::new();
    for at in 0..part.hops.len() {
        if part.hops.len() > 1 {
            let mut smaller = part.clone();
            smaller.hops.remove(at);
            found.push(smaller);
        }
        for step in steps(&part.hops[at].1) {
            let mut smaller = part.clone();
            smaller.hops[at].1 = step;
            found.push(smaller);
        }
    }
    found
}

fn steps(step: &Step) -> Vec<Step> {
    let mut found = Vec::new();
    if step.position.is_some() {
        found.push(Step { position: None, ..step.clone() });
    }
    if let Some(condition) = &step.condition {
        found.push(Step { condition: None, ..step.clone() });
        for condition in conditions(condition) {
            found.push(Step { condition: Some(condition), ..step.clone() });
        }
    }
    for at in 0..step.pseudos.len() {
        let mut without = step.clone();
        let pseudo = without.pseudos.remove(at);
        found.push(without);
        let smaller: Vec<Pseudo> = match pseudo {
            Pseudo::Has(inner) => selectors(&inner).into_iter().map(Pseudo::Has).collect(),
            Pseudo::Not(inner) => selectors(&inner).into_iter().map(Pseudo::Not).collect(),
            Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => Vec::new(),
        };
        for pseudo in smaller {
            let mut smaller = step.clone();
            smaller.pseudos[at] = pseudo;
            found.push(smaller);
        }
    }
    found
}

fn conditions(condition: &Condition) -> Vec<Condition> {
    match condition {
        Condition::And(all) => several(all, Condition::And),
        Condition::Or(any) => several(any, Condition::Or),
        Condition::Not(inner) => {
            let mut found = vec![(**inner).clone()];
            found.extend(conditions(inner).into_iter().map(|it| Condition::Not(Box::new(it))));
            found
        }
        Condition::Event(Some(inner)) => {
            let mut found = vec![Condition::Event(None)];
            found.extend(
                conditions(inner).into_iter().map(|it| Condition::Event(Some(Box::new(it)))),
            );
            found
        }
        Condition::Link(Some(inner)) => {
            let mut found = vec![Condition::Link(None)];
            found.extend(
                conditions(inner).into_iter().map(|it| Condition::Link(Some(Box::new(it)))),
            );
            found
        }
        _ => Vec::new(),
    }
}

fn several(all: &[Condition], make: fn(Vec<Condition>) -> Condition) -> Vec<Condition> {
    let mut found = all.to_vec();
    for at in 0..all.len() {
        if all.len() > 2 {
            let mut smaller = all.to_vec();
            smaller.remove(at);
            found.push(make(smaller));
        }
        for condition in conditions(&all[at]) {
            let mut smaller = all.to_vec();
            smaller[at] = condition;
            found.push(make(smaller));
        }
    }
    found
}
