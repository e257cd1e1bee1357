//! The context of an evaluation: the trace, its tree, the trigger's response, and the data derived from them so far.
//!
//! An [`EvalScope`] is a context with the current span. [`EvalContext::look_up`] returns the value of a property there.
//! Data that is computed once for a trace (times, clocks, links, steps, selections, aggregates) is stored here, by the id
//! of the node that it belongs to (`syntax::number`).

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::HashMap,
    rc::Rc,
};

use model::{
    Answer, SpanId, Trace,
    trace::{Event, Link, Span, SpanIx, Tree},
};

use super::{
    aggregate::Constant,
    bits::Bits,
    clocks::Clocks,
    doubt::Selection,
    drop_count::DropCount,
    future::Evaluation,
    index::{Extent, Index},
    memo::{Memo, MemoryUse},
    patterns::hold_patterns,
    relation::RelationResult,
    select::{Links, Matches},
    siblings::Siblings,
    span_time::start_of,
    summary::NoValue,
    times::{self, CriticalTimes, TimeBounds},
    tree::in_order,
};
use crate::{
    budget,
    syntax::ast::{Aggregate, CompoundSelector, Expr, NodeId, Selector, Subject},
};

/// A trace and the data derived from it.
#[derive(Debug)]
pub(crate) struct EvalContext<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) tree: Tree,
    pub(super) trigger: Option<SpanIx>,
    /// `None` if no trigger was fired.
    pub(super) answer: Option<&'a Answer>,
    /// The number of received log records of the trace, which are not stored.
    pub(super) logs: u64,
    pub(super) index: Index,
    self_times: OnceCell<Vec<TimeBounds>>,
    critical_times: OnceCell<CriticalTimes>,
    clocks: OnceCell<Clocks>,
    links: OnceCell<Links>,
    depths: OnceCell<Vec<u32>>,
    inner: OnceCell<(Bits, Bits)>,
    first: OnceCell<u64>,
    steps: Memo<Matches>,
    selections: Memo<Vec<u32>>,
    picks: Memo<Vec<u32>>,
    having: Memo<Bits>,
    constants: Memo<Result<Rc<Constant<'a>>, NoValue>>,
    statements: Memo<Evaluation>,
    relations: Memo<RelationResult>,
    held: MemoryUse,
    looks: Cell<usize>,
    /// Conditions that are open for some span; those without an id share one entry.
    doubts: RefCell<HashMap<Option<NodeId>, Rc<ConditionDoubt>>>,
    bounds: Memo<Selection>,
    step_bounds: Memo<[Bits; 2]>,
    having_bounds: Memo<[Bits; 2]>,
    siblings: OnceCell<Siblings>,
    dropped_links: OnceCell<Option<(Bits, String)>>,
}

/// The spans for which a condition is open.
#[derive(Clone, Debug)]
pub(crate) struct ConditionDoubt {
    pub(crate) places: Bits,
    /// The reason, for the first of them.
    pub(crate) reason: String,
}

/// The maximum number of spans that all nested evaluations of a judgement may visit.
const LOOKS_MAX: usize = 100_000_000;

/// Why a statement that would visit more is open.
pub(super) const TOO_MANY_LOOKS: &str = "it needs more descendants than are evaluated";

