//! What there is to look at: the trace, its shape, the trigger's answer, and what was found out about them so far.
//!
//! A [`Scene`] is a world with the span that is spoken of. [`World::look_up`] says what a property is there. What is
//! computed once for a trace (times, clocks, links, steps, selections, aggregates) is kept here, by the address of the
//! syntax it belongs to: all syntax outlives its world.

use std::{
    cell::{Cell, OnceCell, RefCell},
    collections::{HashMap, HashSet},
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
    future::Found,
    index::{Extent, Index},
    relation::Related,
    select::{Links, Matches},
    summary::Missing,
    times,
};
use crate::syntax::ast::{Aggregate, Expr, Selector, Step, Subject};

/// A trace and what is known about it.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) tree: Tree,
    pub(super) trigger: Option<SpanIx>,
    /// None where nothing was fired.
    pub(super) answer: Option<&'a Answer>,
    pub(super) index: Index<'a>,
    self_times: OnceCell<Vec<i128>>,
    critical_times: OnceCell<Vec<i128>>,
    clocks: OnceCell<Clocks>,
    links: OnceCell<Links>,
    depths: OnceCell<Vec<u32>>,
    inner: OnceCell<(Bits, Bits)>,
    first: OnceCell<u64>,
    steps: Memo<Matches>,
    selections: Memo<Vec<u32>>,
    constants: Memo<Result<Rc<Constant<'a>>, Missing>>,
    statements: Memo<Found>,
    relations: Memo<Related>,
    looks: Cell<usize>,
    /// Conditions that leave open for some span whether it matches, by address.
    doubts: RefCell<HashSet<usize>>,
}

/// How many spans all nested questions of a judgement may look at.
const LOOKS_MAX: usize = 100_000_000;

/// Why a statement is open that would look at more.
pub(super) const TOO_MANY_LOOKS: &str = "it asks for more spans below spans than are looked at";

/// What was computed for a piece of syntax, by its address.
type Memo<T> = RefCell<HashMap<usize, Rc<T>>>;

