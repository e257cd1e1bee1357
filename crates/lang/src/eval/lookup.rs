//! Looks up properties: of a span, of an event or link in it, of the trigger's response.

use std::borrow::Cow;

use model::{
    Answer,
    trace::{Attributes, Event, Link, Span, StatusCode},
};

use super::{
    drop_count::DropCount,
    response::{CONTENT_ENCODING, encoding, is_empty, of_exit, of_headers, of_reply, of_response},
    span_time::{TimeLack, duration, end_of, start_of, time_lack},
    times::{Cause, TimeBounds},
    world::{EvalContext, EvalScope, InnerRef, TRIGGER_NAMES},
};
use crate::{
    budget,
    syntax::ast::{Intrinsic, Property, ResponsePart},
    value::{Json, Value, shorten},
};

/// The result of the lookup of a property.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lookup<'a> {
    One(Value<'a>),
    /// Several values, of which any may match; never empty.
    Many(Vec<Value<'a>>),
    /// The span does not have it.
    Absent,
    /// A duration between two bounds. It depends on clock offsets, which the text describes.
    Between(TimeBounds, String),
    /// The span does not report its start or its end, so it has no such time.
    Untimed(TimeLack),
    /// The property is absent, and may be among the dropped data.
    Dropped(DropCount),
    /// The body of the response, in an encoding that is not decoded: it is present, and its content is unknown.
    Encoded(String),
    /// Unknown: there is no response. [`EvalContext::why_unknown`] returns the reason.
    Unknown,
}

/// Prefixes of attributes, and the type of a span that has one. The first match decides.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("http.", "http"),
    ("db.", "database"),
    ("rpc.", "rpc"),
    ("messaging.", "messaging"),
    ("faas.", "faas"),
    ("exception.", "exception"),
];

/// The maximum number of clock offsets that are described for one value.
const OFFSETS_MAX: usize = 3;

/// The type of all other spans.
const GENERAL: &str = "general";

/// Names of browser instrumentation spans, which are `general` whatever their attributes are.
pub(super) const BROWSER_NAMES: [&str; 3] = ["documentLoad", "documentFetch", "resourceFetch"];

/// An attribute of these spans.
pub(super) const BROWSER_KEY: &str = "event_type";

