//! The tree of a trace: parents, children and their order.

use std::{cmp::Ordering, iter, ops::Range};

use super::{Span, SpanIx, Trace};

/// The tree of a trace at the time when the tree was built.
///
/// Spans are in depth-first order, a parent before its children, siblings by start and then by arrival. A span with an absent
/// parent is a root. A cycle of parents is cut at its earliest span. The index of a span in that order is its *place*; a
/// subtree is a range of places.
#[derive(Clone, Debug)]
pub struct Tree {
    order: Vec<SpanIx>,
    /// By span.
    places: Vec<u32>,
    /// By place: the end of its subtree.
    ends: Vec<u32>,
    /// By place: the place of the parent, or `NONE`.
    parents: Vec<u32>,
    orphans: Vec<SpanIx>,
}

/// No span: a trace has fewer than 2^32 spans.
const NONE: u32 = u32::MAX;

impl Tree {
    /// Builds the tree of `trace`.
    pub fn of(trace: &Trace) -> Self {
        Self::with_ties(trace, |_, _| Ordering::Equal)
    }

    /// Builds the tree of `trace`, in which `ties` orders spans that start in the same nanosecond; equal spans stay in order of
    /// arrival.
    pub fn with_ties(trace: &Trace, ties: fn(Span<'_>, Span<'_>) -> Ordering) -> Self {
        let (mut parents, orphans) = parents(trace);
        let starts = trace.spans().map(|span| span.start().as_nanos()).collect();
        let siblings = Siblings { trace, starts, ties };
        let mut tree = depth_first(&parents, &siblings);
        if tree.order.len() < parents.len() {
            // Spans that no root reaches are below cycles.
            cut_circles(&siblings, &mut parents);
            tree = depth_first(&parents, &siblings);
        }
        Self { orphans, ..tree }
    }

    /// Returns all spans, depth first.
    pub fn order(&self) -> &[SpanIx] {
        &self.order
    }

    /// Returns the parent of a span, if it is in the trace.
    pub fn parent(&self, span: SpanIx) -> Option<SpanIx> {
        self.parent_at(self.place(span)).map(|place| self.order[place])
    }

    /// Returns all spans below a span, depth first.
    pub fn descendants(&self, span: SpanIx) -> &[SpanIx] {
        let subtree = self.subtree(span);
        &self.order[subtree.start + 1..subtree.end]
    }

    /// Returns the place of a span in [`Tree::order`].
    pub fn place(&self, span: SpanIx) -> usize {
        self.places[span.0 as usize] as usize
    }

    /// Returns the range of a span and all its descendants in [`Tree::order`].
    pub fn subtree(&self, span: SpanIx) -> Range<usize> {
        let place = self.place(span);
        place..self.end_at(place)
    }

    /// Returns the end of the subtree of the span at this place.
    pub fn end_at(&self, place: usize) -> usize {
        self.ends[place] as usize
    }

    /// Returns the place of the parent of the span at this place.
    pub fn parent_at(&self, place: usize) -> Option<usize> {
        Some(self.parents[place]).filter(|parent| *parent != NONE).map(|parent| parent as usize)
    }

    /// Returns the places of the children of the span at this place, in order.
    pub fn children_at(&self, place: usize) -> impl Iterator<Item = usize> {
        self.stretch(place + 1, self.end_at(place))
    }

    /// Returns the places of the roots: spans without a parent in the trace.
    pub fn tops(&self) -> impl Iterator<Item = usize> {
        self.stretch(0, self.order.len())
    }

    /// Returns the places of the later siblings of the span at this place, in order. A root has no siblings.
    pub fn later_siblings_at(&self, place: usize) -> impl Iterator<Item = usize> {
        let end = self.parent_at(place).map_or(0, |parent| self.end_at(parent));
        self.stretch(self.end_at(place), end)
    }

    /// Returns the spans that name a parent which is not in the trace, in order of arrival.
    pub fn orphans(&self) -> &[SpanIx] {
        &self.orphans
    }

    /// Returns the roots of the adjacent subtrees from `first` to `end`.
    fn stretch(&self, first: usize, end: usize) -> impl Iterator<Item = usize> {
        let mut next = first;
        iter::from_fn(move || {
            let place = (next < end).then_some(next)?;
            next = self.end_at(place);
            Some(place)
        })
    }
}

/// The order of siblings.
struct Siblings<'a> {
    trace: &'a Trace,
    /// By span.
    starts: Vec<u64>,
    ties: fn(Span<'_>, Span<'_>) -> Ordering,
}

