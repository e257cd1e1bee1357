//! Whether a verdict is right.
//!
//! The truth of a statement is its truth over all spans that ended. A verdict that contradicts it is wrong, unless what
//! makes the difference are spans that nobody could have waited for:
//!
//! - nothing that was there announced the span: no span named it as its parent (save spans of services that are
//!   declared or learned to name parents that never come); no CLIENT or PRODUCER span waited for it as its other side
//!   (a peer that was ever heard counts until the deadline, one of which nothing is known until 6 s after the span's
//!   true end, one that failed not at all); the test did not expect it; and
//! - it was withheld, or lost in a crash, or came after its process had been quiet for its H. H is computed here, from
//!   true delays. The span of a process that was not heard at all in this run must be one whose service was never
//!   heard before, or come later after the answer than the H of that service.
//!
//! Such a verdict still has to be right by what was there, and to be marked as overtaken if the span comes while the run
//! is watched. A verdict on a trace that was not taken as whole has no excuse.

use model::{Learned, Settlement, Verdict};

use super::{
    excuse::{Excuses, Why},
    memory::Memory,
    stage::{Ended, Script},
    statement::There,
    system::MS,
};

/// Nearer than this to the end of watching, nobody has to notice.
const END_OF_WATCH: u64 = 5 * MS;

/// What is to be said of a run.
pub(super) struct Ruling {
    pub(super) verdict: Verdict,
    /// Wrongly passed or failed statements, with the reason.
    pub(super) wrong: Vec<(Verdict, String)>,
    /// What excuses a verdict that contradicts the truth.
    pub(super) excused: Option<Why>,
    /// Taken as whole though spans were missing that had to be waited for, whatever became of the verdict.
    pub(super) is_hasty: Option<String>,
    /// Nothing was withheld or lost.
    pub(super) is_clean: bool,
    pub(super) is_overtaken: bool,
    /// Overtaken, and not marked; or marked, and not overtaken.
    pub(super) missed: Option<&'static str>,
}

impl Ruling {
    pub(super) fn is_wrong(&self) -> bool {
        !self.wrong.is_empty() || self.missed.is_some()
    }
}

/// What a run was given, and what came of it.
pub(super) struct Case<'a, 's> {
    pub(super) script: &'a Script<'s>,
    pub(super) ended: &'a Ended,
    pub(super) memory: &'a Memory,
    /// What the run was given as learned.
    pub(super) learned: &'a Learned,
    /// How exactly its moments are known.
    pub(super) slack: u64,
}

pub(super) fn rule(case: &Case<'_, '_>) -> Ruling {
    let Case { script, ended, .. } = case;
    let all = There::all(script.system, &script.played);
    let there = there(case, &all);
    let settlement = ended.finished.outcome.settlement.as_ref();
    let is_whole = settlement.is_some_and(Settlement::is_whole);
    let excuses = Excuses::new(case, &there);
    let known = There { is_there: excuses.with_announced(), ..there.clone() };
    let mut wrong = deaf(case, &there);
    let mut excused = None;
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
        let reason = if says != statement.holds(&there) {
            "not even by what was there".to_owned()
        } else if !is_whole {
            "the trace was not taken as whole".to_owned()
        } else if says != statement.holds(&known) {
            excuses.complaints()
        } else {
            excused = excuses.why();
            continue;
        };
        wrong.push((*verdict, format!("`{statement}` {}: {reason}", verdict.as_str())));
    }
    let verdict = ended.finished.outcome.verdict;
    let over = Verdict::over(verdicts.iter().copied());
    if verdict != over && verdict != Verdict::Inconclusive {
        wrong.push((verdict, format!("{} over all is {}", over.as_str(), verdict.as_str())));
    }
    let may_differ = verdict != Verdict::Inconclusive && wrong.is_empty();
    Ruling {
        verdict,
        wrong,
        excused,
        is_hasty: Some(excuses.complaints()).filter(|it| is_whole && !it.is_empty()),
        is_clean: script.travel.fates.iter().all(|fate| !fate.is_withheld && !fate.is_lost)
            && script.played.crash.is_none(),
        is_overtaken: ended.overtaken.is_some(),
        missed: if may_differ { missed(case, &there) } else { None },
    }
}

/// The verdict of each statement: specs, then claims.
pub(super) fn verdicts(ended: &Ended) -> Vec<Verdict> {
    let judgement = &ended.finished.outcome.judgement;
    let specs = judgement.specs.iter().map(|spec| spec.verdict);
    specs.chain(judgement.claims.iter().map(|claim| claim.verdict)).collect()
}

/// The spans that the run had when it judged.
pub(super) fn there<'p, 's>(case: &Case<'_, '_>, all: &There<'p, 's>) -> There<'p, 's> {
    let mut is_there = vec![false; all.is_there.len()];
    if let Some(trace) = &case.ended.finished.trace {
        for (number, span) in all.played.spans.iter().enumerate() {
            let id = model::SpanId::from_bytes(span.id.to_be_bytes());
            is_there[number] = id.is_some_and(|id| trace.find(id).is_some());
        }
    }
    There { is_there, ..all.clone() }
}

/// Spans that had arrived, and were not judged; and spans that nobody sent.
fn deaf(case: &Case<'_, '_>, there: &There<'_, '_>) -> Vec<(Verdict, String)> {
    let Case { script, ended, .. } = case;
    let came = |at: Option<u64>| at.is_some_and(|at| at + case.slack < ended.verdict_at);
    let ignored = script.travel.fates.iter().zip(&there.is_there);
    let ignored = ignored.filter(|(fate, is_there)| came(fate.at) && !**is_there).count();
    let known = there.is_there.iter().filter(|is_there| **is_there).count();
    // The trigger's own span is in the trace too.
    let made_up = ended.finished.trace.as_ref().map_or(0, |trace| trace.len() - 1 - known);
    match (ignored, made_up) {
        (0, 0) => Vec::new(),
        _ => {
            let verdict = ended.finished.outcome.verdict;
            vec![(verdict, format!("{ignored} spans that came were ignored, {made_up} made up"))]
        }
    }
}

/// Whether the mark of being overtaken is missing, or is there for nothing.
fn missed(case: &Case<'_, '_>, there: &There<'_, '_>) -> Option<&'static str> {
    let Case { script, ended, .. } = case;
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
        piece.spans.iter().for_each(|span| now.is_there[*span] = true);
        let differs = passes(&now) != verdict;
        may |= differs;
        if piece.at + END_OF_WATCH + case.slack < ended.watched_to {
            must = differs;
        }
    }
    match ended.overtaken {
        None if must => Some("overtaken, and not marked"),
        Some(_) if !may => Some("marked as overtaken, and was not"),
        _ => None,
    }
}
