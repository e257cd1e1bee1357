//! `headers`: a list of `"Name: value"` or a map, and the formats of headers in a variable.
//!
//! Values are secrets: no diagnostic of this module quotes one.

use std::str;

use http::{HeaderName, HeaderValue};
use source::{Fields, Item, Scalar, Value};

use super::otel::Otel;
use crate::plan::{Header, Secret};

/// Headers that the transport sets: another value would break it.
const RESERVED: &[&str] = &[
    "connection",
    "content-encoding",
    "content-length",
    "content-type",
    "host",
    "te",
    "transfer-encoding",
];

/// Reads the headers under `headers`, if the key is present.
pub(super) fn take(fields: &mut Fields<'_>) -> Option<Vec<Header>> {
    let item = fields.take("headers")?;
    let headers = match &item.node.value {
        Value::Sequence(_) => {
            item.list().into_iter().flatten().filter_map(|item| from_line(&item)).collect()
        }
        Value::Table(_) => match item.fields() {
            Some(mut fields) => fields
                .rest()
                .into_iter()
                .filter_map(|(name, item)| from_entry(name, &item))
                .collect(),
            None => Vec::new(),
        },
        Value::Scalar(_) => {
            item.refuse("a list of `\"Name: value\"`, or a table");
            Vec::new()
        }
    };
    Some(headers)
}

fn from_line(item: &Item<'_>) -> Option<Header> {
    let text = item.string()?;
    let header = text.split_once(':').map(|(name, value)| header(name.trim(), value.trim()));
    match header {
        Some(Ok(header)) => Some(header),
        Some(Err(HeaderError(expected))) => {
            item.misfit(expected);
            None
        }
        None => {
            item.misfit("a header such as `Name: value`");
            None
        }
    }
}

fn from_entry(name: &Scalar, item: &Item<'_>) -> Option<Header> {
    // A value that looks like a number is valid too.
    let value = item.text()?;
    match header(&name.text, value.text.trim()) {
        Ok(header) => Some(header),
        Err(HeaderError(expected)) => {
            item.misfit(expected);
            None
        }
    }
}

/// The expected form of a header, with a text that fits behind "must be".
struct HeaderError(&'static str);

fn header(name: &str, value: &str) -> Result<Header, HeaderError> {
    let Ok(name) = name.parse::<HeaderName>() else {
        return Err(HeaderError("a header whose name is letters, digits and `-`"));
    };
    if RESERVED.contains(&name.as_str()) || name.as_str().starts_with("grpc-") {
        return Err(HeaderError("another header: this one belongs to the transport"));
    }
    if name.as_str().ends_with("-bin") {
        return Err(HeaderError("a header with text: in gRPC `-bin` at its end means bytes"));
    }
    if !value.is_ascii() || HeaderValue::from_str(value).is_err() {
        return Err(HeaderError("a header whose value is visible ASCII"));
    }
    Ok(Header { name, value: Secret::new(value) })
}

/// Splits the headers of a variable, each as `Name: value`: one per line in that form, or OpenTelemetry's
/// `name=value,name=value` with percent-encoded values. A name contains neither `:` nor `=`, so the first of them
/// decides. A part that matches neither form is returned unchanged, so that the caller rejects it.
pub(super) fn lines(variable: &str) -> Vec<String> {
    let trimmed = |part: &str| Some(part.trim()).filter(|part| !part.is_empty()).map(str::to_owned);
    if variable.find([':', '=']).is_some_and(|at| variable[at..].starts_with(':')) {
        return variable.lines().filter_map(trimmed).collect();
    }
    let pairs = variable.split(',').filter_map(trimmed);
    let line = |pair: String| match pair.split_once('=') {
        Some((name, value)) => format!("{}: {}", name.trim(), percent_decoded(value.trim())),
        None => pair,
    };
    pairs.map(line).collect()
}

/// Reads the headers of one of OpenTelemetry's variables. Warns about invalid parts and omits them.
pub(super) fn from_variable(otel: &Otel<'_>, names: &[String]) -> Option<(String, Vec<Header>)> {
    let (name, value) = otel.first(names)?;
    let mut headers = Vec::new();
    for line in lines(value) {
        match line.split_once(':').map(|(name, value)| header(name.trim(), value.trim())) {
            Some(Ok(header)) => headers.push(header),
            Some(Err(HeaderError(expected))) => otel.warn(name, expected),
            None => otel.warn(name, "headers such as `name=value,name=value`"),
        }
    }
    Some((name.to_owned(), headers))
}

/// Decodes percent-encoding: `%41` is `A`. An invalid pair stays unchanged, and so does the entire text if the result
/// is not UTF-8.
pub(super) fn percent_decoded(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|byte| char::from(*byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        match (byte, digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                at += 3;
            }
            _ => {
                out.push(*byte);
                at += 1;
            }
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_holds_headers_in_two_forms() {
        for (variable, expected) in [
            ("Authorization: Basic dXNlcg==", &["Authorization: Basic dXNlcg=="][..]),
            ("A: 1, 2\n\nB: 3\n", &["A: 1, 2", "B: 3"]),
            ("api-key=a:b", &["api-key: a:b"]),
            ("a=1, b = x%2Cy%20=z ,", &["a: 1", "b: x,y =z"]),
            ("a=%C3%A9%zz%", &["a: é%zz%"]),
            ("a=%ff", &["a: %ff"]),
            ("nonsense", &["nonsense"]),
            ("", &[]),
        ] {
            assert_eq!(lines(variable), expected, "{variable:?}");
        }
    }
}
