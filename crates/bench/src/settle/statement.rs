//! The statements of tests about a trace, and their truth, evaluated without the language.
//!
//! Each statement has a text for the language and a plain function over the simulator's own list of spans. Deliberately absent:
//! comparisons of times or clocks; `lang` has the proof of those.

use std::fmt::{self, Display};

use model::trace::Kind;

use super::{
    chance::{Dice, percent},
    play::{Parent, SimulatedRun, SimulatedSpan},
    system::System,
};

/// The present spans, of all spans of a run.
#[derive(Clone)]
pub(super) struct There<'p, 's> {
    pub(super) system: &'s System,
    pub(super) played: &'p SimulatedRun<'s>,
    /// By the number of the span.
    pub(super) is_there: Vec<bool>,
    /// Whether data that SDKs dropped is present as well.
    pub(super) has_dropped: bool,
}

impl<'p, 's> There<'p, 's> {
    /// All ended spans, with all their data.
    pub(super) fn all(system: &'s System, played: &'p SimulatedRun<'s>) -> Self {
        let is_there = played.spans.iter().map(|span| span.end.is_some()).collect();
        Self { system, played, is_there, has_dropped: true }
    }

    fn numbers(&self) -> impl Iterator<Item = usize> {
        (0..self.is_there.len()).filter(|number| self.is_there[*number])
    }

    fn parent(&self, number: usize) -> Option<usize> {
        match self.played.spans[number].parent {
            Parent::Span(parent) | Parent::Lost(parent) if self.is_there[parent] => Some(parent),
            _ => None,
        }
    }

    /// Returns the value of a span, if it is present.
    fn value(&self, number: usize) -> Option<i64> {
        let span = &self.played.spans[number];
        span.value.filter(|_| self.has_dropped || !span.is_dropping)
    }

    fn takes(&self, filter: &SpanFilter, number: usize) -> bool {
        let span = &self.played.spans[number];
        let has_exception = span.has_exception && (self.has_dropped || !span.is_dropping);
        filter.takes(span, self.system) && (!filter.has_exception || has_exception)
    }

    fn matching(&self, filter: &SpanFilter) -> impl Iterator<Item = usize> {
        self.numbers().filter(|number| self.takes(filter, *number))
    }

    fn children(&self, number: usize) -> impl Iterator<Item = usize> {
        self.numbers().filter(move |child| self.parent(*child) == Some(number))
    }

    fn is_below(&self, number: usize, service: &str) -> bool {
        let above = std::iter::successors(self.parent(number), |at| self.parent(*at));
        above
            .into_iter()
            .any(|at| self.system.service_of(self.played.spans[at].process).name == service)
    }
}

/// Selects spans. Never the trigger's span: it has no service, and a kind that no filter selects alone.
#[derive(Clone, Default)]
pub(super) struct SpanFilter {
    pub(super) name: Option<String>,
    pub(super) service: Option<String>,
    pub(super) kind: Option<Kind>,
    pub(super) is_error: bool,
    pub(super) has_exception: bool,
}

impl SpanFilter {
    /// Whether it matches a span, apart from its events.
    pub(super) fn takes(&self, span: &SimulatedSpan<'_>, system: &System) -> bool {
        self.name.as_ref().is_none_or(|name| name == span.name)
            && self.kind.is_none_or(|kind| kind == span.kind)
            && (!self.is_error || span.is_error)
            && self
                .service
                .as_ref()
                .is_none_or(|service| *service == system.service_of(span.process).name)
    }
}

impl Display for SpanFilter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        parts.extend(self.name.as_ref().map(|name| format!("name=\"{name}\"")));
        parts.extend(self.service.as_ref().map(|service| format!("service=\"{service}\"")));
        parts.extend(self.kind.map(|kind| format!("kind=\"{}\"", kind.as_str())));
        parts.extend(self.is_error.then(|| "status=\"error\"".to_owned()));
        parts.extend(self.has_exception.then(|| "event[name=\"exception\"]".to_owned()));
        write!(f, "span[{}]", parts.join(" "))
    }
}

#[derive(Clone, Copy)]
pub(super) enum Compare {
    Is,
    AtLeast,
    AtMost,
}

