//! Computes verdicts from evidence.
//!
//! The value of each statement includes whether further spans can change it (`eval::truth`). A result that present
//! spans decide is final at once. A result that absent spans decide is final only for a complete trace, and
//! inconclusive before. Without any telemetry, the judge concludes nothing from its absence, in either direction. The
//! response alone decides a statement that refers only to the trigger's response.
//!
//! Deliberately absent: the diagnosis of missing telemetry.

mod claim;
mod copies;
mod decide;
mod evidence;
mod gate;
mod groups;
mod needs;
mod silent;
mod spec;
mod tree;
mod values;
mod walk;
mod words;

use model::{
    Answer, ClaimJudgement, DecisionBasis, Judgement, OutputValue, Settlement, SpanId, Timestamp,
    Trace, TraceId, UnsettledReason, Verdict,
    trace::{ResourceData, ScopeData, SpanData},
};

use crate::{
    budget::{self, Over, Work},
    eval::{
        expression::{Lack, Values, value_of},
        lasting::speaks_of_response,
        misses::nearest_misses,
        select::select,
        world::{EvalContext, EvalScope, TRIGGER_NAMES},
    },
    plan::{Claim, Output, ResolvedPlan},
    secrets::MASK,
    syntax::ast::{Expr, Selector},
    value::Value,
};
use decide::TraceKnowledge;
pub use gate::analysis;
pub use needs::BeyondStore;
use needs::StoreLacks;
use silent::Silence;

/// The maximum number of spans that the evidence of an assertion or a claim lists.
const SPANS_LISTED_MAX: usize = 20;

/// The maximum size of the value of an output, in bytes.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// The evidence of a run or of a recording.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The trace, with the trigger span if a trigger was fired; `None` if the test requests no trace.
    pub trace: Option<&'a Trace>,
    /// The id of the trigger span; `None` if no trigger was fired.
    pub trigger: Option<SpanId>,
    /// The result of the trigger; `None` if no trigger was fired. The judge then reads the response from the trigger
    /// span of the recorded trace.
    pub answer: Option<&'a Answer>,
    /// Why the trace counts as complete, or not; `None` if the test requests no trace.
    pub settlement: Option<&'a Settlement>,
}

/// The value of an output, for later steps.
#[derive(Clone, PartialEq, Eq)]
pub struct StepOutput {
    /// The output's name.
    pub name: String,
    /// The value as text.
    pub value: String,
    /// Whether the value is a secret.
    pub is_secret: bool,
}

impl std::fmt::Debug for StepOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let value = if self.is_secret { MASK } else { &self.value };
        f.debug_struct("StepOutput").field("name", &self.name).field("value", &value).finish()
    }
}

