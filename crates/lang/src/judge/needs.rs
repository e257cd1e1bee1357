//! The details of spans that a statement needs, which a trace store may not keep.
//!
//! The syntax decides: a statement that needs what a store does not keep is inconclusive there, also if it would pass. An attribute
//! that a span may have from its resource is decided by lookup instead, since the span itself may have it.
//!
//! Deliberately absent: durations that differ from their limit by less than a microsecond, and values of which only the text is known.
//! The page about stores describes both.

use std::collections::BTreeSet;

use model::{Place, Settlement, SpanDetail};

use super::{
    silent::{is_service, texts},
    walk::{self, Visitor, speaks_of},
};
use crate::{
    eval::world::TRIGGER_NAMES,
    plan::{Plan, SourceNode},
    syntax::ast::{
        Combinator, Comparator, Expr, ExprKind, Hop, Inner, Intrinsic, Property, Relation, Selector,
    },
    value::operator::Filter,
};

/// The details that a trace store of a run does not keep.
pub(super) struct StoreLacks<'a> {
    stores: Vec<(&'a str, &'a [SpanDetail])>,
}

impl<'a> StoreLacks<'a> {
    /// Returns `None` if every store of the run keeps whole spans.
    pub(super) fn of(settlement: Option<&'a Settlement>) -> Option<Self> {
        let stores = settlement?.stores.iter().filter(|store| !store.lacks.is_empty());
        let stores: Vec<_> =
            stores.map(|store| (store.store.as_str(), store.lacks.as_slice())).collect();
        (!stores.is_empty()).then_some(Self { stores })
    }

    /// Returns why a statement cannot be judged from the spans of these stores.
    pub(super) fn reason<'e>(
        &self,
        selectors: impl IntoIterator<Item = &'e Selector>,
        statement: &'e Expr,
    ) -> Option<String> {
        let needs = needs(selectors, [statement]);
        let (store, detail) = self.stores.iter().find_map(|(store, lacks)| {
            lacks.iter().find(|detail| needs.contains(detail)).map(|detail| (store, detail))
        })?;
        Some(format!(
            "the trace store `{store}` keeps no {}, which this needs: send the spans here by OTLP to judge it",
            detail.words()
        ))
    }
}

/// A statement that needs what a trace store does not keep.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BeyondStore {
    /// The statement as written.
    pub statement: String,
    /// Its location.
    pub place: Place,
    /// The detail of spans that it needs.
    pub detail: SpanDetail,
}

impl Plan {
    /// Returns the statements that need a detail of spans that a trace store does not keep.
    pub fn beyond(&self, lacks: &[SpanDetail]) -> Vec<BeyondStore> {
        let specs = self.specs.iter().flat_map(|spec| {
            let selector = Some(&spec.selector.meaning);
            spec.assertions.iter().map(move |assertion| (selector, assertion))
        });
        let claims = self.claims.iter().map(|claim| (None, &claim.claim));
        let beyond = |(selector, written): (Option<&Selector>, &SourceNode<Expr>)| {
            let needs = needs(selector, [&written.meaning]);
            let detail = lacks.iter().copied().find(|detail| needs.contains(detail))?;
            let (statement, place) = (written.source.clone(), written.place.clone());
            Some(BeyondStore { statement, place, detail })
        };
        specs.chain(claims).filter_map(beyond).collect()
    }
}

/// Returns the details of spans that a statement about selected spans needs.
fn needs<'e>(
    selectors: impl IntoIterator<Item = &'e Selector>,
    statements: impl IntoIterator<Item = &'e Expr>,
) -> BTreeSet<SpanDetail> {
    let mut needs = Needs::default();
    walk::all(selectors, statements, &mut needs);
    needs.found
}

#[derive(Default)]
struct Needs {
    found: BTreeSet<SpanDetail>,
}

impl Visitor for Needs {
    fn hop(&mut self, hop: &Hop) {
        match hop.combinator {
            Combinator::Linked => self.add(SpanDetail::Links),
            Combinator::Adjacent | Combinator::Sibling => self.add(SpanDetail::Nanoseconds),
            Combinator::Descendant
            | Combinator::Child
            | Combinator::Parent
            | Combinator::Ancestor => {}
        }
        if hop.step.position.is_some() {
            self.add(SpanDetail::Nanoseconds);
        }
    }

