//! Compares every format of outcomes of every kind with golden files.

mod outcomes;
mod traces;

use std::path::Path;

use golden::Golden;
use model::Outcome;
use outcomes::{cases, several};
use report::{
    FOR_BROWSER, FOR_CLIENT, FOR_TERMINAL, FORMATS, Format, ReportInput, SCHEMA_VERSION,
    WATERFALL_SPANS_MAX, Waterfall, part, render, rest,
};
use serde_json::Value;
use source::Colour;

fn check(files: impl IntoIterator<Item = (String, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    for (name, written) in files {
        golden.compare(&folder.join(name), &written);
    }
    golden.finish(1);
}

/// The ends of file names of formats for which that is not the name of the format.
const ENDINGS: &[(&str, &str)] = &[
    ("pretty", ".txt"),
    ("json", "-v1.json"),
    ("ndjson", "-v1.ndjson"),
    ("junit", ".xml"),
    ("markdown", ".md"),
];

/// Returns the end of a format's file name.
fn ending(format: &Format) -> String {
    let ending = ENDINGS.iter().find(|(name, _)| *name == format.name);
    ending.map_or_else(|| format!(".{}", format.name), |(_, ending)| (*ending).to_owned())
}

fn written(format: &Format, outcomes: &[Outcome], colour: Colour) -> String {
    render(format, &ReportInput { outcomes, waterfalls: &[], colour })
}

fn page(outcome: &Outcome, waterfall: Waterfall) -> String {
    let outcomes = std::slice::from_ref(outcome);
    let waterfalls = &[Some(waterfall)];
    render(FOR_BROWSER, &ReportInput { outcomes, waterfalls, colour: Colour::Never })
}

/// Returns a page without its style and its script, which are the same in all.
fn content(page: &str) -> String {
    let (head, rest) = page.split_once("<style>").expect("there is a style");
    let (_, rest) = rest.split_once("</style>").expect("it ends");
    let (body, _) = rest.rsplit_once("<script>").expect("there is a script");
    format!("{head}{body}")
}

#[test]
fn a_page_draws_its_trace() {
    let outcome = outcomes::failed();
    let waterfall = Waterfall::of(&traces::small(), &outcome, &|text| text.into());
    let hostile = Waterfall::of(&traces::hostile(), &outcome, &|text| text.into());
    check([
        ("waterfall.page".to_owned(), content(&page(&outcome, waterfall))),
        ("hostile-trace.page".to_owned(), content(&page(&outcome, hostile))),
    ]);
}

#[test]
fn a_deep_trace_is_drawn_to_its_end() {
    let outcome = outcomes::failed();
    let waterfall = Waterfall::of(&traces::deep(5_000), &outcome, &|text| text.into());
    let page = page(&outcome, waterfall);
    assert!(page.contains(r#""d":4999,"#), "the last one is the deepest");
    assert!(page.contains("<span class=\"note\">5,000 spans</span>"));
    assert!(page.len() < 2 << 20, "{}", page.len());
}

#[test]
fn a_page_states_its_bounds_where_they_are_reached() {
    let outcome = outcomes::failed();
    let hostile = Waterfall::of(&traces::hostile(), &outcome, &|text| text.into());
    let page = page(&outcome, hostile);
    for stated in ["6 more attributes not shown", r#""o":12"#, r#""valueChars":1000"#] {
        assert!(page.contains(stated), "{stated}");
    }
    assert!(page.len() < 256 << 10, "a long value is cut: {}", page.len());
}

#[test]
fn of_a_long_trace_those_that_decided_stay() {
    let outcome = outcomes::failed();
    let spans = WATERFALL_SPANS_MAX + 500;
    let waterfall = Waterfall::of(&traces::long(spans), &outcome, &|text| text.into());
    let page = page(&outcome, waterfall);
    assert!(page.contains("\"leftOut\":500"), "the rest is counted");
    assert!(page.contains("10,000 of 10,500 spans: the page shows up to 10,000 spans of a trace"));
    assert!(page.contains(r#""id":"0101010101010101""#), "it decided, and stands at the very end");
    assert!(page.len() < 8 << 20, "{}", page.len());
}

#[test]
fn every_form_of_every_outcome() {
    let mut reports: Vec<(&str, Vec<Outcome>)> =
        cases().into_iter().map(|(name, outcome)| (name, vec![outcome])).collect();
    reports.push(("several", several()));
    reports.push(("none", vec![]));
    check(reports.iter().flat_map(|(name, outcomes)| {
        FORMATS.iter().map(move |format| {
            let text = written(format, outcomes, Colour::Never);
            let text = if *format == FOR_BROWSER { content(&text) } else { text };
            (format!("{name}{}", ending(format)), text)
        })
    }));
}

#[test]
fn for_people_in_colours() {
    check([
        ("failed.ansi".to_owned(), written(FOR_TERMINAL, &[outcomes::failed()], Colour::Always)),
        (
            "checkout.ansi".to_owned(),
            written(FOR_TERMINAL, &[outcomes::checkout()], Colour::Always),
        ),
        ("several.ansi".to_owned(), written(FOR_TERMINAL, &several(), Colour::Always)),
    ]);
}

#[test]
fn nothing_is_lost_for_programs() {
    for (name, outcome) in cases() {
        let line = written(FOR_CLIENT, std::slice::from_ref(&outcome), Colour::Never);
        let mut report: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(report["schemaVersion"], SCHEMA_VERSION, "{name}");
        let read: Outcome =
            serde_json::from_value(report["outcome"].take()).expect("it is an outcome");
        assert_eq!(read, outcome, "{name}");
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    let mut reports: Vec<Vec<Outcome>> =
        cases().into_iter().map(|(_, outcome)| vec![outcome]).collect();
    reports.push(several());
    for outcomes in reports {
        let name = &outcomes[0].test;
        let coloured = written(FOR_TERMINAL, &outcomes, Colour::Always);
        let mut plain = String::new();
        for (at, part) in coloured.split("\u{1b}[").enumerate() {
            let rest = match at {
                0 => part,
                _ => part.split_once('m').expect("every sequence is a colour").1,
            };
            plain.push_str(rest);
        }
        assert_ne!(coloured, plain, "{name}");
        assert_eq!(plain, written(FOR_TERMINAL, &outcomes, Colour::Never), "{name}");
    }
}

#[test]
fn several_are_told_as_they_come() {
    let outcomes = several();
    let input = ReportInput { outcomes: &outcomes, waterfalls: &[], colour: Colour::Never };
    for format in FORMATS {
        let mut told: String =
            outcomes.iter().map(|outcome| part(format, outcome, Colour::Never)).collect();
        told.push_str(&rest(format, &input));
        assert_eq!(told, render(format, &input), "{format:?}");
    }
}

#[test]
fn plain_has_no_sign_of_its_own_beyond_ascii() {
    let plain = Format::parse("plain").expect("it is a format");
    for (name, outcome) in cases() {
        if !["hostile", "forged"].contains(&name) {
            assert!(written(plain, &[outcome], Colour::Always).is_ascii(), "{name}");
        }
    }
    assert!(written(plain, &several(), Colour::Always).is_ascii());
}
