//! From evidence to verdicts.
//!
//! Each assertion knows from its syntax what can decide it (`decide.rs`). What spans decide by being there is final at
//! once; what they decide by not being there is final for a whole trace only, and inconclusive before. Without any
//! telemetry nothing is concluded from it, in either direction. An assertion that asks the trigger span for nothing but
//! its response is decided by the answer alone.
//!
//! Deliberately absent: claims about the whole trace, and the diagnosis of what is missing.

mod decide;

use model::{
    Answer, AssertionJudgement, Judgement, OutputValue, Settlement, SpanEvidence, SpanId,
    SpecJudgement, Timestamp, Trace, TraceId, Unsettled, Verdict,
    trace::{ResourceData, ScopeData, SpanData, SpanIx},
};

use crate::{
    expr::{self, Assertion},
    plan::{Output, Spec, Written},
    property::{TRIGGER_NAMES, World},
    resolve::Resolved,
    selector::{Selector, nearest_misses, select},
    value::shorten,
};
use decide::{Found, Seen};

/// How many spans an assertion's evidence lists.
const SPANS_LISTED_MAX: usize = 20;

/// How many bytes the value of an output may have.
const OUTPUT_BYTES_MAX: usize = 64 * 1024;

/// What a run has brought to light.
#[derive(Clone, Copy, Debug)]
pub struct Evidence<'a> {
    /// The trace with the trigger span in it; none where none was asked for.
    pub trace: Option<&'a Trace>,
    /// The trigger span's id.
    pub trigger: SpanId,
    /// How the trigger ended.
    pub answer: &'a Answer,
    /// Why the trace was taken as whole, or not; none where none was asked for.
    pub settlement: Option<&'a Settlement>,
}

/// What a spec's selector brought.
struct Matched<'a> {
    selector: &'a Selector,
    spans: Vec<SpanIx>,
    /// If it selects nothing: what comes nearest.
    misses: Option<String>,
}

/// Judges all assertions and takes the outputs.
pub fn judge(resolved: &Resolved, evidence: &Evidence<'_>) -> Judgement {
    let alone;
    let trace = match evidence.trace {
        Some(trace) => trace,
        None => {
            alone = trigger_alone(evidence);
            &alone
        }
    };
    let world = World::new(trace, evidence.trigger, evidence.answer);
    let seen = seen(resolved, evidence);
    let specs: Vec<_> = resolved.specs.iter().map(|spec| judge_spec(spec, &world, &seen)).collect();
    let outputs = resolved.outputs.iter().map(|output| take(output, &world)).collect();
    Judgement {
        verdict: over_all(&specs, evidence, &seen),
        specs,
        claims: Vec::new(),
        outputs,
        tree: Vec::new(),
    }
}

/// The one verdict of a run, over all specs.
///
/// A trigger without an answer leaves the run open even where its spans satisfy everything. So does a trace that is not
/// whole where the test asserts nothing: no assertion is there to tell that something is missing.
fn over_all(specs: &[SpecJudgement], evidence: &Evidence<'_>, seen: &Seen) -> Verdict {
    let verdict = Verdict::over(specs.iter().map(|spec| spec.verdict));
    let is_silent = specs.is_empty() && !matches!(seen, Seen::Whole | Seen::NotAsked);
    if evidence.answer.response().is_none() || is_silent {
        return Verdict::over([verdict, Verdict::Inconclusive]);
    }
    verdict
}

fn seen(resolved: &Resolved, evidence: &Evidence<'_>) -> Seen {
    if resolved.skip_trace_collection {
        return if evidence.answer.response().is_some() { Seen::NotAsked } else { Seen::Nothing };
    }
    let Some(settlement) = evidence.settlement else {
        return Seen::Part("it was not waited for".to_owned());
    };
    if settlement.unsettled.contains(&Unsettled::NoTelemetry) {
        return Seen::NoTelemetry;
    }
    if settlement.is_whole() {
        return Seen::Whole;
    }
    let reasons: Vec<_> = settlement.unsettled.iter().map(reason).collect();
    Seen::Part(reasons.join(", "))
}

fn reason(unsettled: &Unsettled) -> String {
    match unsettled {
        Unsettled::NoTelemetry => "no span came".to_owned(),
        Unsettled::NotAnswered => "the trigger has no answer".to_owned(),
        Unsettled::ParentsAbsent(spans) if spans.len() == 1 => {
            "1 span names a parent that never came".to_owned()
        }
        Unsettled::ParentsAbsent(spans) => {
            format!("{} spans name parents that never came", spans.len())
        }
        Unsettled::NotQuiet => "spans were still arriving at the deadline".to_owned(),
        Unsettled::TooLarge => "it is larger than a run may keep".to_owned(),
        Unsettled::SpansLost => "spans may have been lost on their way".to_owned(),
        Unsettled::Partial => "it was recorded in part".to_owned(),
    }
}

fn judge_spec(spec: &Spec, world: &World<'_>, seen: &Seen) -> SpecJudgement {
    let selector = &spec.selector.meaning;
    let spans = select(selector, world);
    let is_known = matches!(seen, Seen::Whole | Seen::Part(_));
    let misses = (spans.is_empty() && is_known).then(|| nearest_misses(selector, world)).flatten();
    let matched = Matched { selector, spans, misses };
    let assertions: Vec<_> = spec
        .assertions
        .iter()
        .map(|assertion| judge_assertion(assertion, &matched, world, seen))
        .collect();
    SpecJudgement {
        name: spec.name.clone(),
        selector: spec.selector.source.clone(),
        place: spec.selector.place.clone(),
        verdict: Verdict::over(assertions.iter().map(|assertion| assertion.verdict)),
        matched: matched.spans.len() as u64,
        assertions,
    }
}

