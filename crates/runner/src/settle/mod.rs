//! Settling: decides when a trace is complete.
//!
//! [`Engine`] computes what is missing and when each process has been quiet for its quiet period. This module feeds it with
//! arrivals and queries it. A run ends with the first of these: the trace is complete; the present spans decide all statements
//! of the test; no span arrived at all; the timeout expires. The settlement then names what is missing.
//! `docs/adr/0004-settling.md` has the reasons, `docs/settling.md` the rules.
//!
//! Absence is concluded as of the watermark: now for pushed spans, the beginning of the last complete answer for a source that is
//! queried. Deliberately absent: the queries themselves.

mod arrival_counts;
mod edges;
mod engine;
mod gather;
mod linger;
mod parents;
pub(crate) mod peer;
mod process;
mod rules;

use std::{collections::VecDeque, future::Future, pin::pin, sync::Arc, time::Duration};

use drivers::{Arrival, Arrivals};
use lang::Settle;
use model::{Answer, Judgement, Settlement, Timestamp, UnsettledReason, Verdict};
use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

pub(crate) use engine::{Engine, TraceEnd};
pub use gather::Limits;
pub(crate) use gather::TraceBuffer;
pub(crate) use linger::{LingerState, linger, linger_of, listen};
pub(crate) use peer::authority;
pub(crate) use rules::Rules;

use crate::{clock::Clock, judging::JudgementContext, ports::Ports, snapshot::TraceSnapshot};

/// The inputs of settling a trace.
#[derive(Debug)]
pub(crate) struct SettleContext<'a> {
    pub(crate) rule: Settle,
    pub(crate) judging: &'a JudgementContext,
    pub(crate) clock: Clock,
    /// The deadline of the complete run.
    pub(crate) ends: Option<Instant>,
    /// Whether the test expects services or spans.
    pub(crate) expects: bool,
    /// No span of the trace began earlier, if that is known.
    pub(crate) since: Option<Timestamp>,
}

/// A settled trace.
#[derive(Debug)]
pub(crate) struct SettledTrace {
    pub(crate) gathering: TraceBuffer,
    pub(crate) settlement: Settlement,
    /// The judgement, if the present spans decided everything.
    pub(crate) judgement: Option<Judgement>,
    /// Whether the run waited for the complete timeout of the test, without being cut short.
    pub(crate) is_waited_out: bool,
    /// When the trigger ended, and until when the test waits.
    pub(crate) span: (Timestamp, Instant),
}

/// How long spans may be in transit after a system reported that it flushed all of them.
const DRAINED_MAX: Duration = Duration::from_secs(1);

/// How late a timer may fire before the machine counts as overloaded, so that other processes may be late as well.
const TIMER_LATE: Duration = Duration::from_millis(10);

/// The upper bound of the additional wait in that case.
const GRACE_MAX: Duration = Duration::from_millis(200);

/// The share of time that is spent on early judging: one part in this many.
const EARLY_SHARE: u32 = 20;

/// The upper bound of messages that are decoded before other tasks get their turn.
const MESSAGES_AT_ONCE: usize = 16;

/// The upper bound of messages that wait here while a trace is judged; further ones wait in the channel.
const BACKLOG_MAX: usize = 4096;

/// Collects the spans of a trace until it is complete, decided, or its time is up.
pub(crate) async fn settle<P: Ports>(
    mut gathering: TraceBuffer,
    waiting: &SettleContext<'_>,
    arrivals: &mut Arrivals,
    ports: &P,
) -> SettledTrace {
    gathering.require_coverage(arrivals.sources(), arrivals.needs_proof());
    arrivals.start(waiting.since);
    let (answered, now) = (waiting.clock.now(), Instant::now());
    let patience = patience(&waiting.judging.answer, &waiting.rule, &gathering.engine);
    let deadline = waiting.ends.map_or(now + patience, |ends| ends.min(now + patience));
    let mut settling = SettleLoop::new(waiting, answered, deadline);
    settling.is_cut = waiting.ends.is_some_and(|ends| ends < now + patience);
    let left = deadline.saturating_duration_since(now);
    ports.debug(format_args!("settling begins: the trace has at most {left:?}"));
    let (gathering, end) = settling.gather(gathering, arrivals, ports).await;
    let settled = settling.settled(gathering, end).await;
    let (spans, reason) = (settled.settlement.spans, settled.settlement.reason());
    ports.debug(format_args!(
        "settling ends after {:?} with {spans} spans: {reason}",
        now.elapsed()
    ));
    settled
}

