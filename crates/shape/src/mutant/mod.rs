//! Mutants: variations of a trace with one change each.
//!
//! Mutants are enumerated, never random: every operator on every class of span, in tree order, so that the same trace has the
//! same mutants with the same names, and so has the next trace of the same operation. Spans with the same label, ancestors and
//! set of child labels are one class, and the first span of a class is mutated: a result for one of three equal queries applies
//! to all three.
//!
//! Deliberately absent: mutants of the trigger span, which belongs to this program and not to the system; of resources; of events
//! and links; and a span without any parent, which would be in another trace. And any judgement.

mod apply;
mod naming;

use std::{collections::HashMap, fmt};

use model::{
    SpanId, Trace, TraceId,
    trace::{ResourceData, ScopeData, SpanData, SpanIx, StatusCode, Tree},
};

use crate::{Keep, diff::name, node::What, of::head};

/// A single change of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutant {
    /// The name, stable for the next trace of the same operation: `drop:orders/reserve`.
    pub id: String,
    /// The change.
    pub operator: Operator,
    /// The changed span.
    pub span: SpanIx,
    /// A description of the resulting defect, in one sentence.
    pub says: String,
}

/// A change of a span.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Operator {
    /// The span is removed; its children move to its parent.
    Drop,
    /// The span moves to another parent.
    Reparent(SpanId),
    /// An error status is cleared, any other status becomes an error.
    Status(StatusCode),
    /// An attribute is removed.
    Attribute(String),
    /// The span takes much longer, and later spans start later.
    Slow,
    /// The span is duplicated.
    Duplicate,
}

/// All mutants of a trace, or an even sample of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mutants {
    /// The mutants in tree order.
    pub list: Vec<Mutant>,
    /// The names of the mutants outside the sample.
    pub left_out: Vec<String>,
    /// The number of spans that are equal to an earlier one, and not mutated themselves.
    pub alike: usize,
}

/// A trace split into its parts once, so that each mutant is assembled quickly.
#[derive(Debug)]
pub struct Parts {
    id: TraceId,
    tree: Tree,
    resources: Vec<ResourceData>,
    scopes: Vec<ScopeData>,
    /// Each span with the indexes of its resource and its scope.
    spans: Vec<(usize, usize, SpanData)>,
}

/// Returns the mutants of a trace: at most `most`, only for these attributes, and none of the span `except`, the trigger span.
pub fn mutants(trace: &Trace, attributes: &Keep, most: usize, except: Option<SpanIx>) -> Mutants {
    let tree = Tree::of(trace);
    let (names, alike) = naming::names(trace, &tree, except);
    let mut list = Vec::new();
    for (place, label) in names {
        let span = tree.order()[place];
        for operator in operators(trace, &tree, place, attributes) {
            let says = description(trace, span, &operator);
            list.push(Mutant { id: format!("{operator}:{label}"), operator, span, says });
        }
    }
    let left_out = thin(&mut list, most);
    Mutants { list, left_out, alike }
}

/// Keeps an even sample, and returns the names of the others.
fn thin(list: &mut Vec<Mutant>, most: usize) -> Vec<String> {
    let all = list.len();
    let mut left_out = Vec::new();
    let (mut at, mut drawn) = (0, 0);
    list.retain(|mutant| {
        let is_drawn = all <= most || drawn < most && at == drawn * all / most;
        drawn += usize::from(is_drawn);
        at += 1;
        if !is_drawn {
            left_out.push(mutant.id.clone());
        }
        is_drawn
    });
    left_out
}

fn operators(trace: &Trace, tree: &Tree, place: usize, attributes: &Keep) -> Vec<Operator> {
    let span = trace.span(tree.order()[place]);
    let flipped = match span.status() {
        StatusCode::Error => StatusCode::Unset,
        _ => StatusCode::Error,
    };
    let mut operators = vec![Operator::Drop];
    operators.extend(elsewhere(trace, tree, place).map(Operator::Reparent));
    operators.push(Operator::Status(flipped));
    let mut keys: Vec<_> =
        span.attributes().iter().map(|(key, _)| key).filter(|key| attributes.has(key)).collect();
    keys.sort_unstable();
    keys.dedup();
    operators.extend(keys.into_iter().map(|key| Operator::Attribute(key.to_owned())));
    operators.extend([Operator::Slow, Operator::Duplicate]);
    operators
}

/// Returns another parent for a span: its grandparent, else a sibling.
fn elsewhere(trace: &Trace, tree: &Tree, place: usize) -> Option<SpanId> {
    let parent = tree.parent_at(place)?;
    let id = |place: usize| trace.span(tree.order()[place]).id();
    let own = id(place);
    let beside = || {
        let siblings: Vec<_> = tree.children_at(parent).filter(|it| id(*it) != own).collect();
        siblings.iter().copied().rfind(|it| *it < place).or(siblings.first().copied())
    };
    tree.parent_at(parent).or_else(beside).map(id)
}

fn description(trace: &Trace, span: SpanIx, operator: &Operator) -> String {
    let named = |span| name(&What::Span(head(span, &Keep::none(), false)));
    let what = named(trace.span(span));
    match operator {
        Operator::Drop => format!("`{what}` is not there"),
        Operator::Reparent(to) => {
            let to = trace.find(*to).map_or_else(String::new, named);
            format!("`{what}` stands under `{to}`")
        }
        Operator::Status(StatusCode::Error) => format!("`{what}` ends with an error"),
        Operator::Status(_) => format!("the error of `{what}` is not reported"),
        Operator::Attribute(key) => format!("`{what}` has no attribute `{key}`"),
        Operator::Slow => format!("`{what}` takes ten times as long, and a second more at least"),
        Operator::Duplicate => format!("`{what}` is there twice"),
    }
}

impl Operator {
    /// Returns the name of the operator.
    pub fn word(&self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Reparent(_) => "reparent",
            Self::Status(_) => "status",
            Self::Attribute(_) => "attribute",
            Self::Slow => "slow",
            Self::Duplicate => "duplicate",
        }
    }
}

impl fmt::Display for Operator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(key) => write!(f, "attribute({key})"),
            other => f.write_str(other.word()),
        }
    }
}

impl Parts {
    /// Splits a trace into its parts.
    pub fn of(trace: &Trace) -> Self {
        let (mut resources, mut scopes) = (Vec::new(), Vec::new());
        let (mut known_resources, mut known_scopes) = (HashMap::new(), HashMap::new());
        let mut spans = Vec::with_capacity(trace.len());
        for span in trace.spans() {
            let resource = *known_resources.entry(span.resource_ix()).or_insert_with(|| {
                resources.push(span.resource().to_data());
                resources.len() - 1
            });
            let scope = *known_scopes.entry(span.scope_ix()).or_insert_with(|| {
                scopes.push(span.scope().to_data());
                scopes.len() - 1
            });
            spans.push((resource, scope, span.to_data()));
        }
        Self { id: trace.id(), tree: Tree::of(trace), resources, scopes, spans }
    }

    /// Returns the span itself, then its parent and its children.
    pub fn neighbours(&self, span: SpanIx) -> Vec<SpanIx> {
        let place = self.tree.place(span);
        let order = self.tree.order();
        let around = self.tree.parent_at(place).into_iter().chain(self.tree.children_at(place));
        [span].into_iter().chain(around.map(|place| order[place])).collect()
    }
}