impl Siblings<'_> {
    /// Compares two spans by their indices.
    fn compare(&self, one: u32, other: u32) -> Ordering {
        let starts = self.starts[one as usize].cmp(&self.starts[other as usize]);
        let span = |number: u32| self.trace.span(SpanIx(number));
        starts.then_with(|| (self.ties)(span(one), span(other))).then(one.cmp(&other))
    }
}

/// Returns, by span, the index of its parent in the trace, or `NONE`; and the spans that name an absent parent.
fn parents(trace: &Trace) -> (Vec<u32>, Vec<SpanIx>) {
    let mut orphans = Vec::new();
    // Siblings often arrive together.
    let mut last = None;
    let parents = trace.spans().map(|span| {
        let Some(id) = span.parent() else { return NONE };
        let found = match last {
            Some((known, found)) if known == id => found,
            _ => trace.number_of(id),
        };
        last = Some((id, found));
        match found {
            None => orphans.push(span.ix()),
            Some(parent) if parent != span.ix() => return parent.0,
            Some(_) => {}
        }
        NONE
    });
    (parents.collect(), orphans)
}

/// Makes the earliest span of each cycle a root.
fn cut_circles(siblings: &Siblings<'_>, parents: &mut [u32]) {
    // 0: not visited; otherwise the number of the walk that visited it.
    let mut seen_by = vec![0u32; parents.len()];
    for (walk, first) in (1..).zip(0..parents.len() as u32) {
        let mut at = first;
        while at != NONE {
            let seen = &mut seen_by[at as usize];
            if *seen == walk {
                cut_at_earliest(siblings, at, parents);
                break;
            }
            if *seen != 0 {
                break;
            }
            *seen = walk;
            at = parents[at as usize];
        }
    }
}

/// Visits only the spans of the cycle: a trace may contain as many cycles as pairs.
fn cut_at_earliest(siblings: &Siblings<'_>, entered: u32, parents: &mut [u32]) {
    let circle = iter::successors(Some(entered), |span| {
        Some(parents[*span as usize]).filter(|parent| *parent != entered)
    });
    if let Some(root) = circle.min_by(|one, other| siblings.compare(*one, *other)) {
        parents[root as usize] = NONE;
    }
}

/// Builds the tree below the roots, without spans on a cycle and their descendants.
fn depth_first(parents: &[u32], siblings: &Siblings<'_>) -> Tree {
    let (offsets, children) = families(parents, siblings);
    let of = |family: usize| offsets[family]..offsets[family + 1];
    let mut tree = Tree {
        order: Vec::with_capacity(parents.len()),
        places: vec![NONE; parents.len()],
        ends: vec![0; parents.len()],
        parents: vec![NONE; parents.len()],
        orphans: Vec::new(),
    };
    // The place of each open span, and the range of its remaining children.
    let mut open = vec![(NONE, of(parents.len()))];
    while let Some((above, rest)) = open.last_mut() {
        let Some(next) = rest.next() else {
            if *above != NONE {
                tree.ends[*above as usize] = tree.order.len() as u32;
            }
            open.pop();
            continue;
        };
        let (span, place) = (children[next as usize], tree.order.len() as u32);
        tree.order.push(SpanIx(span));
        tree.places[span as usize] = place;
        tree.parents[place as usize] = *above;
        let below = of(span as usize);
        if below.is_empty() {
            tree.ends[place as usize] = place + 1;
        } else {
            open.push((place, below));
        }
    }
    tree
}

/// Returns the children of each span, adjacent and in order, and the offset of each group; the roots come last.
fn families(parents: &[u32], order: &Siblings<'_>) -> (Vec<u32>, Vec<u32>) {
    let roots = parents.len();
    let family = |parent: u32| if parent == NONE { roots } else { parent as usize };
    let mut offsets = vec![0u32; roots + 2];
    for parent in parents {
        offsets[family(*parent) + 1] += 1;
    }
    for at in 1..offsets.len() {
        offsets[at] += offsets[at - 1];
    }
    let mut next = offsets.clone();
    let mut children = vec![0; parents.len()];
    for (span, parent) in (0..).zip(parents) {
        let slot = &mut next[family(*parent)];
        children[*slot as usize] = span;
        *slot += 1;
    }
    for bounds in offsets.windows(2) {
        let siblings = &mut children[bounds[0] as usize..bounds[1] as usize];
        if siblings.len() > 1 {
            siblings.sort_unstable_by(|one, other| order.compare(*one, *other));
        }
    }
    (offsets, children)
}
