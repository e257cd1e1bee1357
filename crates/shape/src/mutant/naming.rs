//! Groups equal spans into classes and names each class: with the shortest distinct name, and without parts that change from run
//! to run.

use std::{
    cmp::Ordering,
    collections::{HashMap, HashSet},
};

use model::{
    Trace,
    trace::{SpanIx, Tree},
};

use crate::{Keep, literal::bare_or_quoted, of::head};

/// A class of equal spans.
struct Class {
    /// The position of its first span.
    place: usize,
    above: Option<usize>,
    label: String,
    kind: &'static str,
    below: Vec<String>,
}

/// Returns the position of the first span of each class with the name of the class; and how many spans equal an earlier one.
pub(super) fn names(
    trace: &Trace,
    tree: &Tree,
    except: Option<SpanIx>,
) -> (Vec<(usize, String)>, usize) {
    let classes = classes(trace, tree);
    let alike = trace.len() - classes.len();
    let mut names: Vec<Option<String>> = vec![None; classes.len()];
    let mut taken = HashSet::new();
    for stage in 0..STAGES {
        let open: Vec<_> = (0..classes.len()).filter(|at| names[*at].is_none()).collect();
        let mut counts: HashMap<String, usize> = HashMap::new();
        for at in &open {
            *counts.entry(name(&classes, *at, stage)).or_default() += 1;
        }
        for at in open {
            let name = name(&classes, at, stage);
            if counts[&name] == 1 && taken.insert(name.clone()) {
                names[at] = Some(name);
            }
        }
    }
    // Classes without a distinct name are numbered per label, ordered by their ancestors and not by arrival.
    let mut open: Vec<_> = (0..classes.len()).filter(|at| names[*at].is_none()).collect();
    open.sort_by(|one, other| compare(&classes, *one, *other));
    for alike in open.chunk_by(|one, other| classes[*one].label == classes[*other].label) {
        for (number, at) in (1..).zip(alike) {
            names[*at] = Some(format!("{} #{number}", classes[*at].label));
        }
    }
    let named = classes.iter().zip(names);
    let named = named.filter_map(|(class, name)| Some((class.place, name?)));
    let is_meant = |(place, _): &(usize, String)| except != Some(tree.order()[*place]);
    (named.filter(is_meant).collect(), alike)
}

fn classes(trace: &Trace, tree: &Tree) -> Vec<Class> {
    let order = tree.order();
    let labels: Vec<_> = order.iter().map(|span| label(trace, *span)).collect();
    let mut known: HashMap<_, usize> = HashMap::new();
    let mut classes: Vec<Class> = Vec::new();
    let mut of_place = Vec::with_capacity(order.len());
    for place in 0..order.len() {
        let above = tree.parent_at(place).map(|parent| of_place[parent]);
        let kind = trace.span(order[place]).kind().as_str();
        let mut below: Vec<_> = tree.children_at(place).map(|it| labels[it].clone()).collect();
        below.sort();
        below.dedup();
        let label = labels[place].clone();
        let class =
            *known.entry((above, label.clone(), kind, below.clone())).or_insert_with(|| {
                classes.push(Class { place, above, label, kind, below });
                classes.len() - 1
            });
        of_place.push(class);
    }
    classes
}

/// Compares two classes by their own content, then by their ancestors: two different classes differ in one of these.
fn compare(classes: &[Class], one: usize, other: usize) -> Ordering {
    let (mut one, mut other) = (Some(one), Some(other));
    while let (Some(a), Some(b)) = (one, other)
        && a != b
    {
        let [a, b] = [a, b].map(|at| &classes[at]);
        let own = (&a.label, a.kind, &a.below).cmp(&(&b.label, b.kind, &b.below));
        match own {
            Ordering::Equal => (one, other) = (a.above, b.above),
            unequal => return unequal,
        }
    }
    one.is_some().cmp(&other.is_some())
}

fn label(trace: &Trace, span: SpanIx) -> String {
    let head = head(trace.span(span), &Keep::none(), false);
    let service = head.service.as_deref().unwrap_or("-");
    format!("{}/{}", bare_or_quoted(service, "\"/"), bare_or_quoted(&head.name, "\""))
}

/// The number of naming schemes to make a name distinct, from the shortest.
const STAGES: usize = 5;
/// The maximum number of ancestors in a name.
const LEVELS_MAX: usize = 8;

fn name(classes: &[Class], at: usize, stage: usize) -> String {
    let class = &classes[at];
    let label = &class.label;
    let over = match class.below.as_slice() {
        [] => String::new(),
        below => format!(" over {}", below.join(" + ")),
    };
    let mut under = String::new();
    let mut above = class.above;
    let levels = if stage < 3 { 1 } else { LEVELS_MAX };
    for _ in 0..levels {
        let Some(at) = above else { break };
        under.push_str(&format!(" under {}", classes[at].label));
        above = classes[at].above;
    }
    match stage {
        0 => label.clone(),
        1 => format!("{label}{over}"),
        2 => format!("{label}{under}"),
        3 => format!("{label}{over}{under}"),
        _ => format!("{label} ({}){over}{under}", class.kind),
    }
}
