//! A small parser for TAP 14: as strict as the specification, for the subset that the report writes.

use std::{iter::Peekable, str::Lines};

use model::{Outcome, Verdict};

/// Parses a complete stream, and checks that it contains these outcomes.
pub(crate) fn read(text: &str, outcomes: &[Outcome], expected: &dyn Fn(&Outcome) -> Vec<Verdict>) {
    let mut lines = text.lines().peekable();
    assert_eq!(lines.next(), Some("TAP version 14"));
    assert_eq!(plan(lines.next(), ""), outcomes.len());
    for (at, outcome) in outcomes.iter().enumerate() {
        let name = lines.next().and_then(|line| line.strip_prefix("# Subtest: "));
        let name = name.expect("a subtest has a name");
        let verdicts = expected(outcome);
        assert_eq!(plan(lines.next(), "    "), verdicts.len());
        for (at, verdict) in verdicts.into_iter().enumerate() {
            point(&mut lines, "    ", at + 1, verdict);
        }
        let description = point(&mut lines, "", at + 1, outcome.verdict);
        assert_eq!(description, name, "the point ends its subtest");
    }
    assert_eq!(lines.next(), None);
}

fn plan(line: Option<&str>, indent: &str) -> usize {
    let line = line.and_then(|line| line.strip_prefix(indent)).expect("a plan");
    let number = line.strip_prefix("1..").expect("a plan begins with 1");
    number.split(" # ").next().and_then(|number| number.parse().ok()).expect("a number")
}

/// Parses a point, its comment and its diagnostics; returns its description.
fn point<'a>(
    lines: &mut Peekable<Lines<'a>>,
    indent: &str,
    number: usize,
    verdict: Verdict,
) -> &'a str {
    let line = lines.next().and_then(|line| line.strip_prefix(indent)).expect("a point");
    let status = if verdict == Verdict::Passed { "ok" } else { "not ok" };
    let description = line.strip_prefix(&format!("{status} {number} - ")).expect("its number");
    assert!(!description.is_empty() && description == description.trim(), "{description:?}");
    assert!(!has_directive(description), "{description}");
    let remark = lines.next_if(|line| line.trim_start().starts_with("# inconclusive: "));
    assert_eq!(remark.is_some(), verdict == Verdict::Inconclusive, "{description}");
    let begins = lines.next_if(|line| *line == format!("{indent}  ---"));
    assert_eq!(begins.is_some(), verdict != Verdict::Passed);
    if begins.is_some() {
        diagnostics(lines, &format!("{indent}  "));
    }
    description
}

/// Whether the description contains a `#` that no backslash escapes.
fn has_directive(description: &str) -> bool {
    let mut escaped = false;
    description.chars().any(|c| {
        let directive = c == '#' && !escaped;
        escaped = c == '\\' && !escaped;
        directive
    })
}

/// Parses a block of YAML, of the subset that the report writes: keys, lists, quoted strings and numbers.
fn diagnostics(lines: &mut Peekable<Lines<'_>>, indent: &str) {
    loop {
        let line = lines.next().expect("a block ends");
        let line = line.strip_prefix(indent).expect("a block is indented");
        if line == "..." {
            return;
        }
        let line = line.trim_start();
        let value = match line.strip_prefix("- ") {
            Some(value) => value,
            None => {
                let (key, value) = line.split_once(':').expect("a key");
                assert!(key.chars().all(|c| c.is_ascii_lowercase()), "{line}");
                value.trim_start()
            }
        };
        let word = value.chars().all(|c| c.is_ascii_alphanumeric());
        assert!(word || serde_json::from_str::<String>(value).is_ok(), "{line}");
    }
}
