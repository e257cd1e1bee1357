//! Verdicts and the evidence for them.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// What became of a claim, an assertion, a spec or a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Verdict {
    /// The evidence shows that it holds.
    Passed,
    /// The evidence shows that it does not hold.
    Failed,
    /// The evidence shows neither. Absence of telemetry ends here and never in `Passed`.
    Inconclusive,
}

/// What decides an assertion once and for all.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DecisionBasis {
    /// Spans that are there: final at once, whatever may still come.
    Presence,
    /// Spans that are not there: final only for a whole trace.
    Absence,
    /// The trigger's answer alone.
    Response,
}

/// All verdicts and outputs of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Judgement {
    /// The verdict over all specs.
    pub verdict: Verdict,
    /// One for each spec, in the order of the document.
    pub specs: Vec<SpecJudgement>,
    /// One for each claim about the whole trace, in the order of the document; then one for each gate of the analyzer
    /// that is required, in the order of that document.
    #[serde(default)]
    pub claims: Vec<ClaimJudgement>,
    /// One for each output, in the order of the document.
    pub outputs: Vec<OutputValue>,
    /// The spans that evidence names, and what they stand under: depth first, at most as many as the judge keeps.
    #[serde(default)]
    pub tree: Vec<TreeSpan>,
}

/// What became of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimJudgement {
    /// The name given in the document, if any.
    pub name: Option<String>,
    /// The claim as written.
    pub claim: String,
    /// Where it stands.
    pub place: Place,
    /// The verdict.
    pub verdict: Verdict,
    /// What decided it, or would have.
    pub decided: DecisionBasis,
    /// Why, in one sentence, where the evidence below does not say it.
    pub reason: Option<String>,
    /// What was looked at, failures first, at most as much as the judge keeps.
    pub spans: Vec<SpanEvidence>,
    /// Spans looked at and not listed.
    pub more_spans: u64,
}

/// A span as it stands in its trace, for a picture of it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Its name.
    pub name: String,
    /// The service that made it, if it says.
    pub service: Option<String>,
    /// How many spans it stands under.
    pub depth: u32,
    /// From its start to its end, in nanoseconds; none where the end is before the start.
    pub duration_ns: Option<u64>,
    /// Whether it ended with status error.
    pub is_error: bool,
}

/// What became of one spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpecJudgement {
    /// The name given in the document, if any.
    pub name: Option<String>,
    /// The selector as written.
    pub selector: String,
    /// Where the selector stands.
    pub place: Place,
    /// The verdict over all assertions.
    pub verdict: Verdict,
    /// How many spans the selector matched.
    pub matched: u64,
    /// One for each assertion, in the order of the document.
    pub assertions: Vec<AssertionJudgement>,
}

/// What became of one assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssertionJudgement {
    /// The assertion as written.
    pub assertion: String,
    /// Where it stands.
    pub place: Place,
    /// The verdict.
    pub verdict: Verdict,
    /// What decided it, or would have.
    pub decided: DecisionBasis,
    /// Why, in one sentence, where the spans below do not say it.
    pub reason: Option<String>,
    /// The spans looked at, failures first, at most as many as the judge keeps.
    pub spans: Vec<SpanEvidence>,
    /// Spans looked at and not listed.
    pub more_spans: u64,
}

/// What one span contributed to an assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpanEvidence {
    /// The span; none where the assertion was judged without one (a count, a response).
    pub span_id: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// The verdict on this span alone.
    pub verdict: Verdict,
    /// The comparison that was made, with both values, or what stood in its way.
    pub found: String,
}

/// A value that later steps may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputValue {
    /// The output's name.
    pub name: String,
    /// Its value as text; none where it could not be made.
    pub value: Option<String>,
    /// Why there is no value.
    pub reason: Option<String>,
}

/// Where something stands in a document, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// In characters, from 1.
    pub column: u32,
}

impl Judgement {
    /// The verdict of a run that came to no specs.
    pub fn bare(verdict: Verdict) -> Self {
        Self {
            verdict,
            specs: Vec::new(),
            claims: Vec::new(),
            outputs: Vec::new(),
            tree: Vec::new(),
        }
    }
}

impl Verdict {
    /// The verdict over several: one failure fails, one doubt leaves it open, none at all passes.
    pub fn over(verdicts: impl IntoIterator<Item = Self>) -> Self {
        verdicts.into_iter().fold(Self::Passed, |all, one| match (all, one) {
            (Self::Failed, _) | (_, Self::Failed) => Self::Failed,
            (Self::Inconclusive, _) | (_, Self::Inconclusive) => Self::Inconclusive,
            (Self::Passed, Self::Passed) => Self::Passed,
        })
    }

    /// The verdict as one word.
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
