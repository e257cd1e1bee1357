//! Outcomes for a summary or a comment on GitHub.
//!
//! A heading with the totals, a table of the tests, and a section for each that did not pass, the worst first.
//!
//! Below the heading everything is HTML, a block without an empty line: there Markdown means nothing, so that five
//! characters are all that must be escaped. And whatever a stranger wrote stands in a `code` or a `pre`, where GitHub
//! looks for no mention, no reference and no address.
//!
//! Deliberately absent: what passed in a test that did not. It is in the other forms.

use model::{Outcome, Verdict};

use crate::{
    analysis::{broken, score},
    points::{NAME_CHARS_MAX, PROSE_CHARS_MAX, Point, VALUE_CHARS_MAX, placed, points, urgency},
    pretty::drawn_tree,
    text::{duration, markup, shown},
    totals::{Totals, counted, elapsed_ns},
    why::whys,
};

/// What GitHub takes as the summary of a step: 1 MiB.
pub const SUMMARY_BYTES_MAX: usize = 1024 * 1024;
/// What GitHub takes as a comment: as many characters, which may be bytes each.
pub const COMMENT_BYTES_MAX: usize = 65_536;

/// How many assertions and claims of a test are told.
const POINTS_MAX: usize = 20;
/// How many reasons of a test are told.
const REASONS_MAX: usize = 10;
/// What the heading, the frame of the table and the remarks on what is left out may take.
const FRAME_BYTES: usize = 1024;

/// Writes all outcomes in at most `bytes_max` bytes, or in the kilobyte that the heading and the remarks may take.
///
/// What does not fit is left out, the least urgent first, with a remark on how much that is.
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
    // The sections have at least half of the room.
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

/// What has room.
struct FittedText {
    text: String,
    left_out: usize,
}

/// What is written of the first of these, as many as have room.
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
        // The reasons of the run itself stand above.
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

/// What should have held, where it stands, why it does not, and what was found.
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

/// A stranger's text that can be seen and means nothing else.
fn code(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!("<code>{}</code>", markup(text)) }
}
