//! Updates a shape to a trace, and preserves the manual edits that still match.

use crate::{
    Attribute, Count, Node, Shape, What,
    cover::{Assignment, Work, assign},
    diff::{diff, is_same_one},
    literal::Literal,
    node::fold,
};

/// Returns the shape of the trace. Ranges, `*` and notes of the older shape stay if they still match.
pub fn accept(old: &Shape, found: &Shape) -> Shape {
    let mut work = Work::default();
    let roots = siblings(&old.roots, &found.roots, &mut work);
    let (keep, notes) = (old.keep.clone(), old.notes.clone());
    let merged = Shape { keep, notes, roots };
    // Whatever was preserved from the older shape, the new one has to match the trace.
    if diff(&merged, found) == Ok(Vec::new()) {
        return merged;
    }
    Shape { roots: found.roots.clone(), ..merged }
}

fn siblings(old: &[Node], found: &[Node], work: &mut Work) -> Vec<Node> {
    let Assignment { taken, mut left, allowed } = assign(old, found, work);
    let mut merged = Vec::new();
    for (at, node) in old.iter().enumerate() {
        let more: u64 = (0..found.len())
            .filter(|it| allowed[*it].first() == Some(&at))
            .map(|it| left[it])
            .sum();
        let count = taken[at] + more;
        if node.count.allows(count) {
            merged.push(node.clone());
        } else if count > 0 {
            merged.push(Node { count: Count::exactly(count), ..node.clone() });
        } else if let Some(other) = same_one(node, found, &left) {
            merged.push(changed(node, &found[other], left[other], work));
            left[other] = 0;
        }
    }
    let rest = found.iter().enumerate().filter(|(at, _)| left[*at] > 0 && allowed[*at].is_empty());
    merged.extend(rest.map(|(at, node)| Node { count: Count::exactly(left[at]), ..node.clone() }));
    fold(&mut merged);
    merged
}

/// Finds an unassigned node that describes the same span or event.
fn same_one(node: &Node, found: &[Node], left: &[u64]) -> Option<usize> {
    (0..found.len()).find(|at| left[*at] > 0 && is_same_one(&node.what, &found[*at].what))
}

fn changed(old: &Node, found: &Node, count: u64, work: &mut Work) -> Node {
    let mut what = found.what.clone();
    let attributes = match (&old.what, &mut what) {
        (What::Span(old), What::Span(new)) => Some((&old.attributes, &mut new.attributes)),
        (What::Event(old), What::Event(new)) => Some((&old.attributes, &mut new.attributes)),
        _ => None,
    };
    if let Some((old, new)) = attributes {
        keep_any(old, new);
    }
    Node {
        what,
        children: siblings(&old.children, &found.children, work),
        count: if old.count.allows(count) { old.count } else { Count::exactly(count) },
        notes: old.notes.clone(),
    }
}

fn keep_any(old: &[Attribute], new: &mut [Attribute]) {
    for attribute in new {
        let is_any = |it: &&Attribute| it.key == attribute.key && it.value == Literal::Any;
        if old.iter().any(|it| is_any(&it)) {
            attribute.value = Literal::Any;
        }
    }
}
