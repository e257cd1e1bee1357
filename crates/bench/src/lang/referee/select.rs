//! Evaluates selectors by loops over all spans.

use std::cell::Cell;

use super::{
    clocks::Clocks,
    document::{Combinator, Part, Position, Pseudo, Selection, SelectorStep},
    trace::{Event, Link, RefereeSpan},
    truth::{Member, Truths},
};

/// A trace under evaluation.
#[derive(Debug)]
pub(super) struct Court<'a> {
    pub(super) spans: &'a [RefereeSpan],
    pub(super) clocks: Clocks,
    /// Whether no further span can come.
    pub(super) is_complete: bool,
    /// The reason why no verdict follows, once one is found.
    pub(super) unsaid: Cell<Option<Unsaid>>,
}

/// Cases that the reference does not define, or that are too large to enumerate: such a question is skipped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unsaid {
    /// The truth where causality contradicts itself, for example when a server worked longer than its client waited.
    Contradiction,
    /// Whether spans with an absent parent are siblings.
    SiblingsOfAbsentParent,
    /// The result of a comparison of groups that is undefined in one group and false in another.
    UndefinedInOneGroup,
    /// `not` of false-or-undefined, or of true-or-undefined: the language has one value for all open results.
    UndefinedBesideOpen,
    /// A minimum or maximum where the value of one span was dropped: the language assumes that it is present.
    ExtremeOfDropped,
    /// Whether an attribute of the resource is open where attributes of the span were dropped.
    DroppedElsewhere,
    /// The group of a span with a dropped key.
    DroppedKey,
    /// How much of its parent a child without an end covers.
    ChildWithoutEnd,
    /// Whether the result of a filter on an absent attribute, or of a path on a value that is not JSON, exists.
    FilterOfAbsent,
    /// Too many spans with an open selection.
    OpenSpans,
    /// Too many remote hosts with children of one span.
    RemoteHosts,
}

/// The scope in which a statement is evaluated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Focus<'a> {
    pub(super) span: Option<usize>,
    pub(super) item: Option<Item<'a>>,
    /// The number of spans that the selector of the spec matches, minimum and maximum.
    pub(super) selected: Option<(usize, usize)>,
}

/// An event or a link, inside `event[…]` and `link[…]`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Event(&'a Event),
    Link(&'a Link),
}

impl<'a> Court<'a> {
    pub(super) fn new(spans: &'a [RefereeSpan], is_complete: bool) -> Self {
        Self { spans, clocks: Clocks::new(spans), is_complete, unsaid: Cell::new(None) }
    }

    pub(super) fn select(&self, selection: &Selection, focus: Focus<'_>) -> Vec<Member> {
        let mut all = vec![Member::No; self.spans.len()];
        for part in &selection.0 {
            join(&mut all, &self.select_part(part, focus));
        }
        // A selection that may lose a span in one of its parts is treated like one that may lose it in all.
        if !self.is_complete && selection.0.iter().any(may_shrink) {
            all.iter_mut().for_each(|it| *it = (*it).min(Member::Maybe));
        }
        all
    }

    pub(super) fn select_part(&self, part: &Part, focus: Focus<'_>) -> Vec<Member> {
        let mut steps = part.steps.iter();
        let mut from = vec![Member::No; self.spans.len()];
        if part.from_self {
            if let Some(span) = focus.span {
                from[span] = Member::Yes;
            }
        } else if let Some((_, first)) = steps.next() {
            let matched = (0..self.spans.len()).map(|span| self.matches(span, first)).collect();
            from = self.at_position(matched, first.position);
        }
        for (combinator, step) in steps {
            from = self.step(&from, *combinator, step);
        }
        from
    }

    /// Evaluates one step from each of the spans.
    fn step(&self, from: &[Member], combinator: Combinator, step: &SelectorStep) -> Vec<Member> {
        let matched: Vec<_> = (0..self.spans.len()).map(|span| self.matches(span, step)).collect();
        let mut all = vec![Member::No; self.spans.len()];
        for (start, member) in from.iter().enumerate() {
            if *member == Member::No {
                continue;
            }
            let reached = (0..self.spans.len())
                .map(|span| matched[span].min(self.reaches(start, combinator, span)))
                .collect();
            let picked = self.at_position(reached, step.position);
            let picked: Vec<_> = picked.into_iter().map(|it| it.min(*member)).collect();
            join(&mut all, &picked);
        }
        all
    }

    fn matches(&self, span: usize, step: &SelectorStep) -> Member {
        let focus = Focus { span: Some(span), ..Focus::default() };
        let mut truths = Truths::TRUE;
        for condition in &step.conditions {
            truths = truths.and(self.statement(condition, focus));
        }
        let pseudos = step.pseudos.iter().map(|pseudo| self.is_pseudo(span, pseudo));
        pseudos.fold(truths.member(), Ord::min)
    }

    fn is_pseudo(&self, span: usize, pseudo: &Pseudo) -> Member {
        let here = &self.spans[span];
        let may_change = |it: Member| if self.is_complete { it } else { it.min(Member::Maybe) };
        match pseudo {
            Pseudo::Root => Member::of(here.parent.is_none()),
            Pseudo::Leaf => may_change(Member::of(self.children(span).is_empty())),
            Pseudo::Orphan => {
                may_change(Member::of(here.parent.is_some() && self.parent(span).is_none()))
            }
            Pseudo::Has(relative) => {
                let part = Part { from_self: true, ..relative.clone() };
                let focus = Focus { span: Some(span), ..Focus::default() };
                self.select_part(&part, focus).into_iter().max().unwrap_or(Member::No)
            }
            Pseudo::Not(excluded) => {
                may_change(self.select_part(excluded, Focus::default())[span].not())
            }
        }
    }

