//! Data that a span reports as dropped by its SDK: attributes, events and links.
//!
//! Absence is no evidence if the data may be among the dropped data. Present data remains evidence, and so do the
//! fields that no SDK limit applies to: name, kind, status, times.

use model::trace::{DROPPED_UNKNOWN, Event, Link, Span};

use super::{lasting::parts, world::EvalScope};
use crate::{
    syntax::ast::{Comparator, Expr, ExprKind, Filter, Intrinsic, Property},
    value::shorten,
};

/// The number of dropped items of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DropCount {
    pub(crate) what: DroppedKind,
    pub(crate) count: u32,
}

/// The kind of dropped data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedKind {
    Attributes,
    Events,
    Links,
    AttributesOfResource,
    AttributesOfScope,
    AttributesOfEvent,
    AttributesOfLink,
    /// Nothing, but log records of the trace arrived, which are not stored: an expected event may be one of them.
    ToLogs,
}

use DroppedKind::{
    Attributes, AttributesOfEvent, AttributesOfLink, AttributesOfResource, AttributesOfScope,
    Events, Links, ToLogs,
};

impl DropCount {
    fn some(what: DroppedKind, count: u32) -> Option<Self> {
        (count > 0).then_some(Self { what, count })
    }

    /// Returns the dropped attributes of the span, or of its resource, which is searched for the same names.
    pub(super) fn attributes(span: Span<'_>) -> Option<Self> {
        Self::own_attributes(span).or_else(|| Self::resource_attributes(span))
    }

    pub(super) fn own_attributes(span: Span<'_>) -> Option<Self> {
        Self::some(Attributes, span.dropped_attributes())
    }

    pub(super) fn resource_attributes(span: Span<'_>) -> Option<Self> {
        Self::some(AttributesOfResource, span.resource().dropped_attributes())
    }

    pub(super) fn scope_attributes(span: Span<'_>) -> Option<Self> {
        Self::some(AttributesOfScope, span.scope().dropped_attributes())
    }

    pub(super) fn event_attributes(event: Event<'_>) -> Option<Self> {
        Self::some(AttributesOfEvent, event.dropped_attributes())
    }

    pub(super) fn link_attributes(link: Link<'_>) -> Option<Self> {
        Self::some(AttributesOfLink, link.dropped_attributes())
    }

    /// Returns the dropped events of a span, in a trace for which this number of log records arrived.
    pub(super) fn events(span: Span<'_>, logs: u64) -> Option<Self> {
        let count = u32::try_from(logs).unwrap_or(u32::MAX);
        Self::some(Events, span.dropped_events()).or_else(|| Self::some(ToLogs, count))
    }

    pub(super) fn links(span: Span<'_>) -> Option<Self> {
        Self::some(Links, span.dropped_links())
    }

    /// Returns the dropped events, or attributes of events, that may include a property of this name.
    pub(super) fn of_events(span: Span<'_>, name: &str, logs: u64) -> Option<Self> {
        let inner = || span.events().find_map(Self::event_attributes).filter(|_| name != "name");
        Self::events(span, 0).or_else(inner).or_else(|| Self::events(span, logs))
    }

    /// Returns the dropped links, or attributes of links, that may include a property of this name.
    pub(super) fn of_links(span: Span<'_>, name: &str) -> Option<Self> {
        let is_own = matches!(name, "trace_id" | "span_id");
        let inner = || span.links().find_map(Self::link_attributes).filter(|_| !is_own);
        Self::links(span).or_else(inner)
    }

    /// Describes the dropped data of a span.
    pub(crate) fn by(self, span: Span<'_>) -> String {
        let whose = format!("`{}` ({})", shorten(span.name()), span.id());
        let (whose, what) = match self.what {
            Attributes => (whose, "attribute"),
            Events => (whose, "event"),
            Links => (whose, "link"),
            AttributesOfResource => (format!("the resource of {whose}"), "attribute"),
            AttributesOfScope => (format!("the scope of {whose}"), "attribute"),
            AttributesOfEvent => (format!("an event of {whose}"), "attribute"),
            AttributesOfLink => (format!("a link of {whose}"), "attribute"),
            ToLogs => return in_logs(self.count),
        };
        if self.count == DROPPED_UNKNOWN {
            return format!("{whose} may have had it: its trace store does not keep every {what}");
        }
        let plural = if self.count == 1 { "" } else { "s" };
        format!("{whose} dropped {} {what}{plural}", self.count)
    }
}

fn in_logs(count: u32) -> String {
    let records = if count == 1 { "log record" } else { "log records" };
    format!(
        "{count} {records} of this trace came or may have come, which may hold the event: log records are counted and not kept"
    )
}

/// Whether attributes were dropped from a span, its resource or its scope.
pub(super) fn has_dropped_attributes(span: Span<'_>) -> bool {
    DropCount::attributes(span).is_some() || DropCount::scope_attributes(span).is_some()
}

/// Returns the dropped data among the values of an expression that has others; `None` if all values are known.
pub(super) fn unseen(expression: &Expr, scene: &EvalScope<'_, '_>) -> Option<DropCount> {
    let span = scene.span.filter(|_| scene.inner.is_none())?;
    if let ExprKind::Property(property) = &expression.kind {
        return match meant(property, span) {
            Property::Event(name) => DropCount::of_events(span, name, scene.world.logs),
            Property::Link(name) => DropCount::of_links(span, name),
            Property::Intrinsic(Intrinsic::Events, _) => {
                DropCount::of_events(span, "", scene.world.logs)
            }
            Property::Intrinsic(Intrinsic::Attributes, _) => DropCount::own_attributes(span),
            _ => None,
        };
    }
    parts(expression).into_iter().find_map(|part| unseen(part, scene))
}

/// Whether a comparison that holds for the present data holds whatever was dropped: one of several values is enough, or
/// a part that is contained in a larger value.
pub(super) fn is_kept(left: &Expr, comparator: Comparator, right: &Expr) -> bool {
    let is_whole = |side: &Expr| has_property(side, &is_whole_property);
    match (is_whole(left), is_whole(right)) {
        (false, false) => true,
        (true, false) => comparator == Comparator::Contains && only_grows(left),
        (_, true) => false,
    }
}

fn is_whole_property(property: &Property) -> bool {
    matches!(property, Property::Intrinsic(Intrinsic::Attributes | Intrinsic::Events, _))
}

fn has_property(expression: &Expr, is_such: &dyn Fn(&Property) -> bool) -> bool {
    match &expression.kind {
        ExprKind::Property(property) => is_such(property),
        _ => parts(expression).into_iter().any(|part| has_property(part, is_such)),
    }
}

/// Whether more input only adds to a value. A length, or an item at a position, is no such value.
fn only_grows(expression: &Expr) -> bool {
    let is_other = match &expression.kind {
        ExprKind::Filter { filter, .. } => {
            matches!(filter, Filter::GetIndex | Filter::Length | Filter::Type)
        }
        ExprKind::Arithmetic { .. } | ExprKind::Minus(_) => true,
        _ => false,
    };
    !is_other && parts(expression).into_iter().all(only_grows)
}

/// Returns the property that a name denotes on a span: an attribute, or the alternative of the name.
fn meant<'p>(property: &'p Property, span: Span<'_>) -> &'p Property {
    match property {
        Property::Attribute { name, otherwise: Some(otherwise) }
            if span.attributes().get(name).is_none()
                && span.resource().attributes().get(name).is_none() =>
        {
            otherwise
        }
        property => property,
    }
}
