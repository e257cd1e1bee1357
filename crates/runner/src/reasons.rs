//! The reasons why a run may be inconclusive, as text: each with advice.
//!
//! Deliberately absent: why telemetry is missing, which the module `diagnosis` explains.

use std::time::Duration;

use lang::ResolvedPlan;
use model::{Answer, Diagnosis, NoAnswerKind, Settlement, StoreGap, StoreQueries, UnsettledReason};

use crate::diagnosis;

/// The reason of an inconclusive run with a failed command.
const FAILURE_UNDECLARED: &str = "the command ended with a code other than 0, and the test does not say whether that is \
                              right: correct the command, or assert `response.status`";

/// The same for a call by a further protocol.
const ERROR_UNDECLARED: &str = "the system replied with an error, and the test does not say whether that is right: correct \
                            the request, or assert `response.status`";

/// The reason of a run that its own timeout ended.
const OUT_OF_TIME: &str =
    "the run's own time was up (`--timeout`): give it more, or find out what took so long";

/// Returns the reasons why a run may be inconclusive, each with advice.
pub(crate) fn reasons(
    resolved: &ResolvedPlan,
    answer: &Answer,
    settlement: Option<&Settlement>,
    diagnoses: &[Diagnosis],
) -> Vec<String> {
    let mut reasons = Vec::new();
    if resolved.is_failure_undeclared(answer) {
        let is_program = answer.status().is_some_and(|status| status.is_program);
        reasons.push((if is_program { FAILURE_UNDECLARED } else { ERROR_UNDECLARED }).to_owned());
    }
    if let Answer::NoAnswer(no_answer) = answer {
        reasons.push(no_answer_reason(no_answer.kind).to_owned());
    }
    let is_waited =
        |settlement: &&Settlement| !settlement.unsettled.contains(&UnsettledReason::NotWaited);
    if let Some(settlement) = settlement.filter(is_waited) {
        // If the trigger got no response, missing spans need no further explanation.
        let is_unread = diagnosis::is_unread_source(settlement);
        let is_news = |it: &&UnsettledReason| {
            (answer.is_answered() && !is_unread || **it != UnsettledReason::NoTelemetry)
                && !diagnosis::is_explained(it, diagnoses)
        };
        let news = settlement.unsettled.iter().filter(is_news);
        reasons.extend(news.filter_map(|unsettled| reason(unsettled, &settlement.stores)));
    }
    reasons
}

/// Returns the reasons of a run that its own timeout ended: missing spans may only be late, and no other limit was reached.
pub(crate) fn out_of_time(
    resolved: &ResolvedPlan,
    answer: &Answer,
    diagnoses: &mut Vec<Diagnosis>,
) -> Vec<String> {
    diagnoses.retain(|diagnosis| !diagnosis::is_for_want_of_time(diagnosis));
    let unsaid = resolved.is_failure_undeclared(answer).then_some(FAILURE_UNDECLARED);
    [OUT_OF_TIME].into_iter().chain(unsaid).map(str::to_owned).collect()
}

fn no_answer_reason(kind: NoAnswerKind) -> &'static str {
    match kind {
        NoAnswerKind::Invalid => "the request cannot be sent as it stands: correct the trigger",
        NoAnswerKind::Refused | NoAnswerKind::Dns => {
            "the trigger did not reach the system: start it, or correct `httpRequest.url`"
        }
        NoAnswerKind::Tls => {
            "the system is not trusted: name the certificate that signed its own by `tls.caFile`, or install it on this machine"
        }
        NoAnswerKind::Connection => {
            "the connection broke after the request was on its way: look at the system's log"
        }
        NoAnswerKind::Timeout => {
            "the answer took too long: find out what the system waits for, or raise the trigger's `timeout`"
        }
        NoAnswerKind::Redirects => {
            "one redirect leads to the next: look at `location` of the answers, or set `httpRequest.redirects`"
        }
        NoAnswerKind::Killed => "the command was killed by somebody else: look at what it wrote",
        NoAnswerKind::TooLarge => "the answer is larger than a run keeps: ask the system for less",
        NoAnswerKind::Unknown => {
            "whether the system got the request is not known, and it is never sent twice: run the test again"
        }
    }
}

