//! Outcomes as annotations of a GitHub workflow, at the lines of the tests.
//!
//! Everything that did not pass is an `error`: an inconclusive result must not look like a success, and the job is red
//! for both. GitHub shows only the first ten of a step, so failed results come before inconclusive ones. The analyzer's
//! findings have no line in a file and are one `warning` for each test.
//!
//! Deliberately absent: an annotation for results that passed. The totals are a line of the log, below the annotations.

use model::{Outcome, Verdict};

use crate::{
    analysis::{broken, score},
    format::{Format, TEXT},
    points::{NAME_CHARS_MAX, PATH_CHARS_MAX, Point, points},
    text::shown,
    totals::Totals,
};

/// Annotations of a GitHub workflow.
pub(crate) const GITHUB: Format = Format::new("github", TEXT, |input| github(input.outcomes));

/// Writes the annotations of all outcomes, one per line, and the totals.
fn github(outcomes: &[Outcome]) -> String {
    let mut text = String::new();
    for wanted in [Verdict::Failed, Verdict::Inconclusive] {
        for outcome in outcomes {
            for point in points(outcome).iter().filter(|point| point.verdict == wanted) {
                text.push_str(&error(outcome, point));
            }
        }
    }
    for outcome in outcomes {
        text.push_str(&warning(outcome).unwrap_or_default());
    }
    text.push_str(&Totals::of(outcomes).words(|_, count| count.to_owned()));
    text.push('\n');
    text
}

fn error(outcome: &Outcome, point: &Point<'_>) -> String {
    let mut properties = Vec::new();
    if let Some(place) = point.place {
        properties.push(("file", shown(&place.file, PATH_CHARS_MAX)));
        properties.push(("line", place.line.to_string()));
        properties.push(("col", place.column.to_string()));
    }
    let test = shown(&outcome.test, NAME_CHARS_MAX);
    properties.push(("title", format!("{}: {test}", point.verdict.as_str())));
    let mut lines = vec![point.title()];
    lines.extend(point.reason.clone());
    lines.extend(point.found());
    command("error", &properties, &lines)
}

fn warning(outcome: &Outcome) -> Option<String> {
    let analysis = outcome.analysis.as_ref()?;
    let broken = broken(analysis);
    if broken.is_empty() {
        return None;
    }
    let title = format!("analyzer: {}", shown(&outcome.test, NAME_CHARS_MAX));
    let lines: Vec<String> = [score(analysis)].into_iter().chain(broken).collect();
    Some(command("warning", &[("title", title)], &lines))
}

fn command(name: &str, properties: &[(&str, String)], lines: &[String]) -> String {
    let properties: Vec<String> =
        properties.iter().map(|(key, value)| format!("{key}={}", property(value))).collect();
    format!("::{name} {}::{}\n", properties.join(","), data(&lines.join("\n")))
}

/// Escapes a text for the data of a command, after the second `::`.
fn data(text: &str) -> String {
    text.replace('%', "%25").replace('\r', "%0D").replace('\n', "%0A")
}

/// Escapes a text for the value of a property.
fn property(text: &str) -> String {
    data(text).replace(':', "%3A").replace(',', "%2C")
}
