//! An outcome for a person at a terminal.
//!
//! What passed is told in a line; what did not, with its place and the evidence. Marks and words say everything, colours
//! only help the eye. Prose is wrapped; values are not, but long ones are shortened.
//!
//! Deliberately absent: the terminal. Whether it takes colours is decided by the caller, and its width is not asked for,
//! so that the same outcome gives the same text everywhere.

use model::{
    Answer, AssertionJudgement, NoAnswerKind, Outcome, OutputValue, Settlement, SpanEvidence,
    SpecJudgement, Unsettled, Verdict,
};
use source::Colour;

use crate::text::{duration, shown, unfolded, wrapped};

/// Where prose is wrapped.
const PROSE_COLUMNS: usize = 100;
/// How much of a sentence is shown.
const PROSE_CHARS_MAX: usize = 600;
/// How much of a selector, an assertion, a value or a comparison is shown.
const VALUE_CHARS_MAX: usize = 240;
/// How much of a name or a path is shown.
const NAME_CHARS_MAX: usize = 100;
/// How much of a span's name is shown: what was found stands behind it, and the longest name pushes it away.
const SPAN_NAME_CHARS_MAX: usize = 48;
/// How many spans of an assertion are listed.
const SPANS_MAX: usize = 10;
/// How many spans with absent parents are named.
const ORPHANS_MAX: usize = 3;
/// A span's id as text, for spans that have none beside those that do.
const SPAN_ID_COLUMNS: usize = 16;

/// What stands between two columns.
const GAP: &str = "  ";

/// The text so far, and how it is painted.
struct Page {
    text: String,
    colour: Colour,
}

#[derive(Clone, Copy)]
enum Paint {
    Good,
    Bad,
    Doubt,
    Strong,
    Faint,
}

/// Writes an outcome in lines, the last one ended too.
///
/// ```text
/// ✘ failed: the cart answers (1.24 s)
///   trigger answered: status 500 in 12.3 ms
///   trace whole: 7 spans, quiet for 200 ms
///
/// ✘ status: span[name="GET /cart"] (2 spans)
///   ✔ attr:http.method = "GET"
///   ✘ attr:http.status_code = 200
///     cart.yaml:12:15
///     ✘ cdcdcdcdcdcdcdcd  GET /cart  500 = 200
///     and 1 more span
/// ```
pub fn pretty(outcome: &Outcome, colour: Colour) -> String {
    let mut page = Page { text: String::new(), colour };
    head(&mut page, outcome);
    answer(&mut page, outcome.answer.as_ref());
    settlement(&mut page, outcome);
    ids(&mut page, outcome);
    for judged in &outcome.judgement.specs {
        page.gap();
        spec(&mut page, judged, outcome.settlement.as_ref());
    }
    outputs(&mut page, &outcome.judgement.outputs);
    reasons(&mut page, &outcome.reasons);
    page.text
}

impl Page {
    fn line(&mut self, indent: usize, line: &str) {
        self.text.push_str(&" ".repeat(indent));
        self.text.push_str(line);
        self.text.truncate(self.text.trim_end_matches(' ').len());
        self.text.push('\n');
    }

    fn gap(&mut self) {
        self.text.push('\n');
    }

    /// A sentence behind a `lead`, the lines after the first one indented further.
    fn prose(&mut self, indent: usize, lead: &str, sentence: &str) {
        let line = shown(sentence, PROSE_CHARS_MAX);
        let columns = PROSE_COLUMNS - indent - 2;
        for (at, part) in wrapped(&format!("{lead}{line}"), columns).iter().enumerate() {
            self.line(if at == 0 { indent } else { indent + 2 }, part);
        }
    }

    fn paint(&self, paint: Paint, text: &str) -> String {
        let code = match paint {
            Paint::Good => "32",
            Paint::Bad => "31",
            Paint::Doubt => "33",
            Paint::Strong => "1",
            Paint::Faint => "2",
        };
        match self.colour {
            Colour::Always if !text.is_empty() => format!("\u{1b}[{code}m{text}\u{1b}[0m"),
            Colour::Always | Colour::Never => text.to_owned(),
        }
    }

