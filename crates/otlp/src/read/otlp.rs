//! OTLP in JSON, and Tempo's variant of it.

use model::{
    Timestamp,
    trace::{
        EntityData, EventData, Kind, LinkData, ResourceData, ScopeData, SpanData, Status,
        StatusCode, Value,
    },
};

use super::{
    Problem,
    json::{Mistake, Node},
    lanes::{Lane, Lanes},
    traces::{Around, Traces},
};

/// The names of span kinds, by number.
pub(super) const KINDS: [&str; 6] = [
    "SPAN_KIND_UNSPECIFIED",
    "SPAN_KIND_INTERNAL",
    "SPAN_KIND_SERVER",
    "SPAN_KIND_CLIENT",
    "SPAN_KIND_PRODUCER",
    "SPAN_KIND_CONSUMER",
];
pub(super) const STATUS_CODES: [&str; 3] =
    ["STATUS_CODE_UNSET", "STATUS_CODE_OK", "STATUS_CODE_ERROR"];

type ReadValue = fn(&Node<'_>) -> Result<Value, Mistake>;

/// The fields of a value; it has one of these.
const VALUES: [(&str, ReadValue); 7] = [
    ("stringValue", |node| node.text().map(|text| Value::Str(text.to_owned()))),
    ("boolValue", |node| node.bool().map(Value::Bool)),
    ("intValue", |node| match node.beyond_whole() {
        Some(double) => Ok(Value::Double(double)),
        None => node.whole().map(Value::Int),
    }),
    ("doubleValue", |node| node.double().map(Value::Double)),
    ("arrayValue", array),
    ("kvlistValue", |node| attributes(node, "values").map(Value::Map)),
    ("bytesValue", |node| node.bytes().map(Value::Bytes)),
];

/// Reads a `TracesData` object.
pub(super) fn read(object: &Node<'_>, lanes: &mut Lanes) -> Result<(), Mistake> {
    for of_resource in object.get("resourceSpans")?.items()? {
        resource_spans(&of_resource, lanes)?;
    }
    Ok(())
}

/// Reads a response of Tempo: `batches`, or in version 2 of its API a `trace`.
pub(super) fn read_tempo(object: &Node<'_>, lanes: &mut Lanes) -> Result<(), Mistake> {
    let trace = object.get("trace")?;
    read(&trace, lanes)?;
    for holder in [object, &trace] {
        for of_resource in holder.get("batches")?.items()? {
            resource_spans(&of_resource, lanes)?;
        }
    }
    Ok(())
}

fn resource_spans(message: &Node<'_>, lanes: &mut Lanes) -> Result<(), Mistake> {
    let resource = resource(message)?;
    // Before OTLP 1.0 a scope was an instrumentation library.
    for [list, scope] in
        [["scopeSpans", "scope"], ["instrumentationLibrarySpans", "instrumentationLibrary"]]
    {
        for of_scope in message.get(list)?.items()? {
            let scope = scope_data(&of_scope, &of_scope.get(scope)?)?;
            let around = Around::new(resource.clone(), scope);
            lanes.add(&of_scope.get("spans")?, Lane::Otlp(Box::new(around)))?;
        }
    }
    Ok(())
}

/// Reads a span into its trace.
pub(super) fn read_span(
    one: &Node<'_>,
    around: &mut Around,
    traces: &mut Traces,
) -> Result<(), Problem> {
    let trace_id = one.get("traceId")?;
    let id = trace_id.trace_id()?;
    let id = id.ok_or_else(|| trace_id.expected("the id of a trace"))?;
    traces.push(around, id, span(one)?)
}

fn resource(around: &Node<'_>) -> Result<ResourceData, Mistake> {
    let resource = around.get("resource")?;
    let mut entities = Vec::new();
    for entity in resource.get("entityRefs")?.items()? {
        entities.push(EntityData {
            schema_url: text(&entity, "schemaUrl")?,
            kind: text(&entity, "type")?,
            id_keys: texts(&entity, "idKeys")?,
            description_keys: texts(&entity, "descriptionKeys")?,
        });
    }
    Ok(ResourceData {
        attributes: attributes(&resource, "attributes")?,
        dropped_attributes: resource.get("droppedAttributesCount")?.whole()?,
        entities,
        schema_url: text(around, "schemaUrl")?,
    })
}

fn scope_data(around: &Node<'_>, scope: &Node<'_>) -> Result<ScopeData, Mistake> {
    Ok(ScopeData {
        name: text(scope, "name")?,
        version: text(scope, "version")?,
        attributes: attributes(scope, "attributes")?,
        dropped_attributes: scope.get("droppedAttributesCount")?.whole()?,
        schema_url: text(around, "schemaUrl")?,
    })
}

fn span(span: &Node<'_>) -> Result<SpanData, Mistake> {
    let id = span.get("spanId")?;
    let status = span.get("status")?;
    let mut events = Vec::new();
    for one in span.get("events")?.items()? {
        events.push(event(&one)?);
    }
    let mut links = Vec::new();
    for one in span.get("links")?.items()? {
        links.push(link(&one)?);
    }
    Ok(SpanData {
        id: id.span_id()?.ok_or_else(|| id.expected("the id of a span"))?,
        parent: span.get("parentSpanId")?.span_id()?,
        trace_state: text(span, "traceState")?,
        flags: span.get("flags")?.whole()?,
        name: text(span, "name")?,
        kind: Kind::from_number(span.get("kind")?.enumeration(&KINDS)?),
        start: time(span, "startTimeUnixNano")?,
        end: time(span, "endTimeUnixNano")?,
        attributes: attributes(span, "attributes")?,
        dropped_attributes: span.get("droppedAttributesCount")?.whole()?,
        events,
        dropped_events: span.get("droppedEventsCount")?.whole()?,
        links,
        dropped_links: span.get("droppedLinksCount")?.whole()?,
        status: Status {
            code: StatusCode::from_number(status.get("code")?.enumeration(&STATUS_CODES)?),
            message: text(&status, "message")?,
        },
    })
}

fn event(event: &Node<'_>) -> Result<EventData, Mistake> {
    Ok(EventData {
        at: time(event, "timeUnixNano")?,
        name: text(event, "name")?,
        attributes: attributes(event, "attributes")?,
        dropped_attributes: event.get("droppedAttributesCount")?.whole()?,
    })
}

fn link(link: &Node<'_>) -> Result<LinkData, Mistake> {
    Ok(LinkData {
        trace_id: link.get("traceId")?.trace_id()?,
        span_id: link.get("spanId")?.span_id()?,
        trace_state: text(link, "traceState")?,
        flags: link.get("flags")?.whole()?,
        attributes: attributes(link, "attributes")?,
        dropped_attributes: link.get("droppedAttributesCount")?.whole()?,
    })
}

fn attributes(holder: &Node<'_>, name: &'static str) -> Result<Vec<(String, Value)>, Mistake> {
    let mut attributes = Vec::new();
    for entry in holder.get(name)?.items()? {
        attributes.push((text(&entry, "key")?, value(&entry.get("value")?)?));
    }
    Ok(attributes)
}

/// Recursion, through arrays and maps, is as deep as JSON may nest.
fn value(any: &Node<'_>) -> Result<Value, Mistake> {
    for (name, read) in VALUES {
        let content = any.get(name)?;
        if !content.is_absent() {
            return read(&content);
        }
    }
    Ok(Value::Empty)
}

fn array(array: &Node<'_>) -> Result<Value, Mistake> {
    let values = array.get("values")?;
    values.items()?.map(|one| value(&one)).collect::<Result<_, _>>().map(Value::Array)
}

fn text(holder: &Node<'_>, name: &'static str) -> Result<String, Mistake> {
    holder.get(name)?.text().map(str::to_owned)
}

fn texts(holder: &Node<'_>, name: &'static str) -> Result<Vec<String>, Mistake> {
    let list = holder.get(name)?;
    list.items()?.map(|item| item.text().map(str::to_owned)).collect()
}

fn time(holder: &Node<'_>, name: &'static str) -> Result<Timestamp, Mistake> {
    holder.get(name)?.whole().map(Timestamp::from_nanos)
}
