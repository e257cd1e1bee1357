//! The tree of a trace, in an order that does not depend on how its spans arrived.
//!
//! `model` orders siblings by their start and then by arrival. Two that started in the same nanosecond are ordered here by
//! their name, which is the same in every run, and then by their id. Not by their end, which a span may withhold. A circle of parents is cut at the first of
//! its spans in that order. Only copies of one span are left in the order of arrival. Most traces have no such spans, and keep
//! the tree of `model`.

use std::iter;

use model::{
    Trace,
    trace::{self, SpanIx},
};

/// The tree of a trace; see [`trace::Tree`], whose words it uses.
#[derive(Debug)]
pub(crate) struct Tree {
    arrived: trace::Tree,
    sorted: Option<Sorted>,
}

/// The tree where its order is another than that of arrival.
#[derive(Debug)]
struct Sorted {
    order: Vec<SpanIx>,
    /// By the number of a span.
    places: Vec<u32>,
    /// By place: where its subtree ends.
    ends: Vec<u32>,
    /// By place: the place of the parent.
    parents: Vec<Option<u32>>,
}

/// By what siblings are ordered.
type Key<'t> = (u64, &'t str, [u8; 8], usize);

impl Tree {
    pub(crate) fn of(trace: &Trace) -> Self {
        let mut tree = Self { arrived: trace::Tree::of(trace), sorted: None };
        let mut roots = circle_roots(&tree.arrived, trace);
        roots.retain(|(cut, first)| cut != first);
        let is_behind = |place: usize| {
            let next = tree.end_at(place);
            next < trace.len()
                && tree.parent_at(next) == tree.parent_at(place)
                && key(tree.order()[next], trace) < key(tree.order()[place], trace)
        };
        if !roots.is_empty() || (0..trace.len()).any(is_behind) {
            tree.sorted = Some(Sorted::of(&tree.arrived, &roots, trace));
        }
        tree
    }

    /// All spans, depth first.
    pub(crate) fn order(&self) -> &[SpanIx] {
        self.sorted.as_ref().map_or(self.arrived.order(), |sorted| &sorted.order)
    }

    /// The place of a span in [`Tree::order`].
    pub(crate) fn place(&self, span: SpanIx) -> usize {
        match &self.sorted {
            Some(sorted) => sorted.places[span.number()] as usize,
            None => self.arrived.place(span),
        }
    }

    /// Where the subtree of the span at this place ends.
    pub(crate) fn end_at(&self, place: usize) -> usize {
        match &self.sorted {
            Some(sorted) => sorted.ends[place] as usize,
            None => self.arrived.end_at(place),
        }
    }

    /// The place of the parent of the span at this place.
    pub(crate) fn parent_at(&self, place: usize) -> Option<usize> {
        match &self.sorted {
            Some(sorted) => sorted.parents[place].map(|parent| parent as usize),
            None => self.arrived.parent_at(place),
        }
    }

    /// The parent of a span, if it is in the trace.
    pub(crate) fn parent(&self, span: SpanIx) -> Option<SpanIx> {
        self.parent_at(self.place(span)).map(|place| self.order()[place])
    }

    /// The places of the children of the span at this place, in order.
    pub(crate) fn children_at(&self, place: usize) -> impl Iterator<Item = usize> {
        self.stretch(place + 1, self.end_at(place))
    }

    /// The places of what stands at the top: spans without a parent in the trace.
    pub(crate) fn tops(&self) -> impl Iterator<Item = usize> {
        self.stretch(0, self.order().len())
    }

    /// The places of the later siblings of the span at this place, in order. What stands as a root has no siblings.
    pub(crate) fn later_siblings_at(&self, place: usize) -> impl Iterator<Item = usize> {
        let end = self.parent_at(place).map_or(0, |parent| self.end_at(parent));
        self.stretch(self.end_at(place), end)
    }

    /// Spans that name a parent which is not in the trace.
    pub(crate) fn orphans(&self) -> &[SpanIx] {
        self.arrived.orphans()
    }

    /// The roots of the subtrees from `first` to `end`, side by side.
    fn stretch(&self, first: usize, end: usize) -> impl Iterator<Item = usize> {
        let mut next = first;
        iter::from_fn(move || {
            let place = (next < end).then_some(next)?;
            next = self.end_at(place);
            Some(place)
        })
    }
}

