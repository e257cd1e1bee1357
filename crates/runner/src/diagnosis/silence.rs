//! Diagnoses for a trace of which no span arrived.

use drivers::receiver::{AnsweredServers, ReceiverSnapshot};
use model::{Cause, Diagnosis, Request};

use super::{
    answer::{self, continuing},
    case::{Case, NAMED_MAX, diagnosis},
    foreign::{Foreign, Root},
    hops::{path_of, served_path},
    losses, variables,
    words::{self, attribute, counted, duration, listed, quoted},
};

/// Returns why no span arrived, the likeliest cause first.
pub(super) fn causes(case: &Case<'_>, foreign: &Foreign) -> Vec<Diagnosis> {
    let roots = foreign.roots(case);
    let mut found = variables::causes(case);
    found.extend(answer::cause(case));
    found.extend(losses::rejected(case));
    found.extend(other_traces(case, foreign, &roots));
    found.extend(unmarked(case, &roots));
    // Causes by elimination are reported only if there is no direct evidence.
    if found.is_empty() {
        found.extend(variables::unreached(case));
        found.extend(no_spans(case).or_else(|| nothing_connected(case)));
    }
    found
}

/// Reports other traces. A trace that started after the trigger and has a server or consumer span as its first span would
/// likely be ours if the service had continued the context.
fn other_traces(case: &Case<'_>, foreign: &Foreign, roots: &[Root<'_>]) -> Option<Diagnosis> {
    let within = || roots.iter().filter(|root| root.is_within && root.is_first());
    let entered = within().filter(|root| root.is_entry());
    // Selects the root that is most similar to the request; of equals the earliest, as `max_by_key` returns the last.
    let is_asked = !case.fired.request.is_fired();
    let entered = entered.filter(|_| !is_asked);
    if let Some(root) = entered.rev().max_by_key(|root| likeness(case.fired.request, root)) {
        let after = duration(root.span.start().since(case.fired.attempt.at));
        return Some(diagnosis(
            Cause::OtherTraces,
            format!(
                "{} began a trace of its own with {}, {after} after the trigger was fired, instead of continuing ours",
                quoted(words::service(root.span)),
                quoted(root.span.name()),
            ),
            [root.span.id()],
            continuing(case.fired.request),
        ));
    }
    let total = foreign.len() as u64;
    if total == 0 {
        return None;
    }
    let since = match within().count() {
        _ if is_asked => "none of them has the id that the test asks for".to_owned(),
        0 => "none of them began since the trigger was fired".to_owned(),
        since => format!(
            "{since} of them began since the trigger was fired, none by a call from outside"
        ),
    };
    Some(diagnosis(
        Cause::OtherTraces,
        format!(
            "{} of {} came, and {since}",
            counted(total, "other trace"),
            listed(foreign.services())
        ),
        within().filter(|_| !is_asked).map(|root| root.span.id()),
        match is_asked {
            true => {
                "see that what makes the trace exports to this receiver, and under the id that the test names"
            }
            false => {
                "let the service that the trigger calls export to this receiver too; if it is among these, it does not \
                 continue the `traceparent` that it gets, or its server is not instrumented"
            }
        },
    ))
}

/// Returns how similar a span is to the receiving side of the request.
fn likeness(request: &Request, root: &Root<'_>) -> u8 {
    let Some(url) = request.url() else { return 0 };
    let method = attribute(root.span, &["http.request.method", "http.method"]);
    let is_path = served_path(root.span) == Some(path_of(url));
    u8::from(is_path) * 2 + u8::from(method.is_some() && method == request.method())
}

