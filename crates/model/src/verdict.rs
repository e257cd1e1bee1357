//! Verdicts.

use serde::{Deserialize, Serialize};

/// The verdict on a claim, an assertion, a spec or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The evidence shows that it holds.
    Passed,
    /// The evidence shows that it does not hold.
    Failed,
    /// The evidence shows neither. Missing telemetry leads to this verdict and never to `Passed`.
    Inconclusive,
}

impl Verdict {
    /// Combines verdicts: one failed verdict fails, one inconclusive verdict leaves it inconclusive, none at all passes.
    pub fn over(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().fold(Self::Passed, |all, one| match (all, one) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
            (Self::Passed, Self::Passed) => Self::Passed,
        })
    }

    /// Returns the verdict as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "passed",
            Self::Failed => "failed",
            Self::Inconclusive => "inconclusive",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Verdict::{self, Failed, Inconclusive, Passed};

    #[test]
    fn failure_wins_over_doubt_and_doubt_over_success() {
        let cases: [(&[Verdict], Verdict); 5] = [
            (&[], Passed),
            (&[Passed, Passed], Passed),
            (&[Passed, Inconclusive], Inconclusive),
            (&[Inconclusive, Failed, Passed], Failed),
            (&[Failed, Inconclusive], Failed),
        ];
        for (given, expected) in cases {
            assert_eq!(Verdict::over(given.iter().copied()), expected, "{given:?}");
        }
    }
}
