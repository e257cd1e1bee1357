//! Processes that were not quiet for their quiet period.

use std::time::Duration;

use model::{Because, Cause, Diagnosis, ProcessQuiet, UnsettledReason, trace::Span};

use super::{
    case::{Case, NAMED_MAX, diagnosis},
    clocks::Skew,
    silence::UNMARKED,
    words::{self, duration, quoted},
};
use crate::started::MARKER;

/// Reports the processes that were not quiet at the deadline, first those that ignore the variables that we set.
pub(super) fn causes(case: &Case<'_>, skews: &[Skew<'_>]) -> Vec<Diagnosis> {
    if !case.settlement.unsettled.contains(&UnsettledReason::NotQuiet) {
        return Vec::new();
    }
    // For a process with a skewed clock, the delay of its spans is unknown.
    let is_known = |process: &&ProcessQuiet| {
        let is_skewed = skews.iter().any(|skew| words::service(skew.span) == process.service);
        process.because != Because::Seen || !is_skewed
    };
    let loud = case.settlement.processes.iter().filter(|it| it.silent_ns < it.quiet_ns);
    let loud = loud.filter(is_known);
    let (mut found, mut others) = (Vec::new(), Vec::new());
    for process in loud {
        match unmarked(case, process) {
            Some(span) => found.push(ignoring(process, span)),
            None => others.push(diagnosis_of(case, process)),
        }
    }
    found.append(&mut others);
    found.truncate(NAMED_MAX);
    found
}

/// Returns a span of this process, if we started processes and it does not carry our marker.
fn unmarked<'a>(case: &Case<'a>, process: &ProcessQuiet) -> Option<Span<'a>> {
    let marker = case.started?.marker.as_str();
    let mut spans = case.trace.spans().filter(|span| words::service(*span) == process.service);
    spans.find(|span| words::text(span.resource(), MARKER) != Some(marker))
}

fn ignoring(process: &ProcessQuiet, span: Span<'_>) -> Diagnosis {
    diagnosis(
        Cause::VariablesIgnored,
        format!(
            "spans of {} come without the mark that the command was told to send in `OTEL_RESOURCE_ATTRIBUTES`; so it \
             had to be quiet for {}, and was for {}",
            quoted(&process.service),
            duration(Duration::from_nanos(process.quiet_ns)),
            duration(Duration::from_nanos(process.silent_ns)),
        ),
        [span.id()],
        UNMARKED,
    )
}

fn diagnosis_of(case: &Case<'_>, process: &ProcessQuiet) -> Diagnosis {
    let (because, advice) = match process.because {
        Because::Unknown => (
            "nothing is known of how long it keeps its spans",
            "declare `settle.flush` if you know it, let `qualitytrace run -- COMMAND` start it, which sets it, or raise \
             `settle.timeout`",
        ),
        Because::Declared => (
            "the test declares it in `settle.flush`",
            "raise `settle.timeout`, or lower `settle.flush`",
        ),
        Because::Started => ("twice the batch delay that was set for it", "raise `settle.timeout`"),
        Because::Learned => (
            "its spans came as late in earlier runs",
            "raise `settle.timeout`, or set a shorter `OTEL_BSP_SCHEDULE_DELAY` for it",
        ),
        Because::Seen | Because::Least => (
            "its spans come as late as that in this run",
            "raise `settle.timeout`, or set a shorter `OTEL_BSP_SCHEDULE_DELAY` for it",
        ),
    };
    let last = case.trace.spans().filter(|span| words::service(*span) == process.service).last();
    diagnosis(
        Cause::NotQuiet,
        format!(
            "{} has to be quiet for {} ({because}), and was for {} when the time was up",
            quoted(&process.service),
            duration(Duration::from_nanos(process.quiet_ns)),
            duration(Duration::from_nanos(process.silent_ns)),
        ),
        last.map(Span::id),
        advice,
    )
}
