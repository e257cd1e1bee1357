//! Rules whether a verdict is right.
//!
//! The truth of a statement is its truth over all that the system did, including spans that never arrived. A verdict that
//! contradicts it is wrong. It breaks a rule, unless the difference depends only on spans that the run could neither have waited
//! for nor known of:
//!
//! - no present span announced it: no span named it as its parent (except spans of services that are declared or learned to name
//!   parents that never arrive); no CLIENT or PRODUCER span waited for it as its other side (a peer with spans in any earlier run
//!   counts until the deadline, an unknown peer until 6 s after the span's true end, a failed call not at all); the test did not
//!   expect it;
//! - it arrived later after the last arrival, or after the response, than a run has to linger: 1 s on a fresh machine, else the
//!   longest gap of the last runs;
//! - it was withheld, or lost in a crash, or arrived after the quiet period of its process. The referee computes the quiet period
//!   from true delays. The span of a process without any arrived span in this run must belong to a service that never sent spans
//!   before, or arrive later after the response than the quiet period of that service;
//! - the receiver saw no evidence against a complete trace: no trace began where an unanswered call was made, no export was
//!   refused, no other server received spans; no claim names a silent service while a call is unanswered, and no span reports the
//!   relevant attribute or event as dropped.
//!
//! Such a verdict still has to be right for the present spans, and to be marked as overtaken if the span arrives while the run is
//! watched. A verdict on a trace that was not settled as complete has no excuse.

use model::{LearnedProfile, Settlement, Verdict};

use super::{
    excuse::{Excuses, Why},
    lateness::{Lateness, lateness},
    memory::Memory,
    stage::{Script, StagedRun},
    statement::{SettleStatement, There},
    system::MS,
    travel::Loss,
};

/// An arrival nearer than this to the end of watching need not be noticed.
const END_OF_WATCH: u64 = 5 * MS;

/// The rule that a wrong verdict breaks; of several the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettleRule {
    /// Present spans decide, and all of them.
    Presence,
    /// A run waits for announced spans.
    Announced,
    /// On a fresh machine, a span within a second of the last arrival counts.
    Fresh,
    /// A span counts that arrives no later than the longest gap of the last runs.
    Shown,
    /// A trace that began where a call was made is evidence against a complete trace.
    LostContext,
    /// A claim that names a service without spans is open while a call is unanswered.
    SilentPeer,
    /// Data that a span reports as dropped is not absent.
    Dropped,
    /// Spans that another server received are not absent.
    SecondReceiver,
    /// Refused spans are not absent.
    Refused,
}

impl SettleRule {
    /// Whether the proof fails if this rule is broken, depending on whether the exit code is wrong. A run that failed by present
    /// spans does not linger, and its statements about absence stay provisional for ever.
    pub(super) fn is_held(self, is_exit_wrong: bool) -> bool {
        let is_of_exit = matches!(self, Self::Fresh | Self::Shown);
        is_exit_wrong || !is_of_exit
    }

    pub(super) const ALL: [(Self, &str); 9] = [
        (Self::Presence, "by what was there"),
        (Self::Announced, "though announced"),
        (Self::Fresh, "within 1 s on a fresh machine"),
        (Self::Shown, "no later than shown before"),
        (Self::LostContext, "a lost context was seen"),
        (Self::SilentPeer, "the claim names a silent service"),
        (Self::Dropped, "the span counts what it dropped"),
        (Self::SecondReceiver, "another server took spans"),
        (Self::Refused, "spans were refused"),
    ];
}

/// The ruling on a run.
pub(super) struct RefereeResult {
    pub(super) verdict: Verdict,
    /// Whether the test truly passes.
    pub(super) truth: bool,
    /// Statements that were wrongly passed or failed, with the broken rule and the reason.
    pub(super) wrong: Vec<(Verdict, SettleRule, String)>,
    /// The excuse of a verdict that contradicts the truth.
    pub(super) excused: Option<Why>,
    /// Set if the trace was settled as complete although spans were missing that had to be waited for, whatever the verdict.
    pub(super) is_hasty: Option<String>,
    /// The lateness of the work that the right verdict depends on.
    pub(super) lateness: Lateness,
    /// The data that was withheld.
    pub(super) withheld: Withheld,
    pub(super) is_overtaken: bool,
    pub(super) is_superseded: bool,
    /// Overtaken or superseded without a mark; or marked without being either.
    pub(super) missed: Option<&'static str>,
}

/// The data that a run withheld or lost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) lost_context: bool,
    pub(super) unsent: bool,
    pub(super) dropped: bool,
    pub(super) given_up: bool,
    pub(super) elsewhere: bool,
    pub(super) refused: bool,
    /// Whether an undeclared outside peer without spans was called, and the test names a service that did nothing.
    pub(super) outside: bool,
    /// Whether spans were lost in transport, or with a process that died.
    pub(super) lost: bool,
}