/// A world and what is spoken of in it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scene<'w, 'a> {
    pub(crate) world: &'w World<'a>,
    pub(crate) span: Option<Span<'a>>,
    /// How many spans the spec selected.
    pub(crate) count: Option<u64>,
    /// The event or link that is spoken of inside `event[…]` and `link[…]`.
    pub(crate) inner: Option<InnerRef<'a>>,
    /// Whether a selector asks: to it the trigger span answers to both its names.
    pub(crate) is_selecting: bool,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum InnerRef<'a> {
    Event(Event<'a>),
    Link(Link<'a>),
}

/// The name of the trigger span, and the one that it has in files written for Tracetest.
pub(crate) const TRIGGER_NAMES: [&str; 2] = ["Qualitytrace trigger", "Tracetest trigger"];

/// How many resources are searched for an attribute before it is taken as there.
const RESOURCES_MAX: usize = 64;

impl<'a> World<'a> {
    /// The world of a trace. Of several spans with the trigger's id the first is the trigger; where nobody says which
    /// one it is, it is a root that bears its name.
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
            tree: Tree::of(trace),
            trigger: trigger.map(Span::ix),
            answer,
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
            constants: RefCell::default(),
            statements: RefCell::default(),
            relations: RefCell::default(),
            looks: Cell::new(0),
            doubts: RefCell::default(),
        }
    }

    /// Looks at every span once for all that these ask of single ones.
    pub(crate) fn prepare(&mut self, expressions: &[&'a Expr], selectors: &[&'a Selector]) {
        self.index = Index::of(expressions, selectors, self);
    }

    /// How many spans there are.
    pub(crate) fn len(&self) -> usize {
        self.tree.order().len()
    }

    /// The span at a place of the tree.
    pub(crate) fn span_at(&self, place: usize) -> Span<'a> {
        self.trace.span(self.tree.order()[place])
    }

    /// The scene at a place of the tree.
    pub(crate) fn scene_at(&self, place: usize) -> Scene<'_, 'a> {
        Scene { span: Some(self.span_at(place)), ..self.scene() }
    }

    /// The scene of a span.
    pub(crate) fn scene_of(&self, span: Span<'a>) -> Scene<'_, 'a> {
        Scene { span: Some(span), ..self.scene() }
    }

    /// The places of these numbers.
    pub(crate) fn places_of(&self, numbers: &Bits) -> Bits {
        let mut places = Bits::none(numbers.len());
        for number in numbers.ones() {
            places.set(self.tree.place(self.trace.numbered_span(number).ix()));
        }
        places
    }

    /// The numbers of the spans that have events, and of those that have links.
    pub(super) fn inner(&self) -> (&Bits, &Bits) {
        let (events, links) = self.inner.get_or_init(|| {
            let (mut events, mut links) = (Bits::none(self.len()), Bits::none(self.len()));
            for span in self.trace.spans() {
                if span.events().next().is_some() {
                    events.set(span.ix().number());
                }
                if span.links().next().is_some() {
                    links.set(span.ix().number());
                }
            }
            (events, links)
        });
        (events, links)
    }

    /// Whether the resource of some span may have this attribute; of many nobody looks.
    pub(super) fn is_resource_key(&self, name: &str) -> bool {
        let mut resources = self.trace.resources();
        let mut some = resources.by_ref().take(RESOURCES_MAX);
        some.any(|resource| resource.attributes().get(name).is_some()) || resources.next().is_some()
    }

    /// When the first span started.
    pub(crate) fn first_start(&self) -> u64 {
        *self.first.get_or_init(|| {
            self.trace.spans().map(|span| span.start().as_nanos()).min().unwrap_or(0)
        })
    }

    /// The scene without a span.
    pub(crate) fn scene(&self) -> Scene<'_, 'a> {
        Scene { world: self, span: None, count: None, inner: None, is_selecting: false }
    }

    /// Whether this is the span of the trigger.
    pub(crate) fn is_trigger(&self, span: SpanIx) -> bool {
        self.trigger == Some(span)
    }

    /// The place of the trigger span.
    pub(crate) fn trigger(&self) -> Option<usize> {
        self.trigger.map(|span| self.tree.place(span))
    }

    /// The duration of the span at a place without the time of its children.
    pub(super) fn self_time(&self, place: usize) -> i128 {
        self.self_times.get_or_init(|| times::own(self))[place]
    }

    /// What the whole trace waited for of the span at a place.
    pub(super) fn critical_time(&self, place: usize) -> i128 {
        self.critical_times.get_or_init(|| times::critical(self))[place]
    }

    pub(crate) fn clocks(&self) -> &Clocks {
        self.clocks.get_or_init(|| Clocks::of(self))
    }

    pub(crate) fn links(&self) -> &Links {
        self.links.get_or_init(|| Links::of(self))
    }

    /// How many spans stand above the one at a place.
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

    /// How many spans stand directly below the one at a place.
    pub(crate) fn children_at(&self, place: usize) -> usize {
        self.tree.children_at(place).count()
    }

    /// What the index knows of a comparison, if it is one that the plan makes.
    pub(crate) fn indexed(&self, expression: &'a Expr) -> Option<&Extent> {
        self.index.get(expression)
    }

    pub(super) fn step(&self, step: &'a Step, make: impl FnOnce() -> Matches) -> Rc<Matches> {
        remember(&self.steps, step, make)
    }

    pub(super) fn selection(
        &self,
        selector: &'a Selector,
        make: impl FnOnce() -> Vec<u32>,
    ) -> Rc<Vec<u32>> {
        remember(&self.selections, selector, make)
    }

    pub(super) fn constant(
        &self,
        aggregate: &'a Aggregate,
        make: impl FnOnce() -> Result<Rc<Constant<'a>>, Missing>,
    ) -> Rc<Result<Rc<Constant<'a>>, Missing>> {
        remember(&self.constants, aggregate, make)
    }

    /// A statement about the whole trace.
    /// Remembers that a condition leaves open for some span whether it matches.
    pub(super) fn doubt(&self, condition: &'a Expr) {
        self.doubts.borrow_mut().insert(std::ptr::from_ref(condition).addr());
    }

    pub(super) fn has_doubts(&self) -> bool {
        !self.doubts.borrow().is_empty()
    }

    pub(super) fn is_doubted(&self, condition: &Expr) -> bool {
        self.doubts.borrow().contains(&std::ptr::from_ref(condition).addr())
    }

    /// Whether so many spans may be looked at from another span. What is nested could ask for any number.
    pub(super) fn may_look(&self, spans: usize) -> bool {
        self.looks.set(self.looks.get().saturating_add(spans));
        self.looks.get() <= LOOKS_MAX
    }

    pub(super) fn statement(&self, statement: &'a Expr, make: impl FnOnce() -> Found) -> Rc<Found> {
        remember(&self.statements, statement, make)
    }

    /// A relation between selections of the whole trace, by its left side.
    pub(super) fn relation(
        &self,
        left: &'a Subject,
        make: impl FnOnce() -> Related,
    ) -> Rc<Related> {
        remember(&self.relations, left, make)
    }
}

impl<'w, 'a> Scene<'w, 'a> {
    /// The same scene about another span.
    pub(crate) fn at(&self, place: usize) -> Self {
        Scene { span: Some(self.world.span_at(place)), count: None, inner: None, ..*self }
    }

    /// The place of the span that is spoken of.
    pub(crate) fn place(&self) -> Option<usize> {
        self.span.map(|span| self.world.tree.place(span.ix()))
    }
}

/// From start to end in nanoseconds, negative where the clock was set back.
pub(crate) fn duration(span: Span<'_>) -> i128 {
    i128::from(span.end().as_nanos()) - i128::from(span.start().as_nanos())
}

fn remember<K, T>(memo: &Memo<T>, key: &K, make: impl FnOnce() -> T) -> Rc<T> {
    let address = std::ptr::from_ref(key).addr();
    if let Some(known) = memo.borrow().get(&address) {
        return Rc::clone(known);
    }
    let made = Rc::new(make());
    memo.borrow_mut().insert(address, Rc::clone(&made));
    made
}
