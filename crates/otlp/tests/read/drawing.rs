//! Traces as text.

use model::{
    Trace,
    trace::{Attributes, Span, Tree, ValueRef},
};

/// Formats all data of these traces.
pub(crate) fn draw(traces: &[Trace]) -> String {
    if traces.is_empty() {
        return "no trace\n".to_owned();
    }
    traces.iter().map(draw_trace).collect()
}

fn draw_trace(trace: &Trace) -> String {
    let mut text = format!("trace {}\n", trace.id());
    let tree = Tree::of(trace);
    for ix in tree.order() {
        let mut depth = 1;
        let mut above = tree.parent(*ix);
        while let Some(parent) = above {
            depth += 1;
            above = tree.parent(parent);
        }
        for line in lines(trace.span(*ix)) {
            text.push_str(&"  ".repeat(depth));
            text.push_str(&line);
            text.push('\n');
        }
    }
    text
}

fn lines(span: Span<'_>) -> Vec<String> {
    let (kind, status) = (span.kind(), span.status());
    let data = span.to_data();
    let mut lines = vec![
        format!(
            "{} {:?}, {kind:?}, {status:?} {:?}",
            span.id(),
            span.name(),
            span.status_message()
        ),
        format!("  at {} for {:?}", span.start(), span.duration()),
    ];
    if let Some(parent) = span.parent() {
        lines.push(format!("  below {parent}"));
    }
    if !span.trace_state().is_empty() || span.flags() != 0 {
        lines.push(format!("  state {:?}, flags {:#x}", span.trace_state(), span.flags()));
    }
    let dropped = [data.dropped_attributes, data.dropped_events, data.dropped_links];
    if dropped != [0; 3] {
        lines.push(format!("  dropped {dropped:?}"));
    }
    let resource = span.resource().to_data();
    let shown = attributes(span.resource().attributes());
    lines.push(format!("  from {shown} {:?}", resource.schema_url));
    if !resource.entities.is_empty() || resource.dropped_attributes != 0 {
        let (dropped, entities) = (resource.dropped_attributes, resource.entities);
        lines.push(format!("    dropped {dropped}, {entities:?}"));
    }
    let scope = span.scope().to_data();
    let shown = attributes(span.scope().attributes());
    let (name, version) = (scope.name, scope.version);
    lines.push(format!("  by {name:?} {version:?} {shown} {:?}", scope.schema_url));
    for (key, value) in span.attributes().iter() {
        lines.push(format!("  {key}: {}", draw_value(value)));
    }
    for event in span.events() {
        let shown = attributes(event.attributes());
        let dropped = event.dropped_attributes();
        lines.push(format!(
            "  event {:?} at {} {shown} dropped {dropped}",
            event.name(),
            event.at()
        ));
    }
    for link in span.links() {
        let ids =
            (link.trace_id().map(|id| id.to_string()), link.span_id().map(|id| id.to_string()));
        let shown = attributes(link.attributes());
        lines.push(format!("  link {ids:?} {:?} {:#x} {shown}", link.trace_state(), link.flags()));
    }
    lines
}

fn attributes(attributes: Attributes<'_>) -> String {
    let entries: Vec<_> =
        attributes.iter().map(|(key, value)| format!("{key}: {}", draw_value(value))).collect();
    format!("{{{}}}", entries.join(", "))
}

fn draw_value(value: ValueRef<'_>) -> String {
    match value {
        ValueRef::Empty => "empty".to_owned(),
        ValueRef::Bool(value) => value.to_string(),
        ValueRef::Int(value) => value.to_string(),
        ValueRef::Double(value) => format!("{value:?}"),
        ValueRef::Str(text) => format!("{text:?}"),
        ValueRef::Bytes(bytes) => format!("bytes {bytes:x?}"),
        ValueRef::Array(values) => {
            format!("[{}]", values.iter().map(draw_value).collect::<Vec<_>>().join(", "))
        }
        ValueRef::Map(entries) => attributes(entries),
    }
}
