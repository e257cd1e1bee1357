//! Counts the spans of each service in a request for traces, by its wire format. No span is decoded.

use crate::{
    schema::{any_value, key_value, resource, resource_spans, scope, scope_spans, traces_data},
    wire::{DecodeError, Fields},
};

/// The attribute that names a service.
const SERVICE_NAME: &[u8] = b"service.name";
/// The maximum number of characters of a name; the rest is cut.
const NAME_CHARS_MAX: usize = 128;

/// The spans of a service in a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceSpans {
    /// Its `service.name`; none if the resource has no such text.
    pub service: Option<String>,
    /// The number of its spans.
    pub spans: u64,
}

/// Counts the spans of each resource of a request, without those of scopes for which `is_left_out` returns true. A resource without
/// spans is left out, and a service may be there several times.
pub fn count_by_service(
    request: &[u8],
    is_left_out: impl Fn(&[u8]) -> bool,
) -> Result<Vec<ServiceSpans>, DecodeError> {
    let mut counts = Vec::new();
    for of_resource in Fields::new(request).children(traces_data::RESOURCE_SPANS) {
        let of_resource = of_resource?;
        let mut spans = 0;
        for of_scope in of_resource.children(resource_spans::SCOPE_SPANS) {
            let of_scope = of_scope?;
            if !is_left_out(text_of(&of_scope, scope_spans::SCOPE, scope::NAME)?.unwrap_or(b"")) {
                for span in of_scope.children(scope_spans::SPANS) {
                    span?;
                    spans += 1;
                }
            }
        }
        if spans > 0 {
            counts.push(ServiceSpans { service: service(&of_resource)?, spans });
        }
    }
    Ok(counts)
}

/// Returns the name of the service of a resource; of several the last one counts.
fn service(of_resource: &Fields<'_>) -> Result<Option<String>, DecodeError> {
    let mut service = None;
    for of_resource in of_resource.children(resource_spans::RESOURCE) {
        for attribute in of_resource?.children(resource::ATTRIBUTES) {
            let attribute = attribute?;
            if last(&attribute, key_value::KEY)? == Some(SERVICE_NAME) {
                service = text_of(&attribute, key_value::VALUE, any_value::STRING)?;
            }
        }
    }
    let name = |bytes| String::from_utf8_lossy(bytes).chars().take(NAME_CHARS_MAX).collect();
    Ok(service.map(name))
}

/// Returns the bytes of a field of a nested message.
fn text_of<'a>(
    message: &Fields<'a>,
    nested: u32,
    field: u32,
) -> Result<Option<&'a [u8]>, DecodeError> {
    let mut found = None;
    for nested in message.children(nested) {
        found = last(&nested?, field)?.or(found);
    }
    Ok(found)
}

/// Returns the last bytes under a key.
fn last<'a>(message: &Fields<'a>, field: u32) -> Result<Option<&'a [u8]>, DecodeError> {
    let (mut fields, mut found) = (message.clone(), None);
    while let Some(key) = fields.key()? {
        if key == field {
            found = Some(fields.bytes()?);
        } else {
            fields.skip(key)?;
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use opentelemetry_proto::tonic::{
        collector::trace::v1::ExportTraceServiceRequest,
        common::v1::{AnyValue, InstrumentationScope, KeyValue, any_value::Value},
        resource::v1::Resource,
        trace::v1::{ResourceSpans, ScopeSpans, Span},
    };
    use prost::Message;

    use super::{NAME_CHARS_MAX, ServiceSpans, count_by_service};

    fn spans(scope: &str, number: usize) -> ScopeSpans {
        let scope = InstrumentationScope { name: scope.to_owned(), ..Default::default() };
        ScopeSpans {
            scope: Some(scope),
            spans: vec![Span::default(); number],
            ..Default::default()
        }
    }

    fn of(name: Option<Value>, scope_spans: Vec<ScopeSpans>) -> ResourceSpans {
        let attribute = |(key, value): (&str, Value)| KeyValue {
            key: key.to_owned(),
            value: Some(AnyValue { value: Some(value) }),
            ..Default::default()
        };
        let host = ("host.name", Value::StringValue("a".to_owned()));
        let named = name.map(|value| ("service.name", value));
        let attributes = [host].into_iter().chain(named).map(attribute).collect();
        let resource = Some(Resource { attributes, ..Default::default() });
        ResourceSpans { resource, scope_spans, ..Default::default() }
    }

    #[test]
    fn spans_are_counted_by_service_and_without_the_scopes_that_are_left_out() {
        let text = |text: &str| Some(Value::StringValue(text.to_owned()));
        let long = "ä".repeat(NAME_CHARS_MAX + 1);
        let resource_spans = vec![
            of(text("cart"), vec![spans("http", 2), spans("own", 5), spans("", 1)]),
            of(text("idle"), vec![spans("own", 1)]),
            of(None, vec![spans("http", 4)]),
            of(Some(Value::IntValue(7)), vec![spans("http", 1)]),
            of(text(&long), vec![spans("http", 1)]),
        ];
        let request = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        let found = count_by_service(&request, |scope| scope == b"own").expect("it is a request");
        let counted = |service: Option<&str>, spans| ServiceSpans {
            service: service.map(str::to_owned),
            spans,
        };
        let cut = "ä".repeat(NAME_CHARS_MAX);
        let expected =
            [counted(Some("cart"), 3), counted(None, 4), counted(None, 1), counted(Some(&cut), 1)];
        assert_eq!(found, expected);
    }

    #[test]
    fn what_is_cut_off_is_an_error_and_no_panic() {
        let name = Some(Value::StringValue("cart".to_owned()));
        let resource_spans = vec![of(name, vec![spans("http", 2)])];
        let request = ExportTraceServiceRequest { resource_spans }.encode_to_vec();
        for end in 1..request.len() {
            assert!(count_by_service(&request[..end], |_| false).is_err(), "{end}");
        }
    }
}
