//! Renders outcomes as text, in formats for people and programs.
//!
//! [`render`] writes a complete report of one or several outcomes. For incremental output, [`part`] writes one outcome as
//! soon as it is available, and [`rest`] writes the remainder after the last outcome.
//!
//! Each format is a [`Format`], a value in the file that writes it, and [`FORMATS`] lists them. A new format is a new file and
//! a line of that table: callers read the fields of a format and do not know which one it is.
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

pub use format::{Format, ReportInput};
pub use html::{Hide, WATERFALL_SPANS_MAX, Waterfall};
pub use json::{SCHEMA_VERSION, harmless_json};
pub use markdown::{COMMENT_BYTES_MAX, SUMMARY_BYTES_MAX, markdown};
pub use text::{duration, harmless};
pub use why::{overtaken, superseded};

/// Every format, in the order in which messages list them.
pub const FORMATS: &[&Format] = &[
    &pretty::PRETTY,
    &pretty::PLAIN,
    &json::JSON,
    &ndjson::NDJSON,
    &junit::JUNIT,
    &tap::TAP,
    &markdown::MARKDOWN,
    &github::GITHUB,
    &html::HTML,
];

/// The format for a person at a terminal who requests none.
pub const FOR_TERMINAL: &Format = &pretty::PRETTY;
/// The format for a client of an API that requests none.
pub const FOR_CLIENT: &Format = &json::JSON;
/// The format for a browser.
pub const FOR_BROWSER: &Format = &html::HTML;
/// The format for the summary of a step in a pipeline.
pub const FOR_SUMMARY: &Format = &markdown::MARKDOWN;
/// The format for the log of a pipeline, which shows errors at the lines of the tests.
pub const FOR_ANNOTATIONS: &Format = &github::GITHUB;

/// Writes a report of these outcomes; every line ends with a line break.
///
/// For several outcomes, a format for people writes one line for each that passed, the full text for each other one, and the
/// totals at the end.
pub fn render(format: &Format, input: &ReportInput<'_>) -> String {
    if let (Some(alone), [only]) = (format.alone, input.outcomes) {
        return alone(only, input.colour);
    }
    let parts = input.outcomes.iter().map(|outcome| part(format, outcome, input.colour));
    parts.chain([rest(format, input)]).collect()
}

/// Writes the part of the report for one of several outcomes before the others are available; an empty text in a format
/// without incremental output.
///
/// The parts in the order of the outcomes, followed by the [`rest`], are the report of several.
pub fn part(format: &Format, outcome: &Outcome, colour: Colour) -> String {
    format.part.map_or_else(String::new, |part| part(outcome, colour))
}

/// Writes the remainder after every [`part`]: the totals, or the complete report in a format without incremental output.
pub fn rest(format: &Format, input: &ReportInput<'_>) -> String {
    (format.rest)(input)
}