impl Sorted {
    /// The tree with each cut of a circle moved to its first span, and each family in order.
    fn of(arrived: &trace::Tree, roots: &[(SpanIx, SpanIx)], trace: &Trace) -> Self {
        let mut parents: Vec<_> = trace.spans().map(|span| arrived.parent(span.ix())).collect();
        for (cut, first) in roots {
            parents[cut.number()] = named_parent(*cut, trace);
            parents[first.number()] = None;
        }
        // Families side by side, each from its last to its first: the next one to be placed is taken from the end.
        let mut spans: Vec<_> = trace.spans().map(|span| span.ix()).collect();
        let family = |span: &SpanIx| parents[span.number()].map(SpanIx::number);
        spans.sort_by_cached_key(|span| std::cmp::Reverse((family(span), key(*span, trace))));
        let mut below = vec![0..0; trace.len()];
        let mut open: Vec<SpanIx> = Vec::new();
        let mut at = 0;
        for siblings in spans.chunk_by(|a, b| family(a) == family(b)) {
            let stretch = at..at + siblings.len();
            at = stretch.end;
            match family(&siblings[0]) {
                Some(parent) => below[parent] = stretch,
                None => open.extend(siblings),
            }
        }
        let mut sorted = Self {
            order: Vec::with_capacity(trace.len()),
            places: vec![0; trace.len()],
            ends: vec![0; trace.len()],
            parents: Vec::with_capacity(trace.len()),
        };
        while let Some(span) = open.pop() {
            let place = sorted.order.len() as u32;
            let parent = parents[span.number()].map(|parent| sorted.places[parent.number()]);
            sorted.places[span.number()] = place;
            sorted.order.push(span);
            sorted.parents.push(parent);
            open.extend(&spans[below[span.number()].clone()]);
        }
        for place in (0..sorted.order.len()).rev() {
            sorted.ends[place] = sorted.ends[place].max(place as u32 + 1);
            if let Some(parent) = sorted.parents[place] {
                let end = sorted.ends[place];
                let above = &mut sorted.ends[parent as usize];
                *above = end.max(*above);
            }
        }
        sorted
    }
}

fn key(span: SpanIx, trace: &Trace) -> Key<'_> {
    let one = trace.span(span);
    (one.start().as_nanos(), one.name(), *one.id().as_bytes(), span.number())
}

/// The parent that a span names, if it is another one in the trace.
fn named_parent(span: SpanIx, trace: &Trace) -> Option<SpanIx> {
    let parent = trace.find(trace.span(span).parent()?)?.ix();
    (parent != span).then_some(parent)
}

/// For each circle of parents where it was cut, and its first span.
fn circle_roots(arrived: &trace::Tree, trace: &Trace) -> Vec<(SpanIx, SpanIx)> {
    let mut roots = Vec::new();
    for cut in arrived.tops().map(|place| arrived.order()[place]) {
        let next = |span: &SpanIx| named_parent(*span, trace).filter(|parent| *parent != cut);
        if named_parent(cut, trace).is_some() {
            let circle = iter::successors(Some(cut), next);
            roots.extend(circle.min_by_key(|span| key(*span, trace)).map(|first| (cut, first)));
        }
    }
    roots
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Timestamp, Trace, TraceId,
        trace::{ResourceData, ScopeData, SpanData},
    };
    use proptest::prelude::*;

    use super::Tree;

    /// Its id, its parent or 0, its start and its end.
    type Drawn = (u8, u8, u64, u64);

    fn trace(spans: &[Drawn]) -> Trace {
        let mut trace = Trace::new(TraceId::from_bytes([7; 16]).expect("not zero"));
        let id = |number: u8| SpanId::from_bytes(u64::from(number).to_be_bytes());
        for (own, parent, start, end) in spans {
            let resource = trace.resource(ResourceData::default()).expect("room");
            let scope = trace.scope(ScopeData::default()).expect("room");
            let mut span = SpanData::new(id(*own).expect("ids start at 1"), id(*parent), "x");
            span.start = Timestamp::from_nanos(*start);
            span.end = Timestamp::from_nanos(*end);
            trace.push(resource, scope, span).expect("room");
        }
        trace
    }

    /// Each span with its parent and its subtree, depth first.
    fn shape(spans: &[Drawn]) -> Vec<(String, Option<usize>, usize)> {
        let trace = trace(spans);
        let tree = Tree::of(&trace);
        let told = |(place, span)| {
            assert_eq!(tree.place(span), place, "a place is that of its span");
            (trace.span(span).id().to_string(), tree.parent_at(place), tree.end_at(place))
        };
        tree.order().iter().copied().enumerate().map(told).collect()
    }

    proptest! {
        #[test]
        fn arrival_decides_nothing(
            spans in prop::collection::vec((1u8..16, 0u8..16, 1u64..4, 1u64..4), 1..16),
            order in any::<prop::sample::Index>(),
        ) {
            let mut ids = std::collections::BTreeSet::new();
            let spans: Vec<_> = spans.into_iter().filter(|span| ids.insert(span.0)).collect();
            let mut others = spans.clone();
            others.rotate_left(order.index(spans.len()));
            prop_assert_eq!(shape(&spans), shape(&others));
            others.reverse();
            let reversed = shape(&others);
            prop_assert_eq!(&shape(&spans), &reversed);
            // A tree that keeps its order is the same as one that is made anew.
            others.sort_by_key(|(id, _, start, _)| (*start, *id));
            prop_assert_eq!(&shape(&others), &reversed);
        }
    }
}
