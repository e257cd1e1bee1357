//! Outcomes for programs that read lines: one small object for each result.
//!
//! Every line has `schemaVersion` and `type`, and all but the last have `test` and `runId`, so that each line can be
//! read alone. The types, in the order of their lines:
//!
//! | `type` | one for each | fields |
//! | --- | --- | --- |
//! | `test` | outcome | `verdict`, `provisional` while spans may still change it, `superseded` if they did, `earlier` if it was retried, `reasons`, `diagnoses`, `overtaken`, `traceId`, `began`, `durationNs`, `answer`, `settlement`, `analysis` |
//! | `assertion` | assertion | `spec`, `selector`, `matched`, `assertion`, and from `place` on those of `claim` |
//! | `claim` | claim | `name`, `claim`, `place`, `verdict`, `decided`, `reason`, `spans`, `moreSpans` |
//! | `output` | output | `name`, `value`, `reason` |
//! | `finding` | finding of the analyzer | `plugin`, `rule`, `level`, `spanId`, `name`, `message` |
//! | `summary` | report, at its end | `tests`, `passed`, `failed`, `inconclusive`, `durationNs` |
//!
//! A stream reports a test when it has a verdict. If spans have changed a provisional verdict since, the stream repeats the
//! test before the summary, with the final verdict and `superseded`.
//!
//! A field without a value is `null`. Nothing is truncated, but some fields are omitted: the headers and the body of the
//! response, the steps, the tree of spans. The format `json` has all fields.

use model::{
    Analysis, Answer, DecisionBasis, Diagnosis, Level, NoAnswerKind, Outcome, Overtaken, Place,
    RunId, Settlement, SpanEvidence, SpanId, StatementEvidence, SupersededVerdict, Timestamp,
    TraceId, Verdict,
};
use serde::Serialize;

use crate::{
    analysis,
    format::Format,
    json::{SCHEMA_VERSION, line},
    totals::{Totals, began, elapsed_ns},
};

/// For programs that read lines.
pub(crate) const NDJSON: Format = Format {
    accepted_as: &["application/x-ndjson"],
    part: Some(|outcome, _| items(outcome)),
    ..Format::new("ndjson", "application/x-ndjson", |input| summary(input.outcomes))
};

/// One line. The common fields are repeated in each variant rather than flattened into each.
#[derive(Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
enum Item<'a> {
    Test {
        schema_version: u32,
        test: &'a str,
        run_id: Option<RunId>,
        verdict: Verdict,
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        provisional: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        superseded: Option<&'a SupersededVerdict>,
        #[serde(skip_serializing_if = "<[_]>::is_empty")]
        earlier: &'a [Verdict],
        reasons: &'a [String],
        diagnoses: &'a [Diagnosis],
        overtaken: Option<&'a Overtaken>,
        trace_id: Option<TraceId>,
        began: Option<Timestamp>,
        duration_ns: Option<u64>,
        answer: Option<AnswerInShort<'a>>,
        settlement: Option<&'a Settlement>,
        analysis: Option<AnalysisInShort<'a>>,
    },
    Assertion {
        schema_version: u32,
        test: &'a str,
        run_id: Option<RunId>,
        spec: Option<&'a str>,
        selector: &'a str,
        matched: u64,
        assertion: &'a str,
        place: &'a Place,
        verdict: Verdict,
        decided: DecisionBasis,
        reason: Option<&'a str>,
        spans: &'a [SpanEvidence],
        more_spans: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        evidence: Option<&'a StatementEvidence>,
    },
    Claim {
        schema_version: u32,
        test: &'a str,
        run_id: Option<RunId>,
        name: Option<&'a str>,
        claim: &'a str,
        place: &'a Place,
        verdict: Verdict,
        decided: DecisionBasis,
        reason: Option<&'a str>,
        spans: &'a [SpanEvidence],
        more_spans: u64,
        #[serde(skip_serializing_if = "Option::is_none")]
        evidence: Option<&'a StatementEvidence>,
    },
    Output {
        schema_version: u32,
        test: &'a str,
        run_id: Option<RunId>,
        name: &'a str,
        value: Option<&'a str>,
        reason: Option<&'a str>,
    },
    Finding {
        schema_version: u32,
        test: &'a str,
        run_id: Option<RunId>,
        plugin: &'a str,
        rule: &'a str,
        level: Level,
        span_id: Option<SpanId>,
        name: &'a str,
        message: &'a str,
    },
    Summary {
        schema_version: u32,
        tests: usize,
        passed: usize,
        failed: usize,
        inconclusive: usize,
        duration_ns: Option<u64>,
    },
}

/// The result of the trigger: a status, or a kind and a message.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnswerInShort<'a> {
    status: Option<i32>,
    duration_ns: Option<u64>,
    no_answer: Option<NoAnswerKind>,
    message: Option<&'a str>,
}

/// The scores, and the number of findings of each broken rule.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct AnalysisInShort<'a> {
    score: u32,
    minimum_score: u32,
    broken: Vec<Broken<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Broken<'a> {
    plugin: &'a str,
    rule: &'a str,
    level: Level,
    /// All findings, including those without a line.
    findings: u64,
}

