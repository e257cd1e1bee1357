//! A case: its input, the recorded result, and whether our result is the same.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use super::CaseAnswer;

/// Cases with an intended difference: `differ` or `more` with a reason, and below it the cases.
const LISTED: &str = include_str!("../../../data/verdicts-differ.txt");

/// The upper bound of intended differences. Cases of `more` are extensions of the language, and not counted.
const DIFFER_MAX: usize = 40;

/// One line of `cases.jsonl`.
#[derive(Debug, Deserialize)]
pub(super) struct VerdictCase {
    pub(super) id: String,
    pub(super) kind: String,
    pub(super) trace: Option<String>,
    pub(super) selector: Option<String>,
    pub(super) assertion: Option<String>,
    pub(super) expression: Option<String>,
    matched: Option<Vec<String>>,
    passed: Option<bool>,
    span_passed: Option<Vec<bool>>,
    observed: Option<Vec<String>>,
    error: Option<String>,
    defect: Option<String>,
    correct: Option<BTreeMap<String, serde_json::Value>>,
}

/// A case with an intended difference.
#[derive(Debug)]
pub(super) struct KnownDifference {
    pub(super) purpose: Purpose,
    pub(super) reason: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Purpose {
    /// The predecessor rejected it, and this language accepts it.
    More,
    /// The result differs.
    Differ,
}

/// The expected result; a field that is none is not checked.
#[derive(Debug, Default)]
struct ExpectedAnswer {
    is_refused: Option<bool>,
    matched: Option<Vec<String>>,
    passed: Option<bool>,
    span_passed: Option<BTreeMap<String, bool>>,
    observed: Option<Vec<String>>,
}

/// Parses the list.
pub(super) fn listed() -> Result<BTreeMap<String, KnownDifference>> {
    let mut listed = BTreeMap::new();
    let mut group = None;
    for line in LISTED.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(ids) = line.strip_prefix("  ") {
            let (purpose, reason) = group.context("a reason stands above its cases")?;
            for id in ids.split_whitespace() {
                if listed.insert(id.to_owned(), KnownDifference { purpose, reason }).is_some() {
                    bail!("`{id}` is listed twice");
                }
            }
            continue;
        }
        group = match line.split_once(": ") {
            Some(("more", reason)) => Some((Purpose::More, reason)),
            Some(("differ", reason)) => Some((Purpose::Differ, reason)),
            _ => bail!("expected `more: …`, `differ: …` or indented cases, not `{line}`"),
        };
    }
    let differ = listed.values().filter(|listed| listed.purpose == Purpose::Differ).count();
    if differ > DIFFER_MAX {
        bail!("{differ} cases differ on purpose, and {DIFFER_MAX} may");
    }
    Ok(listed)
}

impl VerdictCase {
    /// Returns the input of the case, in one line.
    pub(super) fn question(&self) -> String {
        let trace = self.trace.as_deref().unwrap_or("no trace");
        let selector = self.selector.as_deref().unwrap_or_default();
        let what = self.assertion.as_ref().or(self.expression.as_ref());
        format!("{trace} | {selector} | {}", what.map_or("", String::as_str))
    }

    /// Whether the predecessor returned an error, or should have returned one.
    pub(super) fn is_an_error(&self) -> bool {
        let is_error = |error: &str| error != "no match";
        let correct = self.correct.as_ref().and_then(|correct| correct.get("error"));
        self.error.as_deref().is_some_and(is_error)
            || correct.and_then(serde_json::Value::as_str).is_some_and(is_error)
    }

    /// Returns the differences from the expected result, as text.
    pub(super) fn differences(&self, answered: &CaseAnswer) -> Option<String> {
        let expected = self.expected();
        let mut found = Vec::new();
        if let Some(is_refused) = expected.is_refused
            && is_refused != answered.refusal.is_some()
        {
            found.push(match &answered.refusal {
                Some(refusal) => format!("refused: {refusal}"),
                None => "not refused".to_owned(),
            });
        }
        if let Some(passed) = expected.passed
            && passed != answered.passed
        {
            found.push(format!(
                "passed: {}, expected {passed} ({})",
                answered.passed, answered.reason
            ));
        }
        if let Some(matched) = &expected.matched {
            let ids: BTreeSet<_> = matched.iter().cloned().collect();
            if ids != answered.matched || matched.len() as u64 != answered.count {
                found.push(format!("matched: {:?}, expected {matched:?}", answered.matched));
            }
        }
        for (id, passed) in expected.span_passed.iter().flatten() {
            // Only some of many spans are reported.
            if answered.span_passed.get(id).is_some_and(|ours| ours != passed) {
                found.push(format!("on {id}: {}, expected {passed}", !passed));
            }
        }
        if let Some(observed) = &expected.observed
            && !is_same_observed(answered.observed.as_deref(), observed)
        {
            found.push(format!("value: {:?}, expected {observed:?}", answered.observed));
        }
        (!found.is_empty()).then(|| found.join("; "))
    }

