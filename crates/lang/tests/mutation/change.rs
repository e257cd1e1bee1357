//! The changes of a trace, one line each.
//!
//! ```text
//! drop ID                   without the span
//! duplicate ID              once more, under a new id, at the end
//! reparent ID ID            below another; `none` for no parent, `absent` for one that is not there
//! name ID "NAME"            status ID error|ok|unset         kind ID client|…
//! set ID KEY JSON           an attribute, new or not         remove ID KEY
//! service ID NAME           from another service, on the same host
//! shift ID DURATION         earlier or later                 stretch ID DURATION      a later or earlier end
//! unlink ID                 without its links                uneventful ID            without its events
//! partial                   nothing of the trace, but it is not known to be whole
//! ```

use model::{
    SpanId, Timestamp,
    trace::{Kind, ResourceData, ScopeData, SpanData, StatusCode, Value},
};

/// A span with its resource and scope.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct One {
    pub(crate) resource: ResourceData,
    pub(crate) scope: ScopeData,
    pub(crate) span: SpanData,
}

/// Applies one change.
pub(crate) fn apply(spans: &mut Vec<One>, change: &str) {
    let (verb, rest) = change.split_once(' ').unwrap_or((change, ""));
    let (id, rest) = rest.split_once(' ').unwrap_or((rest, ""));
    let at = place(spans, id);
    match verb {
        "drop" => drop(spans.remove(at)),
        "duplicate" => {
            let mut again = spans[at].clone();
            again.span.id = SpanId::from_bytes([0xd0; 8]).expect("not zero");
            spans.push(again);
        }
        "reparent" => {
            spans[at].span.parent = match rest {
                "none" => None,
                "absent" => SpanId::from_bytes([0xab; 8]),
                id => Some(spans[place(spans, id)].span.id),
            };
        }
        "service" => {
            let attributes = &mut spans[at].resource.attributes;
            let service = attributes.iter_mut().find(|(key, _)| key == "service.name");
            service.expect("a service").1 = Value::Str(rest.to_owned());
        }
        _ => change_span(&mut spans[at].span, verb, rest),
    }
}

fn change_span(span: &mut SpanData, verb: &str, rest: &str) {
    match verb {
        "name" => span.name = rest.trim_matches('"').to_owned(),
        "status" => {
            let codes = (0..3).map(StatusCode::from_number);
            span.status.code = codes.into_iter().find(|code| code.as_str() == rest).expect(rest);
            span.status.message.clear();
        }
        "kind" => {
            let kinds = (0..6).map(Kind::from_number);
            span.kind = kinds.into_iter().find(|kind| kind.as_str() == rest).expect(rest);
        }
        "set" => {
            let (key, json) = rest.split_once(' ').expect("a key and a value");
            let value = value(&serde_json::from_str(json).expect(json));
            match span.attributes.iter_mut().find(|(held, _)| held == key) {
                Some(attribute) => attribute.1 = value,
                None => span.attributes.push((key.to_owned(), value)),
            }
        }
        "remove" => span.attributes.retain(|(key, _)| key != rest),
        "shift" => {
            span.start = moved(span.start, rest);
            span.end = moved(span.end, rest);
        }
        "stretch" => span.end = moved(span.end, rest),
        "unlink" => span.links.clear(),
        "uneventful" => span.events.clear(),
        other => panic!("no such change: {other}"),
    }
}

/// Renames every attribute that the text does not name. Prefixes stay: they determine the type of a span.
pub(crate) fn rename_all_but(spans: &mut [One], text: &str) {
    for (key, _) in spans.iter_mut().flat_map(|one| &mut one.span.attributes) {
        if !text.contains(key.as_str()) {
            key.push_str(".renamed");
        }
    }
}

fn place(spans: &[One], id: &str) -> usize {
    let found = spans.iter().position(|one| one.span.id.to_string().starts_with(id));
    found.unwrap_or_else(|| panic!("no span `{id}`"))
}

fn moved(moment: Timestamp, by: &str) -> Timestamp {
    let millis: i64 = by.strip_suffix("ms").and_then(|by| by.parse().ok()).expect("milliseconds");
    let moved = moment.as_nanos().checked_add_signed(millis * 1_000_000);
    Timestamp::from_nanos(moved.expect("within the clock"))
}

fn value(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Bool(bool) => Value::Bool(*bool),
        serde_json::Value::Number(number) => match number.as_i64() {
            Some(int) => Value::Int(int),
            None => Value::Double(number.as_f64().expect("a number")),
        },
        serde_json::Value::String(text) => Value::Str(text.clone()),
        serde_json::Value::Array(items) => Value::Array(items.iter().map(value).collect()),
        other => panic!("not an attribute: {other}"),
    }
}