impl Withheld {
    fn of(script: &Script<'_>) -> Self {
        let spans = || script.played.spans.iter();
        let has = |loss: Loss| script.travel.fates.iter().any(|fate| fate.loss == Some(loss));
        Self {
            lost_context: spans().any(|span| span.trace != 0),
            unsent: has(Loss::Unsent),
            dropped: spans().any(|span| span.is_dropping),
            given_up: spans().any(|span| span.has_given_up),
            // The spans that the other server receives are unknown.
            elsewhere: script.system.troubles.has_second_receiver,
            refused: has(Loss::Refused),
            outside: is_outside(script),
            lost: has(Loss::Withheld) || has(Loss::Crashed) || script.played.crash.is_some(),
        }
    }

    pub(super) fn is_nothing(self) -> bool {
        self == Self::default()
    }
}

/// Whether a claim names a service without spans, while an outside peer sends no spans: as far as is known, the two may be the
/// same.
fn is_outside(script: &Script<'_>) -> bool {
    let spans = || script.played.spans.iter();
    let is_silent =
        |name: &str| !spans().any(|span| script.system.service_of(span.process).name == name);
    let mut services = script.system.services.iter().filter(|service| is_silent(&service.name));
    let is_named = |name: &str| script.test.statements.iter().any(|it| it.names(name));
    spans().enumerate().any(|(number, span)| {
        span.is_edge() && !spans().any(|it| it.caller == Some(number) || it.is_inner_of(number))
    }) && services.any(|service| is_named(&service.name))
}

impl RefereeResult {
    pub(super) fn is_wrong(&self) -> bool {
        self.held().next().is_some() || self.missed.is_some()
    }

    /// Returns the wrong statements that count against the engine.
    pub(super) fn held(&self) -> impl Iterator<Item = &(Verdict, SettleRule, String)> {
        self.wrong.iter().filter(|(_, rule, _)| rule.is_held(self.is_exit_wrong()))
    }

    /// Whether the exit code contradicts the truth.
    pub(super) fn is_exit_wrong(&self) -> bool {
        match self.verdict {
            Verdict::Passed => !self.truth,
            Verdict::Failed => self.truth,
            Verdict::Inconclusive => false,
        }
    }
}

/// The input of a run, and its result.
pub(super) struct SettleCase<'a, 's> {
    pub(super) script: &'a Script<'s>,
    pub(super) ended: &'a StagedRun,
    pub(super) memory: &'a Memory,
    /// The learned profile of the run.
    pub(super) learned: &'a LearnedProfile,
    /// The accuracy of its times.
    pub(super) slack: u64,
}

pub(super) fn rule(case: &SettleCase<'_, '_>) -> RefereeResult {
    let SettleCase { script, ended, .. } = case;
    let all = There::all(script.system, &script.played);
    let there = there(case, &all);
    let settlement = ended.outcome.settlement.as_ref();
    let is_complete = settlement.is_some_and(Settlement::is_whole);
    let excuses = Excuses::new(case, &there);
    let (mut wrong, mut excused) = (deaf(case, &there), None);
    let verdicts = verdicts(ended);
    for (statement, verdict) in script.test.statements.iter().zip(&verdicts) {
        let says = match verdict {
            Verdict::Passed => true,
            Verdict::Failed => false,
            Verdict::Inconclusive => continue,
        };
        if says == statement.holds(&all) {
            continue;
        }
        match broken(&excuses, &there, (statement, says), is_complete) {
            Some((rule, reason)) => {
                let words = format!("`{statement}` {}: {reason}", verdict.as_str());
                wrong.push((*verdict, rule, words));
            }
            None => excused = excuses.why(),
        }
    }
    let verdict = ended.outcome.verdict;
    let over = Verdict::over(verdicts.iter().copied());
    if verdict != over && verdict != Verdict::Inconclusive {
        let words = format!("{} over all is {}", over.as_str(), verdict.as_str());
        wrong.push((verdict, SettleRule::Presence, words));
    }
    let may_differ = verdict != Verdict::Inconclusive && wrong.is_empty();
    let truth = script.test.statements.iter().all(|statement| statement.holds(&all));
    RefereeResult {
        verdict,
        truth,
        wrong,
        excused,
        is_hasty: Some(excuses.complaints()).filter(|it| is_complete && !it.is_empty()),
        lateness: lateness(script, truth),
        withheld: Withheld::of(script),
        is_overtaken: ended.overtaken.is_some(),
        is_superseded: ended.first != verdict,
        missed: match may_differ {
            true => unmarked(ended).or_else(|| missed(case, &there)),
            false => unmarked(ended),
        },
    }
}

