//! Which of the spans that were missing at a verdict nobody could have waited for.

use model::{AbsentParents, LearnedService};

use super::{
    plan::Expected,
    play::{Parent, Span},
    referee::Case,
    statement::There,
    system::{MS, SECOND},
};

/// A process or peer of which nothing is known may be so late.
const UNKNOWN: u64 = 6 * SECOND;
/// The least that is ever waited.
const LEAST: u64 = 20 * MS;

/// Why nobody could have waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    Withheld,
    Lost,
    /// Its process had been quiet for its H.
    Late,
    /// Its process was not heard, and nothing said that it would be.
    Unheard,
    /// In all earlier runs its side of the call did not come either.
    Mislearned,
    /// Only a span that is missing itself, with an excuse, could have announced it.
    WithParent,
}

pub(super) struct Excuses<'a, 's> {
    case: &'a Case<'a, 's>,
    there: &'a There<'a, 's>,
    /// For each missing span its excuse, or why there is none.
    missing: Vec<(usize, Result<Why, String>)>,
}

impl<'a, 's> Excuses<'a, 's> {
    pub(super) fn new(case: &'a Case<'a, 's>, there: &'a There<'a, 's>) -> Self {
        let mut excuses = Self { case, there, missing: Vec::new() };
        let spans = &case.script.played.spans;
        // Callers come before what they call.
        for (number, span) in spans.iter().enumerate() {
            if span.end.is_some() && !there.is_there[number] {
                let excuse = excuses.excuse(number);
                excuses.missing.push((number, excuse));
            }
        }
        excuses
    }

    /// What was there, and what had to be waited for.
    pub(super) fn with_announced(&self) -> Vec<bool> {
        let mut is_there = self.there.is_there.clone();
        for (number, _) in self.missing.iter().filter(|(_, excuse)| excuse.is_err()) {
            is_there[*number] = true;
        }
        is_there
    }

    /// Why the missing spans had to be waited for.
    pub(super) fn complaints(&self) -> String {
        let complaints = self.missing.iter().filter_map(|(number, excuse)| {
            let complaint = excuse.as_ref().err()?;
            Some(format!("#{number} {}: {complaint}", self.spans()[*number].name))
        });
        complaints.take(3).collect::<Vec<_>>().join("; ")
    }

    /// The excuse of the missing spans that have one; the plainest.
    pub(super) fn why(&self) -> Option<Why> {
        self.missing.iter().filter_map(|(_, excuse)| excuse.as_ref().ok()).min().copied()
    }

    pub(super) fn missing(&self) -> &[(usize, Result<Why, String>)] {
        &self.missing
    }

