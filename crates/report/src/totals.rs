//! The number of tests for each verdict, and the elapsed time.

use model::{Outcome, Timestamp, Verdict};

use crate::text::duration;

/// The totals of several outcomes.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) passed: usize,
    pub(crate) failed: usize,
    pub(crate) inconclusive: usize,
    /// The time from the start of the first step to the end of the last one: tests may run concurrently.
    pub(crate) elapsed_ns: Option<u64>,
}

impl Totals {
    pub(crate) fn of(outcomes: &[Outcome]) -> Self {
        let count = |verdict| outcomes.iter().filter(|outcome| outcome.verdict == verdict).count();
        Self {
            passed: count(Verdict::Passed),
            failed: count(Verdict::Failed),
            inconclusive: count(Verdict::Inconclusive),
            elapsed_ns: elapsed_ns(outcomes),
        }
    }

    pub(crate) fn tests(&self) -> usize {
        self.passed + self.failed + self.inconclusive
    }

    /// Returns all verdicts with their counts.
    pub(crate) fn counts(&self) -> [(Verdict, usize); 3] {
        [
            (Verdict::Passed, self.passed),
            (Verdict::Failed, self.failed),
            (Verdict::Inconclusive, self.inconclusive),
        ]
    }

    /// Returns `3 tests: 1 passed, 2 failed in 1.2 s`; `word` formats each verdict.
    pub(crate) fn words(&self, word: impl Fn(Verdict, &str) -> String) -> String {
        let tests = counted(self.tests() as u64, "test");
        let met = self.counts().into_iter().filter(|(_, number)| *number > 0);
        let counts: Vec<String> = met
            .map(|(verdict, number)| word(verdict, &format!("{number} {}", verdict.as_str())))
            .collect();
        let mut words = tests;
        if !counts.is_empty() {
            words.push_str(&format!(": {}", counts.join(", ")));
        }
        if let Some(nanos) = self.elapsed_ns {
            words.push_str(&format!(" in {}", duration(nanos)));
        }
        words
    }
}

/// Returns when the first step of an outcome began.
pub(crate) fn began(outcome: &Outcome) -> Option<Timestamp> {
    outcome.steps.iter().map(|step| step.began).min()
}

/// Returns the time from the start of the first step to the end of the last one.
pub(crate) fn elapsed_ns(outcomes: &[Outcome]) -> Option<u64> {
    let began = outcomes.iter().filter_map(began).min()?;
    let ended = outcomes.iter().flat_map(|outcome| &outcome.steps).map(|step| step.ended).max()?;
    u64::try_from(ended.since(began).as_nanos()).ok()
}

/// Formats a number with a comma before each three digits.
pub(crate) fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped
}

/// Returns `1 span`, `2 spans`.
pub(crate) fn counted(number: u64, what: &str) -> String {
    match number {
        1 => format!("1 {what}"),
        number => format!("{number} {what}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::thousands;

    #[test]
    fn numbers_have_a_comma_before_three_digits() {
        for (number, expected) in [
            (0, "0"),
            (999, "999"),
            (1_000, "1,000"),
            (1_019_691, "1,019,691"),
            (u64::MAX, "18,446,744,073,709,551,615"),
        ] {
            assert_eq!(thousands(number), expected);
        }
    }
}
