//! Both reports of outcomes of every kind, against golden files.

mod outcomes;

use std::path::Path;

use golden::Golden;
use model::Outcome;
use report::{SCHEMA_VERSION, json, pretty};
use serde_json::Value;
use source::Colour;

/// Each outcome under the name of its files.
fn cases() -> Vec<(&'static str, Outcome)> {
    vec![
        ("passed", outcomes::passed()),
        ("failed", outcomes::failed()),
        ("no-telemetry", outcomes::no_telemetry()),
        ("no-answer", outcomes::no_answer()),
        ("not-fired", outcomes::not_fired()),
        ("not-whole", outcomes::not_whole()),
        ("skipped-trace", outcomes::skipped_trace()),
        ("hostile", outcomes::hostile()),
    ]
}

fn check(files: impl IntoIterator<Item = (String, String)>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let mut golden = Golden::default();
    for (name, written) in files {
        golden.compare(&folder.join(name), &written);
    }
    golden.finish(1);
}

#[test]
fn for_people() {
    check(
        cases()
            .iter()
            .map(|(name, outcome)| (format!("{name}.txt"), pretty(outcome, Colour::Never))),
    );
}

#[test]
fn for_people_in_colours() {
    check([("failed.ansi".to_owned(), pretty(&outcomes::failed(), Colour::Always))]);
}

#[test]
fn for_programs() {
    check(cases().iter().map(|(name, outcome)| (format!("{name}-v1.json"), json(outcome))));
}

#[test]
fn nothing_is_lost_for_programs() {
    for (name, outcome) in cases() {
        let line = json(&outcome);
        let mut report: Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(report["schemaVersion"], SCHEMA_VERSION, "{name}");
        let read: Outcome =
            serde_json::from_value(report["outcome"].take()).expect("it is an outcome");
        assert_eq!(read, outcome, "{name}");
    }
}

#[test]
fn colours_add_nothing_but_colours() {
    for (name, outcome) in cases() {
        let coloured = pretty(&outcome, Colour::Always);
        let mut plain = String::new();
        for (at, part) in coloured.split("\u{1b}[").enumerate() {
            let rest = match at {
                0 => part,
                _ => part.split_once('m').expect("every sequence is a colour").1,
            };
            plain.push_str(rest);
        }
        assert_ne!(coloured, plain, "{name}");
        assert_eq!(plain, pretty(&outcome, Colour::Never), "{name}");
    }
}

#[test]
fn lines_are_safe_and_end_in_no_spaces() {
    for (name, outcome) in cases() {
        let text = pretty(&outcome, Colour::Never);
        assert!(text.ends_with('\n') && !text.ends_with("\n\n"), "{name}");
        for line in text.lines() {
            assert_eq!(line, line.trim_end(), "{name}");
            assert!(!line.contains(char::is_control), "{name}: {line:?}");
        }
        let line = json(&outcome);
        let line = line.strip_suffix('\n').expect("it is a line");
        assert!(!line.contains(char::is_control), "{name}: {line:?}");
    }
}

#[test]
fn the_longest_strangers_are_bounded() {
    let mut outcome = outcomes::failed();
    let endless = "\u{1b}".repeat(1_000_000);
    outcome.test = endless.clone();
    outcome.reasons = vec![endless.clone()];
    for spec in &mut outcome.judgement.specs {
        spec.selector = endless.clone();
        for assertion in &mut spec.assertions {
            assertion.assertion = endless.clone();
            assertion.reason = Some(endless.clone());
            for span in &mut assertion.spans {
                span.name = endless.clone();
                span.found = endless.clone();
            }
        }
    }
    let text = pretty(&outcome, Colour::Never);
    let longest = text.lines().map(|line| line.chars().count()).max();
    assert!(longest < Some(1_000), "{longest:?}");
    assert!(text.len() < 50_000, "{}", text.len());
}
