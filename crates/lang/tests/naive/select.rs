//! Evaluates a selector: recursion and loops over all spans, without memoization.

use model::{SpanId, Timestamp, TraceId};

use super::{
    super::chance::sample::{Sample, TRACE},
    condition::{Subject, truth},
    selector::{Combinator, Part, Position, Pseudo, Selector, Step},
};

/// The spans of a sample by index, with their tree.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) sample: &'a Sample,
    parents: Vec<Option<usize>>,
    /// All spans, depth first, siblings by start, name and id, and copies of one span by arrival.
    order: Vec<usize>,
}

impl<'a> World<'a> {
    pub(crate) fn new(sample: &'a Sample) -> Self {
        let named = (0..sample.spans.len()).map(|at| named_parent(sample, at)).collect();
        let mut world = Self { sample, parents: named, order: Vec::new() };
        let is_cut = |at: usize| {
            let circle = world.circle(at);
            circle.iter().min_by_key(|at| key(sample, **at)) == Some(&at)
        };
        let cut: Vec<usize> = (0..sample.spans.len()).filter(|at| is_cut(*at)).collect();
        for at in cut {
            world.parents[at] = None;
        }
        world.order = world.below(None);
        world
    }

    /// Returns the spans of the cycle of parents that contains a span, if there is one.
    fn circle(&self, start: usize) -> Vec<usize> {
        let mut circle = vec![start];
        let mut at = start;
        while let Some(parent) = self.parents[at] {
            if parent == start {
                return circle;
            }
            if circle.contains(&parent) {
                break;
            }
            circle.push(parent);
            at = parent;
        }
        Vec::new()
    }

    /// Returns the children of a span, or the spans without a parent.
    fn directly_below(&self, parent: Option<usize>) -> Vec<usize> {
        let mut found: Vec<usize> =
            (0..self.parents.len()).filter(|at| self.parents[*at] == parent).collect();
        found.sort_by_key(|at| key(self.sample, *at));
        found
    }

    fn below(&self, parent: Option<usize>) -> Vec<usize> {
        let mut found = Vec::new();
        for child in self.directly_below(parent) {
            found.push(child);
            found.extend(self.below(Some(child)));
        }
        found
    }

    pub(crate) fn children(&self, at: usize) -> Vec<usize> {
        self.directly_below(Some(at))
    }

    pub(crate) fn ancestors(&self, at: usize) -> Vec<usize> {
        match self.parents[at] {
            None => Vec::new(),
            Some(parent) => {
                let mut found = vec![parent];
                found.extend(self.ancestors(parent));
                found
            }
        }
    }

    /// Returns the selected spans, each one once: part by part, each part in tree order.
    pub(crate) fn select(&self, selector: &Selector) -> Vec<usize> {
        let mut selected = Vec::new();
        for part in &selector.parts {
            for at in self.select_part(part, None) {
                if !selected.contains(&at) {
                    selected.push(at);
                }
            }
        }
        selected
    }

    /// Each hop selects again from every span that the previous hop reached.
    fn select_part(&self, part: &Part, from: Option<usize>) -> Vec<usize> {
        let mut sources = vec![from];
        let mut arrived: Vec<usize> = Vec::new();
        for (combinator, step) in &part.hops {
            arrived = Vec::new();
            for source in sources {
                let found = self.order.iter().copied().filter(|at| {
                    source.is_none_or(|source| self.is_reached(source, *combinator, *at))
                        && self.is_matched(step, *at)
                });
                arrived.extend(pick(&found.collect::<Vec<_>>(), step.position));
            }
            sources = arrived.iter().copied().map(Some).collect();
        }
        self.order.iter().copied().filter(|at| arrived.contains(at)).collect()
    }

    fn is_reached(&self, from: usize, combinator: Combinator, to: usize) -> bool {
        match combinator {
            Combinator::Descendant => self.ancestors(to).contains(&from),
            Combinator::Child => self.parents[to] == Some(from),
            Combinator::Parent => self.parents[from] == Some(to),
            Combinator::Ancestor => self.ancestors(from).contains(&to),
            Combinator::Sibling | Combinator::Adjacent => {
                // A span without a parent has no siblings.
                let Some(parent) = self.parents[from] else { return false };
                let siblings = self.children(parent);
                let place = |of: usize| siblings.iter().position(|at| *at == of);
                match (place(from), place(to)) {
                    (Some(from), Some(to)) if combinator == Combinator::Adjacent => from + 1 == to,
                    (Some(from), Some(to)) => from < to,
                    _ => false,
                }
            }
            Combinator::Linked => self.sample.spans[to].span.links.iter().any(|link| {
                link.trace_id.is_none_or(|id| Some(id) == TraceId::from_bytes(TRACE))
                    && link.span_id.is_some_and(|id| first(self.sample, id) == Some(from))
            }),
        }
    }

    fn is_matched(&self, step: &Step, at: usize) -> bool {
        let condition = step.condition.as_ref();
        condition.is_none_or(|it| truth(it, self, Subject::Span(at)) == Some(true))
            && step.pseudos.iter().all(|pseudo| self.is_such(pseudo, at))
    }

    fn is_such(&self, pseudo: &Pseudo, at: usize) -> bool {
        let parent = self.sample.spans[at].span.parent;
        match pseudo {
            Pseudo::Root => parent.is_none(),
            Pseudo::Orphan => parent.is_some_and(|id| first(self.sample, id).is_none()),
            Pseudo::Leaf => self.children(at).is_empty(),
            Pseudo::Not(selector) => !self.select(selector).contains(&at),
            Pseudo::Has(selector) => {
                selector.parts.iter().any(|part| !self.select_part(part, Some(at)).is_empty())
            }
        }
    }
}

fn pick(found: &[usize], position: Option<Position>) -> Vec<usize> {
    let picked = match position {
        None => return found.to_vec(),
        Some(Position::First) => found.first(),
        Some(Position::Last) => found.last(),
        Some(Position::Nth(number)) => found.get(number - 1),
    };
    picked.copied().into_iter().collect()
}

/// Returns the span with an id; if there are several, the first that arrived.
fn first(sample: &Sample, id: SpanId) -> Option<usize> {
    sample.spans.iter().position(|one| one.span.id == id)
}

/// Returns the parent of a span, if it is in the trace and is another span.
fn named_parent(sample: &Sample, at: usize) -> Option<usize> {
    first(sample, sample.spans[at].span.parent?).filter(|parent| *parent != at)
}

/// Returns the sort key of siblings.
fn key(sample: &Sample, at: usize) -> (Timestamp, &str, SpanId, usize) {
    let span = &sample.spans[at].span;
    (span.start, &span.name, span.id, at)
}