    pub(super) fn parent(&self, span: usize) -> Option<usize> {
        let id = self.spans[span].parent?;
        self.spans.iter().position(|it| it.id == id)
    }

    pub(super) fn children(&self, span: usize) -> Vec<usize> {
        let id = Some(self.spans[span].id);
        (0..self.spans.len()).filter(|child| self.spans[*child].parent == id).collect()
    }

    /// Returns the ancestors of a span, the nearest first.
    pub(super) fn above(&self, span: usize) -> Vec<usize> {
        let mut all = Vec::new();
        let mut here = span;
        while let Some(parent) = self.parent(here) {
            all.push(parent);
            here = parent;
        }
        all
    }

    fn are_siblings(&self, first: usize, second: usize) -> bool {
        let parent = self.spans[first].parent;
        let are_siblings =
            first != second && parent.is_some() && parent == self.spans[second].parent;
        if are_siblings && self.parent(first).is_none() {
            self.unsaid.set(Some(Unsaid::SiblingsOfAbsentParent));
        }
        are_siblings
    }

    fn starts_before(&self, first: usize, second: usize) -> Member {
        self.clocks.starts_before(self.spans, first, second)
    }

    fn reaches(&self, from: usize, combinator: Combinator, to: usize) -> Member {
        match combinator {
            Combinator::Below => Member::of(self.above(to).contains(&from)),
            Combinator::Child => Member::of(self.parent(to) == Some(from)),
            Combinator::Parent => Member::of(self.parent(from) == Some(to)),
            Combinator::Above => Member::of(self.above(from).contains(&to)),
            Combinator::Linked => self.links(to, from),
            Combinator::Later if self.are_siblings(from, to) => self.starts_before(from, to),
            Combinator::Next if self.are_siblings(from, to) => self.is_next(from, to),
            Combinator::Later | Combinator::Next => Member::No,
        }
    }

    /// Whether one span has a link to another of this trace.
    pub(super) fn links(&self, from: usize, to: usize) -> Member {
        let (from, id) = (&self.spans[from], self.spans[to].id);
        if from.links.iter().any(|link| link.is_of_this_trace && link.span == id) {
            return Member::Yes;
        }
        if from.dropped_links > 0 { Member::Maybe } else { Member::No }
    }

    fn is_next(&self, from: usize, to: usize) -> Member {
        let mut next = self.starts_before(from, to);
        for between in 0..self.spans.len() {
            if between != to && self.are_siblings(from, between) {
                let is_between =
                    self.starts_before(from, between).min(self.starts_before(between, to));
                next = next.min(is_between.not());
            }
        }
        if self.is_complete { next } else { next.min(Member::Maybe) }
    }

    /// The order of positions: a span comes before its descendants, and siblings come in the order of their starts, each with all
    /// its descendants.
    fn comes_before(&self, first: usize, second: usize) -> Member {
        let way = |span: usize| {
            let mut way = self.above(span);
            way.reverse();
            way.push(span);
            way
        };
        let (one, other) = (way(first), way(second));
        let common = one.iter().zip(&other).take_while(|(one, other)| one == other).count();
        match (one.get(common), other.get(common)) {
            (Some(one), Some(other)) => self.starts_before(*one, *other),
            (None, _) => Member::Yes,
            (_, None) => Member::No,
        }
    }

    /// Applies a position.
    fn at_position(&self, of: Vec<Member>, position: Option<Position>) -> Vec<Member> {
        let Some(position) = position else { return of };
        let pick = |span: usize| {
            if of[span] == Member::No {
                return Member::No;
            }
            // The number of spans before it, and behind it, minimum and maximum.
            let (mut before, mut behind) = ((0, 0), (0, 0));
            for other in (0..of.len()).filter(|other| *other != span) {
                let counted = |is: Member| {
                    let both = is.min(of[other]);
                    (usize::from(both == Member::Yes), usize::from(both != Member::No))
                };
                let (least, most) = counted(self.comes_before(other, span));
                before = (before.0 + least, before.1 + most);
                let (least, most) = counted(self.comes_before(span, other));
                behind = (behind.0 + least, behind.1 + most);
            }
            let ((least, most), wanted) = match position {
                Position::First => (before, 0),
                Position::Last => (behind, 0),
                Position::Nth(number) => (before, number - 1),
            };
            let is_there = match (least..=most).contains(&wanted) {
                false => Member::No,
                true if least == most => Member::Yes,
                true => Member::Maybe,
            };
            let is_there = is_there.min(of[span]);
            if self.is_complete { is_there } else { is_there.min(Member::Maybe) }
        };
        (0..of.len()).map(pick).collect()
    }
}

fn join(all: &mut [Member], more: &[Member]) {
    for (one, other) in all.iter_mut().zip(more) {
        *one = (*one).max(*other);
    }
}

/// Whether further spans may remove a span from the selection, by its syntax alone.
fn may_shrink(part: &Part) -> bool {
    part.steps.iter().any(|(combinator, step)| {
        *combinator == Combinator::Next
            || step.position.is_some()
            || step.pseudos.iter().any(|pseudo| !matches!(pseudo, Pseudo::Root | Pseudo::Has(_)))
    })
}