    fn expression(&mut self, expression: &Expr) {
        match &expression.kind {
            ExprKind::Property(property) => self.in_property(property),
            ExprKind::Compare { left, comparator, right, .. } => {
                for (side, other) in [(left, right), (right, left)] {
                    self.in_comparison(side, *comparator, other);
                }
            }
            ExprKind::Filter { input, filter, .. } => {
                let is_typed = matches!(
                    filter,
                    Filter::GetIndex | Filter::Length | Filter::Type | Filter::Keys
                );
                if is_typed && speaks_of(input, &|it| matches!(it, Property::Attribute { .. })) {
                    self.add(SpanDetail::ValueTypes);
                }
                self.in_whole(input);
            }
            ExprKind::Aggregate(aggregate) => aggregate.by.iter().for_each(|it| self.in_whole(it)),
            ExprKind::Gap { .. } => self.add(SpanDetail::Nanoseconds),
            ExprKind::Relation { relation, .. } => self.add(match relation {
                Relation::Calls => SpanDetail::Links,
                Relation::Before | Relation::After | Relation::Inside | Relation::Overlaps => {
                    SpanDetail::Nanoseconds
                }
            }),
            ExprKind::Within { inner, condition } => {
                match inner {
                    Inner::Link => self.add(SpanDetail::Links),
                    Inner::Event => {}
                }
                // Attributes in it are those of events.
                if condition.as_deref().is_some_and(|it| speaks_of(it, &is_event_attribute)) {
                    self.add(SpanDetail::EventAttributes);
                }
            }
            _ => {}
        }
    }
}

impl Needs {
    /// Adds what a value needs that is more than compared with a text: a name is needed as it was sent, and so is a kind.
    fn in_whole(&mut self, value: &Expr) {
        if speaks_of(value, &is_name) {
            self.add(SpanDetail::NameCase);
        }
        if speaks_of(value, &is_kind) {
            self.add(SpanDetail::Kinds);
        }
    }

    /// Adds what the comparison of one side with the other needs. A text without capital letters is compared with names as a
    /// store without them keeps them.
    fn in_comparison(&mut self, side: &Expr, comparator: Comparator, other: &Expr) {
        let written = texts(other);
        if speaks_of(side, &is_name) {
            let is_ours = |text: &String| TRIGGER_NAMES.contains(&text.as_str());
            let is_cased = |text: &String| {
                // A class of characters, such as `[[:upper:]]`, can tell capital letters apart.
                let has_class = comparator == Comparator::Matches && text.contains(['[', '\\']);
                has_class || text.chars().any(char::is_uppercase)
            };
            if written.is_empty() || written.iter().any(|it| is_cased(it) && !is_ours(it)) {
                self.add(SpanDetail::NameCase);
            }
        }
        if speaks_of(side, &is_kind) {
            let is_lost = |text: &String| matches!(text.as_str(), "internal" | "unspecified");
            if written.is_empty() || written.iter().any(is_lost) {
                self.add(SpanDetail::Kinds);
            }
        }
        let is_list = matches!(other.kind, ExprKind::List(_));
        if is_list && speaks_of(side, &|it| matches!(it, Property::Attribute { .. })) {
            self.add(SpanDetail::ValueTypes);
        }
    }

    fn in_property(&mut self, property: &Property) {
        match property {
            Property::Resource(name) if name != "service.name" => self.add(SpanDetail::Resource),
            Property::Scope(name) => {
                self.add(SpanDetail::Scope);
                if !matches!(name.as_str(), "name" | "version") {
                    self.add(SpanDetail::ScopeAttributes);
                }
            }
            Property::Event(name) if name != "name" => self.add(SpanDetail::EventAttributes),
            Property::Link(_) => self.add(SpanDetail::Links),
            Property::Intrinsic(intrinsic, _) => match intrinsic {
                Intrinsic::StatusMessage => self.add(SpanDetail::StatusMessage),
                Intrinsic::Start
                | Intrinsic::End
                | Intrinsic::SelfTime
                | Intrinsic::CriticalTime => self.add(SpanDetail::Nanoseconds),
                Intrinsic::Attributes => self.add(SpanDetail::ValueTypes),
                Intrinsic::Events => {
                    self.add(SpanDetail::EventAttributes);
                    self.add(SpanDetail::Nanoseconds);
                }
                _ => {}
            },
            Property::Attribute { otherwise: Some(otherwise), .. } => self.in_property(otherwise),
            _ => {}
        }
    }

    fn add(&mut self, detail: SpanDetail) {
        self.found.insert(detail);
    }
}

/// Whether a property is the name of a span or of a service.
fn is_name(property: &Property) -> bool {
    matches!(property, Property::Intrinsic(Intrinsic::Name, _)) || is_service(property)
}

fn is_kind(property: &Property) -> bool {
    matches!(property, Property::Intrinsic(Intrinsic::Kind, _))
}

fn is_event_attribute(property: &Property) -> bool {
    match property {
        Property::Attribute { .. } => true,
        Property::Event(name) => name != "name",
        _ => false,
    }
}
