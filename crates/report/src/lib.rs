//! Renders outcomes as text, in formats for people and programs.
//!
//! [`render`] writes a complete report of one or several outcomes. For incremental output, [`part`] writes one outcome as
//! soon as it is available, and [`rest`] writes the remainder after the last outcome.
//!
//! | format | incremental output | reader |
//! | --- | --- | --- |
//! | [`pretty`](fn@pretty) | one test at a time | a person at a terminal |
//! | [`plain`] | one test at a time | logs, screen readers |
//! | [`json`](fn@json) | one line per test | programs that need all fields |
//! | [`ndjson`](fn@ndjson) | the lines of one test at a time | programs that read lines |
//! | [`junit`](fn@junit) | none | Jenkins, GitLab and other readers of JUnit XML |
//! | [`tap`](fn@tap) | none | harnesses of the Test Anything Protocol |
//! | [`markdown`](fn@markdown) | none | summaries and pull requests on GitHub |
//! | [`github`](fn@github) | none | the annotations of a GitHub workflow |
//! | [`html`](fn@html) | none | a person in a browser, with the [`Waterfall`] of each trace |
//!
//! All are pure functions. The values in an outcome come from untrusted senders: a span name, a header, a body may contain
//! anything. So every format escapes control characters, invisible characters, text that a CI pipeline would parse as a
//! command, and the syntax of the format itself.
//!
//! Deliberately absent: the source of the outcome, the destination of the text, and any decision. A report contains the
//! verdict of the outcome and never decides its own.

mod analysis;
mod format;
mod github;
mod html;
mod json;
mod junit;
mod markdown;
mod ndjson;
mod points;
mod pretty;
mod tap;
mod text;
mod totals;
mod why;

use model::Outcome;
use source::Colour;

pub use format::Format;
pub use github::github;
pub use html::{Hide, WATERFALL_SPANS_MAX, Waterfall, html};
pub use json::{SCHEMA_VERSION, json};
pub use junit::junit;
pub use markdown::{COMMENT_BYTES_MAX, SUMMARY_BYTES_MAX, markdown};
pub use ndjson::ndjson;
pub use pretty::{plain, pretty};
pub use tap::tap;
pub use text::{duration, harmless};
pub use why::{overtaken, superseded};

use pretty::Look;

/// Writes a report of these outcomes; every line ends with a line break.
///
/// For several outcomes, `pretty` and `plain` write one line for each that passed, the full text for each other one, and
/// the totals at the end. Only `pretty` uses colours. An HTML page from here has no waterfalls: call [`html`](fn@html) for them.
pub fn render(format: Format, outcomes: &[Outcome], colour: Colour) -> String {
    match (format, outcomes) {
        (Format::Pretty, [only]) => pretty(only, colour),
        (Format::Plain, [only]) => plain(only),
        _ => {
            let mut text: String =
                outcomes.iter().map(|outcome| part(format, outcome, colour)).collect();
            text.push_str(&rest(format, outcomes, colour));
            text
        }
    }
}

/// Writes the part of the report for one of several outcomes before the others are available; an empty text in a format
/// without incremental output.
///
/// The parts in the order of the outcomes, followed by the [`rest`], are the report of several.
pub fn part(format: Format, outcome: &Outcome, colour: Colour) -> String {
    match format {
        Format::Pretty => pretty::among_others(outcome, Look::Pretty(colour)),
        Format::Plain => pretty::among_others(outcome, Look::Plain),
        Format::Json => json(outcome),
        Format::Ndjson => ndjson::items(outcome),
        Format::Junit | Format::Tap | Format::Markdown | Format::Github | Format::Html => {
            String::new()
        }
    }
}

/// Writes the remainder after every [`part`]: the totals, or the complete report in a format without incremental output.
pub fn rest(format: Format, outcomes: &[Outcome], colour: Colour) -> String {
    match format {
        Format::Pretty => pretty::summary(outcomes, Look::Pretty(colour)),
        Format::Plain => pretty::summary(outcomes, Look::Plain),
        Format::Json => String::new(),
        Format::Ndjson => ndjson::summary(outcomes),
        Format::Junit => junit(outcomes),
        Format::Tap => tap(outcomes),
        Format::Markdown => markdown(outcomes, SUMMARY_BYTES_MAX),
        Format::Github => github(outcomes),
        Format::Html => html(outcomes, &[]),
    }
}