fn judge_assertion(
    assertion: &Written<Assertion>,
    matched: &Matched<'_>,
    world: &World<'_>,
    seen: &Seen,
) -> AssertionJudgement {
    let Matched { selector, spans, misses } = matched;
    let meaning = &assertion.meaning;
    let found = if meaning.speaks_of_count_alone() {
        look_at_count(meaning, world, spans)
    } else {
        look_at_spans(meaning, world, spans)
    };
    let is_trigger = matches!(spans.as_slice(), [one] if world.is_trigger(*one));
    let decision = if is_trigger && selector.is_trigger() && meaning.speaks_of_response_alone() {
        decide::by_response(&found)
    } else {
        decide::decide(meaning, selector, &found, seen)
    };
    let is_missed = found.verdict == Verdict::Failed || !meaning.speaks_of_count_alone();
    let misses = misses.clone().filter(|_| is_missed);
    let reasons: Vec<_> = decision.reason.into_iter().chain(misses).collect();
    AssertionJudgement {
        assertion: assertion.source.clone(),
        place: assertion.place.clone(),
        verdict: decision.verdict,
        decided: decision.decided,
        reason: (!reasons.is_empty()).then(|| reasons.join("; ")),
        // What was never measured is no evidence.
        spans: if matches!(seen, Seen::Nothing) { Vec::new() } else { found.spans },
        more_spans: found.more_spans,
    }
}

/// The number of spans is one comparison, however many they are.
fn look_at_count(assertion: &Assertion, world: &World<'_>, matched: &[SpanIx]) -> Found {
    let count = matched.len() as u64;
    let evaluated = expr::evaluate(assertion, world, None, count);
    let (verdict, doubt) = (evaluated.verdict(), evaluated.doubt());
    let found = evaluated.describe(assertion);
    let evidence = SpanEvidence { span_id: None, name: String::new(), verdict, found };
    Found { count, verdict, doubt, spans: vec![evidence], more_spans: 0 }
}

/// Every span has to satisfy the assertion. Failures are listed first, then what is open.
fn look_at_spans(assertion: &Assertion, world: &World<'_>, matched: &[SpanIx]) -> Found {
    let count = matched.len() as u64;
    let mut by_verdict = [Verdict::Failed, Verdict::Inconclusive, Verdict::Passed]
        .map(|verdict| (verdict, Vec::new()));
    let (mut verdict, mut doubt) = (Verdict::Passed, None);
    for ix in matched {
        let span = world.trace.span(*ix);
        let evaluated = expr::evaluate(assertion, world, Some(span), count);
        let one = evaluated.verdict();
        doubt = doubt.or(evaluated.doubt());
        verdict = Verdict::over([verdict, one]);
        for (_, spans) in by_verdict.iter_mut().filter(|(kind, _)| *kind == one) {
            if spans.len() < SPANS_LISTED_MAX {
                spans.push(span);
            }
        }
    }
    let listed = by_verdict.into_iter().flat_map(|(_, spans)| spans).take(SPANS_LISTED_MAX);
    let spans: Vec<_> = listed
        .map(|span| {
            let evaluated = expr::evaluate(assertion, world, Some(span), count);
            SpanEvidence {
                span_id: Some(span.id()),
                name: shorten(span.name()).into_owned(),
                verdict: evaluated.verdict(),
                found: evaluated.describe(assertion),
            }
        })
        .collect();
    let more_spans = count - spans.len() as u64;
    Found { count, verdict, doubt, spans, more_spans }
}

/// The value of an output on the first span that its selector matches.
fn take(output: &Output, world: &World<'_>) -> OutputValue {
    let matched = select(&output.selector, world);
    let taken = match matched.first() {
        Some(ix) => {
            let span = world.trace.span(*ix);
            expr::output(&output.value, world, span, matched.len() as u64).and_then(fitting)
        }
        None => {
            let misses = nearest_misses(&output.selector, world);
            Err(["no span matches".to_owned()]
                .into_iter()
                .chain(misses)
                .collect::<Vec<_>>()
                .join("; "))
        }
    };
    let name = output.name.clone();
    match taken {
        Ok(value) => OutputValue { name, value: Some(value), reason: None },
        Err(reason) => OutputValue { name, value: None, reason: Some(reason) },
    }
}

/// The value of an output, if the record has room for it. A part of it would be another value.
fn fitting(value: String) -> Result<String, String> {
    match value.len() {
        0..=OUTPUT_BYTES_MAX => Ok(value),
        bytes => {
            Err(format!("the value has {bytes} bytes, and an output may have {OUTPUT_BYTES_MAX}"))
        }
    }
}

/// The trace of a test that asks for none: the trigger span, which lasted as long as the exchange.
fn trigger_alone(evidence: &Evidence<'_>) -> Trace {
    let id = TraceId::from_bytes([1; 16]).expect("bytes that are not zero make an id");
    let mut trace = Trace::new(id);
    let mut span = SpanData::new(evidence.trigger, None, TRIGGER_NAMES[0]);
    let nanos = evidence.answer.response().map_or(0, |response| response.duration_ns);
    span.end = Timestamp::from_nanos(nanos);
    trace
        .resource(ResourceData::default())
        .and_then(|resource| Ok((resource, trace.scope(ScopeData::default())?)))
        .and_then(|(resource, scope)| trace.push(resource, scope, span))
        .expect("one span fits a trace");
    trace
}