impl<'a> EvalContext<'a> {
    /// Returns the value of a property in a scope.
    pub(crate) fn look_up(&self, property: &Property, scene: &EvalScope<'_, 'a>) -> Lookup<'a> {
        if let Some(inner) = scene.inner
            && let Some(found) = of_inner(property, inner)
        {
            return found;
        }
        if *property == Property::Count {
            return scene.count.map_or(Lookup::Absent, |count| Lookup::One(Value::whole(count)));
        }
        let Some(span) = scene.span else { return Lookup::Absent };
        match property {
            Property::Attribute { name, otherwise } => {
                let attribute =
                    span.attributes().get(name).or_else(|| span.resource().attributes().get(name));
                let dropped = DropCount::attributes(span);
                match (attribute, otherwise) {
                    (Some(value), _) => Lookup::One(value.into()),
                    (None, Some(otherwise)) => self.look_up(otherwise, scene).unless(dropped),
                    (None, None) => Lookup::Absent.unless(dropped),
                }
            }
            Property::Intrinsic(intrinsic, _) => {
                self.intrinsic(*intrinsic, span, scene.is_selecting)
            }
            Property::Resource(name) => attribute(span.resource().attributes(), name)
                .unless(DropCount::resource_attributes(span)),
            Property::Scope(name) => of_scope(span, name),
            Property::Event(name) => {
                many(span.events().filter_map(|event| one(of_event(name, event))))
                    .unless(DropCount::of_events(span, name, self.logs))
            }
            Property::Link(name) => many(span.links().filter_map(|link| one(of_link(name, link))))
                .unless(DropCount::of_links(span, name)),
            Property::Response(_) if !self.is_trigger(span.ix()) => Lookup::Absent,
            Property::Response(part) => self.response(part),
            Property::Count => Lookup::Absent,
        }
    }

    fn intrinsic(&self, intrinsic: Intrinsic, span: Span<'a>, is_selecting: bool) -> Lookup<'a> {
        let is_trigger = self.is_trigger(span.ix());
        let place = || self.tree.place(span.ix());
        Lookup::One(match intrinsic {
            Intrinsic::Name if is_trigger && is_selecting => {
                // The trigger span matches both of its names, and its own name if it arrived with another.
                return many(TRIGGER_NAMES.iter().copied().chain([span.name()]).map(text));
            }
            Intrinsic::Name => text(span.name()),
            Intrinsic::Kind => text(span.kind().as_str()),
            Intrinsic::Status => text(span.status().as_str()),
            // Tracetest's own span has neither.
            Intrinsic::StatusCode | Intrinsic::Events if is_trigger => return Lookup::Absent,
            Intrinsic::StatusCode => match span.status() {
                StatusCode::Unset => text("STATUS_CODE_UNSET"),
                StatusCode::Ok => text("STATUS_CODE_OK"),
                StatusCode::Error => text("STATUS_CODE_ERROR"),
                StatusCode::Other(code) => owned(format!("STATUS_CODE_{code}")),
            },
            Intrinsic::StatusMessage => text(span.status_message()),
            Intrinsic::Duration => match duration(span) {
                Ok(nanos) => Value::Duration(nanos),
                Err(lack) => return Lookup::Untimed(lack),
            },
            Intrinsic::Start => match start_of(span) {
                Some(nanos) => Value::whole(nanos),
                None => return Lookup::Untimed(TimeLack::NoStart),
            },
            Intrinsic::End => match (end_of(span), time_lack(span)) {
                (Some(nanos), _) => Value::whole(nanos),
                (None, lack) => return Lookup::Untimed(lack.unwrap_or(TimeLack::NoEnd)),
            },
            Intrinsic::Service => {
                return attribute(span.resource().attributes(), "service.name")
                    .unless(DropCount::resource_attributes(span));
            }
            Intrinsic::Type => match (self.type_of(span), DropCount::own_attributes(span)) {
                // It has no other type because attributes are absent, which may have been dropped.
                (GENERAL, Some(dropped)) if !self.is_plain_type(span) => {
                    return Lookup::Dropped(dropped);
                }
                (name, _) => text(name),
            },
            Intrinsic::Id => owned(span.id().to_string()),
            // The parent id of a root is all zeros, as on the wire.
            Intrinsic::ParentId => {
                owned(span.parent().map_or("0".repeat(16), |parent| parent.to_string()))
            }
            Intrinsic::Depth => Value::whole(self.depth_at(place()).into()),
            Intrinsic::Children => Value::whole(self.children_at(place()) as u64),
            Intrinsic::SelfTime => {
                return self.time_of(span, self.self_time(place()), || self.why_between(span));
            }
            Intrinsic::CriticalTime => {
                let (times, place) = (self.critical_times(), place());
                let why = || self.why_not_critical(times.cause_at(place));
                return self.time_of(span, times.at(place), why);
            }
            Intrinsic::Attributes => Value::Json(object_of(span.attributes())),
            Intrinsic::Events => owned(events(span)),
        })
    }

    /// Returns a time that a span spent, with the reason if it is known only between bounds.
    fn time_of(
        &self,
        span: Span<'a>,
        bounds: TimeBounds,
        why: impl FnOnce() -> Option<String>,
    ) -> Lookup<'a> {
        match time_lack(span) {
            Some(lack) => Lookup::Untimed(lack),
            None if bounds.low == bounds.high => Lookup::One(Value::Duration(bounds.low)),
            None => {
                let unsaid = || "it depends on how far the clocks of the hosts differ".to_owned();
                Lookup::Between(bounds, why().unwrap_or_else(unsaid))
            }
        }
    }

    /// Returns why the self time of a span is not known exactly: the first child with times that leave it open.
    fn why_between(&self, span: Span<'a>) -> Option<String> {
        let mut children = self.tree.children_at(self.tree.place(span.ix()));
        children.find_map(|child| self.why_unsure(span, self.span_at(child)))
    }

    /// Returns the same for a critical time, which a sibling of an ancestor may leave open.
    fn why_not_critical(&self, cause: Option<Cause>) -> Option<String> {
        let Cause { above, unsure } = cause?;
        self.why_unsure(self.span_at(above), self.span_at(unsure))
    }

    /// Returns why the times of a span are unknown on the clock of another.
    fn why_unsure(&self, above: Span<'a>, span: Span<'a>) -> Option<String> {
        let hosts = [above, span].map(|span| self.clocks().host_of(span.ix()));
        match time_lack(span) {
            Some(lack) => Some(format!("`{}` {}", shorten(span.name()), lack.words())),
            None => (hosts[0] != hosts[1]).then(|| self.clocks().doubt(hosts[0], hosts[1])),
        }
    }

    /// Describes the clock offsets between some spans and their children on other hosts.
    pub(crate) fn offsets_below(&self, places: &[u32]) -> Option<String> {
        let clocks = self.clocks();
        let host = |place: usize| clocks.host_of(self.tree.order()[place]);
        let mut pairs = Vec::new();
        for place in places.iter().map(|place| *place as usize) {
            let others = self.tree.children_at(place).map(host).filter(|it| *it != host(place));
            for pair in others.map(|other| (host(place), other)) {
                if pairs.len() <= OFFSETS_MAX && !pairs.contains(&pair) {
                    pairs.push(pair);
                }
            }
        }
        let more = if pairs.len() > OFFSETS_MAX { "; and more" } else { "" };
        let told = pairs.iter().take(OFFSETS_MAX);
        let told: Vec<_> = told.map(|(host, other)| clocks.doubt(*host, *other)).collect();
        (!told.is_empty()).then(|| format!("{}{more}", told.join("; ")))
    }

    fn type_of(&self, span: Span<'_>) -> &'static str {
        if self.is_plain_type(span) {
            return GENERAL;
        }
        let has = |prefix: &str| span.attributes().iter().any(|(key, _)| key.starts_with(prefix));
        TYPES.iter().find(|(prefix, _)| has(prefix)).map_or(GENERAL, |(_, name)| name)
    }

    /// Whether a span is of the general type whatever its attributes are.
    fn is_plain_type(&self, span: Span<'_>) -> bool {
        BROWSER_NAMES.contains(&span.name())
            || span.attributes().get(BROWSER_KEY).is_some()
            || self.is_trigger(span.ix())
    }

    /// Returns a part of the trigger's response. If no trigger was fired, it comes from the trigger span of the trace.
    pub(crate) fn response(&self, part: &ResponsePart) -> Lookup<'a> {
        match self.answer {
            Some(Answer::Response(response)) => of_response(part, response),
            Some(Answer::Exit(exit)) => of_exit(part, exit),
            Some(Answer::Reply(reply)) => of_reply(part, reply),
            Some(Answer::NoAnswer(_)) => Lookup::Unknown,
            Some(Answer::NotFired) | None => self.recorded(part),
        }
    }

    fn recorded(&self, part: &ResponsePart) -> Lookup<'a> {
        let Some(trigger) = self.trigger else { return Lookup::Unknown };
        let attribute = |name: &str| self.trace.span(trigger).attributes().get(name);
        let headers = || attribute("tracetest.response.headers").map(Value::from);
        let value = match part {
            ResponsePart::Status => attribute("tracetest.response.status"),
            ResponsePart::Body => {
                let named = headers().map(|headers| of_headers(&headers, CONTENT_ENCODING));
                let body = attribute("tracetest.response.body").map(Value::from);
                let encoding =
                    named.and_then(encoding).filter(|_| !body.as_ref().is_some_and(is_empty));
                return match (body, encoding) {
                    (Some(_), Some(encoding)) => Lookup::Encoded(encoding),
                    (body, _) => body.map_or(Lookup::Unknown, Lookup::One),
                };
            }
            ResponsePart::Headers => attribute("tracetest.response.headers"),
            ResponsePart::Duration => attribute("tracetest.response.duration"),
            ResponsePart::Header(name) => {
                return headers().map_or(Lookup::Unknown, |headers| of_headers(&headers, name));
            }
        };
        value.map_or(Lookup::Unknown, |value| Lookup::One(value.into()))
    }

    /// Whether the trigger was fired and has a response.
    pub(crate) fn is_answered(&self) -> bool {
        self.answer.is_some_and(|answer| answer.status().is_some())
    }

    /// Returns why a part of the trigger's response is unknown.
    pub(crate) fn why_unknown(&self) -> &'static str {
        match self.answer {
            Some(Answer::NotFired) => "nothing was fired, so that there is no response",
            Some(_) => "the trigger has no answer",
            None => "the trace was recorded: the trigger's response is not part of it",
        }
    }
}