    fn expected(&self) -> ExpectedAnswer {
        let Some(correct) = self.correct.as_ref().filter(|_| self.defect.is_some()) else {
            return self.measured();
        };
        let is_refused = match (correct.get("matched"), correct.get("error")) {
            (Some(serde_json::Value::Null), Some(serde_json::Value::String(_))) => Some(true),
            _ => None,
        };
        let read = |key: &str| correct.get(key).cloned().unwrap_or_default();
        let texts = |key: &str| serde_json::from_value(read(key)).unwrap_or_default();
        let is_valueless = self.expression.is_some() && correct.contains_key("error");
        ExpectedAnswer {
            is_refused,
            matched: texts("matched"),
            passed: read("passed").as_bool(),
            span_passed: None,
            observed: if is_valueless { Some(Vec::new()) } else { texts("observed") },
        }
    }

    fn measured(&self) -> ExpectedAnswer {
        if self.expression.is_some() {
            let observed =
                if self.error.is_some() { Some(Vec::new()) } else { self.observed.clone() };
            return ExpectedAnswer { observed, ..ExpectedAnswer::default() };
        }
        let is_alone = self.assertion.is_none();
        let is_compared = self.error.as_ref().is_none_or(|error| error == "no match");
        let spans = self.matched.iter().flatten().zip(self.span_passed.iter().flatten());
        let is_selected = self.matched.as_ref().is_some_and(|matched| !matched.is_empty());
        ExpectedAnswer {
            is_refused: is_alone.then_some(self.error.is_some()),
            matched: self.matched.clone(),
            passed: self.passed,
            span_passed: Some(spans.map(|(id, passed)| (id.clone(), *passed)).collect()),
            observed: self.observed.clone().filter(|observed| {
                is_compared && is_selected && !observed.iter().any(|value| is_rounded(value))
            }),
        }
    }
}

/// A value that is compared with a duration is rendered as a duration, and rounded.
fn is_rounded(observed: &str) -> bool {
    observed != "0" && source::parse_duration(observed).is_some()
}

/// Whether the value is the same, if it is the same for every span; or whether there is none, if none is expected.
fn is_same_observed(ours: Option<&str>, theirs: &[String]) -> bool {
    match (ours, theirs) {
        (ours, []) => ours.is_none(),
        (None, _) => false,
        (Some(ours), [first, rest @ ..]) if rest.iter().all(|other| other == first) => {
            is_same_value(ours, first)
        }
        _ => true,
    }
}

/// Whether two values differ only in their form: the predecessor renders durations with a unit where we return nanoseconds, and
/// strings of digits as numbers within lists.
fn is_same_value(ours: &str, theirs: &str) -> bool {
    // The predecessor renders every value like this that it cannot store.
    if ours == theirs || theirs == "unsupported value type" {
        return true;
    }
    let number = |text: &str| text.parse::<f64>().ok();
    if number(ours).is_some() && number(ours) == number(theirs) {
        return ours.parse::<i128>().ok() == theirs.parse().ok() || theirs.contains(['.', 'e']);
    }
    if let Some(nanos) = source::parse_duration(theirs) {
        return source::parse_duration(ours) == Some(nanos) || ours.parse() == Ok(nanos.as_nanos());
    }
    let list = |text: &str| serde_json::from_str::<Vec<serde_json::Value>>(text).ok();
    let text = |value: &serde_json::Value| match value {
        serde_json::Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    list(ours).zip(list(theirs)).is_some_and(|(ours, theirs)| {
        ours.len() == theirs.len()
            && ours.iter().zip(&theirs).all(|(ours, theirs)| text(ours) == text(theirs))
    })
}

#[cfg(test)]
mod tests {
    use super::{is_same_value, listed};

    #[test]
    fn the_list_can_be_read() {
        let listed = listed().expect("a list");
        assert!(listed.values().all(|listed| !listed.reason.is_empty()));
    }

    #[test]
    fn values_of_which_only_the_form_differs_are_the_same() {
        for (ours, theirs, expected) in [
            ("3", "3.00", true),
            ("1000000000000000000000", "1e+21", true),
            ("123456789012345678901234567890", "123456789012345678901234567890", true),
            ("123456789012345680000000000000", "123456789012345678901234567890", false),
            ("25ms", "25ms", true),
            ("25000000", "25ms", true),
            ("26000000", "25ms", false),
            ("[\"15\", \"3\"]", "[15, 3]", true),
            ("[true]", "[\"true\"]", true),
            ("[1, 2]", "[2, 1]", false),
            ("a", "b", false),
        ] {
            assert_eq!(is_same_value(ours, theirs), expected, "{ours} and {theirs}");
        }
    }
}
