//! From a provisional verdict to the final one: continues to listen for work that no span announces.
//!
//! `docs/adr/0023-provisional-and-final.md` has the reasons and the risk.

use std::{future::Future, pin::pin, time::Duration};

use drivers::Arrivals;
use lang::Settle;
use model::{LearnedTest, Timestamp};
use tokio::time::{Instant, sleep_until};

use super::{SettleContext, SettleLoop, TraceBuffer, process};
use crate::{
    clock::Clock,
    judging::JudgementContext,
    plant::{Plant, is_planted},
};

/// The state of a settled trace that lingers until its verdict is final.
#[derive(Clone, Debug)]
pub(crate) struct LingerState {
    pub(crate) rule: Settle,
    pub(crate) judging: JudgementContext,
    pub(crate) clock: Clock,
    /// Whether the test expects services or spans.
    pub(crate) expects: bool,
    pub(crate) answered: Timestamp,
    /// Until when the test waits.
    pub(crate) deadline: Instant,
}

/// How long a run waits for unannounced work, while too few runs have shown how long that takes.
const LINGER: Duration = Duration::from_secs(1);

/// Listens until the verdict on a complete trace is final, calls `ready`, and continues until `end`.
///
/// Spans that arrive in the meantime are added and linger as well; after `end` only briefly.
pub(crate) async fn linger(
    mut gathering: TraceBuffer,
    lingering: &LingerState,
    arrivals: &mut Arrivals,
    ready: impl FnOnce(),
    end: impl Future<Output = ()>,
) -> TraceBuffer {
    let LingerState { rule, judging, clock, expects, answered, deadline } = lingering;
    let (rule, clock, expects) = (*rule, *clock, *expects);
    let waiting = SettleContext { rule, judging, clock, ends: None, expects, since: None };
    let length = gathering.engine.linger();
    let mut settling =
        SettleLoop::new(&waiting, *answered, (*deadline).max(Instant::now() + length));
    let (mut end, mut is_ended, mut is_open) = (pin!(end), false, true);
    let mut ready = Some(ready);
    loop {
        gathering = settling.take_all(gathering, arrivals).await;
        let next = match gathering.is_closed() || !is_open {
            true => None,
            false => settling.look_on(&gathering, arrivals).await,
        };
        // Spans that arrived during the check count.
        if !settling.backlog.is_empty() {
            continue;
        }
        if next.is_none() {
            if let Some(ready) = ready.take() {
                ready();
            }
            if is_ended {
                return gathering;
            }
        }
        tokio::select! {
            biased;
            next = arrivals.next(), if is_open => match next {
                Some(arrival) => settling.backlog.push_back(arrival),
                None => is_open = false,
            },
            () = &mut end, if !is_ended => {
                is_ended = true;
                if ready.is_none() {
                    settling.deadline = settling.deadline.min(Instant::now() + length.max(LINGER));
                }
            }
            () = sleep_until(next.unwrap_or_else(Instant::now)), if next.is_some() => {
                settling.late = next.map_or(Duration::ZERO, |next| next.elapsed());
            }
        }
    }
}

/// Listens until `end`, and adds the spans that arrive.
pub(crate) async fn listen(
    mut gathering: TraceBuffer,
    arrivals: &mut Arrivals,
    end: impl Future<Output = ()>,
) -> TraceBuffer {
    let mut end = pin!(end);
    loop {
        tokio::select! {
            biased;
            () = &mut end => break,
            arrival = arrivals.next() => match arrival {
                Some(arrival) => gathering = gathering.take(arrival).await,
                None => {
                    end.await;
                    break;
                }
            },
        }
    }
    while let Some(arrival) = arrivals.waiting() {
        gathering = gathering.take(arrival).await;
    }
    gathering
}

/// Returns how long a verdict is provisional: the time that runs of this test have shown, with a margin, and at least one
/// second while there are too few runs.
pub(crate) fn linger_of(known: Option<&LearnedTest>, rule: &Settle) -> Duration {
    if is_planted(Plant::LingerOff) {
        return Duration::ZERO;
    }
    let shown = known.map_or(Duration::ZERO, LearnedTest::longest_gap).saturating_mul(3) / 2;
    let is_known = |it: &LearnedTest| it.is_known() || is_planted(Plant::LearnsEarly);
    let least = if known.is_some_and(is_known) { process::LEAST } else { LINGER };
    shown.max(least).min(rule.timeout.max(LINGER))
}

impl SettleLoop<'_> {
    /// Returns when to check again whether the verdict is final if no span arrives; none if it is, or if the time is up.
    async fn look_on(
        &mut self,
        gathering: &TraceBuffer,
        arrivals: &mut Arrivals,
    ) -> Option<Instant> {
        let now = Instant::now();
        if now >= self.deadline {
            return None;
        }
        let at = gathering.engine.final_at().map(|at| self.waiting.clock.instant(at));
        let at = at.map_or(self.deadline, |at| at.min(self.deadline));
        arrivals.want(at);
        if at > now {
            return Some(at);
        }
        if !self.is_known(gathering, at) {
            return Some(self.deadline);
        }
        if let Some(grace) = self.grace(at) {
            return Some(grace.min(self.deadline));
        }
        match self.missing(gathering, arrivals).await.is_empty() {
            true => None,
            false => Some(self.deadline),
        }
    }
}
