//! Statements about services that sent nothing, while something that was called sent nothing either.
//!
//! A peer that was called and is silent may be the very service that a statement names: its absence from the trace is then no
//! evidence about what it did. Peers that the test declares absent (`settle.absent`) leave nothing open.

use std::collections::BTreeSet;

use model::{Settlement, Trace, UnansweredPeer, trace::ValueRef};
use regex::Regex;

use super::decide::Seen;
use crate::{
    eval::lasting::parts,
    syntax::ast::{Comparator, Expr, ExprKind, Intrinsic, Property, Pseudo, Selector},
};

/// How many silent peers are named in a reason.
const PEERS_NAMED_MAX: usize = 3;

/// The peers that were called and sent nothing, and the services that sent something.
pub(super) struct Silence<'a> {
    peers: Vec<&'a UnansweredPeer>,
    services: BTreeSet<&'a str>,
}

impl<'a> Silence<'a> {
    /// None where every peer answered, or is declared absent.
    pub(super) fn of(settlement: Option<&'a Settlement>, trace: &'a Trace) -> Option<Self> {
        let peers = settlement?.unanswered.iter().filter(|peer| !peer.declared);
        let peers: Vec<_> = peers.collect();
        let named = trace.resources().filter_map(|resource| {
            match resource.attributes().get("service.name") {
                Some(ValueRef::Str(name)) => Some(name),
                _ => None,
            }
        });
        (!peers.is_empty()).then(|| Self { peers, services: named.collect() })
    }

    /// How much is known of the trace for statements with these parts: less, where one names a service that is not there.
    pub(super) fn seen<'e>(
        &self,
        seen: &Seen,
        selectors: impl IntoIterator<Item = &'e Selector>,
        statements: impl IntoIterator<Item = &'e Expr>,
    ) -> Seen {
        let mut absent = Vec::new();
        selectors.into_iter().for_each(|selector| self.in_selector(selector, &mut absent));
        statements.into_iter().for_each(|statement| self.in_expression(statement, &mut absent));
        match (seen, absent.first()) {
            (Seen::Whole, Some(service)) => Seen::Part(self.reason(service)),
            _ => seen.clone(),
        }
    }

    fn reason(&self, service: &str) -> String {
        let named = self.peers.iter().take(PEERS_NAMED_MAX).map(|peer| match peer.peer.as_str() {
            "" => "a peer that its caller does not name".to_owned(),
            peer => format!("`{peer}`"),
        });
        let named: Vec<_> = named.collect();
        format!(
            "no span is of {service}, and {} was called and sent no span: if that is another service that sends none, name \
             it in `settle.absent`",
            named.join(", ")
        )
    }

    fn in_selector(&self, selector: &Selector, absent: &mut Vec<String>) {
        for hop in selector.parts.iter().flat_map(|part| &part.hops) {
            hop.step.condition.iter().for_each(|condition| self.in_expression(condition, absent));
            for pseudo in &hop.step.pseudos {
                match pseudo {
                    Pseudo::Has(inner) | Pseudo::Not(inner) => self.in_selector(inner, absent),
                    Pseudo::Root | Pseudo::Leaf | Pseudo::Orphan => {}
                }
            }
        }
    }

    fn in_expression(&self, expression: &Expr, absent: &mut Vec<String>) {
        match &expression.kind {
            ExprKind::Compare { left, comparator, is_negated, right } => {
                let name = names(left, *comparator, *is_negated, right);
                absent.extend(name.filter(|name| !name.is_met(&self.services)).map(|it| it.words));
                [left, right].into_iter().for_each(|side| self.in_expression(side, absent));
            }
            ExprKind::Aggregate(aggregate) => {
                self.in_selector(&aggregate.of, absent);
                aggregate.value.iter().for_each(|value| self.in_expression(value, absent));
            }
            ExprKind::Gap { from, to } => {
                [from, to].into_iter().for_each(|side| self.in_selector(side, absent));
            }
            ExprKind::Quantified { subject, predicate } => {
                self.in_selector(&subject.selector, absent);
                predicate.iter().for_each(|predicate| self.in_expression(predicate, absent));
            }
            ExprKind::Relation { left, right, .. } => {
                [left, right].into_iter().for_each(|it| self.in_selector(&it.selector, absent));
            }
            _ => parts(expression).into_iter().for_each(|part| self.in_expression(part, absent)),
        }
    }
}

/// What a comparison says of the name of a service.
struct Name<'e> {
    words: String,
    comparator: Comparator,
    is_negated: bool,
    texts: Vec<&'e str>,
    /// Whether all of the texts have to be among the services.
    is_every: bool,
}

/// A comparison of the service of a span, or of all services, with texts.
fn names<'e>(
    left: &'e Expr,
    comparator: Comparator,
    is_negated: bool,
    right: &'e Expr,
) -> Option<Name<'e>> {
    let is_every = match &left.kind {
        ExprKind::Property(property) if is_service(property) => false,
        ExprKind::Aggregate(aggregate) => match aggregate.value.as_ref().map(|it| &it.kind) {
            Some(ExprKind::Property(property)) if is_service(property) => true,
            _ => return None,
        },
        _ => return None,
    };
    let text = |expression: &'e Expr| match &expression.kind {
        ExprKind::Text(text) => Some(text.as_str()),
        ExprKind::Known(known) => Some(known.text.as_str()),
        _ => None,
    };
    let texts: Vec<_> = match &right.kind {
        ExprKind::List(items) => items.iter().filter_map(text).collect(),
        _ => text(right).into_iter().collect(),
    };
    let quoted: Vec<_> = texts.iter().map(|text| format!("`{text}`")).collect();
    let words = match is_negated {
        true => format!("a service other than {}", quoted.join(", ")),
        false => quoted.join(", "),
    };
    (!texts.is_empty()).then_some(Name { words, comparator, is_negated, texts, is_every })
}

fn is_service(property: &Property) -> bool {
    match property {
        Property::Intrinsic(Intrinsic::Service, _) => true,
        Property::Attribute { name, otherwise } => {
            name == "service.name" || otherwise.as_deref().is_some_and(is_service)
        }
        Property::Resource(name) => name == "service.name",
        _ => false,
    }
}

impl Name<'_> {
    /// Whether a service that sent something is meant.
    fn is_met(&self, services: &BTreeSet<&str>) -> bool {
        if self.is_every && !self.is_negated {
            return self.texts.iter().all(|text| services.contains(text));
        }
        services.iter().any(|service| self.is_so(service) != self.is_negated)
    }

    fn is_so(&self, service: &str) -> bool {
        let mut texts = self.texts.iter();
        match self.comparator {
            Comparator::Contains => texts.any(|text| service.contains(text)),
            Comparator::StartsWith => texts.any(|text| service.starts_with(text)),
            Comparator::EndsWith => texts.any(|text| service.ends_with(text)),
            Comparator::Matches => {
                texts.any(|text| Regex::new(text).is_ok_and(|pattern| pattern.is_match(service)))
            }
            _ => texts.any(|text| *text == service),
        }
    }
}
