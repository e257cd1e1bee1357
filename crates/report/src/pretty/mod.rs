//! An outcome for a person: [`pretty`] with symbols and lines, [`plain`] in words.
//!
//! The verdict comes first, then the reasons, then the checks that do not hold, with their location and the evidence.
//! Below that, each check that holds has one line. Symbols and words carry all information; colours only help to read it.
//! Prose is wrapped. Values are not wrapped, but long ones are truncated.
//!
//! Deliberately absent: the terminal. The caller decides on colours, and the width of the terminal is not queried, so
//! that the same outcome gives the same text everywhere.

mod analysis;
mod page;
mod specs;
mod tree;

use model::{
    Answer, NoAnswerKind, Outcome, OutputValue, Settlement, SpanId, UnsettledReason, Verdict,
};
use source::Colour;

use self::page::{Page, Paint, Signs, columns, verdict_paint};
use crate::{
    format::{Format, TEXT},
    points::{NAME_CHARS_MAX, VALUE_CHARS_MAX},
    text::{shown, status_words},
    totals::{Totals, counted, elapsed_ns},
    why::{diagnoses, unknown, whys},
};

/// For a person at a terminal.
pub(crate) const PRETTY: Format = Format {
    is_for_people: true,
    alone: Some(pretty),
    part: Some(|outcome, colour| among_others(outcome, Look::Pretty(colour))),
    ..Format::new("pretty", TEXT, |input| summary(input.outcomes, Look::Pretty(input.colour)))
};

/// The same in words, for logs and screen readers.
pub(crate) const PLAIN: Format = Format {
    accepted_as: &["text/plain"],
    is_for_people: true,
    alone: Some(|outcome, _| plain(outcome)),
    part: Some(|outcome, _| among_others(outcome, Look::Plain)),
    ..Format::new("plain", TEXT, |input| summary(input.outcomes, Look::Plain))
};

/// The upper bound for span ids with absent parents that are listed.
const IDS_MAX: usize = 3;

/// Writes an outcome in lines; the last one ends with a line break too.
///
/// ```text
/// ✘ failed: the stock is reserved (1.24 s)
///   trigger answered: status 200 in 12.3 ms
///   trace complete: 7 spans, quiet for 200 ms
///
///   ✘ stock: span[db.system] (2 spans)
///     ✘ attr:db.rows = 4
///       cart.yaml:12:15
///       ✘ cdcdcdcdcdcdcdcd  SELECT stock  3 = 4
///       and 1 more span
///
///   spans that decided
///     POST /checkout        gateway  182 ms  error
///     └─ reserve            orders    40 ms
///        └─ ✘ SELECT stock  orders     9 ms         ← stock: attr:db.rows = 4
/// ```
fn pretty(outcome: &Outcome, colour: Colour) -> String {
    alone(outcome, Look::Pretty(colour))
}

/// Writes the same in words: `failed:` for `✘`, indentation for the lines of a tree, no colours, and no symbol of ours
/// beyond ASCII. For logs that are searched and for screen readers.
pub(crate) fn plain(outcome: &Outcome) -> String {
    alone(outcome, Look::Plain)
}

/// Writes one of several outcomes: a line if it passed, else the full text and an empty line.
fn among_others(outcome: &Outcome, look: Look) -> String {
    let mut page = look.page();
    if outcome.verdict == Verdict::Passed {
        head(&mut page, outcome);
        page.margin = 2;
        // A diagnosis of missing telemetry belongs to the verdict of a test that passed too.
        reasons(&mut page, &diagnoses(outcome));
    } else {
        write(&mut page, outcome);
        page.gap();
    }
    page.text
}

/// Writes the summary below several outcomes.
fn summary(outcomes: &[Outcome], look: Look) -> String {
    let mut page = look.page();
    // An outcome that did not pass has an empty line after it already.
    if outcomes.last().is_some_and(|last| last.verdict == Verdict::Passed) {
        page.gap();
    }
    let totals = Totals::of(outcomes);
    let mut words = totals.words(|verdict, count| page.paint(verdict_paint(verdict), count));
    if page.signs == Signs::Words {
        words = words.replace('µ', "u");
    }
    page.line(0, &words);
    page.text
}

/// Renders the tree of the spans that decided, without colours; empty if none is known.
pub(crate) fn drawn_tree(outcome: &Outcome) -> String {
    let mut page = Page::new(Signs::Drawn, Colour::Never);
    tree::lines(&mut page, 0, outcome);
    page.text
}

