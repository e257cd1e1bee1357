//! Outcomes for a summary or a comment on GitHub.
//!
//! A heading with the totals, a table of the tests, and a section for each that did not pass, the worst first.
//!
//! Below the heading everything is HTML, in blocks without an empty line: Markdown is not parsed there, so only five
//! characters must be escaped. Every text of an untrusted sender is in a `code` or a `pre` element, where GitHub resolves
//! no mention, no reference and no link.
//!
//! Deliberately absent: the checks that passed in a test that did not. The other formats have them.

use model::{Outcome, Verdict};

use crate::{
    analysis::{broken, score},
    format::Format,
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX, Point, VALUE_CHARS_MAX, placed, points, urgency},
    pretty::drawn_tree,
    text::{duration, markup, shown},
    totals::{Totals, counted, elapsed_ns},
    why::whys,
};

/// For the summary of a step and for pull requests on GitHub.
pub(crate) const MARKDOWN: Format = Format {
    accepted_as: &["text/markdown"],
    ..Format::new("markdown", "text/markdown; charset=utf-8", |input| {
        markdown(input.outcomes, SUMMARY_BYTES_MAX)
    })
};

/// The limit of GitHub for the summary of a step: 1 MiB.
pub const SUMMARY_BYTES_MAX: usize = 1024 * 1024;
/// The limit of GitHub for a comment: 65536 characters, counted here as bytes.
pub const COMMENT_BYTES_MAX: usize = 65_536;

/// The upper bound for assertions and claims of a test that are listed.
const POINTS_MAX: usize = 20;
/// The upper bound for reasons of a test that are listed.
const REASONS_MAX: usize = 10;
/// The upper bound for the heading, the frame of the table and the notes on omissions.
const FRAME_BYTES: usize = 1024;

/// Writes all outcomes in at most `bytes_max` bytes, or in the kilobyte that the heading and the notes may take.
///
/// Omits outcomes that do not fit, the least urgent first, and adds a note with their number.
pub fn markdown(outcomes: &[Outcome], bytes_max: usize) -> String {
    let totals = Totals::of(outcomes).words(|_, count| count.to_owned());
    let mut text = format!("### Qualitytrace: {totals}\n");
    if outcomes.is_empty() {
        return text;
    }
    let mut urgent: Vec<&Outcome> = outcomes.iter().collect();
    urgent.sort_by_key(|outcome| urgency(outcome.verdict));
    let room = bytes_max.saturating_sub(FRAME_BYTES);
    text.push_str("\n<table>\n<tr><th></th><th>test</th><th>holds</th><th>time</th></tr>\n");
    // The sections get at least half of the space.
    let rows = fitting(&urgent, row, room / 2);
    text.push_str(&rows.text);
    text.push_str("</table>\n");
    if rows.left_out > 0 {
        let tests = counted(rows.left_out as u64, "more test");
        text.push_str(&format!("<p>There is no room here for {tests}.</p>\n"));
    }
    urgent.retain(|outcome| outcome.verdict != Verdict::Passed);
    let sections = fitting(&urgent, section, room - rows.text.len());
    text.push_str(&sections.text);
    if sections.left_out > 0 {
        let tests = counted(sections.left_out as u64, "more test");
        text.push_str(&format!(
            "\n<p>There is no room here for the evidence of {tests} that did not pass.</p>\n"
        ));
    }
    text
}

/// The text that fits, and the number of omitted outcomes.
struct FittedText {
    text: String,
    left_out: usize,
}

/// Writes the first of these outcomes, as many as fit.
fn fitting(outcomes: &[&Outcome], write: fn(&Outcome) -> String, room: usize) -> FittedText {
    let mut text = String::new();
    for (at, outcome) in outcomes.iter().enumerate() {
        let next = write(outcome);
        if text.len() + next.len() > room {
            return FittedText { text, left_out: outcomes.len() - at };
        }
        text.push_str(&next);
    }
    FittedText { text, left_out: 0 }
}