impl Lookup<'_> {
    /// Returns the same, unless the absent value may have been dropped.
    fn unless(self, dropped: Option<DropCount>) -> Self {
        match (self, dropped) {
            (Self::Absent, Some(dropped)) => Self::Dropped(dropped),
            (lookup, _) => lookup,
        }
    }
}

/// Returns the value of a property of an event or link; `None` if it is a property of the span around it.
fn of_inner<'a>(property: &Property, inner: InnerRef<'a>) -> Option<Lookup<'a>> {
    let name = match (property, inner) {
        (Property::Attribute { name, .. }, _)
        | (Property::Event(name), InnerRef::Event(_))
        | (Property::Link(name), InnerRef::Link(_)) => name,
        (Property::Intrinsic(Intrinsic::Name, _), _) => "name",
        _ => return None,
    };
    Some(match inner {
        InnerRef::Event(event) => of_event(name, event),
        InnerRef::Link(link) => of_link(name, link),
    })
}

fn of_event<'a>(name: &str, event: Event<'a>) -> Lookup<'a> {
    match name {
        "name" => Lookup::One(text(event.name())),
        _ => attribute(event.attributes(), name).unless(DropCount::event_attributes(event)),
    }
}

fn of_link<'a>(name: &str, link: Link<'a>) -> Lookup<'a> {
    let id = |id: Option<String>| id.map_or(Lookup::Absent, |id| Lookup::One(owned(id)));
    match name {
        "trace_id" => id(link.trace_id().map(|id| id.to_string())),
        "span_id" => id(link.span_id().map(|id| id.to_string())),
        _ => attribute(link.attributes(), name).unless(DropCount::link_attributes(link)),
    }
}

