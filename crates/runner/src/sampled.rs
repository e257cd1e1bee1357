//! Whether spans of a trace state that the system keeps only a share of its spans.

use model::{
    SpanId, Trace,
    trace::{Span, ValueRef},
};

/// Attributes in which senders state how many spans one span stands for.
const RATES: [&str; 3] = ["SampleRate", "sampleRate", "sample_rate"];

/// Returns the first span that states it: a sampling threshold other than 0 in its trace state, a sample rate above 1, or a sampling
/// priority of 0. Spans of other services may have been dropped by another decision, so absence proves nothing.
pub(crate) fn sampled(trace: &Trace) -> Option<SpanId> {
    trace.spans().find(|span| is_sampled(*span)).map(|span| span.id())
}

fn is_sampled(span: Span<'_>) -> bool {
    has_threshold(span.trace_state())
        || RATES.iter().any(|rate| number(span, rate).is_some_and(|rate| rate > 1.0))
        || number(span, "sampling.priority").is_some_and(|priority| priority <= 0.0)
}

/// Whether a trace state has `ot=th:…` with a threshold other than 0.
fn has_threshold(state: &str) -> bool {
    let members = state.split(',').filter_map(|member| member.trim().strip_prefix("ot="));
    let mut thresholds = members.flat_map(|member| member.split(';'));
    thresholds.any(|it| it.strip_prefix("th:").is_some_and(|it| !it.trim_matches('0').is_empty()))
}

fn number(span: Span<'_>, key: &str) -> Option<f64> {
    match span.attributes().get(key)? {
        ValueRef::Int(number) => Some(number as f64),
        ValueRef::Double(number) => Some(number),
        ValueRef::Str(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use model::{
        SpanId, Trace, TraceId,
        trace::{ResourceData, ScopeData, SpanData, Value},
    };

    use super::sampled;

    fn is_sampled(state: &str, attributes: &[(&str, Value)]) -> bool {
        let mut trace = Trace::new(TraceId::from_random([1; 16]));
        let resource = trace.resource(ResourceData::default()).expect("room");
        let scope = trace.scope(ScopeData::default()).expect("room");
        let mut span = SpanData::new(SpanId::from_random([2; 8]), None, "GET");
        span.trace_state = state.to_owned();
        span.attributes =
            attributes.iter().map(|(key, value)| ((*key).to_owned(), value.clone())).collect();
        trace.push(resource, scope, span).expect("room");
        sampled(&trace).is_some()
    }

    #[test]
    fn a_trace_state_with_a_threshold_is_a_statement() {
        for state in ["ot=th:8", "vendor=1, ot=rv:123;th:fd70a4", "ot=th:08"] {
            assert!(is_sampled(state, &[]), "{state}");
        }
        for state in ["", "ot=th:0", "ot=rv:8", "vendor=th:8", "not=th:8"] {
            assert!(!is_sampled(state, &[]), "{state}");
        }
    }

    #[test]
    fn a_rate_above_one_and_a_priority_of_zero_are_statements() {
        let text = |text: &str| Value::Str(text.to_owned());
        for (key, value) in [
            ("SampleRate", Value::Int(10)),
            ("sample_rate", Value::Double(1.5)),
            ("sampleRate", text("4")),
            ("sampling.priority", Value::Int(0)),
        ] {
            assert!(is_sampled("", &[(key, value)]), "{key}");
        }
        for (key, value) in [
            ("SampleRate", Value::Int(1)),
            ("sample_rate", text("all")),
            ("sampling.priority", Value::Int(1)),
            ("rate", Value::Int(10)),
        ] {
            assert!(!is_sampled("", &[(key, value)]), "{key}");
        }
    }
}
