//! From outcomes to text, in the forms that people and programs read.
//!
//! [`render`] writes a whole report of one or several outcomes. Where results are to be seen as they come, [`part`]
//! writes what can be told of one at once, and [`rest`] what is left when all are there.
//!
//! | form | as they come | reads it |
//! | --- | --- | --- |
//! | [`pretty`](fn@pretty) | a test at a time | a person at a terminal |
//! | [`plain`] | a test at a time | logs, screen readers |
//! | [`json`](fn@json) | a line a test | programs that want everything |
//! | [`ndjson`](fn@ndjson) | lines of a test at a time | programs that read lines |
//! | [`junit`](fn@junit) | whole | Jenkins, GitLab and whoever reads JUnit XML |
//! | [`tap`](fn@tap) | whole | harnesses of the Test Anything Protocol |
//! | [`markdown`](fn@markdown) | whole | summaries and pull requests on GitHub |
//! | [`github`](fn@github) | whole | the annotations of a GitHub workflow |
//! | [`html`](fn@html) | whole | a person in a browser, with the [`Waterfall`] of each trace |
//!
//! All are pure functions. The values in an outcome come from strangers: a span's name, a header, a body may hold
//! anything. So no form lets a control character or an invisible one through, nor what a pipeline that reads the
//! output would take for a command, nor what the form itself would take for its own.
//!
//! Deliberately absent: where the outcome came from, where the text goes, and any decision. A report tells the verdict
//! that is in the outcome and never makes its own.

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

/// Writes a report of these outcomes, every line ended.
///
/// Of several outcomes, `pretty` and `plain` tell those that passed in a line and the others as they would alone, and
/// end with the totals. Colours are for `pretty` alone. A page written here has no waterfalls: [`html`](fn@html) takes them.
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

/// Writes what can be told of one of several outcomes before the others are there; nothing in a form that is written
/// as a whole.
///
/// The parts in the order of the outcomes, and then the [`rest`], are the report of several.
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

/// Writes what is left to be told when every [`part`] was: the totals, or all of a form that is written as a whole.
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
