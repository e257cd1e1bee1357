//! Statements about services without spans, while a peer that was called has no spans either.
//!
//! A called peer without spans may be the service that a statement names: its absence from the trace is then no evidence about
//! its behavior. Peers that the test declares absent (`settle.absent`) do not make a statement inconclusive.

use std::collections::BTreeSet;

use model::{Settlement, Trace, UnansweredPeer, trace::ValueRef};
use regex::Regex;

use super::{
    decide::TraceKnowledge,
    walk::{self, Visitor, speaks_of},
};
use crate::{
    eval::expression::{Values, constant},
    syntax::ast::{Comparator, Expr, ExprKind, Intrinsic, Property, Selector},
    value::Value,
};

/// The maximum number of silent peers that a reason names.
const PEERS_NAMED_MAX: usize = 3;

/// The peers that were called and sent no spans, and the services that sent spans.
pub(super) struct Silence<'a> {
    peers: Vec<&'a UnansweredPeer>,
    services: BTreeSet<&'a str>,
}

impl<'a> Silence<'a> {
    /// Returns `None` if every peer sent spans, or is declared absent.
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

    /// Returns the known extent of the trace for these parts of a statement: partial, if one names a service that sent no spans.
    pub(super) fn seen<'e>(
        &self,
        seen: &TraceKnowledge,
        selectors: impl IntoIterator<Item = &'e Selector>,
        statements: impl IntoIterator<Item = &'e Expr>,
    ) -> TraceKnowledge {
        let mut absence = Absence { services: &self.services, absent: Vec::new() };
        walk::all(selectors, statements, &mut absence);
        match (seen, absence.absent.first()) {
            (TraceKnowledge::Whole, Some(service)) => TraceKnowledge::Part(self.reason(service)),
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
}

/// The services that a statement names and that sent no spans.
struct Absence<'a> {
    services: &'a BTreeSet<&'a str>,
    absent: Vec<String>,
}

impl Visitor for Absence<'_> {
    fn expression(&mut self, expression: &Expr) {
        if let ExprKind::Compare { left, comparator, is_negated, right } = &expression.kind {
            let names = Names::of(left, *comparator, *is_negated, right);
            self.absent.extend(names.and_then(|names| names.absent(self.services)));
        }
    }
}

/// The strings with which a comparison compares the service of a span, or the services of several spans.
struct Names {
    comparator: Comparator,
    is_negated: bool,
    texts: Vec<String>,
}

impl Names {
    /// Returns `None` if neither operand is a service, or if the other operand has no strings of the test.
    fn of(left: &Expr, comparator: Comparator, is_negated: bool, right: &Expr) -> Option<Self> {
        let is_list = matches!(left.kind, ExprKind::Aggregate(_));
        let (texts, comparator) =
            match (speaks_of(left, &is_service), speaks_of(right, &is_service)) {
                // A list contains a text if one of its items equals it.
                (true, false) if is_list && comparator == Comparator::Contains => {
                    (texts(right), Comparator::Equal)
                }
                (true, false) => (texts(right), comparator),
                // With the service as right operand, a text or a list contains the service, or equals it.
                (false, true) => (texts(left), Comparator::Equal),
                _ => return None,
            };
        (!texts.is_empty()).then_some(Self { comparator, is_negated, texts })
    }

    /// Returns the named services that sent no spans; for a negated comparison, also a service other than the named ones.
    fn absent(&self, services: &BTreeSet<&str>) -> Option<String> {
        let is_met = |text: &&String| services.iter().any(|service| self.is_so(service, text));
        let unmet = self.texts.iter().filter(|text| !is_met(text));
        let unmet: Vec<_> = unmet.map(|text| format!("`{text}`")).collect();
        if !unmet.is_empty() {
            return Some(unmet.join(", "));
        }
        let is_other = |service: &&str| !self.texts.iter().any(|text| self.is_so(service, text));
        (self.is_negated && !services.iter().any(is_other)).then(|| {
            let named: Vec<_> = self.texts.iter().map(|text| format!("`{text}`")).collect();
            format!("a service other than {}", named.join(", "))
        })
    }

    fn is_so(&self, service: &str, text: &str) -> bool {
        match self.comparator {
            Comparator::Contains => service.contains(text),
            Comparator::StartsWith => service.starts_with(text),
            Comparator::EndsWith => service.ends_with(text),
            Comparator::Matches => Regex::new(text).is_ok_and(|pattern| pattern.is_match(service)),
            _ => text == service,
        }
    }
}

/// Returns the strings in an expression that is constant for all spans.
pub(super) fn texts(expression: &Expr) -> Vec<String> {
    let text = |value: &Value<'_>| match value {
        Value::Text(_) | Value::Quoted(_) => Some(value.text().into_owned()),
        _ => None,
    };
    match constant(expression).map(|valued| valued.values) {
        Ok(Values::One(Value::List(items))) => items.iter().filter_map(text).collect(),
        Ok(Values::One(value)) => text(&value).into_iter().collect(),
        _ => Vec::new(),
    }
}

/// Whether a property is the service of a span.
pub(super) fn is_service(property: &Property) -> bool {
    match property {
        Property::Intrinsic(Intrinsic::Service, _) => true,
        Property::Attribute { name, otherwise } => {
            name == "service.name" || otherwise.as_deref().is_some_and(is_service)
        }
        Property::Resource(name) => name == "service.name",
        _ => false,
    }
}
