//! The reasons for a verdict beyond assertions and claims, as sentences.

use model::{
    Answer, Because, Diagnosis, Outcome, Overtaken, Settlement, SupersededVerdict, Verdict,
};

use crate::{
    text::{duration, shown},
    totals::counted,
};

/// The upper bound for a service name, in characters.
const SERVICE_CHARS_MAX: usize = 60;

/// Returns the sentences, each with advice: the superseded verdict, the last line of a command that failed, the diagnoses of
/// missing telemetry, then the reasons, then late spans, then the verdicts of earlier attempts.
pub(crate) fn whys(outcome: &Outcome) -> Vec<String> {
    let diagnoses = diagnoses(outcome);
    let reasons = outcome.reasons.iter().cloned();
    let late = outcome.overtaken.as_ref().map(overtaken);
    let replaced = outcome.superseded.as_ref().map(|it| superseded(it, outcome.verdict));
    let told = replaced.into_iter().chain(last_word(outcome)).chain(diagnoses).chain(reasons);
    told.chain(late).chain(earlier(outcome)).collect()
}

/// Returns the last line on stderr of a command that failed; none if the test passed.
fn last_word(outcome: &Outcome) -> Option<String> {
    let Some(Answer::Exit(exit)) = &outcome.answer else { return None };
    if exit.code == 0 || outcome.verdict == Verdict::Passed {
        return None;
    }
    let last = exit.stderr.lines().rfind(|line| !line.trim().is_empty())?;
    Some(format!("the command ended with {} and printed last: {}", exit.code, last.trim()))
}

/// Returns the diagnoses of missing telemetry, a sentence each.
pub(crate) fn diagnoses(outcome: &Outcome) -> Vec<String> {
    outcome.diagnoses.iter().map(diagnosis).collect()
}

fn diagnosis(diagnosis: &Diagnosis) -> String {
    let Diagnosis { says, advice, .. } = diagnosis;
    match advice.as_str() {
        "" => says.clone(),
        advice => format!("{says}: {advice}"),
    }
}

/// Returns why the quiet period was so long, if the profile of a service is unknown; a suffix to the duration.
pub(crate) fn unknown(settlement: &Settlement) -> Option<String> {
    let longest = settlement.processes.iter().max_by_key(|process| process.quiet_ns)?;
    let service = shown(&longest.service, SERVICE_CHARS_MAX);
    (longest.because == Because::Unknown)
        .then(|| format!(" (nothing is known of `{service}` yet: declare `settle.flush`)"))
}

/// Returns the verdicts of earlier attempts; none if this was the first.
fn earlier(outcome: &Outcome) -> Option<String> {
    if outcome.earlier.is_empty() {
        return None;
    }
    let verdicts: Vec<_> = outcome.earlier.iter().map(|verdict| verdict.as_str()).collect();
    let (tries, before) = (verdicts.len() + 1, verdicts.join(", "));
    Some(match outcome.is_flaky() {
        true => format!(
            "flaky: passed at try {tries}, {before} before: find out what differs between the tries"
        ),
        false if outcome.earlier.iter().all(|it| *it == outcome.verdict) => {
            format!("{} at all {tries} tries", outcome.verdict.as_str())
        }
        false => format!("{} at try {tries}, {before} before", outcome.verdict.as_str()),
    })
}

/// Returns the sentence for a verdict that replaced a provisional one.
pub fn superseded(superseded: &SupersededVerdict, verdict: Verdict) -> String {
    let (before, now) = (superseded.verdict.as_str(), verdict.as_str());
    let from = match &superseded.service {
        Some(service) => format!(" from `{}`", shown(service, SERVICE_CHARS_MAX)),
        None => String::new(),
    };
    let what = match superseded.after_ns {
        Some(after) => format!(
            "{} came after the provisional verdict, the first{from} {} later",
            counted(superseded.spans, "span"),
            duration(after)
        ),
        None => {
            "what came after the provisional verdict speaks against a complete trace".to_owned()
        }
    };
    format!("superseded: {before} at first, {now} now: {what}")
}

/// Returns the sentence for a run with spans after its verdict that would change it.
pub fn overtaken(overtaken: &Overtaken) -> String {
    let from = match &overtaken.service {
        Some(service) => format!(" from `{service}`"),
        None => String::new(),
    };
    format!(
        "overtaken: {} came after the verdict, the first that counts{from} {} later, and with them it would be {}: \
         later runs wait longer for this service; `settle.flush` in the test makes this one wait",
        counted(overtaken.spans, "span"),
        duration(overtaken.after_ns),
        overtaken.verdict.as_str(),
    )
}
