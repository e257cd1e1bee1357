//! The tree of the spans that decided.
//!
//! Deliberately absent: the rest of the trace. The judge lists the spans that the evidence names and their ancestors; a
//! span beside them has no influence on the verdict.

use std::collections::BTreeMap;

use model::{Outcome, SpanId, TreeSpan, Verdict};

use super::page::{GAP, Page, Paint, Signs, columns};
use crate::{points::checks, text::shown, totals::counted};

/// The upper bound for rendered spans.
const SPANS_MAX: usize = 40;
/// The column at which names are truncated.
const NAME_COLUMN: usize = 56;
/// The characters of a name that are shown at any depth.
const NAME_CHARS_MIN: usize = 16;
/// The upper bound for a service name, in characters.
const SERVICE_CHARS_MAX: usize = 24;
/// The upper bound for an assertion or a claim behind a span that breaks it, in characters.
const NOTE_CHARS_MAX: usize = 80;

/// The assertions and claims on a span that do not hold.
struct Mark {
    verdict: Verdict,
    /// The title of the first one.
    title: String,
    /// The number of further ones.
    more: u64,
}

type Marks = BTreeMap<SpanId, Mark>;

/// A span with its indentation and tree lines.
struct Row<'a> {
    span: &'a TreeSpan,
    mark: Option<&'a Mark>,
    level: usize,
    lead: String,
}

pub(super) fn section(page: &mut Page, outcome: &Outcome) {
    if !marks(outcome).is_empty() && !outcome.judgement.tree.is_empty() {
        page.gap();
        page.line(0, "spans that decided");
        lines(page, 2, outcome);
    }
}

/// Writes the tree, if a span of it decided a verdict.
pub(super) fn lines(page: &mut Page, indent: usize, outcome: &Outcome) {
    let tree = &outcome.judgement.tree;
    let marks = marks(outcome);
    if marks.is_empty() {
        return;
    }
    let listed = listed(tree, &marks);
    let rows = rows(&listed, &marks);
    match page.signs {
        Signs::Drawn => drawn(page, indent, &rows),
        Signs::Words => worded(page, indent, &rows),
    }
    match (tree.len() - listed.len()) as u64 {
        0 => {}
        more => page.line(indent, &format!("and {}", counted(more, "more span"))),
    }
}

fn marks(outcome: &Outcome) -> Marks {
    let mut marks = Marks::new();
    for point in checks(outcome).iter().filter(|point| point.verdict != Verdict::Passed) {
        let decisive = point.spans.iter().filter(|span| span.verdict != Verdict::Passed);
        for (id, verdict) in decisive.filter_map(|span| Some((span.span_id?, span.verdict))) {
            marks
                .entry(id)
                .and_modify(|mark| {
                    mark.verdict = Verdict::over([mark.verdict, verdict]);
                    mark.more += 1;
                })
                .or_insert_with(|| Mark { verdict, title: point.title(), more: 0 });
        }
    }
    marks
}

/// Returns the spans to render: beyond the upper bound, only those that decided and their ancestors.
fn listed<'a>(tree: &'a [TreeSpan], marks: &Marks) -> Vec<&'a TreeSpan> {
    if tree.len() <= SPANS_MAX {
        return tree.iter().collect();
    }
    let mut kept = Vec::new();
    // The ancestors of the current span, and whether they are kept already.
    let mut above: Vec<(&TreeSpan, bool)> = Vec::new();
    for span in tree {
        while above.last().is_some_and(|(last, _)| last.depth >= span.depth) {
            above.pop();
        }
        above.push((span, false));
        if marks.contains_key(&span.span_id) {
            for (span, is_kept) in above.iter_mut().filter(|(_, is_kept)| !is_kept) {
                kept.push(*span);
                *is_kept = true;
            }
        }
        if kept.len() >= SPANS_MAX {
            break;
        }
    }
    kept.truncate(SPANS_MAX);
    kept
}