/// A context and the current span in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EvalScope<'w, 'a> {
    pub(crate) world: &'w EvalContext<'a>,
    pub(crate) span: Option<Span<'a>>,
    /// The number of spans that the spec selected.
    pub(crate) count: Option<u64>,
    /// The current event or link inside `event[…]` and `link[…]`.
    pub(crate) inner: Option<InnerRef<'a>>,
    /// Whether a selector is evaluated: the trigger span then matches both of its names.
    pub(crate) is_selecting: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum InnerRef<'a> {
    Event(Event<'a>),
    Link(Link<'a>),
}

/// The name of the trigger span, and its name in files written for Tracetest.
pub(crate) const TRIGGER_NAMES: [&str; 2] = ["Qualitytrace trigger", "Tracetest trigger"];

/// The maximum number of resources that are searched for an attribute; beyond it, the attribute counts as present.
const RESOURCES_MAX: usize = 64;

impl<'a> EvalContext<'a> {
    /// Creates the context of a trace. Of several spans with the trigger's id, the first is the trigger. Without an id, the
    /// trigger is a root with one of the trigger's names.
    pub(crate) fn new(
        trace: &'a Trace,
        trigger: Option<SpanId>,
        answer: Option<&'a Answer>,
    ) -> Self {
        let trigger = match trigger {
            Some(id) => trace.find(id),
            None => {
                let names: Vec<_> =
                    TRIGGER_NAMES.iter().filter_map(|name| trace.text_number(name)).collect();
                let is_trigger = |span: &Span<'_>| {
                    names.contains(&trace.name_number(span.ix())) && span.parent().is_none()
                };
                if names.is_empty() { None } else { trace.spans().find(is_trigger) }
            }
        };
        Self {
            trace,
            tree: in_order(trace),
            trigger: trigger.map(Span::ix),
            answer,
            logs: 0,
            index: Index::default(),
            self_times: OnceCell::new(),
            critical_times: OnceCell::new(),
            clocks: OnceCell::new(),
            links: OnceCell::new(),
            depths: OnceCell::new(),
            inner: OnceCell::new(),
            first: OnceCell::new(),
            steps: RefCell::default(),
            selections: RefCell::default(),
            picks: RefCell::default(),
            having: RefCell::default(),
            constants: RefCell::default(),
            statements: RefCell::default(),
            relations: RefCell::default(),
            held: MemoryUse::default(),
            looks: Cell::new(0),
            doubts: RefCell::default(),
            bounds: RefCell::default(),
            step_bounds: RefCell::default(),
            having_bounds: RefCell::default(),
            siblings: OnceCell::new(),
            dropped_links: OnceCell::new(),
        }
    }

    /// Sets the number of received log records of the trace.
    pub(crate) fn with_logs(self, logs: u64) -> Self {
        Self { logs, ..self }
    }

    /// Evaluates all predicates on single spans in these, in one pass over the spans.
    pub(crate) fn prepare(&mut self, expressions: &[&'a Expr], selectors: &[&'a Selector]) {
        if hold_patterns(expressions, selectors) {
            self.index = Index::of(expressions, selectors, self);
        }
    }

    /// Returns the number of spans.
    pub(crate) fn len(&self) -> usize {
        self.tree.order().len()
    }

    /// Returns the span at a position of the tree.
    pub(crate) fn span_at(&self, place: usize) -> Span<'a> {
        self.trace.span(self.tree.order()[place])
    }

    /// Returns the scope at a position of the tree.
    pub(crate) fn scene_at(&self, place: usize) -> EvalScope<'_, 'a> {
        EvalScope { span: Some(self.span_at(place)), ..self.scene() }
    }

    /// Returns the scope of a span.
    pub(crate) fn scene_of(&self, span: Span<'a>) -> EvalScope<'_, 'a> {
        EvalScope { span: Some(span), ..self.scene() }
    }

    /// Returns the positions of the spans with these numbers.
    pub(crate) fn places_of(&self, numbers: &Bits) -> Bits {
        let mut places = Bits::none(numbers.len());
        for number in numbers.ones() {
            places.set(self.tree.place(self.trace.numbered_span(number).ix()));
        }
        places
    }

    /// Returns the numbers of the spans with events, and of those with links; also if all of them were dropped.
    pub(super) fn inner(&self) -> (&Bits, &Bits) {
        let (events, links) = self.inner.get_or_init(|| {
            let (mut events, mut links) = (Bits::none(self.len()), Bits::none(self.len()));
            for span in self.trace.spans() {
                if span.events().next().is_some() || DropCount::events(span, self.logs).is_some() {
                    events.set(span.ix().number());
                }
                if span.links().next().is_some() || span.dropped_links() > 0 {
                    links.set(span.ix().number());
                }
            }
            (events, links)
        });
        (events, links)
    }

    /// Whether the resource of some span may have this attribute; true if there are too many resources to search.
    pub(super) fn is_resource_key(&self, name: &str) -> bool {
        let mut resources = self.trace.resources();
        let mut some = resources.by_ref().take(RESOURCES_MAX);
        some.any(|resource| resource.attributes().get(name).is_some()) || resources.next().is_some()
    }

    /// Returns the start of the first span.
    pub(crate) fn first_start(&self) -> u64 {
        *self.first.get_or_init(|| self.trace.spans().filter_map(start_of).min().unwrap_or(0))
    }

    /// Returns the scope without a span.
    pub(crate) fn scene(&self) -> EvalScope<'_, 'a> {
        EvalScope { world: self, span: None, count: None, inner: None, is_selecting: false }
    }

    /// Whether this is the span of the trigger.
    pub(crate) fn is_trigger(&self, span: SpanIx) -> bool {
        self.trigger == Some(span)
    }

    /// Returns the position of the trigger span.
    pub(crate) fn trigger(&self) -> Option<usize> {
        self.trigger.map(|span| self.tree.place(span))
    }

    /// Returns the duration of the span at a position without the time of its children.
    pub(super) fn self_time(&self, place: usize) -> TimeBounds {
        self.self_times.get_or_init(|| times::own(self))[place]
    }

    /// Returns the time that the complete trace waited for each span.
    pub(super) fn critical_times(&self) -> &CriticalTimes {
        self.critical_times.get_or_init(|| times::critical(self))
    }

    pub(crate) fn clocks(&self) -> &Clocks {
        self.clocks.get_or_init(|| Clocks::of(self))
    }

    pub(crate) fn links(&self) -> &Links {
        self.links.get_or_init(|| Links::of(self))
    }

    /// Returns the number of ancestors of the span at a position.
    pub(crate) fn depth_at(&self, place: usize) -> u32 {
        let depths = self.depths.get_or_init(|| {
            let mut depths = Vec::with_capacity(self.len());
            for place in 0..self.len() {
                depths.push(self.tree.parent_at(place).map_or(0, |parent| depths[parent] + 1));
            }
            depths
        });
        let is_elsewhere = self.trigger().is_some_and(|trigger| {
            place != trigger && !(trigger..self.tree.end_at(trigger)).contains(&place)
        });
        depths[place] + u32::from(is_elsewhere)
    }

    /// Returns the number of children of the span at a position.
    pub(crate) fn children_at(&self, place: usize) -> usize {
        let count = self.tree.children_at(place).count();
        budget::spend(count as u64);
        count
    }

    /// Returns the results of a comparison from the index, if the plan contains it.
    pub(crate) fn indexed(&self, expression: &'a Expr) -> Option<&Extent> {
        self.index.get(expression)
    }

    pub(super) fn step(
        &self,
        step: &'a CompoundSelector,
        make: impl FnOnce() -> Matches,
    ) -> Rc<Matches> {
        self.held.remember(&self.steps, &step.at, make)
    }

    pub(super) fn selection(
        &self,
        selector: &'a Selector,
        make: impl FnOnce() -> Vec<u32>,
    ) -> Rc<Vec<u32>> {
        self.held.remember(&self.selections, &selector.at, make)
    }

    /// Returns the spans that the position of a step picks from each span, on any path to it.
    pub(super) fn picks(
        &self,
        step: &'a CompoundSelector,
        make: impl FnOnce() -> Vec<u32>,
    ) -> Rc<Vec<u32>> {
        self.held.remember(&self.picks, &step.at, make)
    }

    /// Returns the spans from which a selector selects a span.
    pub(super) fn having(&self, selector: &'a Selector, make: impl FnOnce() -> Bits) -> Rc<Bits> {
        self.held.remember(&self.having, &selector.at, make)
    }

    pub(super) fn constant(
        &self,
        aggregate: &'a Aggregate,
        make: impl FnOnce() -> Result<Rc<Constant<'a>>, NoValue>,
    ) -> Rc<Result<Rc<Constant<'a>>, NoValue>> {
        self.held.remember(&self.constants, &aggregate.of.at, make)
    }

    /// Stores that a condition is open for some spans.
    pub(super) fn doubt(&self, condition: &'a Expr, doubt: ConditionDoubt) {
        if budget::is_over() {
            return;
        }
        self.held.add(doubt.places.bytes());
        let mut doubts = self.doubts.borrow_mut();
        let id = condition.at.id();
        let doubt = match doubts.get(&id).filter(|_| id.is_none()) {
            Some(known) => {
                let mut both = ConditionDoubt::clone(known);
                both.places.add(&doubt.places);
                both
            }
            None => doubt,
        };
        doubts.insert(id, Rc::new(doubt));
    }

    /// Returns the spans for which an evaluated condition is open, if there are any.
    pub(super) fn condition_doubt(&self, condition: &Expr) -> Option<Rc<ConditionDoubt>> {
        self.doubts.borrow().get(&condition.at.id()).cloned()
    }

    /// Returns the selection of a selector over the complete trace, if it is uncertain.
    pub(super) fn bounds(
        &self,
        selector: &'a Selector,
        make: impl FnOnce() -> Selection,
    ) -> Rc<Selection> {
        self.held.remember(&self.bounds, &selector.at, make)
    }

    /// Returns the spans that certainly match a step, and those that possibly match.
    pub(super) fn step_bounds(
        &self,
        step: &'a CompoundSelector,
        make: impl FnOnce() -> [Bits; 2],
    ) -> Rc<[Bits; 2]> {
        self.held.remember(&self.step_bounds, &step.at, make)
    }

    /// Returns the spans from which a selector certainly selects a span, and those from which it possibly does.
    pub(super) fn having_bounds(
        &self,
        selector: &'a Selector,
        make: impl FnOnce() -> [Bits; 2],
    ) -> Rc<[Bits; 2]> {
        self.held.remember(&self.having_bounds, &selector.at, make)
    }

    /// Returns the siblings with an uncertain order.
    pub(super) fn siblings(&self) -> &Siblings {
        self.siblings.get_or_init(|| Siblings::of(self))
    }

    /// Returns the positions of the spans that dropped links, and the reason for the first; `None` if there are none.
    pub(super) fn dropped_links(&self) -> Option<&(Bits, String)> {
        let dropped = self.dropped_links.get_or_init(|| {
            let mut places = Bits::none(self.len());
            let mut first = None;
            for span in self.trace.spans().filter(|span| span.dropped_links() > 0) {
                places.set(self.tree.place(span.ix()));
                first.get_or_insert_with(|| {
                    DropCount::links(span).map_or_else(String::new, |dropped| dropped.by(span))
                });
            }
            first.map(|reason| (places, reason))
        });
        dropped.as_ref()
    }

    /// Whether this number of spans may be visited from another span. Nested statements could visit any number.
    pub(super) fn may_look(&self, spans: usize) -> bool {
        self.looks.set(self.looks.get().saturating_add(spans));
        self.looks.get() <= LOOKS_MAX
    }

    /// Returns the result of a statement about the complete trace.
    pub(super) fn statement(
        &self,
        statement: &'a Expr,
        make: impl FnOnce() -> Evaluation,
    ) -> Rc<Evaluation> {
        self.held.remember(&self.statements, &statement.at, make)
    }

    /// Counts the memory of data that is stored with the memoized results.
    pub(super) fn hold(&self, bytes: u64) {
        self.held.add(bytes);
    }

    /// Discards the results that can be recomputed, if little memory is left.
    pub(crate) fn make_room(&self) {
        if !budget::is_tight() {
            return;
        }
        self.steps.take();
        self.selections.take();
        self.picks.take();
        self.having.take();
        self.constants.take();
        self.statements.take();
        self.relations.take();
        self.bounds.take();
        self.step_bounds.take();
        self.having_bounds.take();
        self.doubts.take();
        self.held.release();
    }

    /// Returns a relation between selections of the complete trace, by its left side.
    pub(super) fn relation(
        &self,
        left: &'a Subject,
        make: impl FnOnce() -> RelationResult,
    ) -> Rc<RelationResult> {
        self.held.remember(&self.relations, &left.selector.at, make)
    }
}

impl<'w, 'a> EvalScope<'w, 'a> {
    /// Returns the same scope for another span.
    pub(crate) fn at(&self, place: usize) -> Self {
        EvalScope { span: Some(self.world.span_at(place)), count: None, inner: None, ..*self }
    }

    /// Returns the position of the current span.
    pub(crate) fn place(&self) -> Option<usize> {
        self.span.map(|span| self.world.tree.place(span.ix()))
    }
}
