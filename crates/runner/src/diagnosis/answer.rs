//! The trace context in the response to the trigger: `traceresponse` of W3C Trace Context 2, and its predecessors.

use model::{Cause, ContextCarrier, Diagnosis, Propagator, Request, TraceId};

use super::case::{Case, diagnosis};

/// Response headers that hold a `traceparent`. `server-timing` holds a list of timings, one of which contains it.
const HEADERS: [&str; 3] = ["traceresponse", "traceparent", "server-timing"];

/// The bit of the trace flags that states that the trace is sampled.
const SAMPLED: u8 = 1;

/// Returns the diagnosis from the response's trace context, if that explains why no span arrived.
pub(super) fn cause(case: &Case<'_>) -> Option<Diagnosis> {
    let (header, trace_id, _) = trace_header(case)?;
    if trace_id == case.fired.attempt.trace_id {
        return not_sampled(case);
    }
    Some(diagnosis(
        Cause::ContextLost,
        format!(
            "the answer's `{header}` names another trace, `{trace_id}`: the system did not continue ours"
        ),
        [],
        continuing(case.fired.request),
    ))
}

/// Returns a diagnosis if the response states that the system has our trace and does not sample it.
pub(super) fn not_sampled(case: &Case<'_>) -> Option<Diagnosis> {
    let (header, trace_id, flags) = trace_header(case)?;
    let is_dropped = trace_id == case.fired.attempt.trace_id && flags & SAMPLED == 0;
    is_dropped.then(|| {
        diagnosis(
            Cause::NotSampled,
            format!(
                "the answer's `{header}` says that the system continued our trace and does not keep it: its flags \
                 are `{flags:02x}`, and the trigger's were `01`"
            ),
            [],
            "let the first service sample what its caller samples (`OTEL_TRACES_SAMPLER=parentbased_always_on`), and \
             see that no proxy before it takes the decision anew",
        )
    })
}

/// Returns the response header that names the trace, its trace id and its trace flags.
fn trace_header(case: &Case<'_>) -> Option<(&'static str, TraceId, u8)> {
    let headers = &case.fired.answer.response()?.headers;
    HEADERS.into_iter().find_map(|header| {
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header))?;
        let (trace_id, flags) = value.split([',', ';', '"', '=', ' ']).find_map(context)?;
        Some((header, trace_id, flags))
    })
}

/// Parses trace id and flags of `00-TRACE-SPAN-FLAGS`.
fn context(text: &str) -> Option<(TraceId, u8)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_context = version.len() == 2 && span.len() == 16 && flags.len() == 2;
    is_context.then_some(())?;
    Some((trace.parse().ok()?, u8::from_str_radix(flags, 16).ok()?))
}

/// Returns the advice for a context that is not continued at the first hop.
pub(super) fn continuing(request: &Request) -> String {
    let (gets, name) = match request.propagation() {
        (ContextCarrier::Environment, _) => {
            return "let the command pass on the context that it gets in `TRACEPARENT`, as a header of its requests; and \
                    let the service continue it: `OTEL_PROPAGATORS` must name `tracecontext`, and its server must be \
                    instrumented"
                .to_owned();
        }
        (ContextCarrier::Headers, formats) => match formats.first() {
            Some(Propagator::B3) => ("b3", "b3"),
            Some(Propagator::B3Multi) => ("x-b3-traceid", "b3multi"),
            Some(Propagator::Jaeger) => ("uber-trace-id", "jaeger"),
            Some(Propagator::W3c) | None => ("traceparent", "tracecontext"),
        },
    };
    format!(
        "let the service continue the `{gets}` that it gets: `OTEL_PROPAGATORS` must name `{name}`, its server must be \
         instrumented, and no proxy before it may strip the header or begin a trace of its own"
    )
}