/// Returns the rule that a wrong verdict of a statement breaks, with the reason; none where the run could not have known.
fn broken(
    excuses: &Excuses<'_, '_>,
    there: &There<'_, '_>,
    (statement, says): (&SettleStatement, bool),
    is_complete: bool,
) -> Option<(SettleRule, String)> {
    if says != statement.holds(there) {
        return Some((SettleRule::Presence, "not even by what was there".to_owned()));
    }
    let undropped = There { has_dropped: true, ..there.clone() };
    if says != statement.holds(&undropped) {
        return Some((SettleRule::Dropped, "spans say that they dropped it".to_owned()));
    }
    if !is_complete {
        return Some((SettleRule::Presence, "the trace was not taken as complete".to_owned()));
    }
    let mut rules = SettleRule::ALL.iter().map(|(rule, _)| *rule);
    if let Some(rule) = rules.find(|rule| says != statement.holds(&excuses.known(*rule))) {
        return Some((rule, excuses.complaints()));
    }
    let named = excuses.named(statement)?;
    let words = || (SettleRule::SilentPeer, "it names a service that is silent".to_owned());
    (says != statement.holds(&named)).then(words)
}

/// Returns the verdict of each statement: specs, then claims.
pub(super) fn verdicts(ended: &StagedRun) -> Vec<Verdict> {
    let judgement = &ended.outcome.judgement;
    let specs = judgement.specs.iter().map(|spec| spec.verdict);
    specs.chain(judgement.claims.iter().map(|claim| claim.verdict)).collect()
}

/// Returns the spans that the run had when it judged.
pub(super) fn there<'p, 's>(case: &SettleCase<'_, '_>, all: &There<'p, 's>) -> There<'p, 's> {
    let mut is_there = vec![false; all.is_there.len()];
    if let Some(trace) = &case.ended.trace {
        for (number, span) in all.played.spans.iter().enumerate() {
            let id = model::SpanId::from_bytes(span.id.to_be_bytes());
            is_there[number] = id.is_some_and(|id| trace.find(id).is_some());
        }
    }
    There { is_there, has_dropped: false, ..all.clone() }
}

/// Finds arrived spans that were not judged, and judged spans that were never sent.
fn deaf(case: &SettleCase<'_, '_>, there: &There<'_, '_>) -> Vec<(Verdict, SettleRule, String)> {
    let SettleCase { script, ended, .. } = case;
    let came = |at: Option<u64>| at.is_some_and(|at| at + case.slack < ended.verdict_at);
    let is_ignored = |number: &usize| {
        let is_own = script.played.spans[*number].trace == 0;
        is_own && came(script.travel.fates[*number].at) && !there.is_there[*number]
    };
    let ignored = (0..there.is_there.len()).filter(is_ignored).count();
    let known = there.is_there.iter().filter(|is_there| **is_there).count();
    // The trace also contains the trigger's own span.
    let made_up = ended.trace.as_ref().map_or(0, |trace| trace.len() - 1 - known);
    match (ignored, made_up) {
        (0, 0) => Vec::new(),
        _ => {
            let verdict = ended.outcome.verdict;
            let words = format!("{ignored} spans that came were ignored, {made_up} made up");
            vec![(verdict, SettleRule::Presence, words)]
        }
    }
}

/// Whether a verdict that replaced another does not name it, or names one that it did not replace.
fn unmarked(ended: &StagedRun) -> Option<&'static str> {
    let named = ended.outcome.superseded.as_ref().map(|superseded| superseded.verdict);
    let replaced = (ended.first != ended.outcome.verdict).then_some(ended.first);
    (named != replaced).then_some("superseded, and not marked so")
}

/// Whether the overtaken mark is missing, or is set without a reason.
fn missed(case: &SettleCase<'_, '_>, there: &There<'_, '_>) -> Option<&'static str> {
    let SettleCase { script, ended, .. } = case;
    let passes = |there: &There<'_, '_>| script.test.statements.iter().all(|it| it.holds(there));
    let verdict = passes(there);
    let mut now = there.clone();
    let (mut must, mut may) = (false, false);
    for piece in
        script.travel.pieces.iter().filter(|piece| piece.at + case.slack >= ended.verdict_at)
    {
        if piece.at > ended.watched_to + case.slack {
            break;
        }
        for span in piece.spans.iter().filter(|span| script.played.spans[**span].trace == 0) {
            now.is_there[*span] = true;
        }
        let differs = passes(&now) != verdict;
        may |= differs;
        if piece.at + END_OF_WATCH + case.slack < ended.watched_to {
            must = differs;
        }
    }
    match &ended.overtaken {
        None if must => Some("overtaken, and not marked"),
        // A late span may reopen a decided verdict, in either direction.
        Some(overtaken) if !may && overtaken.verdict != Verdict::Inconclusive => {
            Some("marked as overtaken, and was not")
        }
        _ => None,
    }
}
