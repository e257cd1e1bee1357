//! Judges the required gates of the analyzer: each like a claim about the complete trace. The report lists them as the
//! last claims.
//!
//! A rule is broken, holds, or is open. It is open if a later span, or content that a producer dropped from a span,
//! could break or fix it. The score is then known only within bounds. A gate passes or fails if both bounds agree.

use std::collections::HashSet;

use model::{
    Analysis, ClaimJudgement, ComparisonEvidence, DecisionBasis, EvidenceRange, EvidenceValue,
    Judgement, Level, Place, RuleAnalysis, SpanEvidence, SpanId, StatementEvidence, Trace, Verdict,
    trace::Span,
};

use super::{Evidence, SPANS_LISTED_MAX, decide::TraceKnowledge, seen};
use crate::{
    analyze::{Reads, analyze, reads, score_if},
    gates::{AnalysisMode, AnalyzerGate},
    plan::ResolvedPlan,
};

/// The name of a gate in the list of claims.
const NAME: &str = "required gate";

/// Adds a judgement for each required gate, and includes it in the verdict.
pub(super) fn judge(resolved: &ResolvedPlan, evidence: &Evidence<'_>, judgement: &mut Judgement) {
    let gates = &resolved.gates;
    if gates.required.is_empty() {
        return;
    }
    let standing = standing(resolved, evidence);
    for (gate, place) in &gates.required {
        let judged = match &standing {
            Ok(standing) => standing.judge(*gate),
            Err(decision) => decision.clone(),
        };
        let claim = judged.claim(*gate, place);
        judgement.verdict = Verdict::over([judgement.verdict, claim.verdict]);
        judgement.claims.push(claim);
    }
    resolved.secrets.hide_all(judgement.texts_mut());
}

/// Analyzes the trace of a run. Returns `None` if the plan requests no analysis, or if there is no trace to evaluate.
pub fn analysis(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Option<Analysis> {
    let AnalysisMode::By(rules) = &resolved.gates.analysis else { return None };
    let trace = evidence.trace.filter(|_| seen(resolved, evidence).is_known())?;
    let mut analysis = analyze(trace, rules);
    resolved.secrets.hide_all(analysis.texts_mut());
    Some(analysis)
}

/// The decision on a gate.
#[derive(Clone, Debug)]
struct GateDecision {
    verdict: Verdict,
    decided: DecisionBasis,
    reason: String,
    spans: Vec<SpanEvidence>,
    more_spans: u64,
    evidence: Option<Box<StatementEvidence>>,
}

/// The analysis of a trace, and the limits of its certainty.
struct AnalysisEvidence {
    analysis: Analysis,
    seen: TraceKnowledge,
    /// Spans with dropped content, or with several copies.
    doubtful: HashSet<SpanId>,
}

/// The state of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Holds,
    Broken,
    Open,
}

/// Returns the analysis that decides all gates, or, without an analysis, the decision that applies to each of them.
fn standing(
    resolved: &ResolvedPlan,
    evidence: &Evidence<'_>,
) -> Result<AnalysisEvidence, GateDecision> {
    let rules = match &resolved.gates.analysis {
        AnalysisMode::By(rules) => rules,
        AnalysisMode::Disabled | AnalysisMode::NotRequested => {
            let reason = "the analyzer is disabled (`enabled: false`), so that nothing is checked";
            return Err(GateDecision::bare(Verdict::Passed, DecisionBasis::Response, reason));
        }
    };
    let seen = seen(resolved, evidence);
    let trace = match (&seen, evidence.trace) {
        (TraceKnowledge::NotAsked, _) => {
            let reason = "the test requires no trace, so that there is nothing to analyze";
            return Err(GateDecision::bare(Verdict::Passed, DecisionBasis::Response, reason));
        }
        (TraceKnowledge::Nothing, _) | (_, None) => {
            let reason = "there is no trace to analyze";
            return Err(GateDecision::bare(Verdict::Inconclusive, DecisionBasis::Response, reason));
        }
        (TraceKnowledge::NoTelemetry, _) => {
            let reason = "no span of the system came";
            return Err(GateDecision::bare(Verdict::Inconclusive, DecisionBasis::Absence, reason));
        }
        (TraceKnowledge::Whole | TraceKnowledge::Part(_), Some(trace)) => trace,
    };
    Ok(AnalysisEvidence { analysis: analyze(trace, rules), seen, doubtful: doubtful(trace) })
}

