//! What a property is: of a span, of an event or link in it, of the trigger's answer.

use std::borrow::Cow;

use model::{
    Answer, Body, Exit, Response,
    trace::{Attributes, Event, Link, Span, StatusCode},
};

use super::world::{InnerRef, Scene, TRIGGER_NAMES, World, duration};
use crate::{
    syntax::ast::{Intrinsic, Property, ResponsePart},
    value::{Json, Number, Value, json::read_document},
};

/// What became of looking a property up.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Lookup<'a> {
    One(Value<'a>),
    /// Several at once, of which any may be meant; never empty.
    Many(Vec<Value<'a>>),
    /// The span does not have it.
    Absent,
    /// Nobody knows: there is no answer. [`World::why_unknown`] says why.
    Unknown,
}

/// Prefixes of attributes, and the type of a span that has one. The first that fits decides.
pub(super) const TYPES: &[(&str, &str)] = &[
    ("http.", "http"),
    ("db.", "database"),
    ("rpc.", "rpc"),
    ("messaging.", "messaging"),
    ("faas.", "faas"),
    ("exception.", "exception"),
];

/// Spans of browser instrumentation, which are `general` whatever their attributes are.
pub(super) const BROWSER_NAMES: [&str; 3] = ["documentLoad", "documentFetch", "resourceFetch"];

/// An attribute that they have.
pub(super) const BROWSER_KEY: &str = "event_type";

impl<'a> World<'a> {
    /// What a property is in a scene.
    pub(crate) fn look_up(&self, property: &Property, scene: &Scene<'_, 'a>) -> Lookup<'a> {
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
                match (attribute, otherwise) {
                    (Some(value), _) => Lookup::One(value.into()),
                    (None, Some(otherwise)) => self.look_up(otherwise, scene),
                    (None, None) => Lookup::Absent,
                }
            }
            Property::Intrinsic(intrinsic, _) => {
                self.intrinsic(*intrinsic, span, scene.is_selecting)
            }
            Property::Resource(name) => attribute(span.resource().attributes(), name),
            Property::Scope(name) => of_scope(span, name),
            Property::Event(name) => {
                many(span.events().filter_map(|event| one(of_event(name, event))))
            }
            Property::Link(name) => many(span.links().filter_map(|link| one(of_link(name, link)))),
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
                // The trigger span answers to both of its names, and to its own if it came with another.
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
            Intrinsic::Duration => Value::Duration(duration(span)),
            Intrinsic::Start => Value::whole(span.start().as_nanos()),
            Intrinsic::End => Value::whole(span.end().as_nanos()),
            Intrinsic::Service => return attribute(span.resource().attributes(), "service.name"),
            Intrinsic::Type => text(self.type_of(span)),
            Intrinsic::Id => owned(span.id().to_string()),
            // A root names its parent with zeros, as it does on the wire.
            Intrinsic::ParentId => {
                owned(span.parent().map_or("0".repeat(16), |parent| parent.to_string()))
            }
            Intrinsic::Depth => Value::whole(self.depth_at(place()).into()),
            Intrinsic::Children => Value::whole(self.children_at(place()) as u64),
            Intrinsic::SelfTime => Value::Duration(self.self_time(place())),
            Intrinsic::CriticalTime => Value::Duration(self.critical_time(place())),
            Intrinsic::Attributes => Value::Json(object_of(span.attributes())),
            Intrinsic::Events => owned(events(span)),
        })
    }

    fn type_of(&self, span: Span<'_>) -> &'static str {
        let is_browser =
            BROWSER_NAMES.contains(&span.name()) || span.attributes().get(BROWSER_KEY).is_some();
        if is_browser || self.is_trigger(span.ix()) {
            return "general";
        }
        let has = |prefix: &str| span.attributes().iter().any(|(key, _)| key.starts_with(prefix));
        TYPES.iter().find(|(prefix, _)| has(prefix)).map_or("general", |(_, name)| name)
    }

    /// A part of the trigger's answer. Where nothing was fired, it is what the trigger span of the trace says.
    pub(crate) fn response(&self, part: &ResponsePart) -> Lookup<'a> {
        match self.answer {
            Some(Answer::Response(response)) => of_response(part, response),
            Some(Answer::Exit(exit)) => of_exit(part, exit),
            Some(Answer::NoAnswer(_)) => Lookup::Unknown,
            Some(Answer::NotFired) | None => self.recorded(part),
        }
    }

    fn recorded(&self, part: &ResponsePart) -> Lookup<'a> {
        let Some(trigger) = self.trigger else { return Lookup::Unknown };
        let attribute = |name: &str| self.trace.span(trigger).attributes().get(name);
        let value = match part {
            ResponsePart::Status => attribute("tracetest.response.status"),
            ResponsePart::Body => attribute("tracetest.response.body"),
            ResponsePart::Headers => attribute("tracetest.response.headers"),
            ResponsePart::Duration => attribute("tracetest.response.duration"),
            ResponsePart::Header(name) => {
                let headers = attribute("tracetest.response.headers").map(Value::from);
                return headers.map_or(Lookup::Unknown, |headers| of_headers(&headers, name));
            }
        };
        value.map_or(Lookup::Unknown, |value| Lookup::One(value.into()))
    }

    /// Whether the trigger was fired and answered.
    pub(crate) fn is_answered(&self) -> bool {
        matches!(self.answer, Some(Answer::Response(_) | Answer::Exit(_)))
    }

    /// Why a part of the trigger's answer is not known.
    pub(crate) fn why_unknown(&self) -> &'static str {
        match self.answer {
            Some(Answer::NotFired) => "nothing was fired, so that there is no response",
            Some(_) => "the trigger has no answer",
            None => "the trace was recorded: the trigger's response is not part of it",
        }
    }
}

