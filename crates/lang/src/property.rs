//! What a selector or an expression can name: attributes, intrinsics of a span, the count, the answer.

use std::{borrow::Cow, ops::Range};

use model::{
    Answer, Body, SpanId, Trace,
    trace::{Span, SpanIx, StatusCode, Tree},
};
use source::did_you_mean;

use crate::{lex::Dialect, mistake::Mistake, value::Value};

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Property {
    /// An attribute of the span, else of its resource, else the intrinsic of the same name.
    Attribute {
        name: String,
        otherwise: Option<Intrinsic>,
    },
    Intrinsic(Intrinsic),
    Response(Response),
    /// How many spans the selector matched.
    Count,
}

/// What every span has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Intrinsic {
    Name,
    Kind,
    Type,
    Duration,
    StartTime,
    EndTime,
    StatusCode,
    StatusDescription,
    ParentId,
}

/// A part of the trigger's answer; it stands on the trigger span alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Response {
    Status,
    Body,
    Headers,
}

/// What there is to look at.
#[derive(Debug)]
pub(crate) struct World<'a> {
    pub(crate) trace: &'a Trace,
    pub(crate) tree: Tree,
    /// The first span with the trigger's id: others may come with the same.
    trigger: Option<SpanIx>,
    pub(crate) answer: &'a Answer,
}

/// What became of looking a property up on a span.
#[derive(Clone, Debug)]
pub(crate) enum Lookup<'a> {
    Found(Value<'a>),
    /// The span does not have it.
    Absent,
    /// Nobody knows: the trigger has no answer.
    Unknown,
}

pub(crate) const COUNT: &str = "tracetest.selected_spans.count";

/// The name of the trigger span, and the one that it has in files written for Tracetest.
pub(crate) const TRIGGER_NAMES: [&str; 2] = ["Qualitytrace trigger", "Tracetest trigger"];

const INTRINSICS: &[(&str, Intrinsic)] = &[
    ("tracetest.span.name", Intrinsic::Name),
    ("tracetest.span.type", Intrinsic::Type),
    ("tracetest.span.duration", Intrinsic::Duration),
    ("tracetest.span.start_time", Intrinsic::StartTime),
    ("tracetest.span.end_time", Intrinsic::EndTime),
    ("tracetest.span.status_code", Intrinsic::StatusCode),
    ("tracetest.span.status_description", Intrinsic::StatusDescription),
    ("tracetest.span.parent_id", Intrinsic::ParentId),
];

/// Not among the intrinsics above: Tracetest has no such property, so an attribute of this name comes first.
const KIND: &str = "tracetest.span.kind";

const RESPONSES: &[(&str, Response)] = &[
    ("tracetest.response.status", Response::Status),
    ("tracetest.response.body", Response::Body),
    ("tracetest.response.headers", Response::Headers),
];

/// Names under these are ours: one that is not known is a mistake, not an absent attribute.
const RESERVED: &[&str] = &["tracetest.span.", "tracetest.response.", "tracetest.selected_spans."];

/// Prefixes of attributes, and the type of a span that has one. The first that fits decides.
const TYPES: &[(&str, &str)] = &[
    ("http.", "http"),
    ("db.", "database"),
    ("rpc.", "rpc"),
    ("messaging.", "messaging"),
    ("faas.", "faas"),
    ("exception.", "exception"),
];

/// Spans of browser instrumentation, which are `general` whatever their attributes are.
const BROWSER_NAMES: &[&str] = &["documentLoad", "documentFetch", "resourceFetch"];

impl Property {
    /// The property that `name` means; `range` is where it stands.
    pub(crate) fn named(
        name: &str,
        dialect: Dialect,
        range: Range<usize>,
    ) -> Result<Self, Mistake> {
        match (name, dialect) {
            ("name", Dialect::Selector) => return Ok(Self::Intrinsic(Intrinsic::Name)),
            ("kind", Dialect::Selector) => return Ok(Self::Intrinsic(Intrinsic::Kind)),
            ("name", Dialect::Expression) => return Ok(attribute(name, Some(Intrinsic::Name))),
            (KIND, _) => return Ok(attribute(name, Some(Intrinsic::Kind))),
            ("span.events", _) => return Err(Mistake::unsupported(range, "`span.events` is")),
            (COUNT, Dialect::Expression) => return Ok(Self::Count),
            (COUNT, Dialect::Selector) => {
                let mistake = Mistake::error(range, "a selector cannot ask for its own count");
                return Err(mistake.help(format!("assert it: `attr:{COUNT} = 1`")));
            }
            _ => {}
        }
        if let Some((_, intrinsic)) = INTRINSICS.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Intrinsic(*intrinsic));
        }
        if let Some((_, response)) = RESPONSES.iter().find(|(known, _)| *known == name) {
            return Ok(Self::Response(*response));
        }
        if RESERVED.iter().any(|reserved| name.starts_with(reserved)) {
            let known = INTRINSICS
                .iter()
                .map(|(known, _)| *known)
                .chain(RESPONSES.iter().map(|(known, _)| *known))
                .chain([COUNT, KIND]);
            let mistake = Mistake::error(range, format!("unknown property `{name}`"));
            return Err(mistake.suggest(did_you_mean(name, known)));
        }
        Ok(attribute(name, None))
    }
}

