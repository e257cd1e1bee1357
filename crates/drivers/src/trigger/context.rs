//! How a request tells of the trace that it belongs to, in each form that systems read.
//!
//! Deliberately absent: reading any of them.

use model::{Propagator, SpanId, TraceId};

/// By what a system can tell our requests from others, in `tracestate` and where a command finds its baggage.
pub(super) const MEMBER: &str = "qualitytrace=true";

/// The names and values that tell of the trace, sampled, with this span as the parent; as headers are named.
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