/// What a property is of an event or link; nothing where it is one of the span around it.
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
        _ => attribute(event.attributes(), name),
    }
}

fn of_link<'a>(name: &str, link: Link<'a>) -> Lookup<'a> {
    let id = |id: Option<String>| id.map_or(Lookup::Absent, |id| Lookup::One(owned(id)));
    match name {
        "trace_id" => id(link.trace_id().map(|id| id.to_string())),
        "span_id" => id(link.span_id().map(|id| id.to_string())),
        _ => attribute(link.attributes(), name),
    }
}

fn of_scope<'a>(span: Span<'a>, name: &str) -> Lookup<'a> {
    let scope = span.scope();
    match name {
        "name" => Lookup::One(text(scope.name())),
        "version" => Lookup::One(text(scope.version())),
        _ => attribute(scope.attributes(), name),
    }
}

fn of_response<'a>(part: &ResponsePart, response: &'a Response) -> Lookup<'a> {
    Lookup::One(match part {
        ResponsePart::Status => Value::whole(response.status.into()),
        ResponsePart::Duration => Value::Duration(response.duration_ns.into()),
        ResponsePart::Body => of_body(&response.body),
        ResponsePart::Headers => {
            let header = |(key, value): &(String, String)| {
                object([("key", Json::Text(key.clone())), ("value", Json::Text(value.clone()))])
            };
            owned(Json::List(response.headers.iter().map(header).collect()).to_string())
        }
        ResponsePart::Header(name) => {
            let named = response.headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
            return many(named.map(|(_, value)| text(value)));
        }
    })
}

/// A program that ended speaks like a response: its code is the status, what it wrote is the body.
fn of_exit<'a>(part: &ResponsePart, exit: &'a Exit) -> Lookup<'a> {
    Lookup::One(match part {
        ResponsePart::Status => Value::Number(Number::Int(exit.code.into())),
        ResponsePart::Duration => Value::Duration(exit.duration_ns.into()),
        ResponsePart::Body => of_body(&exit.stdout),
        ResponsePart::Headers | ResponsePart::Header(_) => return Lookup::Absent,
    })
}

fn of_body(body: &Body) -> Value<'_> {
    match body {
        Body::Text(body) => text(body),
        Body::Bytes(bytes) => Value::Bytes(Cow::Borrowed(bytes)),
    }
}

/// One header of a JSON list of `{key, value}`.
fn of_headers<'a>(headers: &Value<'a>, name: &str) -> Lookup<'a> {
    let headers = match read_document(&headers.text()) {
        Some(Json::List(headers)) => headers,
        // As this program's own trigger span has them.
        Some(Json::Object(entries)) => {
            let named = entries.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
            return many(named.map(|(_, value)| Value::from(value.clone())));
        }
        _ => return Lookup::Unknown,
    };
    let text = |header: &Json, key: &str| match header {
        Json::Object(entries) => match entries.get(key) {
            Some(Json::Text(text)) => Some(text.clone()),
            _ => None,
        },
        _ => None,
    };
    let named = |header: &Json| {
        let key = text(header, "key")?;
        key.eq_ignore_ascii_case(name).then(|| text(header, "value")).flatten()
    };
    many(headers.iter().filter_map(named).map(owned))
}

/// The events of a span as Tracetest gives them: a JSON list of `{name, timestamp, attributes}`.
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
    Json::Object(attributes.iter().map(|(key, value)| (key.to_owned(), value.into())).collect())
}

fn object<const N: usize>(entries: [(&str, Json); N]) -> Json {
    Json::Object(entries.into_iter().map(|(key, value)| (key.to_owned(), value)).collect())
}

fn attribute<'a>(attributes: Attributes<'a>, name: &str) -> Lookup<'a> {
    attributes.get(name).map_or(Lookup::Absent, |value| Lookup::One(value.into()))
}

fn many<'a>(values: impl Iterator<Item = Value<'a>>) -> Lookup<'a> {
    let mut values: Vec<_> = values.collect();
    match values.len() {
        0 => Lookup::Absent,
        1 => Lookup::One(values.remove(0)),
        _ => Lookup::Many(values),
    }
}

fn one(lookup: Lookup<'_>) -> Option<Value<'_>> {
    match lookup {
        Lookup::One(value) => Some(value),
        Lookup::Many(_) | Lookup::Absent | Lookup::Unknown => None,
    }
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

fn owned(text: String) -> Value<'static> {
    Value::Text(Cow::Owned(text))
}
