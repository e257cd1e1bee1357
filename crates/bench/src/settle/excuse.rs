//! Excuses for spans that were missing at a verdict: the run could neither have waited for them nor known of them.

use model::{AbsentParents, LearnedService};

use super::{
    lateness::listened_until,
    plan::ExpectedSpan,
    play::{Parent, SimulatedSpan},
    referee::{SettleCase, SettleRule},
    statement::{SettleStatement, There},
    system::{MS, SECOND},
    travel::Loss,
};

/// The possible lateness of an unknown process or peer.
const UNKNOWN: u64 = 6 * SECOND;
/// The minimum waiting time.
const LEAST: u64 = 20 * MS;

/// The upper bound of the difference of synchronized clocks.
const IN_STEP: i64 = 15 * MS as i64;

/// The reason why the run could not have waited or known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Why {
    Withheld,
    Crashed,
    /// Its service does not send it.
    Unsent,
    /// It is in its own trace, and nothing ties that to its call: an unnamed peer, or unsynchronized clocks.
    Untied,
    /// It arrived after the complete waiting time.
    Late,
    /// No span of its process arrived, and nothing announced one.
    Unheard,
    /// In all earlier runs its side of the call did not arrive either.
    Mislearned,
    /// Only a span that is missing itself, with an excuse, could have announced it.
    WithParent,
}

/// The rule that a missing span breaks, with a description.
#[derive(Clone, Debug)]
pub(super) struct Complaint {
    pub(super) rule: SettleRule,
    words: String,
}

type Excuse = Result<Why, Complaint>;

fn broken<T>(rule: SettleRule, words: impl Into<String>) -> Result<T, Complaint> {
    Err(Complaint { rule, words: words.into() })
}

pub(super) struct Excuses<'a, 's> {
    case: &'a SettleCase<'a, 's>,
    there: &'a There<'a, 's>,
    /// Until when the run had to receive spans.
    listened_until: u64,
    /// For how long it had to linger after that.
    linger: u64,
    /// For each missing span its excuse, or the reason why there is none.
    missing: Vec<(usize, Excuse)>,
}

impl<'a, 's> Excuses<'a, 's> {
    pub(super) fn new(case: &'a SettleCase<'a, 's>, there: &'a There<'a, 's>) -> Self {
        // A run waits at most half of the timeout, and concludes nothing after the timeout.
        let timeout = case.script.system.timeout().as_nanos() as u64;
        let linger = case.memory.linger(case.script.test.number).min(timeout / 2);
        let listened_until = listened_until(case.script, linger.saturating_sub(case.slack));
        let listened_until = listened_until.min(case.script.played.answer_at + timeout);
        let mut excuses = Self { case, there, listened_until, linger, missing: Vec::new() };
        let spans = &case.script.played.spans;
        // Callers come before their callees.
        for (number, span) in spans.iter().enumerate() {
            if span.end.is_some() && !there.is_there[number] {
                let excuse = excuses.excuse(number);
                excuses.missing.push((number, excuse));
            }
        }
        excuses
    }

    /// Returns the present spans, and those that had to be known by this rule and the rules before it.
    pub(super) fn known(&self, rule: SettleRule) -> There<'a, 's> {
        let mut known = self.there.clone();
        known.has_dropped = rule >= SettleRule::Dropped;
        for (number, excuse) in &self.missing {
            if let Err(complaint) = excuse
                && complaint.rule <= rule
            {
                known.is_there[*number] = true;
            }
        }
        known
    }

    /// Returns the present spans, and those of silent services that a statement names; none if no call is unanswered.
    pub(super) fn named(&self, statement: &SettleStatement) -> Option<There<'a, 's>> {
        let system = self.case.script.system;
        let is_silent = |number: usize| {
            let service = &system.service_of(self.spans()[number].process).name;
            let of_it = |it: usize| system.service_of(self.spans()[it].process).name == *service;
            self.case.script.travel.fates[number].loss == Some(Loss::Unsent)
                && statement.names(service)
                && !(0..self.spans().len()).any(|it| self.there.is_there[it] && of_it(it))
        };
        let is_open = |number: usize| {
            let it = &self.spans()[number];
            self.there.is_there[number] && !it.is_error && self.is_unanswered(number)
        };
        if !(0..self.spans().len()).any(is_open) {
            return None;
        }
        let mut named = self.there.clone();
        for number in (0..self.spans().len()).filter(|number| is_silent(*number)) {
            named.is_there[number] = self.spans()[number].end.is_some();
        }
        Some(named)
    }

