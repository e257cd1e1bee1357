//! What a span says that it had and does not hold: attributes, events and links that its SDK dropped.
//!
//! That something is not there is no evidence where it may be among what was dropped. What is there is evidence as ever,
//! and so is what no limit of an SDK applies to: name, kind, status, times.

use model::trace::{Event, Link, Span};

use super::{lasting::parts, world::EvalScope};
use crate::{
    syntax::ast::{Comparator, Expr, ExprKind, Filter, Intrinsic, Property},
    value::shorten,
};

/// So many of something were dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DropCount {
    pub(crate) what: DroppedKind,
    pub(crate) count: u32,
}

/// What was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DroppedKind {
    Attributes,
    Events,
    Links,
    AttributesOfResource,
    AttributesOfScope,
    AttributesOfEvent,
    AttributesOfLink,
    /// Nothing, but log records of the trace came, which are not kept: what would be an event may be one of them.
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

    /// Attributes of the span, or of its resource, where those of that name are looked for.
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

    /// Events of a span of a trace of which so many log records came.
    pub(super) fn events(span: Span<'_>, logs: u64) -> Option<Self> {
        let count = u32::try_from(logs).unwrap_or(u32::MAX);
        Self::some(Events, span.dropped_events()).or_else(|| Self::some(ToLogs, count))
    }

    pub(super) fn links(span: Span<'_>) -> Option<Self> {
        Self::some(Links, span.dropped_links())
    }

    /// Events, or attributes of events, among which a property of this name may be.
    pub(super) fn of_events(span: Span<'_>, name: &str, logs: u64) -> Option<Self> {
        let inner = || span.events().find_map(Self::event_attributes).filter(|_| name != "name");
        Self::events(span, 0).or_else(inner).or_else(|| Self::events(span, logs))
    }

    /// Links, or attributes of links, among which a property of this name may be.
    pub(super) fn of_links(span: Span<'_>, name: &str) -> Option<Self> {
        let is_own = matches!(name, "trace_id" | "span_id");
        let inner = || span.links().find_map(Self::link_attributes).filter(|_| !is_own);
        Self::links(span).or_else(inner)
    }

    /// What a span dropped, in words.
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

/// Whether anything of a span was dropped that its attributes are looked for in.
pub(super) fn has_dropped_attributes(span: Span<'_>) -> bool {
    DropCount::attributes(span).is_some() || DropCount::scope_attributes(span).is_some()
}

/// What of the values that an expression is made of was dropped, though there are others; nothing where all are known.
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

/// Whether a comparison that holds of what was kept holds whatever was dropped: one of several values is enough, and so is
/// a part that is found in a whole.
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

/// Whether a value has more in it if there is more in what it is made of: not a length, not what stands at a position.
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

/// What a name means on a span: an attribute, or what else it stands for.
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
