//! Verdicts and the evidence for them.

use serde::{Deserialize, Serialize};

use crate::{SpanId, StatementEvidence, Verdict};

/// The kind of evidence that decides an assertion finally.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DecisionBasis {
    /// Present spans: final at once, whatever spans may still arrive.
    Presence,
    /// Absent spans: final only for a complete trace.
    Absence,
    /// The trigger's response alone.
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
    /// One for each claim about the complete trace, in the order of the document; then one for each required gate of the
    /// analyzer, in the order of that document.
    #[serde(default)]
    pub claims: Vec<ClaimJudgement>,
    /// One for each output, in the order of the document.
    pub outputs: Vec<OutputValue>,
    /// The spans that evidence names, and their ancestors: depth first, at most as many as the judge stores.
    #[serde(default)]
    pub tree: Vec<TreeSpan>,
}

/// The result of one claim.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ClaimJudgement {
    /// The name given in the document, if any.
    pub name: Option<String>,
    /// The claim as written.
    pub claim: String,
    /// The location of the claim.
    pub place: Place,
    /// The verdict.
    pub verdict: Verdict,
    /// The kind of evidence that decided it, or would have decided it.
    pub decided: DecisionBasis,
    /// The reason, in one sentence, if the evidence below does not show it.
    pub reason: Option<String>,
    /// The evaluated spans, failures first, at most as many as the judge stores.
    pub spans: Vec<SpanEvidence>,
    /// The number of evaluated spans that are not listed.
    pub more_spans: u64,
    /// The evidence as values; none if the statement passed, or if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<StatementEvidence>,
}

/// A span with its position in the trace, to render the tree.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TreeSpan {
    /// Its id.
    pub span_id: SpanId,
    /// Its name.
    pub name: String,
    /// The service that sent it, if it is known.
    pub service: Option<String>,
    /// The number of its ancestors.
    pub depth: u32,
    /// From its start to its end, in nanoseconds; none if the end is before the start.
    pub duration_ns: Option<u64>,
    /// Whether it ended with status error.
    pub is_error: bool,
}

/// The result of one spec.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpecJudgement {
    /// The name given in the document, if any.
    pub name: Option<String>,
    /// The selector as written.
    pub selector: String,
    /// The location of the selector.
    pub place: Place,
    /// The verdict over all assertions.
    pub verdict: Verdict,
    /// How many spans the selector matched.
    pub matched: u64,
    /// One for each assertion, in the order of the document.
    pub assertions: Vec<AssertionJudgement>,
}

/// The result of one assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AssertionJudgement {
    /// The assertion as written.
    pub assertion: String,
    /// The location of the assertion.
    pub place: Place,
    /// The verdict.
    pub verdict: Verdict,
    /// The kind of evidence that decided it, or would have decided it.
    pub decided: DecisionBasis,
    /// The reason, in one sentence, if the spans below do not show it.
    pub reason: Option<String>,
    /// The evaluated spans, failures first, at most as many as the judge stores.
    pub spans: Vec<SpanEvidence>,
    /// The number of evaluated spans that are not listed.
    pub more_spans: u64,
    /// The evidence as values; none if the statement passed, or if nothing is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub evidence: Option<StatementEvidence>,
}

/// The contribution of one span to an assertion.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SpanEvidence {
    /// The span; none if the assertion was judged without one (a count, a response).
    pub span_id: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// The verdict on this span alone.
    pub verdict: Verdict,
    /// The comparison with both values, or why it was not possible.
    pub found: String,
}

/// A value that later steps may use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutputValue {
    /// The output's name.
    pub name: String,
    /// Its value as text; none if it could not be computed.
    pub value: Option<String>,
    /// Why there is no value.
    pub reason: Option<String>,
}

/// A location in a document, for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Place {
    /// The file as the user named it.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
    /// The column, in characters, from 1.
    pub column: u32,
}

impl Judgement {
    /// The judgement of a run that reached no specs.
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