/// Returns the spans with incomplete or ambiguous content.
fn doubtful(trace: &Trace) -> HashSet<SpanId> {
    let has_dropped = |span: &Span<'_>| {
        span.dropped_attributes() > 0
            || span.dropped_events() > 0
            || span.dropped_links() > 0
            || span.events().any(|event| event.dropped_attributes() > 0)
            || span.links().any(|link| link.dropped_attributes() > 0)
    };
    let copies = trace.conflicts().iter().map(|copy| trace.span(*copy).id());
    trace.spans().filter(has_dropped).map(Span::id).chain(copies).collect()
}

impl AnalysisEvidence {
    fn judge(&self, gate: AnalyzerGate) -> GateDecision {
        let (verdict, reason) = self.verdict(gate, &self.seen);
        // If the verdict is the same with any further spans, present spans decide it.
        let (early, _) = self.verdict(gate, &TraceKnowledge::Part(String::new()));
        let decided = if early == Verdict::Inconclusive {
            DecisionBasis::Absence
        } else {
            DecisionBasis::Presence
        };
        // Listed once, by the gate on rules: a score is computed from the same rules.
        let (spans, more_spans) = match (gate, verdict) {
            (AnalyzerGate::Rules, Verdict::Failed) => self.findings(),
            _ => (Vec::new(), 0),
        };
        let evidence = match (gate, verdict) {
            (_, Verdict::Passed) => None,
            (AnalyzerGate::Score, _) => Some(self.score_evidence()),
            (AnalyzerGate::Rules, _) => rules_evidence(&spans),
        };
        let evidence = evidence.map(Box::new);
        GateDecision { verdict, decided, reason, spans, more_spans, evidence }
    }

    /// Returns the verdict on a gate for this extent of the trace.
    fn verdict(&self, gate: AnalyzerGate, seen: &TraceKnowledge) -> (Verdict, String) {
        match gate {
            AnalyzerGate::Score => self.score(seen),
            AnalyzerGate::Rules => self.rules(seen),
        }
    }

    fn score(&self, seen: &TraceKnowledge) -> (Verdict, String) {
        let minimum = self.analysis.minimum_score;
        let [least, most] = self.score_bounds(seen);
        let score = match least == most {
            true => format!("the score is {least}"),
            false => format!("the score is from {least} to {most}"),
        };
        let asked = format!("{score}, and `minimumScore` is {minimum}");
        match (least >= minimum, most < minimum) {
            (true, _) => (Verdict::Passed, asked),
            (_, true) => (Verdict::Failed, format!("{asked}: {}", self.broken())),
            (false, false) => (Verdict::Inconclusive, format!("{asked}: {}", self.doubt())),
        }
    }

    /// Returns the lowest and the highest score that are possible.
    fn score_bounds(&self, seen: &TraceKnowledge) -> [u32; 2] {
        let least = score_if(&self.analysis, |rule| self.state(rule, seen) == State::Holds);
        let most = score_if(&self.analysis, |rule| self.state(rule, seen) != State::Broken);
        [least, most]
    }

    fn score_evidence(&self) -> StatementEvidence {
        let number = |score: u32| EvidenceValue::Number(score.to_string());
        let [low, high] = self.score_bounds(&self.seen).map(number);
        let found = match low == high {
            true => low,
            false => EvidenceValue::Between(Box::new(EvidenceRange { low, high })),
        };
        let comparison = ComparisonEvidence {
            span_id: None,
            subject: "score".to_owned(),
            operator: ">=".to_owned(),
            expected: Some(number(self.analysis.minimum_score)),
            found: Some(found),
        };
        StatementEvidence { comparisons: vec![comparison], ..StatementEvidence::default() }
    }