/// Judges all assertions, claims and required gates, and evaluates the outputs.
pub fn judge(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Judgement {
    judge_measured(resolved, evidence).0
}

/// Judges like [`judge`], and returns the consumed budget too.
pub fn judge_measured(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> (Judgement, Work) {
    budget::judgement(|| {
        let mut judgement = match evidence.trace {
            Some(trace) if !trace.conflicts().is_empty() => {
                copies::judge(resolved, evidence, trace)
            }
            _ => judge_reading(resolved, evidence),
        };
        gate::judge(resolved, evidence, &mut judgement);
        judgement
    })
}

/// Judges a trace in which each span occurs once.
fn judge_reading(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Judgement {
    let alone;
    let trace = match evidence.trace {
        Some(trace) => trace,
        None => {
            alone = trigger_alone(evidence);
            &alone
        }
    };
    let logs = evidence.settlement.map_or(0, |settlement| settlement.logs);
    let mut world = EvalContext::new(trace, evidence.trigger, evidence.answer).with_logs(logs);
    prepare(&mut world, resolved);
    let seen = seen(resolved, evidence);
    let silence = Silence::of(evidence.settlement, trace);
    let silence = silence.as_ref();
    let lacks = StoreLacks::of(evidence.settlement);
    let specs = resolved.specs.iter().map(|one| {
        let statements = one.assertions.iter().map(|it| &it.meaning);
        let less = silence.map(|it| it.seen(&seen, [&one.selector.meaning], statements));
        let judged = spec::judge(one, &world, less.as_ref().unwrap_or(&seen));
        lacks.iter().fold(judged, |judged, lacks| spec::without(judged, one, lacks))
    });
    let mut specs: Vec<_> = specs.collect();
    let claims = resolved.claims.iter().map(|one| {
        let less = silence.map(|it| it.seen(&seen, [], [&one.claim.meaning]));
        let judged = judge_claim(one, &world, less.as_ref().unwrap_or(&seen));
        let lacks = lacks.as_ref().and_then(|lacks| lacks.reason([], &one.claim.meaning));
        match lacks {
            Some(reason) => without(judged, reason),
            None => judged,
        }
    });
    let mut claims: Vec<_> = claims.collect();
    let assertions = specs.iter_mut().flat_map(|spec| &mut spec.assertions);
    let of_claims = claims.iter_mut().map(|claim| &mut claim.evidence);
    evidence::bound(assertions.map(|assertion| &mut assertion.evidence).chain(of_claims));
    let outputs = resolved.outputs.iter().map(|output| reported(output, &world)).collect();
    let verdicts = specs.iter().map(|spec| spec.verdict);
    let verdict = Verdict::over(verdicts.chain(claims.iter().map(|claim| claim.verdict)));
    let verdict = over_all(verdict, resolved, evidence, &seen);
    let tree = match evidence.trace {
        Some(_) => tree::of(&specs, &claims, &world),
        None => Vec::new(),
    };
    let mut judgement = Judgement { verdict, specs, claims, outputs, tree };
    resolved.secrets.hide_all(judgement.texts_mut());
    judgement
}

/// Judges a claim. A claim that exceeds the budget is inconclusive, and its evidence is discarded.
fn judge_claim<'a>(
    one: &'a Claim,
    world: &EvalContext<'a>,
    seen: &TraceKnowledge,
) -> ClaimJudgement {
    let (judged, over) = within_budget(world, || claim::judge(one, world, seen));
    if let Some(over) = over {
        return without(judged, over.reason());
    }
    let collect = || evidence::of_claim(one, world);
    ClaimJudgement { evidence: evidence::complete(judged.evidence, world, collect), ..judged }
}

/// Returns a claim that is inconclusive for a reason, without evidence.
fn without(judged: ClaimJudgement, reason: String) -> ClaimJudgement {
    ClaimJudgement {
        verdict: Verdict::Inconclusive,
        decided: DecisionBasis::Absence,
        reason: Some(reason),
        spans: Vec::new(),
        more_spans: 0,
        evidence: None,
        ..judged
    }
}

/// Evaluates one statement, and returns whether it exceeds the budget.
fn within_budget<T>(world: &EvalContext<'_>, work: impl FnOnce() -> T) -> (T, Option<Over>) {
    world.make_room();
    budget::statement(work)
}

/// Returns the outputs that have a value, for later steps. Values that a report masks are not masked here.
pub fn outputs(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Vec<StepOutput> {
    let taken = || match evidence.trace {
        _ if resolved.outputs.is_empty() => Vec::new(),
        Some(trace) if !trace.conflicts().is_empty() => copies::outputs(resolved, evidence, trace),
        _ => take_outputs(resolved, evidence),
    };
    budget::judgement(taken).0
}

/// Returns the outputs of a trace in which each span occurs once.
fn take_outputs(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> Vec<StepOutput> {
    let alone;
    let trace = match evidence.trace {
        Some(trace) => trace,
        None => {
            alone = trigger_alone(evidence);
            &alone
        }
    };
    let logs = evidence.settlement.map_or(0, |settlement| settlement.logs);
    let mut world = EvalContext::new(trace, evidence.trigger, evidence.answer).with_logs(logs);
    prepare(&mut world, resolved);
    let taken = resolved.outputs.iter().filter_map(|output| take(output, &world).ok());
    let marked = |taken: StepOutput| {
        let is_secret = taken.is_secret || resolved.secrets.are_in(&taken.value);
        StepOutput { is_secret, ..taken }
    };
    taken.map(marked).collect()
}

impl ResolvedPlan {
    /// Whether the trigger failed and no statement of the test refers to the response: it is then unknown
    /// whether the failure is expected.
    pub fn is_failure_undeclared(&self, answer: &Answer) -> bool {
        let assertions = self.specs.iter().flat_map(|spec| &spec.assertions);
        let mut statements = assertions.chain(self.claims.iter().map(|claim| &claim.claim));
        answer.is_failure() && !statements.any(|written| speaks_of_response(&written.meaning))
    }
}

/// Evaluates the conditions of the complete plan on single spans in one pass.
fn prepare<'a>(world: &mut EvalContext<'a>, resolved: &'a ResolvedPlan) {
    let (expressions, selectors) = parts(resolved);
    world.prepare(&expressions, &selectors);
}

/// Returns all expressions and all selectors of the plan.
fn parts(resolved: &ResolvedPlan) -> (Vec<&Expr>, Vec<&Selector>) {
    let assertions = resolved.specs.iter().flat_map(|spec| &spec.assertions);
    let claims = resolved.claims.iter().map(|claim| &claim.claim);
    let statements = assertions.chain(claims).map(|written| &written.meaning);
    let values = resolved.outputs.iter().map(|output| &output.value);
    let expressions: Vec<_> = statements.chain(values).collect();
    let specs = resolved.specs.iter().map(|spec| &spec.selector.meaning);
    let outputs = resolved.outputs.iter().map(|output| &output.selector);
    (expressions, specs.chain(outputs).collect())
}

/// Returns the verdict over all specs and claims.
///
/// A run that did not fail is inconclusive, even if its spans satisfy every statement, if the trigger has no response,
/// if the command failed and no statement refers to the response, or if expected telemetry is absent. The same applies
/// if the trace is not complete and the test has no statements, since then no statement can detect a missing span.
fn over_all(
    verdict: Verdict,
    resolved: &ResolvedPlan,
    evidence: &Evidence<'_>,
    seen: &TraceKnowledge,
) -> Verdict {
    let is_open = |answer: &Answer| !answer.is_answered() || resolved.is_failure_undeclared(answer);
    let is_silent = resolved.specs.is_empty() && resolved.claims.is_empty();
    let is_unknown = is_silent && !matches!(seen, TraceKnowledge::Whole | TraceKnowledge::NotAsked);
    let is_missing = !resolved.expect.is_empty() && evidence.settlement.is_some_and(lacks_expected);
    if evidence.answer.is_some_and(is_open) || is_unknown || is_missing {
        return Verdict::over([verdict, Verdict::Inconclusive]);
    }
    verdict
}

/// Whether telemetry that the test expects is absent.
fn lacks_expected(settlement: &Settlement) -> bool {
    let is_lack = |it: &UnsettledReason| {
        matches!(it, UnsettledReason::ExpectedAbsent(_) | UnsettledReason::NoTelemetry)
    };
    settlement.unsettled.iter().any(is_lack)
}

fn seen(resolved: &ResolvedPlan, evidence: &Evidence<'_>) -> TraceKnowledge {
    if resolved.skip_trace_collection && evidence.answer.is_some() {
        let is_answered = evidence.answer.is_some_and(Answer::is_answered);
        return if is_answered { TraceKnowledge::NotAsked } else { TraceKnowledge::Nothing };
    }
    let Some(settlement) = evidence.settlement else {
        return TraceKnowledge::Part("it was not waited for".to_owned());
    };
    if settlement.unsettled.contains(&UnsettledReason::NoTelemetry) {
        return TraceKnowledge::NoTelemetry;
    }
    if settlement.is_whole() {
        return TraceKnowledge::Whole;
    }
    let reasons: Vec<_> = settlement.unsettled.iter().map(reason).collect();
    TraceKnowledge::Part(reasons.join(", "))
}

fn reason(unsettled: &UnsettledReason) -> String {
    match unsettled {
        UnsettledReason::NoTelemetry => "no span came".to_owned(),
        UnsettledReason::NotAnswered => "the trigger has no answer".to_owned(),
        UnsettledReason::ParentsAbsent(spans) if spans.len() == 1 => {
            "1 span names a parent that never came".to_owned()
        }
        UnsettledReason::ParentsAbsent(spans) => {
            format!("{} spans name parents that never came", spans.len())
        }
        UnsettledReason::EdgesOpen(spans) if spans.len() == 1 => {
            "the other side of 1 call never came".to_owned()
        }
        UnsettledReason::EdgesOpen(spans) => {
            format!("the other sides of {} calls never came", spans.len())
        }
        UnsettledReason::ExpectedAbsent(expected) => {
            format!("`{}` did not come, which the test expects", expected.join("`, `"))
        }
        UnsettledReason::NotWaited => "it was not waited for".to_owned(),
        UnsettledReason::NotQuiet => "spans were still arriving at the deadline".to_owned(),
        UnsettledReason::TooLarge => "it is larger than a run may keep".to_owned(),
        UnsettledReason::SpansLost => "spans may have been lost on their way".to_owned(),
        UnsettledReason::Unproved(reason) => format!("not all spans are known ({reason})"),
        UnsettledReason::OtherServers(servers) => {
            format!("spans could also be received by {}", named(servers))
        }
        UnsettledReason::Partial => "it was recorded in part".to_owned(),
        UnsettledReason::ContextLost(calls) if calls.len() == 1 => {
            "the other side of 1 call began a trace of its own".to_owned()
        }
        UnsettledReason::ContextLost(calls) => {
            format!("the other sides of {} calls began traces of their own", calls.len())
        }
        UnsettledReason::NotSampled => "the system does not sample it".to_owned(),
        UnsettledReason::Sampled(_) => "only a share of its spans is kept".to_owned(),
        UnsettledReason::StoreUnread(gap) => {
            format!("the trace store `{}` could not be read", gap.store)
        }
        UnsettledReason::StorePartial(gap) => {
            format!("the trace store `{}` gave only a part of it", gap.store)
        }
    }
}

/// Lists the names of the first servers, and the number of the others.
fn named(servers: &[String]) -> String {
    const NAMED_MAX: usize = 3;
    let first: Vec<_> = servers.iter().take(NAMED_MAX).map(|name| format!("`{name}`")).collect();
    match servers.len().saturating_sub(NAMED_MAX) {
        0 => first.join(", "),
        more => format!("{} and {more} more", first.join(", ")),
    }
}

/// Joins several reasons into one; returns `None` if there are none.
fn together(reasons: impl IntoIterator<Item = String>) -> Option<String> {
    let reasons: Vec<_> = reasons.into_iter().collect();
    (!reasons.is_empty()).then(|| reasons.join("; "))
}

/// Returns an output for the report, with secrets masked.
fn reported<'a>(output: &'a Output, world: &EvalContext<'a>) -> OutputValue {
    let name = output.name.clone();
    match take(output, world) {
        Ok(taken) if taken.is_secret => {
            OutputValue { name, value: Some(MASK.to_owned()), reason: None }
        }
        Ok(taken) => OutputValue { name, value: Some(taken.value), reason: None },
        Err(reason) => OutputValue { name, value: None, reason: Some(reason) },
    }
}

/// Evaluates an output, unless it exceeds the budget.
fn take<'a>(output: &'a Output, world: &EvalContext<'a>) -> Result<StepOutput, String> {
    let (taken, over) = within_budget(world, || take_first(output, world));
    over.map_or(taken, |over| Err(over.reason()))
}

/// Evaluates an output on the first span that its selector matches.
fn take_first<'a>(output: &'a Output, world: &EvalContext<'a>) -> Result<StepOutput, String> {
    let places = select(&output.selector, &world.scene());
    let Some(place) = places.first() else {
        let misses = nearest_misses(&output.selector, &world.scene()).map(|near| near.words);
        let reasons = ["no span matches".to_owned()].into_iter().chain(misses);
        return Err(together(reasons).unwrap_or_default());
    };
    let scene = EvalScope { count: Some(places.len() as u64), ..world.scene_at(*place as usize) };
    match value_of(&output.value, &scene) {
        Ok(valued) => {
            let is_secret = valued.is_secret;
            let value = text(valued.values).and_then(fitting)?;
            Ok(StepOutput { name: output.name.clone(), value, is_secret })
        }
        Err(Lack::Undefined(reason) | Lack::Open(reason)) => Err(words::named(&reason)),
    }
}

