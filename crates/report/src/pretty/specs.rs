//! The specs and the claims, with the evidence for those that do not hold.

use model::{Outcome, SpanEvidence, SpecJudgement, Verdict};

use super::page::{GAP, Page, Paint, columns};
use crate::{
    points::{
        NAME_CHARS_MAX, Point, VALUE_CHARS_MAX, of_assertion, of_claim, placed, selector, urgency,
    },
    text::{no_command, shown},
    totals::counted,
};

/// The upper bound for a span name, in characters: the found value follows it, and the longest name sets the column.
const SPAN_NAME_CHARS_MAX: usize = 48;
/// The width of a span id, to pad the lines of spans without one.
const SPAN_ID_COLUMNS: usize = 16;

/// Writes the specs: all of them if everything holds, else those that do not.
pub(super) fn specs(page: &mut Page, outcome: &Outcome) {
    let mut specs: Vec<&SpecJudgement> = outcome.judgement.specs.iter().collect();
    specs.retain(|spec| is_shown(outcome, spec.verdict));
    specs.sort_by_key(|spec| urgency(spec.verdict));
    for spec in specs {
        page.gap();
        title(page, 0, outcome, spec);
        for assertion in &spec.assertions {
            let point = of_assertion(spec, assertion);
            check(page, &point.words, &point);
        }
    }
}

/// Writes the claims: all of them if everything holds, else those that do not.
pub(super) fn claims(page: &mut Page, outcome: &Outcome) {
    let mut claims: Vec<Point<'_>> = outcome.judgement.claims.iter().map(of_claim).collect();
    claims.retain(|claim| is_shown(outcome, claim.verdict));
    if claims.is_empty() {
        return;
    }
    claims.sort_by_key(|claim| urgency(claim.verdict));
    page.gap();
    page.line(0, "claims about the whole trace");
    for claim in &claims {
        check(page, &claim_title(page, claim), claim);
    }
}

/// Writes the specs and claims that were not written above, one line each.
pub(super) fn what_holds(page: &mut Page, outcome: &Outcome) {
    let judgement = &outcome.judgement;
    let specs = judgement.specs.iter().filter(|spec| !is_shown(outcome, spec.verdict));
    let specs: Vec<&SpecJudgement> = specs.collect();
    let mut claims: Vec<Point<'_>> = judgement.claims.iter().map(of_claim).collect();
    claims.retain(|claim| !is_shown(outcome, claim.verdict));
    if specs.is_empty() && claims.is_empty() {
        return;
    }
    page.gap();
    page.line(0, "what holds");
    for spec in specs {
        title(page, 2, outcome, spec);
    }
    for claim in &claims {
        check(page, &claim_title(page, claim), claim);
    }
}

/// Whether this verdict is written at the top: a check that holds beside one that does not is written further below.
fn is_shown(outcome: &Outcome, verdict: Verdict) -> bool {
    outcome.verdict == Verdict::Passed || verdict != Verdict::Passed
}

fn claim_title(page: &Page, claim: &Point<'_>) -> String {
    match claim.subject.as_str() {
        "" => claim.words.clone(),
        name => format!("{}: {}", page.paint(Paint::Strong, name), claim.words),
    }
}

/// Writes the line of a spec.
fn title(page: &mut Page, indent: usize, outcome: &Outcome, spec: &SpecJudgement) {
    let selector = selector(spec);
    let title = match &spec.name {
        Some(name) => {
            let name = page.paint(Paint::Strong, &shown(name, NAME_CHARS_MAX));
            format!("{name}: {selector}")
        }
        None => selector,
    };
    // Without a collected trace the number of matches has no meaning.
    let matched = match outcome.settlement {
        Some(_) => page.paint(Paint::Faint, &format!(" ({})", counted(spec.matched, "span"))),
        None => String::new(),
    };
    page.line(indent, &format!("{} {title}{matched}", page.mark(spec.verdict)));
}

/// Writes an assertion or a claim.
fn check(page: &mut Page, title: &str, point: &Point<'_>) {
    page.line(2, &format!("{} {title}", page.mark(point.verdict)));
    if point.verdict == Verdict::Passed {
        return;
    }
    if let Some(place) = point.place {
        let place = page.paint(Paint::Faint, &no_command(&placed(place)));
        page.line(4, &place);
    }
    if let Some(reason) = &point.reason {
        page.prose(4, "", reason);
    }
    spans(page, point.listed());
    if let Some(more) = point.unlisted() {
        page.line(4, &more);
    }
}

/// Writes the spans in columns: mark, id, name, and the found value.
fn spans(page: &mut Page, spans: &[SpanEvidence]) {
    let names: Vec<String> =
        spans.iter().map(|span| shown(&span.name, SPAN_NAME_CHARS_MAX)).collect();
    let width = columns(names.iter().map(String::as_str));
    let mark_width = columns(spans.iter().map(|span| page.bare_mark(span.verdict)));
    let some_have_ids = spans.iter().any(|span| span.span_id.is_some());
    for (span, name) in spans.iter().zip(&names) {
        let mark = page.bare_mark(span.verdict);
        let pad = " ".repeat(mark_width - mark.chars().count() + 1);
        let mut line = format!("{}{pad}", page.mark(span.verdict));
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
