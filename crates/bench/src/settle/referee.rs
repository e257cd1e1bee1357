//! Whether a verdict is right.
//!
//! The truth of a statement is its truth over all that the system did, whoever was told of it. A verdict that contradicts
//! it is wrong. It breaks a rule unless what makes the difference are spans that nobody could have waited for or known of:
//!
//! - nothing that was there announced the span: no span named it as its parent (save spans of services that are
//!   declared or learned to name parents that never come); no CLIENT or PRODUCER span waited for it as its other side
//!   (a peer that was ever heard counts until the deadline, one of which nothing is known until 6 s after the span's
//!   true end, one that failed not at all); the test did not expect it;
//! - it came later after the last arrival, or after the response, than a run has to linger: 1 s on a fresh machine, else
//!   as long as one of the last runs has shown;
//! - it was withheld, or lost in a crash, or came after its process had been quiet for its H. H is computed here, from
//!   true delays. The span of a process that was not heard at all in this run must be one whose service was never
//!   heard before, or come later after the answer than the H of that service;
//! - nothing that the receiver met spoke against a complete trace: no trace began where an unanswered call was made, no
//!   export was refused, no other server took spans; no claim names a silent service while a call is unanswered, and
//!   no span says that the attribute or event was dropped that makes the difference.
//!
//! Such a verdict still has to be right by what was there, and to be marked as overtaken if the span comes while the run
//! is watched. A verdict on a trace that was not taken as complete has no excuse.

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

/// Nearer than this to the end of watching, nobody has to notice.
const END_OF_WATCH: u64 = 5 * MS;

/// What a wrong verdict breaks; of several the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum SettleRule {
    /// What is there decides, and all of it.
    Presence,
    /// What was announced is waited for.
    Announced,
    /// What comes within a second of the last arrival counts on a fresh machine.
    Fresh,
    /// What comes no later than one of the last runs has shown counts.
    Shown,
    /// A trace that began where a call was made speaks against a complete one.
    LostContext,
    /// A claim that names a service without spans is open while a call is unanswered.
    SilentPeer,
    /// What a span says was dropped is not absent.
    Dropped,
    /// What another server took is not absent.
    SecondReceiver,
    /// What was refused is not absent.
    Refused,
}

impl SettleRule {
    /// Whether the proof fails where it is broken, by an exit code that is wrong or not. A run that failed by what was there
    /// does not linger, and what it says of the absence of something else is provisional for ever.
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

/// What is to be said of a run.
pub(super) struct RefereeResult {
    pub(super) verdict: Verdict,
    /// Whether the test truly passes.
    pub(super) truth: bool,
    /// Statements that were wrongly passed or failed, with the rule that it breaks and the reason.
    pub(super) wrong: Vec<(Verdict, SettleRule, String)>,
    /// What excuses a verdict that contradicts the truth.
    pub(super) excused: Option<Why>,
    /// Taken as complete though spans were missing that had to be waited for, whatever became of the verdict.
    pub(super) is_hasty: Option<String>,
    /// How late the work came on which the right verdict depends.
    pub(super) lateness: Lateness,
    /// What was withheld.
    pub(super) withheld: Withheld,
    pub(super) is_overtaken: bool,
    pub(super) is_superseded: bool,
    /// Overtaken or superseded, and not marked; or marked, and neither.
    pub(super) missed: Option<&'static str>,
}

/// What a run withheld, or what was lost of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Withheld {
    pub(super) lost_context: bool,
    pub(super) unsent: bool,
    pub(super) dropped: bool,
    pub(super) given_up: bool,
    pub(super) elsewhere: bool,
    pub(super) refused: bool,
    /// Something outside was called that sends no spans and is not declared, and the test names a service that did nothing.
    pub(super) outside: bool,
    /// On the way, or with a process that died.
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
            // Nobody knows what the other one takes.
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

/// Whether a claim is about a service of which nothing came, while what was called outside sends no spans: the two may be
/// the same, for all that is known.
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

    /// What is held against the engine.
    pub(super) fn held(&self) -> impl Iterator<Item = &(Verdict, SettleRule, String)> {
        self.wrong.iter().filter(|(_, rule, _)| rule.is_held(self.is_exit_wrong()))
    }

    /// Whether the exit code says what is not true.
    pub(super) fn is_exit_wrong(&self) -> bool {
        match self.verdict {
            Verdict::Passed => !self.truth,
            Verdict::Failed => self.truth,
            Verdict::Inconclusive => false,
        }
    }
}

/// What a run was given, and what came of it.
pub(super) struct SettleCase<'a, 's> {
    pub(super) script: &'a Script<'s>,
    pub(super) ended: &'a StagedRun,
    pub(super) memory: &'a Memory,
    /// What the run was given as learned.
    pub(super) learned: &'a LearnedProfile,
    /// How exactly its moments are known.
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

/// The rule that a wrong verdict of a statement breaks, with the reason; none where nobody could have known.
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

/// The verdict of each statement: specs, then claims.
pub(super) fn verdicts(ended: &StagedRun) -> Vec<Verdict> {
    let judgement = &ended.outcome.judgement;
    let specs = judgement.specs.iter().map(|spec| spec.verdict);
    specs.chain(judgement.claims.iter().map(|claim| claim.verdict)).collect()
}

/// The spans that the run had when it judged.
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

/// Spans that had arrived, and were not judged; and spans that nobody sent.
fn deaf(case: &SettleCase<'_, '_>, there: &There<'_, '_>) -> Vec<(Verdict, SettleRule, String)> {
    let SettleCase { script, ended, .. } = case;
    let came = |at: Option<u64>| at.is_some_and(|at| at + case.slack < ended.verdict_at);
    let is_ignored = |number: &usize| {
        let is_own = script.played.spans[*number].trace == 0;
        is_own && came(script.travel.fates[*number].at) && !there.is_there[*number]
    };
    let ignored = (0..there.is_there.len()).filter(is_ignored).count();
    let known = there.is_there.iter().filter(|is_there| **is_there).count();
    // The trigger's own span is in the trace too.
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

/// Whether the mark of being overtaken is missing, or is there for nothing.
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
        // A late span may leave open what was decided before, whichever way.
        Some(overtaken) if !may && overtaken.verdict != Verdict::Inconclusive => {
            Some("marked as overtaken, and was not")
        }
        _ => None,
    }
}
