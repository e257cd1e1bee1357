//! Why a trace is not complete, in the words of spans and events.

use model::{Settlement, UnsettledReason};

/// Renders why the trace is not complete, in words without values.
pub(crate) fn settle_reason(settlement: &Settlement) -> String {
    let word = |unsettled: &UnsettledReason| match unsettled {
        UnsettledReason::NoTelemetry => "no telemetry",
        UnsettledReason::NotAnswered => "not answered",
        UnsettledReason::ParentsAbsent(_) => "parents absent",
        UnsettledReason::EdgesOpen(_) => "edges open",
        UnsettledReason::ExpectedAbsent(_) => "expected absent",
        UnsettledReason::NotQuiet => "not quiet",
        UnsettledReason::NotWaited => "decided early",
        UnsettledReason::TooLarge => "too large",
        UnsettledReason::SpansLost => "spans lost",
        UnsettledReason::OtherServers(_) => "other servers",
        UnsettledReason::Partial => "partial",
        UnsettledReason::ContextLost(_) => "context lost",
        UnsettledReason::NotSampled => "not sampled",
    };
    match settlement.unsettled.as_slice() {
        [] => "complete".to_owned(),
        unsettled => unsettled.iter().map(word).collect::<Vec<_>>().join(", "),
    }
}