fn attribute(name: &str, otherwise: Option<Intrinsic>) -> Property {
    Property::Attribute { name: name.to_owned(), otherwise }
}

impl<'a> World<'a> {
    pub(crate) fn new(trace: &'a Trace, trigger: SpanId, answer: &'a Answer) -> Self {
        let trigger = trace.spans().find(|span| span.id() == trigger).map(Span::ix);
        Self { trace, tree: Tree::of(trace), trigger, answer }
    }

    /// Whether this is the span of the trigger.
    pub(crate) fn is_trigger(&self, span: SpanIx) -> bool {
        self.trigger == Some(span)
    }

    /// The property of a span. The count is not one of a span, and absent here.
    pub(crate) fn look_up(&self, property: &Property, span: Span<'a>) -> Lookup<'a> {
        match property {
            Property::Intrinsic(intrinsic) => Lookup::Found(self.intrinsic(*intrinsic, span)),
            Property::Attribute { name, otherwise } => {
                let attribute = span
                    .attributes()
                    .get(name)
                    .or_else(|| span.resource().attributes().get(name))
                    .map(Value::from);
                let value = attribute.or_else(|| otherwise.map(|i| self.intrinsic(i, span)));
                value.map_or(Lookup::Absent, Lookup::Found)
            }
            Property::Response(_) if !self.is_trigger(span.ix()) => Lookup::Absent,
            Property::Response(part) => self.response(*part),
            Property::Count => Lookup::Absent,
        }
    }

    fn intrinsic(&self, intrinsic: Intrinsic, span: Span<'a>) -> Value<'a> {
        match intrinsic {
            Intrinsic::Name => text(span.name()),
            Intrinsic::Kind => text(span.kind().as_str()),
            Intrinsic::Type => text(self.type_of(span)),
            Intrinsic::Duration => Value::Duration(
                i128::from(span.end().as_nanos()) - i128::from(span.start().as_nanos()),
            ),
            Intrinsic::StartTime => Value::whole(span.start().as_nanos()),
            Intrinsic::EndTime => Value::whole(span.end().as_nanos()),
            Intrinsic::StatusCode => match span.status() {
                StatusCode::Unset => text("STATUS_CODE_UNSET"),
                StatusCode::Ok => text("STATUS_CODE_OK"),
                StatusCode::Error => text("STATUS_CODE_ERROR"),
                StatusCode::Other(code) => owned(format!("STATUS_CODE_{code}")),
            },
            Intrinsic::StatusDescription => text(span.status_message()),
            // A root names its parent with zeros, as it does on the wire.
            Intrinsic::ParentId => {
                owned(span.parent().map_or("0".repeat(16), |parent| parent.to_string()))
            }
        }
    }

    fn type_of(&self, span: Span<'_>) -> &'static str {
        let is_browser =
            BROWSER_NAMES.contains(&span.name()) || span.attributes().get("event_type").is_some();
        if is_browser || self.is_trigger(span.ix()) {
            return "general";
        }
        let has = |prefix: &str| span.attributes().iter().any(|(key, _)| key.starts_with(prefix));
        TYPES.iter().find(|(prefix, _)| has(prefix)).map_or("general", |(_, name)| name)
    }

    fn response(&self, part: Response) -> Lookup<'a> {
        let Some(response) = self.answer.response() else { return Lookup::Unknown };
        Lookup::Found(match part {
            Response::Status => Value::whole(response.status.into()),
            Response::Body => match &response.body {
                Body::Text(body) => text(body),
                Body::Bytes(bytes) => Value::Bytes(bytes),
            },
            Response::Headers => {
                let header = |(key, value): &(String, String)| serde_json::json!({ "key": key, "value": value });
                let headers: Vec<_> = response.headers.iter().map(header).collect();
                owned(serde_json::Value::Array(headers).to_string())
            }
        })
    }
}

fn text(text: &str) -> Value<'_> {
    Value::Text(Cow::Borrowed(text))
}

fn owned(text: String) -> Value<'static> {
    Value::Text(Cow::Owned(text))
}