/// The style in which outcomes are written.
#[derive(Clone, Copy)]
enum Look {
    Pretty(Colour),
    Plain,
}

impl Look {
    fn page(self) -> Page {
        match self {
            Self::Pretty(colour) => Page::new(Signs::Drawn, colour),
            Self::Plain => Page::new(Signs::Words, Colour::Never),
        }
    }
}

fn alone(outcome: &Outcome, look: Look) -> String {
    let mut page = look.page();
    write(&mut page, outcome);
    page.text
}

fn write(page: &mut Page, outcome: &Outcome) {
    head(page, outcome);
    // Only the line of a test starts at the very left.
    page.margin = 2;
    answer(page, outcome);
    settlement(page, outcome);
    ids(page, outcome);
    reasons(page, &whys(outcome));
    specs::specs(page, outcome);
    specs::claims(page, outcome);
    tree::section(page, outcome);
    analysis::section(page, outcome.analysis.as_ref());
    specs::what_holds(page, outcome);
    outputs(page, &outcome.judgement.outputs);
}

fn head(page: &mut Page, outcome: &Outcome) {
    let mark = match page.signs {
        Signs::Drawn => format!("{} ", page.mark(outcome.verdict)),
        Signs::Words => String::new(),
    };
    let verdict = page.paint(verdict_paint(outcome.verdict), outcome.verdict.as_str());
    let name = page.paint(Paint::Strong, &shown(&outcome.test, NAME_CHARS_MAX));
    let mut line = format!("{mark}{verdict}: {name}");
    if let Some(nanos) = elapsed_ns(std::slice::from_ref(outcome)) {
        line.push_str(&format!(" ({})", page.duration(nanos)));
    }
    if outcome.is_flaky() {
        line.push_str(&format!(", flaky: passed at try {}", outcome.earlier.len() + 1));
    }
    page.line(0, &line);
}

fn answer(page: &mut Page, outcome: &Outcome) {
    if let Some(status) = outcome.answer.as_ref().and_then(Answer::status) {
        let time = page.duration(status.duration_ns);
        let words = if status.is_program { "ended: exit code" } else { "answered: status" };
        page.line(0, &format!("trigger {words} {} in {time}", status_words(&status)));
    }
    match &outcome.answer {
        // Without a run there is no trigger: the trace was recorded.
        None if outcome.run_id.is_none() => {}
        None => page.line(0, "trigger not fired"),
        Some(Answer::Response(_) | Answer::Exit(_) | Answer::Reply(_)) => {}
        Some(Answer::NotFired) => page.line(0, "trigger not fired: the trace is an external one"),
        Some(Answer::NoAnswer(no_answer)) => {
            let kind = match no_answer.kind {
                NoAnswerKind::Invalid => "request cannot be sent",
                NoAnswerKind::Refused => "nobody listens",
                NoAnswerKind::Connection => "connection broke",
                NoAnswerKind::Dns => "name without address",
                NoAnswerKind::Tls => "no TLS session",
                NoAnswerKind::Timeout => "timeout",
                NoAnswerKind::Redirects => "too many redirects",
                NoAnswerKind::Killed => "command killed",
                NoAnswerKind::TooLarge => "answer too large",
                NoAnswerKind::Unknown => "outcome unknown",
            };
            let message = &no_answer.message;
            if outcome.reasons.iter().any(|reason| reason.contains(message)) {
                page.line(0, &format!("trigger not answered: {kind}"));
            } else {
                page.prose(0, &format!("trigger not answered ({kind}): "), message);
            }
        }
    }
}

fn settlement(page: &mut Page, outcome: &Outcome) {
    let Some(settlement) = &outcome.settlement else {
        if outcome.answer.is_some() {
            page.line(0, "trace not collected: the test requires none");
        }
        return;
    };
    let spans = counted(settlement.spans, "span");
    if settlement.is_whole() {
        let processes = match settlement.processes.len() {
            0 | 1 => String::new(),
            number => format!(" of {number} processes"),
        };
        page.line(0, &format!("trace complete: {spans}{processes}{}", quiet(page, settlement)));
    } else {
        let whys: Vec<String> = settlement.unsettled.iter().map(unsettled).collect();
        let waited = match settlement.waited_ns {
            0 => String::new(),
            nanos => format!(" in {}", page.duration(nanos)),
        };
        page.prose(0, "trace incomplete: ", &format!("{} ({spans}{waited})", whys.join("; ")));
    }
}