fn of_scope<'a>(span: Span<'a>, name: &str) -> Lookup<'a> {
    let scope = span.scope();
    match name {
        "name" => Lookup::One(text(scope.name())),
        "version" => Lookup::One(text(scope.version())),
        _ => attribute(scope.attributes(), name).unless(DropCount::scope_attributes(span)),
    }
}

/// Returns the events of a span in Tracetest's format: a JSON list of `{name, timestamp, attributes}`.
fn events(span: Span<'_>) -> String {
    let event = |event: Event<'_>| {
        let moment = event.at().to_string();
        let moment = moment.trim_end_matches('Z').trim_end_matches('0').trim_end_matches('.');
        object([
            ("name", Json::Text(event.name().to_owned())),
            ("timestamp", Json::Text(format!("{moment}Z"))),
            ("attributes", object_of(event.attributes())),
        ])
    };
    Json::List(span.events().map(event).collect()).to_string()
}

fn object_of(attributes: Attributes<'_>) -> Json {
    let object = attributes.iter().map(|(key, value)| (key.to_owned(), value.into())).collect();
    let object = Json::Object(object);
    budget::spend(16 * object.weight() as u64);
    object
}

pub(super) fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn attribute<'a>(attributes: Attributes<'a>, name: &str) -> Lookup<'a> {
    attributes.get(name).map_or(Lookup::Absent, |value| Lookup::One(value.into()))
}

pub(super) fn many<'a>(values: impl Iterator<Item = Value<'a>>) -> Lookup<'a> {
    let mut values: Vec<_> = values.collect();
    budget::spend(8 * values.len() as u64);
    match values.len() {
        0 => Lookup::Absent,
        1 => Lookup::One(values.remove(0)),
        _ => Lookup::Many(values),
    }
}

fn one(lookup: Lookup<'_>) -> Option<Value<'_>> {
    match lookup {
        Lookup::One(value) => Some(value),
        Lookup::Many(_)
        | Lookup::Absent
        | Lookup::Between(..)
        | Lookup::Untimed(_)
        | Lookup::Dropped(_)
        | Lookup::Encoded(_)
        | Lookup::Unknown => None,
    }
}

pub(super) fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

pub(super) fn owned(text: String) -> Value<'static> {
    Value::Text(Cow::Owned(text))
}
