//! What the answer to the trigger says of its trace: `traceresponse` of W3C Trace Context 2, and what came before it.

use model::{Cause, Diagnosis, TraceId};

use super::{Case, diagnosis};

/// Headers that hold a `traceparent`, or in one case a list of timings of which one holds it.
const HEADERS: [&str; 3] = ["traceresponse", "traceparent", "server-timing"];

/// The bit of the trace flags that says that the trace is kept.
const SAMPLED: u8 = 1;

/// What the answer says of its trace, if that explains that no span came.
pub(super) fn cause(case: &Case<'_>) -> Option<Diagnosis> {
    let (header, trace_id, _) = told(case)?;
    if trace_id == case.fired.attempt.trace_id {
        return not_sampled(case);
    }
    Some(diagnosis(
        Cause::ContextLost,
        format!(
            "the answer's `{header}` names another trace, `{trace_id}`: the system did not continue ours"
        ),
        [],
        super::silence::continuing(case.fired.request),
    ))
}

/// The answer says that the system has our trace and does not keep it.
pub(super) fn not_sampled(case: &Case<'_>) -> Option<Diagnosis> {
    let (header, trace_id, flags) = told(case)?;
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

/// The header by which the answer names its trace, that trace, and its flags.
fn told(case: &Case<'_>) -> Option<(&'static str, TraceId, u8)> {
    let headers = &case.fired.answer.response()?.headers;
    HEADERS.into_iter().find_map(|header| {
        let (_, value) = headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(header))?;
        let (trace_id, flags) = value.split([',', ';', '"', '=', ' ']).find_map(context)?;
        Some((header, trace_id, flags))
    })
}

/// Trace id and flags of `00-TRACE-SPAN-FLAGS`.
fn context(text: &str) -> Option<(TraceId, u8)> {
    let mut parts = text.split('-');
    let (version, trace, span, flags) =
        (parts.next()?, parts.next()?, parts.next()?, parts.next()?);
    let is_context = version.len() == 2 && span.len() == 16 && flags.len() == 2;
    is_context.then_some(())?;
    Some((trace.parse().ok()?, u8::from_str_radix(flags, 16).ok()?))
}