    /// Renders the reasons why the missing spans had to be waited for, or known of.
    pub(super) fn complaints(&self) -> String {
        let complaints = self.missing.iter().filter_map(|(number, excuse)| {
            let complaint = excuse.as_ref().err()?;
            Some(format!("#{number} {}: {}", self.spans()[*number].name, complaint.words))
        });
        complaints.take(3).collect::<Vec<_>>().join("; ")
    }

    /// Returns the excuse of the missing spans that have one; the first in order.
    pub(super) fn why(&self) -> Option<Why> {
        self.missing.iter().filter_map(|(_, excuse)| excuse.as_ref().ok()).min().copied()
    }

    pub(super) fn missing(&self) -> &[(usize, Excuse)] {
        &self.missing
    }

    fn spans(&self) -> &'a [SimulatedSpan<'s>] {
        &self.case.script.played.spans
    }

    fn excuse(&self, number: usize) -> Excuse {
        self.evidence(number)?;
        if let Some(announcement) = self.announced(number) {
            return broken(SettleRule::Announced, announcement);
        }
        let span = &self.spans()[number];
        let fate = self.case.script.travel.fates[number];
        if span.trace != 0 {
            return Ok(Why::Untied);
        }
        if fate.at.is_some_and(|at| at <= self.listened_until) {
            let is_fresh = self.case.memory.is_fresh(self.case.script.test.number);
            let rule = if is_fresh { SettleRule::Fresh } else { SettleRule::Shown };
            let (until, linger) = (self.listened_until / MS, self.linger / MS);
            return broken(rule, format!("to be heard until {until} ms, lingering {linger} ms"));
        }
        match fate.loss {
            Some(Loss::Withheld) => return Ok(Why::Withheld),
            Some(Loss::Crashed) => return Ok(Why::Crashed),
            Some(Loss::Unsent) => return Ok(Why::Unsent),
            Some(Loss::Elsewhere | Loss::Refused) | None => {}
        }
        let settlement = self.case.ended.outcome.settlement.as_ref();
        if settlement.is_some_and(|settlement| settlement.drained) {
            return broken(SettleRule::Announced, "the system had sent all of it");
        }
        match self.quiet_at(span.process) {
            None => self.without_arrival(number),
            Some(quiet_at) if fate.at.is_none_or(|at| at + self.case.slack > quiet_at) => {
                Ok(Why::Late)
            }
            Some(quiet_at) => {
                let (process, quiet_at) = (span.process, quiet_at / MS);
                broken(
                    SettleRule::Announced,
                    format!("process {process} is quiet at {quiet_at} ms"),
                )
            }
        }
    }

    /// Checks for evidence at the receiver against a complete trace without this span.
    fn evidence(&self, number: usize) -> Result<(), Complaint> {
        let travel = &self.case.script.travel;
        let is_known = |at: u64| {
            let is_before = at + self.case.slack < self.case.ended.verdict_at;
            is_before || at < self.listened_until + self.linger.saturating_sub(2 * MS)
        };
        match travel.fates[number].loss {
            Some(Loss::Elsewhere) => {
                return broken(SettleRule::SecondReceiver, "it went to another server");
            }
            Some(Loss::Refused) if travel.refused_at.is_some_and(is_known) => {
                return broken(SettleRule::Refused, "it was refused");
            }
            _ => {}
        }
        let mut at = number;
        while self.spans()[at].trace != 0 {
            let is_root = |span: &SimulatedSpan<'_>| {
                span.trace == self.spans()[at].trace && matches!(span.parent, Parent::Lost(_))
            };
            let Some(root) = self.spans().iter().position(is_root) else { break };
            let Parent::Lost(caller) = self.spans()[root].parent else { break };
            if self.is_tied(caller, root) && travel.fates[root].at.is_some_and(is_known) {
                let words = format!("#{root} began its trace, which #{caller} called");
                return broken(SettleRule::LostContext, words);
            }
            at = caller;
        }
        Ok(())
    }

    /// Whether the receiver can see that a trace began where this call was made.
    fn is_tied(&self, caller: usize, root: usize) -> bool {
        let (edge, root) = (&self.spans()[caller], &self.spans()[root]);
        let skew = |span: &SimulatedSpan<'_>| self.case.script.system.processes[span.process].skew;
        // A message with one present receiver is answered, and foreign traces of other receivers are no evidence.
        let answers = |(number, span): (usize, &SimulatedSpan<'_>)| {
            let is_its = span.parent == Parent::Span(caller) || span.link == Some(caller);
            is_its && span.caller == Some(caller) && self.there.is_there[number]
        };
        self.there.is_there[caller]
            && edge.peer().is_some()
            && !self.spans().iter().enumerate().any(answers)
            && [edge, root].into_iter().all(|span| skew(span).abs() <= IN_STEP)
    }

    /// Returns the excuse of a span of a process without arrived spans.
    fn without_arrival(&self, number: usize) -> Excuse {
        let span = &self.spans()[number];
        let above = match span.parent {
            Parent::Span(parent) | Parent::Lost(parent) => Some(parent),
            Parent::Trigger | Parent::Absent(_) => span.caller,
        };
        if let Some((parent, excuse)) =
            self.missing.iter().find(|(number, _)| Some(*number) == above)
        {
            return match excuse {
                Ok(_) => Ok(Why::WithParent),
                Err(complaint) => {
                    broken(complaint.rule, format!("#{parent}, which announces it, is missing"))
                }
            };
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
            true => {
                let until = until / MS;
                let words = format!("s{service} was heard before, and comes until {until} ms");
                broken(SettleRule::Announced, words)
            }
            false => Ok(Why::Unheard),
        }
    }

    /// Returns the announcement of this span, if any.
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

    /// Whether a missing parent of this span is no evidence.
    fn may_be_orphan(&self, number: usize) -> bool {
        let service = &self.case.script.system.service_of(self.spans()[number].process).name;
        let learned = self.case.learned.services.get(service);
        let is_learned = |it: &LearnedService| it.absent_parents() != AbsentParents::Unknown;
        self.case.script.test.absent.contains(service) || learned.is_some_and(is_learned)
    }

    /// Whether this is a call without its other side.
    fn is_unanswered(&self, caller: usize) -> bool {
        let answers = |number: usize| {
            let span = &self.spans()[number];
            // A call that continues through another one has the other side of that.
            self.there.is_there[number]
                && (span.is_entry() || span.is_edge())
                && (span.parent == Parent::Span(caller) || span.link == Some(caller))
        };
        self.spans()[caller].is_edge() && !(0..self.spans().len()).any(answers)
    }

    /// Whether this call still waits for its other side.
    fn open_edge(&self, caller: usize) -> Option<String> {
        let edge = &self.spans()[caller];
        if !self.is_unanswered(caller) || edge.is_error {
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

    /// Whether the learned profile marks the peer of this call as one that never sends spans.
    fn is_leaf(&self, caller: usize) -> bool {
        let edge = &self.spans()[caller];
        let service = &self.case.script.system.service_of(edge.process).name;
        let learned = self.case.learned.services.get(service);
        let peer = edge.peer();
        peer.is_some_and(|peer| learned.is_some_and(|it| it.is_leaf(&peer)))
    }

    /// Whether the test expects this span, and no such span arrived.
    fn expected(&self, span: &SimulatedSpan<'_>) -> Option<String> {
        let system = self.case.script.system;
        let there = || {
            let numbers = (0..self.spans().len()).filter(|number| self.there.is_there[*number]);
            numbers.map(|number| &self.spans()[number])
        };
        self.case.script.test.expected.iter().find_map(|expected| match expected {
            ExpectedSpan::Service(name) => {
                let of_it =
                    |span: &SimulatedSpan<'_>| system.service_of(span.process).name == *name;
                (of_it(span) && !there().any(of_it)).then(|| format!("{name} is expected"))
            }
            ExpectedSpan::Span(filter) => {
                let is_new =
                    filter.takes(span, system) && !there().any(|there| filter.takes(there, system));
                is_new.then(|| format!("{filter} is expected"))
            }
        })
    }

    /// Returns when this process had been quiet for its quiet period, if all spans had been waited for; none without an arrived
    /// span.
    fn quiet_at(&self, process: usize) -> Option<u64> {
        let of_it = |number: &usize| {
            self.spans()[*number].process == process && self.spans()[*number].trace == 0
        };
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

    /// Returns the quiet period of this process.
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
        // At most half of the timeout, or no trace would ever be complete.
        let most = script.system.timeout().as_nanos() as u64 / 2;
        base.max(half_more(seen)).clamp(LEAST, most)
    }
}