    fn mark(&self, verdict: Verdict) -> String {
        let mark = match verdict {
            Verdict::Passed => "✔",
            Verdict::Failed => "✘",
            Verdict::Inconclusive => "?",
        };
        self.paint(verdict_paint(verdict), mark)
    }
}

fn verdict_paint(verdict: Verdict) -> Paint {
    match verdict {
        Verdict::Passed => Paint::Good,
        Verdict::Failed => Paint::Bad,
        Verdict::Inconclusive => Paint::Doubt,
    }
}

fn head(page: &mut Page, outcome: &Outcome) {
    let verdict = page.paint(verdict_paint(outcome.verdict), outcome.verdict.as_str());
    let name = page.paint(Paint::Strong, &shown(&outcome.test, NAME_CHARS_MAX));
    let mut line = format!("{} {verdict}: {name}", page.mark(outcome.verdict));
    if let Some(nanos) = total_ns(outcome) {
        line.push_str(&format!(" ({})", duration(nanos)));
    }
    page.line(0, &line);
}

/// From the begin of the first step to the end of the last one.
fn total_ns(outcome: &Outcome) -> Option<u64> {
    let began = outcome.steps.iter().map(|step| step.began).min()?;
    let ended = outcome.steps.iter().map(|step| step.ended).max()?;
    u64::try_from(ended.since(began).as_nanos()).ok()
}

fn answer(page: &mut Page, answer: Option<&Answer>) {
    match answer {
        None => page.line(2, "trigger not fired"),
        Some(Answer::Response(response)) => {
            let time = duration(response.duration_ns);
            page.line(2, &format!("trigger answered: status {} in {time}", response.status));
        }
        Some(Answer::NoAnswer(no_answer)) => {
            let kind = match no_answer.kind {
                NoAnswerKind::Invalid => "request cannot be sent",
                NoAnswerKind::Refused => "nobody listens",
                NoAnswerKind::Connection => "connection broke",
                NoAnswerKind::Dns => "name without address",
                NoAnswerKind::Tls => "no TLS session",
                NoAnswerKind::Timeout => "timeout",
                NoAnswerKind::TooLarge => "answer too large",
                NoAnswerKind::Unknown => "outcome unknown",
            };
            page.prose(2, &format!("trigger not answered ({kind}): "), &no_answer.message);
        }
    }
}

fn settlement(page: &mut Page, outcome: &Outcome) {
    let Some(settlement) = &outcome.settlement else {
        if outcome.answer.is_some() {
            page.line(2, "trace not collected: the test asks for none");
        }
        return;
    };
    let spans = span_count(settlement.spans);
    if settlement.is_whole() {
        let quiet = duration(settlement.quiet_ns);
        page.line(2, &format!("trace whole: {spans}, quiet for {quiet}"));
    } else {
        let whys: Vec<String> = settlement.unsettled.iter().map(unsettled).collect();
        let waited = duration(settlement.waited_ns);
        page.prose(2, "trace not whole: ", &format!("{} ({spans} in {waited})", whys.join("; ")));
    }
}

fn unsettled(why: &Unsettled) -> String {
    let words = match why {
        Unsettled::NoTelemetry => "no span of the system came",
        Unsettled::NotAnswered => "the trigger has no answer",
        Unsettled::NotQuiet => "spans were still arriving",
        Unsettled::TooLarge => "it is larger than a run may keep",
        Unsettled::SpansLost => "spans may have been lost",
        Unsettled::Partial => "it was recorded in part",
        Unsettled::ParentsAbsent(orphans) => {
            let named: Vec<String> =
                orphans.iter().take(ORPHANS_MAX).map(ToString::to_string).collect();
            let more = if orphans.len() > ORPHANS_MAX { ", …" } else { "" };
            let number = span_count(orphans.len() as u64);
            return format!("{number} without their parents [{}{more}]", named.join(", "));
        }
    };
    words.to_owned()
}