impl Compare {
    fn holds(self, found: usize, number: usize) -> bool {
        match self {
            Self::Is => found == number,
            Self::AtLeast => found >= number,
            Self::AtMost => found <= number,
        }
    }

    fn word(self) -> &'static str {
        match self {
            Self::Is => "=",
            Self::AtLeast => ">=",
            Self::AtMost => "<=",
        }
    }
}

pub(super) enum SettleStatement {
    Count(SpanFilter, Compare, usize),
    Leaves(SpanFilter, Compare, usize),
    Below(String, SpanFilter, Compare, usize),
    No(SpanFilter),
    Some(SpanFilter),
    Every(SpanFilter, i64),
    /// At most this number of children of this kind.
    Children(SpanFilter, Kind, usize),
    Not(Box<SettleStatement>),
    Both(Box<SettleStatement>, Box<SettleStatement>),
    Either(Box<SettleStatement>, Box<SettleStatement>),
    /// As a spec: every selected span has the value.
    SpecEvery(SpanFilter, i64),
    SpecCount(SpanFilter, Compare, usize),
}

impl SettleStatement {
    pub(super) fn is_spec(&self) -> bool {
        matches!(self, Self::SpecEvery(..) | Self::SpecCount(..))
    }

    /// Whether it refers to this service by name.
    pub(super) fn names(&self, service: &str) -> bool {
        let is_named = |filter: &SpanFilter| filter.service.as_deref() == Some(service);
        match self {
            Self::Count(filter, ..)
            | Self::Leaves(filter, ..)
            | Self::No(filter)
            | Self::Some(filter)
            | Self::Every(filter, _)
            | Self::Children(filter, ..)
            | Self::SpecEvery(filter, _)
            | Self::SpecCount(filter, ..) => is_named(filter),
            Self::Below(above, filter, ..) => above == service || is_named(filter),
            Self::Not(one) => one.names(service),
            Self::Both(one, other) | Self::Either(one, other) => {
                one.names(service) || other.names(service)
            }
        }
    }

    /// Whether it holds for the present spans alone.
    pub(super) fn holds(&self, there: &There<'_, '_>) -> bool {
        let count = |filter| there.matching(filter).count();
        match self {
            Self::Count(filter, compare, number) | Self::SpecCount(filter, compare, number) => {
                compare.holds(count(filter), *number)
            }
            Self::Leaves(filter, compare, number) => {
                let is_leaf = |at: &usize| there.children(*at).next().is_none();
                compare.holds(there.matching(filter).filter(is_leaf).count(), *number)
            }
            Self::Below(service, filter, compare, number) => {
                let is_below = |at: &usize| there.is_below(*at, service);
                compare.holds(there.matching(filter).filter(is_below).count(), *number)
            }
            Self::No(filter) => count(filter) == 0,
            Self::Some(filter) => count(filter) > 0,
            Self::Every(filter, value) | Self::SpecEvery(filter, value) => {
                let has = |at: usize| there.value(at) == Some(*value);
                count(filter) > 0 && there.matching(filter).all(has)
            }
            Self::Children(filter, kind, most) => {
                let is_one = |child: &usize| there.played.spans[*child].kind == *kind;
                let few = |at: usize| there.children(at).filter(is_one).count() <= *most;
                count(filter) > 0 && there.matching(filter).all(few)
            }
            Self::Not(one) => !one.holds(there),
            Self::Both(one, other) => one.holds(there) && other.holds(there),
            Self::Either(one, other) => one.holds(there) || other.holds(there),
        }
    }
}