fn reason(unsettled: &UnsettledReason, stores: &[StoreQueries]) -> Option<String> {
    Some(match unsettled {
        // The answer already explains the first, and a run never reports the others as a reason.
        UnsettledReason::NotAnswered | UnsettledReason::Partial | UnsettledReason::NotWaited => return None,
        UnsettledReason::ContextLost(calls) => format!(
            "the other side of {} calls began a trace of its own, the first is that of `{}`: let both sides pass the context \
             on (`traceparent`), so that what happens there is in this trace",
            calls.len(),
            calls.first().map(ToString::to_string).unwrap_or_default()
        ),
        UnsettledReason::NotSampled => "the system answers that it does not sample this trace: let it sample what its caller \
                                  samples (`OTEL_TRACES_SAMPLER=parentbased_always_on`)"
            .to_owned(),
        UnsettledReason::Sampled(span) => format!(
            "the span `{span}` states that the system keeps only a share of its spans (a threshold in its trace state, a sample rate \
             or a sampling priority): let it keep all spans of traces that are tested"
        ),
        UnsettledReason::EdgesOpen(spans) => format!(
            "the other side of {} calls never came, the first is that of `{}`: if what is called there sends no spans, name \
             it in `settle.absent`, else find out what became of them, or raise `settle.timeout`",
            spans.len(),
            spans.first().map(ToString::to_string).unwrap_or_default()
        ),
        UnsettledReason::ExpectedAbsent(expected) => format!(
            "`{}` did not come, which the test expects: look whether it ran, or raise `settle.timeout`",
            expected.join("`, `")
        ),
        UnsettledReason::NoTelemetry if !stores.is_empty() => {
            let names: Vec<_> = stores.iter().map(|store| format!("`{}`", store.store)).collect();
            let lag = Duration::from_nanos(stores.iter().map(|it| it.lag_ns).max().unwrap_or(0));
            format!(
                "no span of this trace is in the trace store {}: check that the system sends its spans there, and that it \
                 continues the `traceparent` it gets; if they appear there later than {lag:?} after they were sent, \
                 declare `lag` in the document of the store",
                names.join(", ")
            )
        }
        UnsettledReason::NoTelemetry => "no span of the system came: check that it exports OTLP to the address \
                                   that Qualitytrace listens on, and that it continues the `traceparent` it gets; if \
                                   its spans come late, declare `settle.flush`"
            .to_owned(),
        UnsettledReason::ParentsAbsent(spans) => format!(
            "{} spans name a parent that never came, the first is `{}`: if what calls its service sends no spans, name the \
             service in `settle.absent`, else find out what became of the parents, or raise `settle.timeout`",
            spans.len(),
            spans.first().map(ToString::to_string).unwrap_or_default()
        ),
        UnsettledReason::NotQuiet => {
            "spans were still arriving at the deadline: raise `settle.timeout`".to_owned()
        }
        UnsettledReason::TooLarge => "the trace is larger than a run may keep; the rest was not judged".to_owned(),
        UnsettledReason::OtherServers(servers) => format!(
            "spans could also be received by `{}` during the run, and this run does not get them from there, so that what is \
             missing here may be there: send all spans to one server, or share them over one `nats`",
            servers.join("`, `")
        ),
        UnsettledReason::StoreUnread(StoreGap { store, message }) => format!(
            "the trace store `{store}` could not be read, so that what is missing may be there: {message}"
        ),
        UnsettledReason::StorePartial(StoreGap { store, message }) => format!(
            "the trace store `{store}` gave only a part of the trace: {message}"
        ),
        UnsettledReason::Unproved(reason) => format!(
            "it is not proved that all spans that the servers accepted are here: {reason}"
        ),
        UnsettledReason::SpansLost => {
            "spans may have been lost on their way: an export was refused, the trace is larger than one may be, or the server was \
             restarted during the run"
                .to_owned()
        }
    })
}