    fn rules(&self, seen: &TraceKnowledge) -> (Verdict, String) {
        let states: Vec<_> = self.counting().map(|rule| self.state(rule, seen)).collect();
        if states.contains(&State::Broken) {
            return (Verdict::Failed, self.broken());
        }
        if states.contains(&State::Open) {
            return (Verdict::Inconclusive, self.doubt());
        }
        (Verdict::Passed, format!("all rules of level `error` hold, {} of them", states.len()))
    }

    /// Returns the rules of level `error`.
    fn counting(&self) -> impl Iterator<Item = &RuleAnalysis> {
        let rules = self.analysis.plugins.iter().flat_map(|plugin| &plugin.rules);
        rules.filter(|rule| rule.level == Level::Error)
    }

    fn state(&self, rule: &RuleAnalysis, seen: &TraceKnowledge) -> State {
        let is_whole = matches!(seen, TraceKnowledge::Whole);
        let reads = reads(&rule.id);
        if rule.holds() {
            let is_sure = is_whole && (reads == Reads::Ids || self.doubtful.is_empty());
            return if is_sure { State::Holds } else { State::Open };
        }
        let is_doubtful = |span: Option<SpanId>| span.is_some_and(|it| self.doubtful.contains(&it));
        let is_told = rule.findings.iter().any(|finding| !is_doubtful(finding.span_id));
        let is_sure = match reads {
            Reads::Ids => true,
            Reads::EachSpan => is_told,
            Reads::Relations => is_told && is_whole,
        };
        if is_sure { State::Broken } else { State::Open }
    }

    /// Returns the rules that are certainly broken.
    fn all_broken(&self) -> impl Iterator<Item = &RuleAnalysis> {
        self.counting().filter(|rule| self.state(rule, &self.seen) == State::Broken)
    }

    /// Describes the broken rules.
    fn broken(&self) -> String {
        let broken: Vec<_> = self.all_broken().map(|rule| format!("`{}`", rule.id)).collect();
        match broken.as_slice() {
            [one] => format!("the rule {one} is broken"),
            several => format!("the rules {} are broken", several.join(", ")),
        }
    }

    /// Describes why it is unknown whether all rules hold.
    fn doubt(&self) -> String {
        match &self.seen {
            TraceKnowledge::Part(why) => format!("the trace is not known to be complete: {why}"),
            _ => format!(
                "of {} spans some content was dropped or came in several versions",
                self.doubtful.len()
            ),
        }
    }

    /// Returns the findings of the broken rules, up to the maximum of listed spans, and the number of the other findings.
    fn findings(&self) -> (Vec<SpanEvidence>, u64) {
        let (mut spans, mut more) = (Vec::new(), 0_u64);
        for rule in self.all_broken() {
            more = more.saturating_add(rule.more_findings);
            for finding in &rule.findings {
                if spans.len() == SPANS_LISTED_MAX {
                    more = more.saturating_add(1);
                    continue;
                }
                spans.push(SpanEvidence {
                    span_id: finding.span_id,
                    name: finding.name.clone(),
                    verdict: Verdict::Failed,
                    found: format!("{}: {}", rule.id, finding.message),
                });
            }
        }
        (spans, more)
    }
}

/// Returns the spans of the listed findings, each once.
fn rules_evidence(spans: &[SpanEvidence]) -> Option<StatementEvidence> {
    let mut deciding: Vec<SpanId> = Vec::new();
    for id in spans.iter().filter_map(|span| span.span_id) {
        if !deciding.contains(&id) {
            deciding.push(id);
        }
    }
    (!deciding.is_empty()).then(|| StatementEvidence { deciding, ..StatementEvidence::default() })
}

impl GateDecision {
    fn bare(verdict: Verdict, decided: DecisionBasis, reason: &str) -> Self {
        let (reason, spans) = (reason.to_owned(), Vec::new());
        Self { verdict, decided, reason, spans, more_spans: 0, evidence: None }
    }

    fn claim(self, gate: AnalyzerGate, place: &Place) -> ClaimJudgement {
        ClaimJudgement {
            name: Some(NAME.to_owned()),
            claim: gate.as_str().to_owned(),
            place: place.clone(),
            verdict: self.verdict,
            decided: self.decided,
            reason: Some(self.reason),
            spans: self.spans,
            more_spans: self.more_spans,
            evidence: self.evidence.map(|evidence| *evidence),
        }
    }
}