/// Returns how long no span arrived; a recorded trace had no waiting time.
fn quiet(page: &Page, settlement: &Settlement) -> String {
    match settlement.quiet_ns {
        _ if settlement.drained => ", all that the system had was sent".to_owned(),
        0 => String::new(),
        nanos => {
            let why = unknown(settlement).unwrap_or_default();
            format!(", quiet for {}{why}", page.duration(nanos))
        }
    }
}

fn unsettled(why: &UnsettledReason) -> String {
    let words = match why {
        UnsettledReason::NoTelemetry => "no span of the system came",
        UnsettledReason::NotAnswered => "the trigger has no answer",
        UnsettledReason::NotQuiet => "spans were still arriving",
        UnsettledReason::NotWaited => {
            "the spans that arrived decide everything, further spans were not waited for"
        }
        UnsettledReason::TooLarge => "it is larger than a run may keep",
        UnsettledReason::SpansLost => "spans may have been lost",
        UnsettledReason::Partial => "it was recorded in part",
        UnsettledReason::NotSampled => "the system does not sample it",
        UnsettledReason::Sampled(span) => {
            return format!("the span [{span}] states that only a share of spans is kept");
        }
        UnsettledReason::ContextLost(calls) => {
            let number = counted(calls.len() as u64, "call");
            return format!("{number} answered in a trace of its own {}", some_ids(calls));
        }
        UnsettledReason::StoreUnread(gap) => {
            return format!("the trace store `{}` could not be read: {}", gap.store, gap.message);
        }
        UnsettledReason::StorePartial(gap) => {
            return format!("the trace store `{}` has only a part: {}", gap.store, gap.message);
        }
        UnsettledReason::Unproved(reason) => return format!("not all spans are known: {reason}"),
        UnsettledReason::ExpectedAbsent(expected) => {
            return format!("`{}` was expected and did not come", expected.join("`, `"));
        }
        UnsettledReason::OtherServers(servers) => {
            return format!("spans could also be received by {}", some_names(servers));
        }
        UnsettledReason::EdgesOpen(calls) => {
            let number = counted(calls.len() as u64, "call");
            return format!("{number} without the other side {}", some_ids(calls));
        }
        UnsettledReason::ParentsAbsent(orphans) => {
            let number = counted(orphans.len() as u64, "span");
            return format!("{number} without a parent that is named {}", some_ids(orphans));
        }
    };
    words.to_owned()
}

fn some_names(names: &[String]) -> String {
    let named: Vec<String> = names.iter().take(IDS_MAX).map(|name| format!("`{name}`")).collect();
    let more = if names.len() > IDS_MAX { ", …" } else { "" };
    format!("{}{more}", named.join(", "))
}

fn some_ids(spans: &[SpanId]) -> String {
    let named: Vec<String> = spans.iter().take(IDS_MAX).map(ToString::to_string).collect();
    let more = if spans.len() > IDS_MAX { ", …" } else { "" };
    format!("[{}{more}]", named.join(", "))
}

fn ids(page: &mut Page, outcome: &Outcome) {
    let run = outcome.run_id.map(|id| format!("run {id}"));
    let trace = outcome.trace_id.map(|id| format!("trace {id}"));
    let ids: Vec<String> = run.into_iter().chain(trace).collect();
    if !ids.is_empty() {
        let line = page.paint(Paint::Faint, &ids.join(", "));
        page.line(0, &line);
    }
}

fn reasons(page: &mut Page, reasons: &[String]) {
    if reasons.is_empty() {
        return;
    }
    page.gap();
    page.line(0, "why, and what to do");
    let bullet = match page.signs {
        Signs::Drawn => "• ",
        Signs::Words => "- ",
    };
    for reason in reasons {
        page.prose(2, bullet, reason);
    }
}

fn outputs(page: &mut Page, outputs: &[OutputValue]) {
    if outputs.is_empty() {
        return;
    }
    page.gap();
    page.line(0, "outputs");
    let names: Vec<String> =
        outputs.iter().map(|output| shown(&output.name, NAME_CHARS_MAX)).collect();
    let width = columns(names.iter().map(String::as_str));
    for (output, name) in outputs.iter().zip(&names) {
        let value = match (&output.value, &output.reason) {
            (Some(value), _) => format!("= {}", shown(value, VALUE_CHARS_MAX)),
            (None, reason) => {
                let mark = page.mark(Verdict::Inconclusive);
                let reason = reason.as_deref().map(|reason| shown(reason, VALUE_CHARS_MAX));
                let reason = reason.map(|reason| format!(": {reason}")).unwrap_or_default();
                format!("{mark} no value{reason}")
            }
        };
        page.line(2, &format!("{name:<width$} {value}"));
    }
}