fn row(outcome: &Outcome) -> String {
    let points = points(outcome);
    let hold = points.iter().filter(|point| point.verdict == Verdict::Passed).count();
    let time = elapsed_ns(std::slice::from_ref(outcome)).map(duration).unwrap_or_default();
    format!(
        "<tr><td>{} {}</td><td>{}</td><td>{hold} of {}</td><td>{time}</td></tr>\n",
        mark(outcome.verdict),
        outcome.verdict.as_str(),
        code(&name(outcome)),
        points.len(),
    )
}

fn section(outcome: &Outcome) -> String {
    let verdict = outcome.verdict.as_str();
    let name = code(&name(outcome));
    let mut html = format!(
        "\n<details open=\"\">\n<summary>{} {verdict}: {name}</summary>\n",
        mark(outcome.verdict)
    );
    let whys = whys(outcome);
    let whys = whys.iter().take(REASONS_MAX);
    html.push_str(&list(whys.map(|why| code(&shown(why, PROSE_CHARS_MAX)))));
    let points = points(outcome);
    let open: Vec<&Point<'_>> =
        points.iter().filter(|point| point.verdict != Verdict::Passed).collect();
    for point in open.iter().take(POINTS_MAX) {
        // The reasons of the run itself are listed above.
        if point.place.is_some() {
            html.push_str(&evidence(point));
        }
    }
    if open.len() > POINTS_MAX {
        html.push_str(&format!("<p>and {} more that do not hold</p>\n", open.len() - POINTS_MAX));
    }
    let tree = drawn_tree(outcome);
    if !tree.is_empty() {
        html.push_str(&format!("<pre>\n{}</pre>\n", markup(&tree)));
    }
    if let Some(analysis) = &outcome.analysis {
        html.push_str(&format!("<p>analyzer: {}</p>\n", score(analysis)));
        html.push_str(&list(broken(analysis).iter().map(|rule| code(rule))));
    }
    let run = outcome.run_id.map(|id| format!("run <code>{id}</code>"));
    let trace = outcome.trace_id.map(|id| format!("trace <code>{id}</code>"));
    let ids: Vec<String> = run.into_iter().chain(trace).collect();
    if !ids.is_empty() {
        html.push_str(&format!("<p>{}</p>\n", ids.join(", ")));
    }
    html.push_str("</details>\n");
    html
}

/// Returns the expected condition, its location, the reason why it does not hold, and the found values.
fn evidence(point: &Point<'_>) -> String {
    let mut html = format!("<p>{} {}", mark(point.verdict), code(&point.title()));
    let place = point.place.map(placed);
    for line in place.iter().chain(&point.reason) {
        html.push_str(&format!("<br/>{}", code(line)));
    }
    html.push_str("</p>\n");
    if !point.listed().is_empty() {
        html.push_str("<table>\n<tr><th></th><th>span</th><th>found</th></tr>\n");
        for span in point.listed() {
            html.push_str(&format!(
                "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                mark(span.verdict),
                code(&shown(&span.name, NAME_CHARS_MAX)),
                code(&shown(&span.found, VALUE_CHARS_MAX)),
            ));
        }
        html.push_str("</table>\n");
    }
    if let Some(more) = point.unlisted() {
        html.push_str(&format!("<p>{more}</p>\n"));
    }
    html
}

fn list(items: impl Iterator<Item = String>) -> String {
    let items: String = items.map(|item| format!("<li>{item}</li>\n")).collect();
    if items.is_empty() { items } else { format!("<ul>\n{items}</ul>\n") }
}

fn mark(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Passed => "✔",
        Verdict::Failed => "✘",
        Verdict::Inconclusive => "?",
    }
}

fn name(outcome: &Outcome) -> String {
    match shown(&outcome.test, NAME_CHARS_MAX) {
        none if none.is_empty() => "(no name)".to_owned(),
        name => name,
    }
}

/// Escapes an untrusted text and wraps it in a `code` element.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<code>{}</code>", markup(text)) }
}