/// Reports spans without our marker: processes that we started mark their spans, unless they ignore the variables.
fn unmarked(case: &Case<'_>, roots: &[Root<'_>]) -> Option<Diagnosis> {
    case.started?;
    let within = || roots.iter().filter(|root| root.is_within && !root.is_marked);
    within().next()?;
    let spans: Vec<_> = within().map(|root| root.span.id()).take(NAMED_MAX).collect();
    Some(diagnosis(
        Cause::VariablesIgnored,
        format!(
            "spans of {} come without the mark that the command was told to send in `OTEL_RESOURCE_ATTRIBUTES`",
            listed(within().map(|root| words::service(root.span)))
        ),
        spans,
        UNMARKED,
    ))
}

/// The advice for a process that does not take its resource from the variables.
pub(super) const UNMARKED: &str = "its SDK is set up in code or by a file that ignores the variables, so that it keeps its own batch delay, sampler and \
     propagators: let it read them, or declare `settle.flush`. If the command did not start it, nothing is wrong with it";

/// Reports that a sender is connected, and sends no span of this run.
fn no_spans(case: &Case<'_>) -> Option<Diagnosis> {
    let seen = case.seen?;
    if seen.connections == 0 {
        return None;
    }
    let spans = seen.counts.kept + seen.counts.foreign;
    let others = [(seen.counts.metrics, "metric point"), (seen.counts.logs, "log record")];
    let others = others.iter().filter(|(count, _)| *count > 0);
    let others: Vec<_> = others.map(|(count, one)| counted(*count, one)).collect();
    let says = if spans > 0 {
        format!(
            "{} of other traces came to the receiver, and none of this one",
            counted(spans, "span")
        )
    } else if !others.is_empty() {
        format!("{} came, and not one span", others.join(" and "))
    } else if seen.requests > 0 {
        format!("{} came, and not one span", counted(seen.requests, "request"))
    } else {
        format!(
            "{} to the receiver, and no request over them",
            counted(seen.connections, "connection")
        )
    };
    let advice = match (spans, seen.requests) {
        (0, 0) => {
            "what connected sends nothing: a Collector in between may drop the spans, by a sampling or filter processor; or \
             an SDK keeps none (`OTEL_TRACES_SAMPLER`, or in code)"
        }
        (0, _) => {
            "an SDK is there and keeps no spans: see its sampler (`OTEL_TRACES_SAMPLER`, or in code), \
             `OTEL_TRACES_EXPORTER`, and whether what the trigger calls is instrumented at all"
        }
        _ => {
            "what this trigger calls is not instrumented, does not export to this receiver, or does not keep the spans \
             of this request (a sampler that drops some paths, for instance health checks)"
        }
    };
    Some(diagnosis(Cause::NoSpans, says + &answered(seen), [], advice))
}

/// Returns how many servers answered, if this is about several of them.
fn answered(seen: &ReceiverSnapshot) -> String {
    match seen.servers {
        Some(AnsweredServers { answered, servers }) if servers > 1 => {
            format!(" ({answered} of {servers} servers that receive spans answered)")
        }
        _ => String::new(),
    }
}

fn nothing_connected(case: &Case<'_>) -> Option<Diagnosis> {
    let seen = case.seen?;
    let advice = match case.started {
        Some(_) => {
            "the command was told the address in `OTEL_EXPORTER_OTLP_ENDPOINT`. If no OpenTelemetry SDK is in it, \
             instrument it. If one is, it is set up in code or by a file that ignores the variables, or its sampler \
             keeps nothing (`always_off`), or what starts it does not pass the variables on"
        }
        None => {
            "set `OTEL_EXPORTER_OTLP_ENDPOINT` of every service to an address on which this run listens. If that is \
             done, see that its tracing is on (`OTEL_SDK_DISABLED`, `OTEL_TRACES_EXPORTER`, `OTEL_TRACES_SAMPLER`) and \
             that it can reach this machine: inside a container `localhost` is the container. A Collector in between has \
             to forward spans to here, and may drop them by a sampling or filter processor"
        }
    };
    let ended = case.fired.request.end_words();
    Some(diagnosis(
        Cause::NothingConnected,
        format!("{ended}, and nobody connected to the receiver, not even once{}", answered(seen)),
        [],
        advice,
    ))
}
