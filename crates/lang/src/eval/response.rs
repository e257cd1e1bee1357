//! The parts of a trigger's response, whatever its kind.

use model::{Body, Exit, Reply, Response};

use super::lookup::{Lookup, many, object, owned, text};
use crate::{
    budget,
    syntax::ast::ResponsePart,
    value::{Json, Number, Value, json::read_document, shorten},
};

/// The header that names the encodings of a body.
pub(super) const CONTENT_ENCODING: &str = "content-encoding";

pub(super) fn of_response<'a>(part: &ResponsePart, response: &'a Response) -> Lookup<'a> {
    Lookup::One(match part {
        ResponsePart::Status => Value::whole(response.status.into()),
        ResponsePart::Duration => Value::Duration(response.duration_ns.into()),
        ResponsePart::Body => {
            let body = of_body(&response.body);
            return match encoding(header_of(&response.headers, CONTENT_ENCODING)) {
                Some(encoding) if !is_empty(&body) => Lookup::Encoded(encoding),
                _ => Lookup::One(body),
            };
        }
        ResponsePart::Headers => all_headers(&response.headers),
        ResponsePart::Header(name) => return header_of(&response.headers, name),
    })
}

pub(super) fn of_reply<'a>(part: &ResponsePart, reply: &'a Reply) -> Lookup<'a> {
    Lookup::One(match part {
        ResponsePart::Status => Value::Number(Number::Int(reply.status.into())),
        ResponsePart::Duration => Value::Duration(reply.duration_ns.into()),
        ResponsePart::Body => of_body(&reply.body),
        ResponsePart::Headers => all_headers(&reply.headers),
        ResponsePart::Header(name) => return header_of(&reply.headers, name),
    })
}

fn all_headers(headers: &[(String, String)]) -> Value<'_> {
    let header = |(key, value): &(String, String)| {
        object([("key", Json::Text(key.clone())), ("value", Json::Text(value.clone()))])
    };
    owned(Json::List(headers.iter().map(header).collect()).to_string())
}

fn header_of<'a>(headers: &'a [(String, String)], name: &str) -> Lookup<'a> {
    let named = headers.iter().filter(|(key, _)| key.eq_ignore_ascii_case(name));
    many(named.map(|(_, value)| text(value)))
}

/// Returns the encoding that the header of a body names, unless the body can be read as it is.
pub(super) fn encoding(header: Lookup<'_>) -> Option<String> {
    let named = match header {
        Lookup::One(value) => vec![value],
        Lookup::Many(values) => values,
        _ => return None,
    };
    let named: Vec<_> = named.iter().map(Value::text).collect();
    let named = named.iter().flat_map(|value| value.split(',')).map(str::trim);
    let is_read = |name: &&str| name.is_empty() || name.eq_ignore_ascii_case("identity");
    let named: Vec<_> = named.filter(|name| !is_read(name)).collect();
    (!named.is_empty()).then(|| shorten(&named.join(", ")).into_owned())
}

pub(super) fn is_empty(body: &Value<'_>) -> bool {
    matches!(body, Value::Text(text) if text.is_empty())
}

/// Maps the exit of a program to a response: its code is the status, its standard output is the body.
pub(super) fn of_exit<'a>(part: &ResponsePart, exit: &'a Exit) -> Lookup<'a> {
    Lookup::One(match part {
        ResponsePart::Status => Value::Number(Number::Int(exit.code.into())),
        ResponsePart::Duration => Value::Duration(exit.duration_ns.into()),
        ResponsePart::Body => of_body(&exit.stdout),
        ResponsePart::Headers | ResponsePart::Header(_) => return Lookup::Absent,
    })
}

/// Returns the body as text, with U+FFFD for invalid UTF-8.
fn of_body(body: &Body) -> Value<'_> {
    match body {
        Body::Text(body) => text(body),
        Body::Bytes(bytes) => {
            budget::spend(bytes.len() as u64);
            Value::Text(String::from_utf8_lossy(bytes))
        }
    }
}

/// Returns one header of a JSON list of `{key, value}`.
pub(super) fn of_headers<'a>(headers: &Value<'a>, name: &str) -> Lookup<'a> {
    let headers = match read_document(&headers.text()) {
        Ok(Some(Json::List(headers))) => headers,
        // The format of this program's own trigger span.
        Ok(Some(Json::Object(entries))) => {
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
