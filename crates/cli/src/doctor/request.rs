//! Checks of a system under test: sends it one traced request, and looks at what came of it.
//!
//! The causes of a missing trace are those of `runner::diagnosis`. Here are the steps before the request, and what only a look at
//! this machine shows: a proxy that gets the spans, another receiver on the usual ports, spans that come late.

use std::{collections::BTreeSet, net::SocketAddr, time::Duration};

use drivers::receiver::ReceiverSnapshot;
use model::{
    Answer, Cause, Diagnosis, Faulty, NoAnswerKind, Outcome, Settlement, Trace, UnsettledReason,
    trace::ValueRef,
};
use tokio::time::{Instant, sleep, timeout};
use url::Url;

use super::{DoctorCheck, Finding, Surroundings, here};
use crate::{
    args::{DoctorArgs, Ready, TargetUrl},
    exit::Exit,
    new,
    run::{Life, Line, LocalSystem, OpenError, ProbedRun, ProgressLevel, Session, Signals},
    sockets,
};

/// The polling interval for the port of the command.
const LOOK: Duration = Duration::from_millis(100);
/// A command that has opened no further port for this long has opened all of them.
const STEADY: Duration = Duration::from_secs(1);
/// How long to listen for a first span, as a multiple of the timeout, and at most.
const LATE_TIMES: u32 = 3;
const LATE_MAX: Duration = Duration::from_secs(35);

/// The page of the error has nothing about what was seen here.
const NO_RESPONSE: &str = "Start the system, correct the URL, or let `-- COMMAND` start it.";

/// What is requested.
struct ProbeTarget {
    url: Url,
    shown: String,
    /// Whether only its port is known to exist.
    is_guessed: bool,
}

/// Runs all checks. The system is stopped afterwards, if it was started here, also when a signal ends the command.
pub(super) async fn look(
    args: &DoctorArgs,
    surroundings: &Surroundings<'_>,
) -> Result<Vec<Finding>, Exit> {
    let Surroundings { environment, world, terminal, .. } = surroundings;
    let mut signals = Signals::listen().map_err(|error| terminal.without_signals(&error))?;
    let telling = match terminal.bars() {
        Some(_) => ProgressLevel::Tests,
        None => ProgressLevel::Quiet,
    };
    let system =
        LocalSystem { flags: &args.system, life: Life::Shared, timeout: None, telling, terminal };
    let ours = environment.iter().map(|(name, value)| (name.to_owned(), value.to_owned()));
    let session = match system.open(&ours.collect(), *world).await {
        Ok(session) => session,
        Err(error) => return Ok(vec![not_received(&error)]),
    };
    let looked = tokio::select! {
        findings = of_session(args, &session, (surroundings, telling)) => Ok(findings),
        exit = signals.end() => Err(exit),
    };
    tokio::select! {
        () = session.stop_system() => looked,
        exit = signals.end() => Err(exit),
    }
}

fn not_received(error: &OpenError) -> Finding {
    let by = match error {
        OpenError::Taken(address) => sockets::listener(address.port()),
        OpenError::Receiver(_) => None,
    };
    let by = by.map_or(String::new(), |by| format!("; it is {by}"));
    Finding::named(DoctorCheck::Receiver, error.code(), format!("{error}{by}"))
}