fn ids(page: &mut Page, outcome: &Outcome) {
    let run = outcome.run_id.map(|id| format!("run {id}"));
    let trace = outcome.trace_id.map(|id| format!("trace {id}"));
    let ids: Vec<String> = run.into_iter().chain(trace).collect();
    let line = page.paint(Paint::Faint, &ids.join(", "));
    page.line(2, &line);
}

fn spec(page: &mut Page, spec: &SpecJudgement, settlement: Option<&Settlement>) {
    let selector = match unfolded(&spec.selector, VALUE_CHARS_MAX) {
        none if none.is_empty() => "every span".to_owned(),
        selector => selector,
    };
    let title = match &spec.name {
        Some(name) => {
            let name = page.paint(Paint::Strong, &shown(name, NAME_CHARS_MAX));
            format!("{name}: {selector}")
        }
        None => selector,
    };
    // Without a collected trace the number of matches says nothing.
    let matched = match settlement {
        Some(_) => page.paint(Paint::Faint, &format!(" ({})", span_count(spec.matched))),
        None => String::new(),
    };
    page.line(0, &format!("{} {title}{matched}", page.mark(spec.verdict)));
    for judged in &spec.assertions {
        assertion(page, judged);
    }
}

fn assertion(page: &mut Page, assertion: &AssertionJudgement) {
    let words = unfolded(&assertion.assertion, VALUE_CHARS_MAX);
    page.line(2, &format!("{} {words}", page.mark(assertion.verdict)));
    if assertion.verdict == Verdict::Passed {
        return;
    }
    let place = &assertion.place;
    let file = shown(&place.file, NAME_CHARS_MAX);
    let place = page.paint(Paint::Faint, &format!("{file}:{}:{}", place.line, place.column));
    page.line(4, &place);
    if let Some(reason) = &assertion.reason {
        page.prose(4, "", reason);
    }
    let listed = &assertion.spans[..assertion.spans.len().min(SPANS_MAX)];
    spans(page, listed);
    let left_out = (assertion.spans.len() - listed.len()) as u64;
    match assertion.more_spans.saturating_add(left_out) {
        0 => {}
        1 => page.line(4, "and 1 more span"),
        more => page.line(4, &format!("and {more} more spans")),
    }
}

/// The spans in columns: mark, id, name, and what was found there.
fn spans(page: &mut Page, spans: &[SpanEvidence]) {
    let names: Vec<String> =
        spans.iter().map(|span| shown(&span.name, SPAN_NAME_CHARS_MAX)).collect();
    let width = columns(&names);
    let some_have_ids = spans.iter().any(|span| span.span_id.is_some());
    for (span, name) in spans.iter().zip(&names) {
        let mut line = format!("{} ", page.mark(span.verdict));
        if some_have_ids {
            match span.span_id {
                Some(id) => line.push_str(&page.paint(Paint::Faint, &id.to_string())),
                None => line.push_str(&" ".repeat(SPAN_ID_COLUMNS)),
            }
            line.push_str(GAP);
        }
        if width > 0 {
            line.push_str(&format!("{name:<width$}{GAP}"));
        }
        line.push_str(&shown(&span.found, VALUE_CHARS_MAX));
        page.line(4, &line);
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
    let width = columns(&names);
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

fn reasons(page: &mut Page, reasons: &[String]) {
    if reasons.is_empty() {
        return;
    }
    page.gap();
    page.line(0, "why, and what to do");
    for reason in reasons {
        page.prose(2, "• ", reason);
    }
}

fn columns(cells: &[String]) -> usize {
    cells.iter().map(|cell| cell.chars().count()).max().unwrap_or_default()
}

fn span_count(number: u64) -> String {
    match number {
        1 => "1 span".to_owned(),
        number => format!("{number} spans"),
    }
}
