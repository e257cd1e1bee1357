//! Computes the shape of a trace.

use model::{
    Fault, Faulty, Trace,
    trace::{Attributes, Span as SpanView, Tree, ValueRef},
};
use thiserror::Error;

use crate::{
    Attribute, Count, DEPTH_MAX, Event, Keep, LINES_MAX, Link, Node, Shape, Span, What,
    literal::{Literal, shorten},
    node::fold,
    volatile,
};

/// The reason why a trace has no readable shape.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ShapeError {
    /// Too many levels.
    #[error(
        "the trace is {depth} spans deep, and a shape shows {DEPTH_MAX} levels: it is too deep to be read"
    )]
    TooDeep {
        /// The depth of the trace.
        depth: usize,
    },
    /// Too many lines.
    #[error(
        "the shape has {lines} lines, and {LINES_MAX} are allowed: keep fewer attributes, so that more spans are the same"
    )]
    TooLong {
        /// The number of lines.
        lines: usize,
    },
}

impl Faulty for ShapeError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

impl Shape {
    /// Returns the shape of a trace, with the attributes to keep.
    pub fn of(trace: &Trace, keep: &Keep) -> Result<Self, ShapeError> {
        let tree = Tree::of(trace);
        let depth = depth(&tree);
        if depth > DEPTH_MAX {
            return Err(ShapeError::TooDeep { depth });
        }
        let mut roots = Vec::new();
        let mut below: Vec<Vec<Node>> = vec![Vec::new(); trace.len()];
        let mut orphans = vec![false; trace.len()];
        for orphan in tree.orphans() {
            orphans[orphan.number()] = true;
        }
        // In reverse: the descendants of a span come after it.
        for (place, span) in tree.order().iter().enumerate().rev() {
            let span = trace.span(*span);
            let mut children = std::mem::take(&mut below[place]);
            children.extend(span.events().map(|event| {
                let name = shorten(&volatile::in_name(event.name()));
                let attributes = kept(event.attributes(), keep);
                Node::new(What::Event(Event { name, attributes }))
            }));
            children.extend(span.links().map(|link| Node::new(What::Link(target(trace, link)))));
            fold(&mut children);
            let what = What::Span(head(span, keep, orphans[span.ix().number()]));
            let siblings = match tree.parent_at(place) {
                Some(parent) => &mut below[parent],
                None => &mut roots,
            };
            siblings.push(Node { what, children, count: Count::exactly(1), notes: Vec::new() });
        }
        fold(&mut roots);
        let shape = Self { keep: keep.clone(), notes: Vec::new(), roots };
        match shape.lines() {
            lines if lines > LINES_MAX => Err(ShapeError::TooLong { lines }),
            _ => Ok(shape),
        }
    }

    fn lines(&self) -> usize {
        fn of(nodes: &[Node]) -> usize {
            nodes.iter().map(|node| 1 + of(&node.children)).sum()
        }
        of(&self.roots)
    }
}

/// Returns the depth of a tree, without recursion.
fn depth(tree: &Tree) -> usize {
    let mut depths = vec![0; tree.order().len()];
    for place in 0..depths.len() {
        depths[place] = 1 + tree.parent_at(place).map_or(0, |parent| depths[parent]);
    }
    depths.into_iter().max().unwrap_or(0)
}

/// Returns the part of a span that the shape keeps, without its children.
pub(crate) fn head(span: SpanView<'_>, keep: &Keep, is_orphan: bool) -> Span {
    Span {
        service: service(span).map(shorten),
        name: shorten(&volatile::in_name(span.name())),
        kind: span.kind(),
        status: span.status(),
        is_orphan,
        attributes: kept(span.attributes(), keep),
    }
}

fn service(span: SpanView<'_>) -> Option<&str> {
    match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => Some(name),
        _ => None,
    }
}

/// Returns the kept attributes; if a key is repeated, the first one counts.
fn kept(attributes: Attributes<'_>, keep: &Keep) -> Vec<Attribute> {
    let mut kept: Vec<Attribute> = Vec::new();
    for (key, value) in attributes.iter().filter(|(key, _)| keep.has(key)) {
        if kept.iter().all(|earlier| earlier.key != key) {
            kept.push(Attribute { key: key.to_owned(), value: Literal::of(value) });
        }
    }
    kept.sort();
    kept
}

fn target(trace: &Trace, link: model::trace::Link<'_>) -> Link {
    if link.trace_id() != Some(trace.id()) {
        return Link::Elsewhere;
    }
    match link.span_id().and_then(|id| trace.find(id)) {
        None => Link::Absent,
        Some(span) => Link::Span {
            service: service(span).map(shorten),
            name: shorten(&volatile::in_name(span.name())),
        },
    }
}