async fn of_session(
    args: &DoctorArgs,
    session: &Session,
    (surroundings, telling): (&Surroundings<'_>, ProgressLevel),
) -> Vec<Finding> {
    let mut findings = Vec::new();
    let target = match target(args, session, &mut findings).await {
        Ok(target) => target,
        Err(wrong) => {
            findings.push(wrong);
            return findings;
        }
    };
    let plan = match new::one_request(&target.url, args.timeout) {
        Ok(plan) => plan,
        Err(wrong) => {
            findings.push(Finding::error(DoctorCheck::Request, wrong, NO_RESPONSE));
            return findings;
        }
    };
    let line = Line::begin(&format!("GET {}", target.shown), surroundings.terminal, telling);
    let listen_max = (args.timeout * LATE_TIMES).min(LATE_MAX);
    match session.probe(&plan, &line, listen_max).await {
        Ok(probed) => findings.extend(of_probe(args, &target, &probed, (session, surroundings))),
        Err(error) => {
            findings.push(Finding::named(DoctorCheck::Request, error.code(), error.to_string()));
        }
    }
    findings
}

/// Starts the system, if there is a command, and returns what to request.
async fn target(
    args: &DoctorArgs,
    session: &Session,
    findings: &mut Vec<Finding>,
) -> Result<ProbeTarget, Finding> {
    let of_ready = match &args.system.ready {
        Some(Ready::Url(url)) => Some(TargetUrl(url.clone())),
        Some(Ready::Tcp { .. } | Ready::Log(_)) | None => None,
    };
    let given = args.url.clone().or(of_ready);
    let awaited = given.as_ref().and_then(|given| Ready::target(given.0.as_str()));
    let begun = session.begin(awaited).await;
    begun.map_err(|error| Finding::named(DoctorCheck::Command, error.code(), error.to_string()))?;
    let Some(running) = session.running() else {
        let Some(given) = given else { return Err(no_url("there is no URL", &BTreeSet::new())) };
        return Ok(ProbeTarget { shown: given.shown(), url: given.0, is_guessed: false });
    };
    if let Some(given) = given {
        findings.push(Finding::ok(DoctorCheck::Command, "it is ready"));
        return Ok(ProbeTarget { shown: given.shown(), url: given.0, is_guessed: false });
    }
    let mut addresses = BTreeSet::new();
    let mut since = Instant::now();
    let steady = async {
        while addresses.is_empty() || since.elapsed() < STEADY {
            if let Some(ended) = running.ended_early() {
                return Err(Finding::named(DoctorCheck::Command, ended.code(), ended.to_string()));
            }
            sleep(LOOK).await;
            let now = running.listening();
            if now != addresses {
                (addresses, since) = (now, Instant::now());
            }
        }
        Ok(())
    };
    let is_in_time = timeout(args.system.ready_timeout, steady).await;
    is_in_time.unwrap_or(Ok(()))?;
    let first = addresses.first().filter(|_| addresses.len() == 1);
    let Some(address) = first else {
        return Err(no_url("it runs, but where to request it is not known", &addresses));
    };
    findings.push(Finding::ok(DoctorCheck::Command, format!("it listens on `{address}`")));
    let shown = format!("http://{address}/");
    let url = Url::parse(&shown);
    let url =
        url.map_err(|error| Finding::error(DoctorCheck::Command, error.to_string(), NO_URL))?;
    Ok(ProbeTarget { url, shown, is_guessed: true })
}

const NO_URL: &str =
    "Name what to request: `qualitytrace doctor http://127.0.0.1:PORT/PATH -- COMMAND`.";

fn no_url(why: &str, addresses: &BTreeSet<SocketAddr>) -> Finding {
    let listed: Vec<_> = addresses.iter().map(|address| format!("`{address}`")).collect();
    let seen = match listed.as_slice() {
        [] => "no process of it listens on a port of this machine".to_owned(),
        listed => format!("its processes listen on {}", listed.join(", ")),
    };
    Finding::error(DoctorCheck::Command, format!("{why}: {seen}"), NO_URL)
}

/// Returns what the run of the request shows, the worst first.
fn of_probe(
    args: &DoctorArgs,
    target: &ProbeTarget,
    probed: &ProbedRun,
    (session, surroundings): (&Session, &Surroundings<'_>),
) -> Vec<Finding> {
    let ProbedRun { outcome, answer, seen, late, .. } = probed;
    let trace = probed.trace.as_deref();
    let is_whole = outcome.settlement.as_ref().is_some_and(Settlement::is_whole);
    let is_answered = matches!(**answer, Answer::Response(_));
    let mut findings = vec![request(target, answer)];
    if let Some(late) = late {
        findings.push(batch_delay(*late, trace));
    }
    let is_unconnected = outcome.diagnoses.iter().any(|it| it.cause == Cause::NothingConnected);
    if is_unconnected {
        findings.extend(elsewhere(args, session, surroundings));
    }
    let explained: Vec<_> = outcome.diagnoses.iter().map(|it| diagnosed(it, is_whole)).collect();
    let is_explained = late.is_some() || !explained.is_empty() || !is_answered;
    // Spans that came late leave a process that could not be quiet, which they explain.
    findings.extend(explained.into_iter().filter(|_| late.is_none()));
    findings.push(receiver(session, seen));
    findings.push(spans(trace, outcome, (is_whole, is_explained)));
    findings
}

fn request(target: &ProbeTarget, answer: &Answer) -> Finding {
    let shown = &target.shown;
    match answer {
        Answer::Response(response) => {
            let found = format!("GET {shown} has a response, status {}", response.status);
            // Without a URL the path was a guess.
            let is_right = response.status < 400 || (target.is_guessed && response.status == 404);
            match is_right {
                true => Finding::ok(DoctorCheck::Request, found),
                false => Finding::warning(
                    DoctorCheck::Request,
                    found,
                    "Request a path that the system serves: what it does for this one may not be what you look for.",
                ),
            }
        }
        Answer::NoAnswer(none) => {
            let advice = match none.kind {
                NoAnswerKind::Tls => {
                    "Correct the scheme of the URL, or the certificate of the system."
                }
                NoAnswerKind::Timeout => {
                    "Raise `--timeout`, or see in the log of the system what it waits for."
                }
                NoAnswerKind::Connection => {
                    "See whether the port speaks HTTP: by `https://` if it takes TLS, and not that of gRPC."
                }
                _ => NO_RESPONSE,
            };
            Finding::error(
                DoctorCheck::Request,
                format!("GET {shown} has no response: {}", none.message),
                advice,
            )
        }
        Answer::Exit(_) | Answer::Reply(_) | Answer::NotFired => {
            Finding::error(DoctorCheck::Request, format!("GET {shown} was not sent"), NO_RESPONSE)
        }
    }
}

fn diagnosed(diagnosis: &Diagnosis, is_whole: bool) -> Finding {
    let Diagnosis { cause, says, advice, .. } = diagnosis;
    let (check, says) = (DoctorCheck::of(*cause), says.as_str());
    // A complete trace can be judged.
    match is_whole {
        true => Finding::warning(check, says, sentence(advice)),
        false => Finding::error(check, says, sentence(advice)),
    }
}

/// Returns an advice as a sentence.
fn sentence(advice: &str) -> String {
    let mut letters = advice.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    let dot = if advice.ends_with('.') { "" } else { "." };
    format!("{first}{}{dot}", letters.as_str())
}

fn batch_delay(late: Duration, trace: Option<&Trace>) -> Finding {
    let from = services(trace).join(", ");
    let from = if from.is_empty() { String::new() } else { format!(" of {from}") };
    Finding::error(
        DoctorCheck::BatchDelay,
        format!(
            "the first span{from} came {:.1} s after the request, too late for a test",
            late.as_secs_f64()
        ),
        "Set `OTEL_BSP_SCHEDULE_DELAY` of the services to less, such as 500 (milliseconds), and the `timeout` of the batch processor of a \
         Collector in between; or let tests wait: `settle: {flush: …, timeout: …}`.",
    )
}

/// Looks for what may have got the spans, if nothing connected to the receiver.
fn elsewhere(
    args: &DoctorArgs,
    session: &Session,
    surroundings: &Surroundings<'_>,
) -> Vec<Finding> {
    let is_started = !args.system.command.is_empty();
    if is_started {
        return here::proxy_of_spans(&surroundings.environment).into_iter().collect();
    }
    let own: Vec<_> = session.addresses().iter().map(SocketAddr::port).collect();
    let others = here::OTLP.into_iter().filter(|port| !own.contains(port));
    let others = others.filter_map(|port| Some((port, sockets::listener(port)?)));
    let others = others.map(|(port, by)| {
        Finding::error(
            DoctorCheck::Export,
            format!("no span came here, and {by} listens on the usual port {port}: spans that are not sent elsewhere arrive there"),
            "Stop it, let it forward what it receives to this machine, or let the services export to the address of `--otlp`.",
        )
    });
    others.collect()
}

fn receiver(session: &Session, seen: &ReceiverSnapshot) -> Finding {
    let at: Vec<_> = session.addresses().iter().map(|address| format!("`{address}`")).collect();
    let counts = seen.counts;
    let found = format!(
        "on {}; connections: {}, requests: {}, refused: {}; spans of this trace: {}, of others: {}; metric points: {}, log records: {}",
        at.join(" and "),
        seen.connections,
        seen.requests,
        seen.refusals.len(),
        counts.kept,
        counts.foreign,
        counts.metrics,
        counts.logs,
    );
    Finding::ok(DoctorCheck::Receiver, found)
}

fn spans(
    trace: Option<&Trace>,
    outcome: &Outcome,
    (is_whole, is_explained): (bool, bool),
) -> Finding {
    let services = services(trace);
    // The span of the trigger is ours.
    let count = trace.map_or(0, |trace| trace.len().saturating_sub(1));
    let found = match services.as_slice() {
        [] => "no span came".to_owned(),
        services => {
            let spans = if count == 1 { "span" } else { "spans" };
            format!("{count} {spans} of {}", services.join(", "))
        }
    };
    if is_whole {
        return Finding::ok(DoctorCheck::Trace, format!("complete, with {found}"));
    }
    let found = match &outcome.settlement {
        Some(settlement) if !services.is_empty() => {
            format!("{found}, not complete: {}", settlement.reason())
        }
        _ => found,
    };
    if is_explained {
        return Finding::ok(DoctorCheck::Trace, found);
    }
    let unsettled = outcome.settlement.iter().flat_map(|settlement| &settlement.unsettled);
    let is_sampled = unsettled.into_iter().any(|it| matches!(it, UnsettledReason::Sampled(_)));
    let check = if is_sampled { DoctorCheck::Sampling } else { DoctorCheck::Trace };
    let reasons = [vec![found], outcome.reasons.clone()].concat().join("; ");
    Finding::error(check, reasons, "Start the system by `-- COMMAND`, or raise `--timeout`.")
}

/// Returns the services with spans in a trace.
fn services(trace: Option<&Trace>) -> Vec<String> {
    let spans = trace.into_iter().flat_map(Trace::spans);
    let theirs = spans.filter(|span| span.name() != runner::TRIGGER_SPAN_NAME);
    let names = theirs.filter_map(|span| match span.resource().attributes().get("service.name") {
        Some(ValueRef::Str(name)) => Some(format!("`{name}`")),
        _ => None,
    });
    let names: BTreeSet<_> = names.collect();
    names.into_iter().collect()
}