/// Returns the maximum wait. A system that did not respond may not have received the request, so the run waits for less time; a
/// system that cannot have received it is not waited for.
fn patience(answer: &Answer, rule: &Settle, engine: &Engine) -> Duration {
    match answer {
        Answer::Response(_) | Answer::Exit(_) | Answer::Reply(_) | Answer::NotFired => rule.timeout,
        Answer::NoAnswer(no_answer) if no_answer.kind.is_unsent() => Duration::ZERO,
        Answer::NoAnswer(_) => rule.timeout.min(engine.unknown_quiet() * 2),
    }
}

/// Returns the longest quiet period that a late process gets: half of the timeout, so that later runs can still become complete
/// after one very late export.
pub(crate) fn quiet_max(rule: &Settle) -> Duration {
    (rule.timeout / 2).max(process::UNKNOWN)
}

/// Why the wait ended.
enum End {
    /// The trace is complete, or its time is up: the settlement states which.
    Over,
    /// The present spans decide everything.
    Decided(Judgement),
}

struct SettleLoop<'a> {
    waiting: &'a SettleContext<'a>,
    answered: Timestamp,
    deadline: Instant,
    /// When all spans that the system flushed on request were to be seen.
    drained: Option<Instant>,
    /// Whether the deadline is that of the complete run, and not that of the trace.
    is_cut: bool,
    /// The arrivals during judging.
    backlog: VecDeque<Arrival>,
    may_end_early: bool,
    /// The number of spans of the trace when it was last judged.
    judged: usize,
    judge_not_before: Instant,
    /// How late the last timer fired.
    late: Duration,
    /// The number of spans that was noted last.
    noted: u64,
    /// The instant at which a grace period for that was granted, once.
    graced: Option<Instant>,
    /// The number of spans when the trace was last checked for expected services and spans, and those that were missing.
    expected: Option<(usize, Vec<String>)>,
}

impl<'a> SettleLoop<'a> {
    fn new(waiting: &'a SettleContext<'a>, answered: Timestamp, deadline: Instant) -> Self {
        Self {
            waiting,
            answered,
            deadline,
            drained: None,
            is_cut: false,
            backlog: VecDeque::new(),
            may_end_early: waiting.judging.resolved.may_end_early(),
            judged: 0,
            judge_not_before: Instant::now(),
            late: Duration::ZERO,
            noted: 0,
            graced: None,
            expected: None,
        }
    }
}