fn text(values: Values<'_>) -> Result<String, String> {
    match values {
        Values::One(value) => Ok(value.text().into_owned()),
        Values::Many(several) => Ok(Value::List(several).text().into_owned()),
        Values::Groups(_) => Err("there are several values where one is needed".to_owned()),
        Values::Between(interval) => Err(interval.reason),
    }
}

/// Returns the value of an output, if it fits the database. A truncated value would be a different value.
fn fitting(value: String) -> Result<String, String> {
    match value.len() {
        0..=OUTPUT_BYTES_MAX => Ok(value),
        bytes => {
            Err(format!("the value has {bytes} bytes, and an output may have {OUTPUT_BYTES_MAX}"))
        }
    }
}

/// Builds the trace of a test that requests none: the trigger span, with the duration of the exchange.
fn trigger_alone(evidence: &Evidence<'_>) -> Trace {
    let id = TraceId::from_bytes([1; 16]).expect("bytes that are not zero make an id");
    let mut trace = Trace::new(id);
    let Some(trigger) = evidence.trigger else { return trace };
    let mut span = SpanData::new(trigger, None, TRIGGER_NAMES[0]);
    // The start is not known here, only the duration. A start of 0 would mean that the span has no start.
    let nanos = evidence.answer.and_then(Answer::duration_ns);
    span.start = Timestamp::from_nanos(1);
    span.end = nanos.map_or_else(Timestamp::default, |nanos| Timestamp::from_nanos(1 + nanos));
    trace
        .resource(ResourceData::default())
        .and_then(|resource| Ok((resource, trace.scope(ScopeData::default())?)))
        .and_then(|(resource, scope)| trace.push(resource, scope, span))
        .expect("one span fits a trace");
    trace
}