/// Renders it in the language; for a spec, the selector and the assertion.
impl Display for SettleStatement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Count(filter, compare, number) => {
                write!(f, "count({filter}) {} {number}", compare.word())
            }
            Self::Leaves(filter, compare, number) => {
                write!(f, "count({filter}:leaf) {} {number}", compare.word())
            }
            Self::Below(service, filter, compare, number) => {
                write!(f, "count(span[service=\"{service}\"] {filter}) {} {number}", compare.word())
            }
            Self::No(filter) => write!(f, "no {filter}"),
            Self::Some(filter) => write!(f, "some {filter}"),
            Self::Every(filter, value) => write!(f, "every {filter} has attr:v = {value}"),
            Self::Children(filter, kind, most) => {
                let kind = kind.as_str();
                write!(f, "every {filter} has count(self > span[kind=\"{kind}\"]) <= {most}")
            }
            Self::Not(one) => write!(f, "not ({one})"),
            Self::Both(one, other) => write!(f, "({one}) and ({other})"),
            Self::Either(one, other) => write!(f, "({one}) or ({other})"),
            Self::SpecEvery(filter, value) => write!(f, "{filter} | attr:v = {value}"),
            Self::SpecCount(filter, compare, number) => {
                let compare = compare.word();
                write!(f, "{filter} | attr:tracetest.selected_spans.count {compare} {number}")
            }
        }
    }
}

/// Generates a statement about the usual behavior.
pub(super) fn draw(usual: &There<'_, '_>, dice: &mut Dice) -> SettleStatement {
    let filter = filter(usual, dice);
    let count = usual.matching(&filter).count();
    // Mostly the usual number; else one more or one less.
    let number = match dice.below(10) {
        0 => count + 1,
        1 => count.saturating_sub(1),
        _ => count,
    };
    let compare = [Compare::Is, Compare::AtLeast, Compare::AtMost][dice.below(3)];
    let value = |dice: &mut Dice| {
        let usually = usual.matching(&filter).next().and_then(|number| usual.value(number));
        usually.unwrap_or(1 + dice.below(3) as i64)
    };
    match dice.below(20) {
        0..5 => SettleStatement::Count(filter, compare, number),
        5 => SettleStatement::Leaves(filter, compare, number),
        6 | 7 => {
            let service =
                usual.system.services[dice.below(usual.system.services.len())].name.clone();
            let is_below = |at: &usize| usual.is_below(*at, &service);
            let number = usual.matching(&filter).filter(is_below).count();
            SettleStatement::Below(service, filter, compare, number)
        }
        8 => SettleStatement::No(SpanFilter { is_error: true, ..filter }),
        9 => SettleStatement::No(SpanFilter { has_exception: true, ..filter }),
        10 => SettleStatement::No(errors(usual, dice)),
        11 => SettleStatement::Some(filter),
        12 | 13 => SettleStatement::Every(filter.clone(), value(dice)),
        14 => {
            let kind = [Kind::Client, Kind::Internal, Kind::Server][dice.below(3)];
            SettleStatement::Children(filter, kind, dice.below(4))
        }
        15 | 16 => SettleStatement::SpecEvery(filter.clone(), value(dice)),
        17 => SettleStatement::SpecCount(filter, compare, number),
        18 => {
            let other = SettleStatement::No(errors(usual, dice));
            SettleStatement::Both(
                Box::new(SettleStatement::Count(filter, compare, number)),
                Box::new(other),
            )
        }
        _ => {
            let counted = Box::new(SettleStatement::Count(filter, compare, number + 1));
            let other = SettleStatement::Some(errors(usual, dice));
            match percent(dice, 50) {
                true => SettleStatement::Not(counted),
                false => SettleStatement::Either(counted, Box::new(other)),
            }
        }
    }
}

fn filter(usual: &There<'_, '_>, dice: &mut Dice) -> SpanFilter {
    let span = &usual.played.spans[dice.below(usual.played.spans.len())];
    let service = Some(usual.system.service_of(span.process).name.clone());
    let name = Some(span.name.to_owned());
    match dice.below(4) {
        0 => SpanFilter { name, ..SpanFilter::default() },
        1 => SpanFilter { service, ..SpanFilter::default() },
        2 => SpanFilter { service, kind: Some(span.kind), ..SpanFilter::default() },
        _ => SpanFilter { name, service, ..SpanFilter::default() },
    }
}

fn errors(usual: &There<'_, '_>, dice: &mut Dice) -> SpanFilter {
    let kind = [Kind::Server, Kind::Consumer][dice.below(2)];
    let service = &usual.system.services[dice.below(usual.system.services.len())].name;
    match percent(dice, 50) {
        true => SpanFilter { kind: Some(kind), is_error: true, ..SpanFilter::default() },
        false => {
            SpanFilter { service: Some(service.clone()), is_error: true, ..SpanFilter::default() }
        }
    }
}
