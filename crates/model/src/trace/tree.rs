//! The shape of a trace: who is whose child, in what order.

use std::{iter, ops::Range};

use super::{SpanIx, Trace};

/// The tree of a trace as it stood when the tree was made.
///
/// Spans come in depth-first order, a parent before its children, siblings by start and then by arrival. A
/// span whose parent is absent stands as a root. Parents that form a circle are cut at their earliest span.
#[derive(Clone, Debug)]
pub struct Tree {
    order: Vec<SpanIx>,
    /// By span: its place in `order`, and the end of its subtree there.
    places: Vec<(u32, u32)>,
    parents: Vec<Option<SpanIx>>,
    orphans: Vec<SpanIx>,
}

impl Tree {
    /// The tree of `trace`.
    pub fn of(trace: &Trace) -> Self {
        let mut parents: Vec<_> = trace
            .spans()
            .map(|span| {
                span.parent()
                    .and_then(|id| trace.number_of(id))
                    .filter(|parent| *parent != span.ix())
            })
            .collect();
        let orphans = trace
            .spans()
            .filter(|span| span.parent().is_some_and(|id| trace.number_of(id).is_none()))
            .map(|span| span.ix())
            .collect();
        let mut by_start: Vec<_> = trace.spans().map(|span| span.ix()).collect();
        by_start.sort_by_key(|ix| (trace.span(*ix).start(), *ix));
        cut_circles(trace, &by_start, &mut parents);
        let (order, places) = depth_first(&by_start, &parents);
        Self { order, places, parents, orphans }
    }

    /// All spans, depth first.
    pub fn order(&self) -> &[SpanIx] {
        &self.order
    }

    /// The parent of a span, if it is in the trace.
    pub fn parent(&self, span: SpanIx) -> Option<SpanIx> {
        self.parents[span.0 as usize]
    }

    /// All spans below a span, depth first.
    pub fn descendants(&self, span: SpanIx) -> &[SpanIx] {
        let (place, end) = self.places[span.0 as usize];
        &self.order[place as usize + 1..end as usize]
    }

    /// The place of a span in [`Tree::order`].
    pub fn place(&self, span: SpanIx) -> usize {
        self.places[span.0 as usize].0 as usize
    }

    /// Where a span and all below it stand in [`Tree::order`].
    pub fn subtree(&self, span: SpanIx) -> Range<usize> {
        let (place, end) = self.places[span.0 as usize];
        place as usize..end as usize
    }

    /// Spans that name a parent which is not in the trace, in the order of arrival.
    pub fn orphans(&self) -> &[SpanIx] {
        &self.orphans
    }
}

/// Makes the earliest span of each circle a root.
fn cut_circles(trace: &Trace, by_start: &[SpanIx], parents: &mut [Option<SpanIx>]) {
    // 0: not seen; otherwise the walk that saw it.
    let mut seen_by = vec![0u32; parents.len()];
    for (walk, first) in (1..).zip(by_start) {
        let mut at = Some(*first);
        while let Some(span) = at {
            let seen = &mut seen_by[span.0 as usize];
            if *seen == walk {
                // Walks start in order of time, but may enter a circle at any span of it.
                cut_at_earliest(trace, span, parents);
                break;
            }
            if *seen != 0 {
                break;
            }
            *seen = walk;
            at = parents[span.0 as usize];
        }
    }
}

/// Looks at the spans of the circle only: a trace may hold as many circles as pairs.
fn cut_at_earliest(trace: &Trace, entered: SpanIx, parents: &mut [Option<SpanIx>]) {
    let circle = iter::successors(Some(entered), |span| {
        parents[span.0 as usize].filter(|parent| *parent != entered)
    });
    if let Some(root) = circle.min_by_key(|span| (trace.span(*span).start(), *span)) {
        parents[root.0 as usize] = None;
    }
}

fn depth_first(by_start: &[SpanIx], parents: &[Option<SpanIx>]) -> (Vec<SpanIx>, Vec<(u32, u32)>) {
    // Linked lists in two vectors: each span's first child, and its next sibling.
    let mut first_child = vec![None; parents.len()];
    let mut next_sibling = vec![None; parents.len()];
    let mut first_root = None;
    for span in by_start.iter().rev() {
        let first = match parents[span.0 as usize] {
            Some(parent) => &mut first_child[parent.0 as usize],
            None => &mut first_root,
        };
        next_sibling[span.0 as usize] = first.replace(*span);
    }
    let mut order = Vec::with_capacity(parents.len());
    let mut places = vec![(0, 0); parents.len()];
    let mut open: Vec<SpanIx> = Vec::new();
    let mut at = first_root;
    loop {
        if let Some(span) = at {
            places[span.0 as usize].0 = order.len() as u32;
            order.push(span);
            open.push(span);
            at = first_child[span.0 as usize];
        } else if let Some(done) = open.pop() {
            places[done.0 as usize].1 = order.len() as u32;
            at = next_sibling[done.0 as usize];
        } else {
            return (order, places);
        }
    }
}
