//! Telemetry that was sent, and was refused or lost in transit.

use drivers::receiver::Refusal;
use model::{Cause, Diagnosis, UnsettledReason, trace::Span};

use super::{
    case::{Case, NAMED_MAX, diagnosis},
    words::{self, counted},
};

/// Reports refused requests: those since this run began, else those before it.
pub(super) fn rejected(case: &Case<'_>) -> Option<Diagnosis> {
    rejected_since(case).or_else(|| {
        let refusals: Vec<&Refusal> = case.seen?.refusals.iter().collect();
        diagnosis_of(&refusals, "before this run began")
    })
}

/// Reports requests that were refused since this run began.
pub(super) fn rejected_since(case: &Case<'_>) -> Option<Diagnosis> {
    let refusals = case.seen?.refusals.iter().filter(|refusal| refusal.at >= case.fired.began);
    diagnosis_of(&refusals.collect::<Vec<_>>(), "since this run began")
}

fn diagnosis_of(refusals: &[&Refusal], when: &str) -> Option<Diagnosis> {
    let mut each: Vec<&str> = Vec::new();
    for refusal in refusals.iter().rev() {
        if !each.contains(&refusal.what.as_str()) && each.len() < NAMED_MAX {
            each.push(&refusal.what);
        }
    }
    let count = match refusals.len() {
        0 => return None,
        1 => "a request was refused".to_owned(),
        many => format!("{many} requests were refused"),
    };
    Some(diagnosis(
        Cause::Rejected,
        format!("{count} {when}: {}", each.join("; and: ")),
        [],
        "let the exporter send what these words ask for. Most of it is set by `OTEL_EXPORTER_OTLP_PROTOCOL` (`http/protobuf`, \
         `http/json` or `grpc`) and `OTEL_EXPORTER_OTLP_ENDPOINT` (an address without a path)",
    ))
}

/// Reports spans of our trace that the receiver refused or could not decode.
pub(super) fn lost(case: &Case<'_>) -> Option<Diagnosis> {
    if !case.settlement.unsettled.contains(&UnsettledReason::SpansLost) {
        return None;
    }
    let counts = case.seen?.counts;
    let (says, advice) = if counts.refused > 0 {
        (
            format!(
                "the receiver had no room and refused {}, each time that they were offered",
                counted(counts.refused, "span")
            ),
            "run fewer tests at a time, or let the system send smaller batches",
        )
    } else if counts.invalid > 0 {
        (
            format!(
                "{} came with malformed ids and could not be put into any trace",
                counted(counts.invalid, "span")
            ),
            "see what makes the ids: a trace id has 16 bytes, a span id 8, and neither is all zero",
        )
    } else {
        return None;
    };
    Some(diagnosis(Cause::SenderLost, says, [], advice))
}

/// Reports processes that state that they dropped parts of their spans.
pub(super) fn dropped(case: &Case<'_>) -> Option<Diagnosis> {
    let parts = |span: Span<'_>| {
        [
            (u64::from(span.dropped_attributes()), "attribute"),
            (u64::from(span.dropped_events()), "event"),
            (u64::from(span.dropped_links()), "link"),
        ]
    };
    let dropped = |span: &Span<'_>| parts(*span).iter().map(|(count, _)| count).sum::<u64>();
    let all = || case.trace.spans().filter(|span| dropped(span) > 0);
    let most = all().max_by_key(dropped)?;
    let lost: Vec<_> = parts(most)
        .iter()
        .filter(|(count, _)| *count > 0)
        .map(|(count, one)| counted(*count, one))
        .collect();
    Some(diagnosis(
        Cause::SenderLost,
        format!("{} says that its SDK dropped {} of it", words::span(most), lost.join(" and ")),
        [most.id()].into_iter().chain(all().map(Span::id).filter(|id| *id != most.id())),
        "raise the SDK's limits, such as `OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT` and `OTEL_SPAN_EVENT_COUNT_LIMIT`",
    ))
}
