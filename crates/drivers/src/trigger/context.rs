//! Trace context propagation: injects the trace id into a request, in each format that systems read.
//!
//! Deliberately absent: extraction of any of them.

use model::{Propagator, SpanId, TraceId};

/// The entry that identifies our requests, in `tracestate` and in the baggage of a command.
pub(super) const MEMBER: &str = "qualitytrace=true";

/// Returns the names and values that propagate the trace, sampled, with this span as the parent. Names are those of headers.
pub fn propagate(
    forms: &[Propagator],
    trace: TraceId,
    span: SpanId,
) -> Vec<(&'static str, String)> {
    let form = |form: &Propagator| match form {
        Propagator::W3c => vec![
            ("traceparent", format!("00-{trace}-{span}-01")),
            ("tracestate", MEMBER.to_owned()),
        ],
        Propagator::B3 => vec![("b3", format!("{trace}-{span}-1"))],
        Propagator::B3Multi => vec![
            ("x-b3-traceid", trace.to_string()),
            ("x-b3-spanid", span.to_string()),
            ("x-b3-sampled", "1".to_owned()),
        ],
        Propagator::Jaeger => vec![("uber-trace-id", format!("{trace}:{span}:0:1"))],
    };
    forms.iter().flat_map(form).collect()
}
