//! When is a trace whole?
//!
//! [`Engine`] knows what is missing and when each process has been quiet for long enough; here it is fed with arrivals
//! and asked. A run ends with the first of these: the trace is whole; what is there decides all that the test says;
//! nothing at all came; the time is up. Whatever is missing then is named. `docs/adr/0004-settling.md` has the reasons,
//! `docs/settling.md` the rules.
//!
//! Deliberately absent: asking a store. Spans are pushed.

mod edges;
mod engine;
mod gather;
mod linger;
mod parents;
pub(crate) mod peer;
mod process;

use std::{collections::VecDeque, future::Future, pin::pin, time::Duration};

use drivers::{Arrival, Arrivals};
use lang::Settle;
use model::{Answer, Judgement, Settlement, Timestamp, UnsettledReason, Verdict};
use tokio::{
    task::yield_now,
    time::{Instant, sleep_until},
};

pub(crate) use engine::{Engine, Rules, TraceEnd};
pub use gather::Limits;
pub(crate) use gather::TraceBuffer;
pub(crate) use linger::{LingerState, linger, linger_of, listen};
pub(crate) use peer::authority;

use crate::{Ports, clock::Clock, judging::JudgementContext};

/// What a trace is settled by.
#[derive(Debug)]
pub(crate) struct SettleContext<'a> {
    pub(crate) rule: Settle,
    pub(crate) judging: &'a JudgementContext,
    pub(crate) clock: Clock,
    /// When the whole run has to end.
    pub(crate) ends: Option<Instant>,
    /// Whether the test expects something to come.
    pub(crate) expects: bool,
}

/// A settled trace.
#[derive(Debug)]
pub(crate) struct SettledTrace {
    pub(crate) gathering: TraceBuffer,
    pub(crate) settlement: Settlement,
    /// The judgement, where what was there decided everything.
    pub(crate) judgement: Option<Judgement>,
    /// Whether all the time was waited that the test gives, and nobody cut it short.
    pub(crate) is_waited_out: bool,
    /// When the trigger was answered, and until when the test waits.
    pub(crate) span: (Timestamp, Instant),
}

/// How long what a system sent before it said that this was all may be on its way.
const DRAINED_MAX: Duration = Duration::from_secs(1);

/// How late a timer may be before the machine is taken to be too busy for others to be in time either.
const TIMER_LATE: Duration = Duration::from_millis(10);

/// How much longer is waited then, at most.
const GRACE_MAX: Duration = Duration::from_millis(200);

/// Of how many moments one is spent on judging early.
const EARLY_SHARE: u32 = 20;

/// How many messages are read before others get their turn.
const MESSAGES_AT_ONCE: usize = 16;

/// How many messages wait here while a trace is judged; further ones wait where they are.
const BACKLOG_MAX: usize = 4096;

/// Gathers the spans of a trace until it is whole, decided, or its time is up.
pub(crate) async fn settle<P: Ports>(
    gathering: TraceBuffer,
    waiting: &SettleContext<'_>,
    arrivals: &mut Arrivals,
    ports: &P,
) -> SettledTrace {
    let (answered, now) = (waiting.clock.now(), Instant::now());
    let patience = patience(&waiting.judging.answer, &waiting.rule, &gathering.engine);
    let deadline = waiting.ends.map_or(now + patience, |ends| ends.min(now + patience));
    let mut settling = SettleLoop::new(waiting, answered, deadline);
    settling.is_cut = waiting.ends.is_some_and(|ends| ends < now + patience);
    let (gathering, end) = settling.gather(gathering, arrivals, ports).await;
    settling.settled(gathering, end).await
}

/// How long to wait at most. A system that did not answer may have got nothing at all, so that its silence is
/// believed sooner; one that cannot have got anything is not waited for.
fn patience(answer: &Answer, rule: &Settle, engine: &Engine) -> Duration {
    match answer {
        Answer::Response(_) | Answer::Exit(_) | Answer::NotFired => rule.timeout,
        Answer::NoAnswer(no_answer) if no_answer.kind.is_unsent() => Duration::ZERO,
        Answer::NoAnswer(_) => rule.timeout.min(engine.unknown_quiet() * 2),
    }
}

/// The longest quiet that is asked of a process for being late: half of the time there is, so that one export that came
/// very late leaves later runs a chance to be whole.
pub(crate) fn quiet_max(rule: &Settle) -> Duration {
    (rule.timeout / 2).max(process::UNKNOWN)
}

