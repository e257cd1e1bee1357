//! Required gates of the analyzer: each is judged like a claim about the whole trace, and reported as the last of them.
//!
//! A rule is broken, holds, or is open. It is open where a span that is still to come, or what a producer dropped of one,
//! could break it or mend it. A score is then known within bounds only, and a gate is met or missed where both bounds agree.

use std::collections::HashSet;

use model::{
    Analysis, ClaimJudgement, DecisionBasis, Judgement, Level, Place, RuleAnalysis, SpanEvidence,
    SpanId, Trace, Verdict, trace::Span,
};

use super::{Evidence, SPANS_LISTED_MAX, decide::TraceKnowledge, seen};
use crate::{
    analyze::{Reads, analyze, reads, score_if},
    gates::{AnalysisMode, AnalyzerGate},
    plan::ResolvedPlan,
};

/// What a gate is called beside the claims of a test.
const NAME: &str = "required gate";

/// Adds a judgement for each gate that is required, and makes them count.
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
    resolved.secrets.hide_all(judgement.said_mut());
}

/// What the analyzer says of the trace of a run, where one is asked and there is a trace to look at.
pub fn analysis(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Option<Analysis> {
    let AnalysisMode::By(rules) = &resolved.gates.analysis else { return None };
    let trace = evidence.trace.filter(|_| seen(resolved, evidence).is_known())?;
    let mut analysis = analyze(trace, rules);
    resolved.secrets.hide_all(analysis.said_mut());
    Some(analysis)
}

/// How a gate was decided.
#[derive(Clone, Debug)]
struct GateDecision {
    verdict: Verdict,
    decided: DecisionBasis,
    reason: String,
    spans: Vec<SpanEvidence>,
    more_spans: u64,
}

/// The analysis of a trace, and how sure it is.
struct AnalysisEvidence {
    analysis: Analysis,
    seen: TraceKnowledge,
    /// Spans of which something was dropped, or of which there are several.
    doubtful: HashSet<SpanId>,
}

/// Whether a rule holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Holds,
    Broken,
    Open,
}

fn standing(
    resolved: &ResolvedPlan,
    evidence: &Evidence<'_>,
/// The analysis that all gates are judged by, or the decision that holds for each of them without one.
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

/// The spans of which the trace does not tell all.
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
        // What is decided whatever may still come, spans that are there decide.
        let (early, _) = self.verdict(gate, &TraceKnowledge::Part(String::new()));
        let decided = if early == Verdict::Inconclusive {
            DecisionBasis::Absence
        } else {
            DecisionBasis::Presence
        };
        // Told once: a score is made of rules.
        let (spans, more_spans) = match (gate, verdict) {
            (AnalyzerGate::Rules, Verdict::Failed) => self.findings(),
            _ => (Vec::new(), 0),
        };
        GateDecision { verdict, decided, reason, spans, more_spans }
    }

    /// The verdict on a gate if so much of the trace is known.
    fn verdict(&self, gate: AnalyzerGate, seen: &TraceKnowledge) -> (Verdict, String) {
        match gate {
            AnalyzerGate::Score => self.score(seen),
            AnalyzerGate::Rules => self.rules(seen),
        }
    }

    fn score(&self, seen: &TraceKnowledge) -> (Verdict, String) {
        let minimum = self.analysis.minimum_score;
        let least = score_if(&self.analysis, |rule| self.state(rule, seen) == State::Holds);
        let most = score_if(&self.analysis, |rule| self.state(rule, seen) != State::Broken);
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

    /// The rules of level `error`.
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

    /// The rules that are broken for sure.
    fn all_broken(&self) -> impl Iterator<Item = &RuleAnalysis> {
        self.counting().filter(|rule| self.state(rule, &self.seen) == State::Broken)
    }

    /// Which rules are broken, in words.
    fn broken(&self) -> String {
        let broken: Vec<_> = self.all_broken().map(|rule| format!("`{}`", rule.id)).collect();
        match broken.as_slice() {
            [one] => format!("the rule {one} is broken"),
            several => format!("the rules {} are broken", several.join(", ")),
        }
    }

    /// Why it is not known whether all rules hold.
    fn doubt(&self) -> String {
        match &self.seen {
            TraceKnowledge::Part(why) => format!("the trace is not known to be complete: {why}"),
            _ => format!(
                "of {} spans some content was dropped or came in several versions",
                self.doubtful.len()
            ),
        }
    }

    /// What breaks the rules that are broken, as much as is listed, and how much is not.
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

impl GateDecision {
    fn bare(verdict: Verdict, decided: DecisionBasis, reason: &str) -> Self {
        Self { verdict, decided, reason: reason.to_owned(), spans: Vec::new(), more_spans: 0 }
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
        }
    }
}