impl SettleLoop<'_> {
    async fn gather<P: Ports>(
        &mut self,
        mut gathering: TraceBuffer,
        arrivals: &mut Arrivals,
        ports: &P,
    ) -> (TraceBuffer, End) {
        let mut drain = pin!(ports.drain());
        let mut is_draining = self.waiting.judging.answer.is_answered();
        loop {
            gathering = self.take_all(gathering, arrivals).await;
            self.note_spans(&gathering, ports);
            if gathering.is_closed() {
                return (gathering, End::Over);
            }
            // A flush of the system that has started is not interrupted.
            let looked = match is_draining && Instant::now() < self.deadline {
                true => Ok(self.deadline),
                false => self.look(&gathering, arrivals).await,
            };
            let until = match looked {
                Err(end @ End::Decided(_)) => return (gathering, end),
                // Spans that arrived during the check count before any further wait.
                _ if !self.backlog.is_empty() => continue,
                Ok(until) => until,
                Err(end) => return (gathering, end),
            };
            tokio::select! {
                biased;
                request = ports.snapshot_request() => {
                    request.answer(|needs_spans| self.snapshot(&gathering, needs_spans));
                }
                next = arrivals.next() => match next {
                    Some(arrival) => self.backlog.push_back(arrival),
                    None => return (gathering, End::Over),
                },
                is_drained = &mut drain, if is_draining => {
                    is_draining = false;
                    ports.debug(format_args!("the system was asked to flush its spans: {is_drained}"));
                    if is_drained {
                        gathering.engine.drained(self.waiting.clock.now());
                        self.drained = Some(Instant::now() + gathering.engine.lag());
                    }
                }
                () = sleep_until(until) => self.late = until.elapsed(),
            }
        }
    }

    /// Notes how many spans there are, each time that they are twice as many, and when the trace is complete without more.
    fn note_spans<P: Ports>(&mut self, gathering: &TraceBuffer, ports: &P) {
        let spans = gathering.engine.spans();
        if spans < self.noted.saturating_mul(2).max(1) {
            return;
        }
        self.noted = spans;
        let whole = gathering.engine.whole_at().map(|at| at.since(self.waiting.clock.now()));
        match whole {
            Some(left) => ports.debug(format_args!(
                "{spans} spans are here; the trace is complete in {left:?} if no more come"
            )),
            None => ports.debug(format_args!(
                "{spans} spans are here; a parent or the other side of a call is missing"
            )),
        }
    }

    /// Adds all arrivals, so that nothing is concluded while spans wait to be decoded.
    async fn take_all(
        &mut self,
        mut gathering: TraceBuffer,
        arrivals: &mut Arrivals,
    ) -> TraceBuffer {
        let mut messages = 0;
        while let Some(arrival) = self.backlog.pop_front().or_else(|| arrivals.waiting()) {
            gathering = gathering.take(arrival).await;
            self.late = Duration::ZERO;
            messages += 1;
            if gathering.is_closed() {
                break;
            }
            if messages % MESSAGES_AT_ONCE == 0 {
                yield_now().await;
            }
        }
        gathering
    }

    /// Returns whether to end now, else when to check again if no span arrives.
    async fn look(
        &mut self,
        gathering: &TraceBuffer,
        arrivals: &mut Arrivals,
    ) -> Result<Instant, End> {
        let (now, deadline) = (Instant::now(), self.deadline(gathering));
        if now >= deadline {
            return Err(End::Over);
        }
        let whole = self.whole_at(gathering).map_or(deadline, |at| at.min(deadline));
        let is_known = self.is_known(gathering, whole);
        if !is_known {
            arrivals.want(whole);
        }
        if whole <= now && is_known {
            if let Some(grace) = self.grace(whole) {
                return Ok(grace.min(deadline));
            }
            if self.missing(gathering, arrivals).await.is_empty() {
                return Err(End::Over);
            }
        }
        let again = self.judge_early(gathering, arrivals).await?;
        // A trace that is complete except for expected services or spans waits for them, and one of a queried source for the
        // next complete answer.
        let whole = if whole <= now { deadline } else { whole };
        Ok(again.map_or(whole, |again| again.min(whole)))
    }

    /// Whether absence is known at this time.
    fn is_known(&self, gathering: &TraceBuffer, at: Instant) -> bool {
        self.waiting.clock.instant(gathering.watermark()) >= at
    }

    /// Grants a grace period, once, because the timer of this instant fired late: other processes may then be late as well.
    fn grace(&mut self, of: Instant) -> Option<Instant> {
        let late = std::mem::take(&mut self.late);
        let is_granted = late > TIMER_LATE && self.graced != Some(of);
        is_granted.then(|| {
            self.graced = Some(of);
            Instant::now() + late.min(GRACE_MAX)
        })
    }

    /// Returns the deadline. After a flush, spans that the system did not send will not arrive.
    fn deadline(&self, gathering: &TraceBuffer) -> Instant {
        match self.drained {
            Some(drained) if gathering.engine.whole_at().is_none() => {
                self.deadline.min(drained + DRAINED_MAX)
            }
            _ => self.deadline,
        }
    }

    /// Returns when the trace is complete, or when no span has arrived for so long that none will.
    fn whole_at(&self, gathering: &TraceBuffer) -> Option<Instant> {
        let clock = self.waiting.clock;
        if gathering.engine.spans() > 0 {
            return gathering.engine.whole_at().map(|at| clock.instant(at));
        }
        let patience = gathering.engine.patience();
        (!self.waiting.expects).then(|| clock.instant(self.answered) + patience)
    }

    /// Returns the services and selectors that the test expects and that are missing.
    async fn missing(&mut self, gathering: &TraceBuffer, arrivals: &mut Arrivals) -> &[String] {
        let spans = gathering.trace.len();
        if !self.waiting.expects || gathering.engine.spans() == 0 {
            self.expected = Some((spans, Vec::new()));
        } else if self.expected.as_ref().is_none_or(|(looked_at, _)| *looked_at != spans) {
            let judging = self.waiting.judging;
            let missing = judging.expected_missing(&gathering.trace);
            let missing = self.meanwhile(arrivals, missing).await;
            self.expected = Some((spans, missing));
        }
        self.expected.as_ref().map_or(&[], |(_, missing)| missing)
    }

    /// Judges the present spans if they are new and it is time; ends if they decide everything, else returns when it is time.
    async fn judge_early(
        &mut self,
        gathering: &TraceBuffer,
        arrivals: &mut Arrivals,
    ) -> Result<Option<Instant>, End> {
        let spans = gathering.trace.len();
        // A trigger span that came back would be judged as a span of the system.
        let is_news = spans > self.judged && !gathering.engine.has_trigger_come_back();
        if !self.may_end_early || !is_news {
            return Ok(None);
        }
        let began = Instant::now();
        if began < self.judge_not_before {
            return Ok(Some(self.judge_not_before));
        }
        let settlement = self.not_waited(gathering);
        let judging = self.waiting.judging;
        let judgement = judging.judge(Some(&gathering.trace), Some(&settlement));
        let judgement = self.meanwhile(arrivals, judgement).await;
        // A failed verdict does not need the expected spans; a passed verdict waits for them.
        let is_passed = judgement.verdict == Verdict::Passed;
        if judging.resolved.is_decided(&judgement)
            && (!is_passed || self.missing(gathering, arrivals).await.is_empty())
        {
            return Err(End::Decided(judgement));
        }
        self.judged = spans;
        self.judge_not_before = Instant::now() + began.elapsed() * EARLY_SHARE;
        Ok(None)
    }

    /// Continues to receive arrivals while `work` runs.
    async fn meanwhile<T>(&mut self, arrivals: &mut Arrivals, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            tokio::select! {
                biased;
                done = &mut work => return done,
                Some(arrival) = arrivals.next(), if self.backlog.len() < BACKLOG_MAX => {
                    self.backlog.push_back(arrival);
                }
            }
        }
    }

    /// Returns what a person who looks on sees.
    fn snapshot(&self, gathering: &TraceBuffer, needs_spans: bool) -> TraceSnapshot {
        let settlement = gathering.settlement(self.answered, self.waiting.clock.now());
        let trace = needs_spans.then(|| Arc::clone(&gathering.trace));
        TraceSnapshot::new(settlement, trace, self.waiting.judging.resolved.secrets())
    }

    fn not_waited(&self, gathering: &TraceBuffer) -> Settlement {
        let mut settlement = gathering.settlement(self.answered, self.waiting.clock.now());
        settlement.unsettled = vec![UnsettledReason::NotWaited];
        if gathering.engine.spans() == 0 {
            settlement.unsettled.push(UnsettledReason::NoTelemetry);
        }
        settlement
    }

    async fn settled(self, gathering: TraceBuffer, end: End) -> SettledTrace {
        let judging = self.waiting.judging;
        let is_waited_out = !self.is_cut && Instant::now() >= self.deadline(&gathering);
        let (mut settlement, judgement) = match end {
            End::Decided(judgement) => (self.not_waited(&gathering), Some(judgement)),
            End::Over => {
                let now = self.waiting.clock.now();
                let mut settlement = gathering.settlement(self.answered, now);
                if self.waiting.expects && gathering.engine.spans() > 0 {
                    let missing = judging.expected_missing(&gathering.trace).await;
                    if !missing.is_empty() {
                        settlement.unsettled.push(UnsettledReason::ExpectedAbsent(missing));
                    }
                }
                (settlement, None)
            }
        };
        if !judging.answer.is_answered() {
            settlement.unsettled.insert(0, UnsettledReason::NotAnswered);
        }
        let span = (self.answered, self.deadline);
        SettledTrace { gathering, settlement, judgement, is_waited_out, span }
    }
}