/// Returns the lines of one outcome.
fn items(outcome: &Outcome) -> String {
    let mut items = vec![test(outcome)];
    items.extend(assertions(outcome));
    items.extend(claims(outcome));
    items.extend(outputs(outcome));
    items.extend(findings(outcome));
    items.iter().map(line).collect()
}

/// Returns the last line.
fn summary(outcomes: &[Outcome]) -> String {
    let totals = Totals::of(outcomes);
    line(&Item::Summary {
        schema_version: SCHEMA_VERSION,
        tests: totals.tests(),
        passed: totals.passed,
        failed: totals.failed,
        inconclusive: totals.inconclusive,
        duration_ns: totals.elapsed_ns,
    })
}

fn test(outcome: &Outcome) -> Item<'_> {
    Item::Test {
        schema_version: SCHEMA_VERSION,
        test: &outcome.test,
        run_id: outcome.run_id,
        verdict: outcome.verdict,
        provisional: outcome.provisional,
        superseded: outcome.superseded.as_ref(),
        earlier: &outcome.earlier,
        reasons: &outcome.reasons,
        diagnoses: &outcome.diagnoses,
        overtaken: outcome.overtaken.as_ref(),
        trace_id: outcome.trace_id,
        began: began(outcome),
        duration_ns: elapsed_ns(std::slice::from_ref(outcome)),
        answer: outcome.answer.as_ref().map(answer),
        settlement: outcome.settlement.as_ref(),
        analysis: outcome.analysis.as_ref().map(analyzed),
    }
}

fn answer(answer: &Answer) -> AnswerInShort<'_> {
    let no_answer = if let Answer::NoAnswer(no_answer) = answer { Some(no_answer) } else { None };
    AnswerInShort {
        status: answer.status().map(|status| status.code),
        duration_ns: answer.duration_ns(),
        no_answer: no_answer.map(|it| it.kind),
        message: no_answer.map(|it| it.message.as_str()),
    }
}

fn analyzed(analyzed: &Analysis) -> AnalysisInShort<'_> {
    let rules = analyzed.plugins.iter().flat_map(|plugin| {
        plugin.rules.iter().filter(|rule| !rule.holds()).map(|rule| Broken {
            plugin: &plugin.id,
            rule: &rule.id,
            level: rule.level,
            findings: analysis::findings(rule),
        })
    });
    AnalysisInShort {
        score: analyzed.score,
        minimum_score: analyzed.minimum_score,
        broken: rules.collect(),
    }
}

fn assertions(outcome: &Outcome) -> impl Iterator<Item = Item<'_>> {
    outcome.judgement.specs.iter().flat_map(move |spec| {
        spec.assertions.iter().map(move |assertion| Item::Assertion {
            schema_version: SCHEMA_VERSION,
            test: &outcome.test,
            run_id: outcome.run_id,
            spec: spec.name.as_deref(),
            selector: &spec.selector,
            matched: spec.matched,
            assertion: &assertion.assertion,
            place: &assertion.place,
            verdict: assertion.verdict,
            decided: assertion.decided,
            reason: assertion.reason.as_deref(),
            spans: &assertion.spans,
            more_spans: assertion.more_spans,
            evidence: assertion.evidence.as_ref(),
        })
    })
}

fn claims(outcome: &Outcome) -> impl Iterator<Item = Item<'_>> {
    outcome.judgement.claims.iter().map(move |claim| Item::Claim {
        schema_version: SCHEMA_VERSION,
        test: &outcome.test,
        run_id: outcome.run_id,
        name: claim.name.as_deref(),
        claim: &claim.claim,
        place: &claim.place,
        verdict: claim.verdict,
        decided: claim.decided,
        reason: claim.reason.as_deref(),
        spans: &claim.spans,
        more_spans: claim.more_spans,
        evidence: claim.evidence.as_ref(),
    })
}

fn outputs(outcome: &Outcome) -> impl Iterator<Item = Item<'_>> {
    outcome.judgement.outputs.iter().map(move |output| Item::Output {
        schema_version: SCHEMA_VERSION,
        test: &outcome.test,
        run_id: outcome.run_id,
        name: &output.name,
        value: output.value.as_deref(),
        reason: output.reason.as_deref(),
    })
}

fn findings(outcome: &Outcome) -> impl Iterator<Item = Item<'_>> {
    let plugins = outcome.analysis.iter().flat_map(|analysis| &analysis.plugins);
    let rules = plugins.flat_map(|plugin| plugin.rules.iter().map(move |rule| (plugin, rule)));
    rules.flat_map(move |(plugin, rule)| {
        rule.findings.iter().map(move |finding| Item::Finding {
            schema_version: SCHEMA_VERSION,
            test: &outcome.test,
            run_id: outcome.run_id,
            plugin: &plugin.id,
            rule: &rule.id,
            level: rule.level,
            span_id: finding.span_id,
            name: &finding.name,
            message: &finding.message,
        })
    })
}