    fn spans(&self) -> &'a [Span<'s>] {
        &self.case.script.played.spans
    }

    fn excuse(&self, number: usize) -> Result<Why, String> {
        if let Some(announcement) = self.announced(number) {
            return Err(announcement);
        }
        let span = &self.spans()[number];
        let fate = self.case.script.travel.fates[number];
        if fate.is_withheld {
            return Ok(Why::Withheld);
        }
        if fate.is_lost {
            return Ok(Why::Lost);
        }
        let settlement = self.case.ended.finished.outcome.settlement.as_ref();
        if settlement.is_some_and(|settlement| settlement.drained) {
            return Err("the system had sent all of it".to_owned());
        }
        match self.quiet_at(span.process) {
            None => self.unheard(number),
            Some(quiet_at) if fate.at.is_none_or(|at| at + self.case.slack > quiet_at) => {
                Ok(Why::Late)
            }
            Some(quiet_at) => Err(format!(
                "process {} is quiet at {} ms, not before",
                span.process,
                quiet_at / MS
            )),
        }
    }

    /// The excuse of a span whose process was not heard.
    fn unheard(&self, number: usize) -> Result<Why, String> {
        let span = &self.spans()[number];
        let above = match span.parent {
            Parent::Span(parent) => Some(parent),
            Parent::Trigger | Parent::Absent(_) => span.caller,
        };
        if let Some((parent, excuse)) =
            self.missing.iter().find(|(number, _)| Some(*number) == above)
        {
            let excused = excuse.as_ref().map(|_| Why::WithParent);
            return excused.map_err(|_| format!("#{parent}, which announces it, is missing"));
        }
        if let Some(caller) = span.caller.filter(|caller| span.parent == Parent::Span(*caller))
            && self.is_leaf(caller)
        {
            return Ok(Why::Mislearned);
        }
        let service = self.case.script.system.processes[span.process].service;
        let fate = self.case.script.travel.fates[number];
        let until = self.case.script.played.answer_at + self.quiet(span.process);
        let is_known = self.case.memory.delay(service).is_some();
        match is_known && fate.at.is_some_and(|at| at + self.case.slack <= until) {
            true => Err(format!("s{service} was heard before, and comes until {} ms", until / MS)),
            false => Ok(Why::Unheard),
        }
    }

    /// What says that this span must come.
    fn announced(&self, number: usize) -> Option<String> {
        let there = |child: &usize| self.there.is_there[*child];
        let named = (0..self.spans().len()).filter(there).find(|child| {
            self.spans()[*child].parent == Parent::Span(number) && !self.may_be_orphan(*child)
        });
        if let Some(child) = named {
            return Some(format!("#{child} names it as its parent"));
        }
        let span = &self.spans()[number];
        if let Some(caller) = span.caller.filter(there)
            && let Some(words) = self.open_edge(caller)
        {
            return Some(words);
        }
        self.expected(span)
    }

    /// Whether a missing parent of this span means nothing.
    fn may_be_orphan(&self, number: usize) -> bool {
        let service = &self.case.script.system.service_of(self.spans()[number].process).name;
        let learned = self.case.learned.services.get(service);
        let is_learned = |it: &LearnedService| it.absent_parents() != AbsentParents::Unknown;
        self.case.script.test.absent.contains(service) || learned.is_some_and(is_learned)
    }

    /// Whether this call still waits for its other side.
    fn open_edge(&self, caller: usize) -> Option<String> {
        let edge = &self.spans()[caller];
        let answers = |number: usize| {
            let span = &self.spans()[number];
            self.there.is_there[number]
                && span.is_entry()
                && (span.parent == Parent::Span(caller) || span.link == Some(caller))
        };
        if !edge.is_edge() || edge.is_error || (0..self.spans().len()).any(answers) {
            return None;
        }
        let service = self.case.script.system.processes[edge.process].service;
        let peer = edge.peer();
        let is_known = peer.as_ref().is_some_and(|peer| {
            let learned = self.case.learned.services.get(&format!("s{service}"));
            self.case.memory.is_instrumented(service, peer)
                || learned.is_some_and(|it| it.instrumented.contains(peer))
        });
        if is_known {
            return Some(format!("#{caller} calls a peer that was heard before"));
        }
        let until = edge.end.unwrap_or_default() + UNKNOWN;
        let is_open = !self.is_leaf(caller) && self.case.ended.verdict_at + self.case.slack < until;
        is_open.then(|| format!("#{caller} calls it, until {} ms", until / MS))
    }

    /// Whether the peer of this call was learned to be one that never sends spans.
    fn is_leaf(&self, caller: usize) -> bool {
        let edge = &self.spans()[caller];
        let service = &self.case.script.system.service_of(edge.process).name;
        let learned = self.case.learned.services.get(service);
        let peer = edge.peer();
        peer.is_some_and(|peer| learned.is_some_and(|it| it.is_leaf(&peer)))
    }

    /// Whether the test says that this must come, and nothing like it did.
    fn expected(&self, span: &Span<'_>) -> Option<String> {
        let system = self.case.script.system;
        let there = || {
            let numbers = (0..self.spans().len()).filter(|number| self.there.is_there[*number]);
            numbers.map(|number| &self.spans()[number])
        };
        self.case.script.test.expected.iter().find_map(|expected| match expected {
            Expected::Service(name) => {
                let of_it = |span: &Span<'_>| system.service_of(span.process).name == *name;
                (of_it(span) && !there().any(of_it)).then(|| format!("{name} is expected"))
            }
            Expected::Span(filter) => {
                let is_new =
                    filter.takes(span, system) && !there().any(|there| filter.takes(there, system));
                is_new.then(|| format!("{filter} is expected"))
            }
        })
    }

    /// When this process had been quiet for its H, had everybody waited for that; none where it was not heard.
    fn quiet_at(&self, process: usize) -> Option<u64> {
        let of_it = |number: &usize| self.spans()[*number].process == process;
        let arrivals = |is_there: bool| {
            let numbers = (0..self.spans().len()).filter(of_it);
            let numbers = numbers.filter(move |number| self.there.is_there[*number] == is_there);
            numbers.filter_map(|number| self.case.script.travel.fates[number].at)
        };
        let quiet = self.quiet(process);
        let heard = arrivals(true).max()? + quiet;
        let mut later: Vec<_> = arrivals(false).collect();
        later.sort_unstable();
        let wait = |until: u64, at: u64| if at <= until { at + quiet } else { until };
        Some(later.into_iter().fold(heard, wait))
    }

    /// How long this process has to be quiet.
    pub(super) fn quiet(&self, process: usize) -> u64 {
        let (script, it) = (self.case.script, &self.case.script.system.processes[process]);
        let delays = self.spans().iter().enumerate().filter_map(|(number, span)| {
            let is_here = span.process == process && self.there.is_there[number];
            Some(script.travel.fates[number].at?.saturating_sub(span.end.filter(|_| is_here)?))
        });
        let seen = delays.max().unwrap_or_default();
        let half_more = |delay: u64| delay + delay / 2;
        let base = match (script.test.flush, script.system.started, it.is_marked) {
            (Some(flush), _, _) => flush,
            (None, Some(set), true) => 2 * set.as_nanos() as u64,
            _ => self.case.memory.delay(it.service).map_or(UNKNOWN, half_more),
        };
        // Longer than half of the timeout nobody waits, or no trace would ever be whole.
        let most = script.system.timeout().as_nanos() as u64 / 2;
        base.max(half_more(seen)).clamp(LEAST, most)
    }
}