/// Why the waiting ended.
enum End {
    /// The trace is whole, or its time is up: what is known of it says which.
    Over,
    /// What is there decides everything.
    Decided(Judgement),
}

struct SettleLoop<'a> {
    waiting: &'a SettleContext<'a>,
    answered: Timestamp,
    deadline: Instant,
    /// When the system had sent all it had, because it was told to.
    drained: Option<Instant>,
    /// Whether the deadline is the whole run's, and not the trace's.
    is_cut: bool,
    /// What came while the trace was judged.
    backlog: VecDeque<Arrival>,
    may_end_early: bool,
    /// How many spans the trace had when it was last judged.
    judged: usize,
    judge_not_before: Instant,
    /// How late the last timer was.
    late: Duration,
    /// The moment from which more time was given because of that, once.
    graced: Option<Instant>,
    /// How many spans the trace had when it was asked for what the test expects, and what was missing.
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
            if gathering.is_full() {
                return (gathering, End::Over);
            }
            // A system that is being told to flush is not left halfway.
            let looked = match is_draining && Instant::now() < self.deadline {
                true => Ok(self.deadline),
                false => self.look(&gathering, arrivals).await,
            };
            let until = match looked {
                Err(end @ End::Decided(_)) => return (gathering, end),
                // What came while it was looked at counts, before anything else is waited for.
                _ if !self.backlog.is_empty() => continue,
                Ok(until) => until,
                Err(end) => return (gathering, end),
            };
            tokio::select! {
                biased;
                next = arrivals.next() => match next {
                    Some(arrival) => self.backlog.push_back(arrival),
                    None => return (gathering, End::Over),
                },
                is_drained = &mut drain, if is_draining => {
                    is_draining = false;
                    if is_drained {
                        gathering.engine.drained();
                        self.drained = Some(Instant::now());
                    }
                }
                () = sleep_until(until) => self.late = until.elapsed(),
            }
        }
    }

    /// Takes in everything that has come, so that nothing is concluded while spans wait to be read.
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
            if gathering.is_full() {
                break;
            }
            if messages % MESSAGES_AT_ONCE == 0 {
                yield_now().await;
            }
        }
        gathering
    }

    /// Whether to end now, else when to look again if nothing comes.
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
        if whole <= now {
            if let Some(grace) = self.grace(whole) {
                return Ok(grace.min(deadline));
            }
            if self.missing(gathering, arrivals).await.is_empty() {
                return Err(End::Over);
            }
        }
        let again = self.judge_early(gathering, arrivals).await?;
        // What is whole but for what the test expects waits for that.
        let whole = if whole <= now { deadline } else { whole };
        Ok(again.map_or(whole, |again| again.min(whole)))
    }

    /// Until when more is waited, once, because the timer of this moment was late: then others may be late as well.
    fn grace(&mut self, of: Instant) -> Option<Instant> {
        let late = std::mem::take(&mut self.late);
        let is_granted = late > TIMER_LATE && self.graced != Some(of);
        is_granted.then(|| {
            self.graced = Some(of);
            Instant::now() + late.min(GRACE_MAX)
        })
    }

    /// When it is over. What a system that sent all it had did not send will not come.
    fn deadline(&self, gathering: &TraceBuffer) -> Instant {
        match self.drained {
            Some(drained) if gathering.engine.whole_at().is_none() => {
                self.deadline.min(drained + DRAINED_MAX)
            }
            _ => self.deadline,
        }
    }

    /// When the trace is whole, or nothing has come for so long that nothing will.
    fn whole_at(&self, gathering: &TraceBuffer) -> Option<Instant> {
        let clock = self.waiting.clock;
        if gathering.engine.spans() > 0 {
            return gathering.engine.whole_at().map(|at| clock.instant(at));
        }
        let patience = gathering.engine.patience();
        (!self.waiting.expects).then(|| clock.instant(self.answered) + patience)
    }

    /// What the test expects and what is not there.
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

    /// Judges what is there if it is new and it is time, and ends if that decides everything; else says when it is time.
    async fn judge_early(
        &mut self,
        gathering: &TraceBuffer,
        arrivals: &mut Arrivals,
    ) -> Result<Option<Instant>, End> {
        let spans = gathering.trace.len();
        // A trigger that came back would be judged as a span of the system.
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
        // What fails does so without what the test expects; what passes waits for that.
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

    /// Goes on to listen while something is found out.
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