/// Returns the spans with levels without gaps, and with the tree lines before each span.
fn rows<'a>(listed: &[&'a TreeSpan], marks: &'a Marks) -> Vec<Row<'a>> {
    let mut above: Vec<u32> = Vec::new();
    let mut rows: Vec<Row<'a>> = Vec::new();
    for &span in listed {
        while above.last().is_some_and(|depth| *depth >= span.depth) {
            above.pop();
        }
        let mark = marks.get(&span.span_id);
        rows.push(Row { span, mark, level: above.len(), lead: String::new() });
        above.push(span.depth);
    }
    // In reverse order, since only then it is known whether another span of the level follows.
    let mut follows: Vec<bool> = Vec::new();
    for row in rows.iter_mut().rev() {
        follows.resize(row.level + 1, false);
        for passing in follows.iter().take(row.level).skip(1) {
            row.lead.push_str(if *passing { "│  " } else { "   " });
        }
        if row.level > 0 {
            row.lead.push_str(if follows[row.level] { "├─ " } else { "└─ " });
        }
        follows[row.level] = true;
    }
    rows
}

fn drawn(page: &mut Page, indent: usize, rows: &[Row<'_>]) {
    let names: Vec<String> = rows.iter().map(|row| name(page, row)).collect();
    let services: Vec<String> = rows.iter().map(|row| service(row.span)).collect();
    let times: Vec<String> = rows.iter().map(|row| time(page, row.span)).collect();
    let errors: Vec<&str> = rows.iter().map(|row| error(row.span)).collect();
    let widths = rows.iter().zip(&names).map(|(row, name)| {
        let mark = row.mark.map_or(0, |mark| page.bare_mark(mark.verdict).chars().count() + 1);
        row.lead.chars().count() + mark + name.chars().count()
    });
    let widths: Vec<usize> = widths.collect();
    let name_width = widths.iter().copied().max().unwrap_or_default();
    let service_width = columns(services.iter().map(String::as_str));
    let time_width = columns(times.iter().map(String::as_str));
    let error_width = columns(errors.iter().copied());
    for (at, row) in rows.iter().enumerate() {
        let mut line = page.paint(Paint::Faint, &row.lead);
        if let Some(mark) = row.mark {
            line.push_str(&format!("{} ", page.mark(mark.verdict)));
        }
        line.push_str(&names[at]);
        line.push_str(&" ".repeat(name_width - widths[at]));
        if service_width > 0 {
            line.push_str(&format!("{GAP}{:<service_width$}", services[at]));
        }
        line.push_str(&format!("{GAP}{:>time_width$}", times[at]));
        if error_width > 0 {
            line.push_str(&format!("{GAP}{:<error_width$}", errors[at]));
        }
        if let Some(note) = note(row) {
            line.push_str(&format!("{GAP}← {note}"));
        }
        page.line(indent, &line);
    }
}

fn worded(page: &mut Page, indent: usize, rows: &[Row<'_>]) {
    for row in rows {
        let mark = row.mark.map(|mark| format!("{} ", page.mark(mark.verdict)));
        let parts = [name(page, row), service(row.span), time(page, row.span)];
        let parts = parts.iter().map(String::as_str).chain([error(row.span)]);
        let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
        let note = note(row).map(|note| format!("; in {note}")).unwrap_or_default();
        let line = format!("{}{}{note}", mark.unwrap_or_default(), parts.join(", "));
        page.line(indent + 2 * row.level, &line);
    }
}

/// Returns the name, truncated at the name column.
fn name(page: &Page, row: &Row<'_>) -> String {
    let lead = match page.signs {
        Signs::Drawn => row.lead.chars().count(),
        Signs::Words => 2 * row.level,
    };
    let chars_max = NAME_COLUMN.saturating_sub(lead).max(NAME_CHARS_MIN);
    match shown(&row.span.name, chars_max) {
        none if none.is_empty() => "(no name)".to_owned(),
        name => name,
    }
}

fn service(span: &TreeSpan) -> String {
    span.service.as_deref().map(|name| shown(name, SERVICE_CHARS_MAX)).unwrap_or_default()
}

fn time(page: &Page, span: &TreeSpan) -> String {
    span.duration_ns.map(|nanos| page.duration(nanos)).unwrap_or_default()
}

fn error(span: &TreeSpan) -> &'static str {
    if span.is_error { "error" } else { "" }
}

/// Returns the assertion or claim that the span breaks.
fn note(row: &Row<'_>) -> Option<String> {
    let mark = row.mark?;
    let title = shown(&mark.title, NOTE_CHARS_MAX);
    Some(match mark.more {
        0 => title,
        more => format!("{title}, and {more} more"),
    })
}
