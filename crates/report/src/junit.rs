//! Outcomes as JUnit XML, for CI systems.
//!
//! A test is a `testsuite`; its assertions and claims are the `testcase`s. A failed one is a `failure`; an inconclusive
//! one is an `error`, since a reader must not take it for a success. The other sections (the run, the trace, the
//! analyzer, the outputs) are plain text in `system-out`.
//!
//! There is no single schema. The elements, their order and the attributes are those of Jenkins and pytest; `file` and
//! `line` of a `testcase` are for GitLab, CircleCI and the actions on GitHub. Deliberately absent: the time of a
//! `testcase`. The evaluation of a single check is not measured; a share of the total would mislead readers that sum the
//! times, and some readers fail without the attribute, so it is 0.

use model::{Outcome, Verdict};

use crate::{
    format::Format,
    points::{NAME_CHARS_MAX, PATH_CHARS_MAX, Point, points},
    pretty::plain,
    text::{markup, shown},
    totals::{began, elapsed_ns},
};

/// JUnit XML, for Jenkins, GitLab and other CI systems.
pub(crate) const JUNIT: Format = Format {
    accepted_as: &["application/xml", "text/xml"],
    ..Format::new("junit", "application/xml", |input| junit(input.outcomes))
};

/// Nanoseconds of a millisecond.
const MILLI_NS: u64 = 1_000_000;

/// Writes all outcomes as one document.
fn junit(outcomes: &[Outcome]) -> String {
    let suites: Vec<Vec<Point<'_>>> = outcomes.iter().map(points).collect();
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites");
    attribute(&mut xml, "name", "qualitytrace");
    counts(&mut xml, suites.iter().flatten());
    attribute(&mut xml, "time", &seconds(elapsed_ns(outcomes)));
    xml.push_str(">\n");
    for (outcome, points) in outcomes.iter().zip(&suites) {
        suite(&mut xml, outcome, points);
    }
    xml.push_str("</testsuites>\n");
    xml
}

fn suite(xml: &mut String, outcome: &Outcome, points: &[Point<'_>]) {
    xml.push_str("  <testsuite");
    attribute(xml, "name", &name(outcome));
    counts(xml, points);
    attribute(xml, "skipped", "0");
    attribute(xml, "time", &seconds(elapsed_ns(std::slice::from_ref(outcome))));
    if let Some(moment) = began(outcome) {
        // Whole seconds: few readers support fractions.
        let moment = moment.to_string();
        let seconds = moment.split('.').next().unwrap_or_default();
        attribute(xml, "timestamp", &format!("{seconds}Z"));
    }
    xml.push_str(">\n");
    properties(xml, outcome);
    for point in points {
        case(xml, &name(outcome), point);
    }
    let text = plain(outcome);
    xml.push_str(&format!("    <system-out>{}</system-out>\n  </testsuite>\n", markup(&text)));
}

fn properties(xml: &mut String, outcome: &Outcome) {
    let run = outcome.run_id.map(|id| ("runId", id.to_string()));
    let trace = outcome.trace_id.map(|id| ("traceId", id.to_string()));
    let flaky = outcome.is_flaky().then(|| ("flaky", "true".to_owned()));
    let mut ids = run.into_iter().chain(trace).chain(flaky).peekable();
    if ids.peek().is_none() {
        return;
    }
    xml.push_str("    <properties>\n");
    for (name, value) in ids {
        xml.push_str("      <property");
        attribute(xml, "name", name);
        attribute(xml, "value", &value);
        xml.push_str("/>\n");
    }
    xml.push_str("    </properties>\n");
}

fn case(xml: &mut String, test: &str, point: &Point<'_>) {
    xml.push_str("    <testcase");
    attribute(xml, "classname", test);
    attribute(xml, "name", &point.title());
    if let Some(place) = point.place {
        attribute(xml, "file", &shown(&place.file, PATH_CHARS_MAX));
        attribute(xml, "line", &place.line.to_string());
    }
    attribute(xml, "time", &seconds(None));
    let element = match point.verdict {
        Verdict::Passed => return xml.push_str("/>\n"),
        Verdict::Failed => "failure",
        Verdict::Inconclusive => "error",
    };
    xml.push_str(&format!(">\n      <{element}"));
    attribute(xml, "message", &point.message());
    attribute(xml, "type", point.verdict.as_str());
    let evidence = markup(&point.evidence().join("\n"));
    xml.push_str(&format!(">{evidence}</{element}>\n    </testcase>\n"));
}

fn name(outcome: &Outcome) -> String {
    shown(&outcome.test, NAME_CHARS_MAX)
}

fn counts<'a, 'b: 'a>(xml: &mut String, points: impl IntoIterator<Item = &'a Point<'b>>) {
    let (mut tests, mut failures, mut errors) = (0, 0, 0);
    for point in points {
        tests += 1;
        match point.verdict {
            Verdict::Passed => {}
            Verdict::Failed => failures += 1,
            Verdict::Inconclusive => errors += 1,
        }
    }
    for (name, number) in [("tests", tests), ("failures", failures), ("errors", errors)] {
        attribute(xml, name, &i32::to_string(&number));
    }
}

/// Formats seconds with three decimals, which the schemas allow.
fn seconds(nanos: Option<u64>) -> String {
    let millis = nanos.unwrap_or_default() / MILLI_NS;
    format!("{}.{:03}", millis / 1000, millis % 1000)
}

fn attribute(xml: &mut String, name: &str, value: &str) {
    xml.push_str(&format!(" {name}=\"{}\"", markup(value)));
}
