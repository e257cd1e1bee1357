//! The environment of one run in real time.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result};
use drivers::Arrivals;
use lang::{Files, Vars};
use model::{
    Answer, Attempt, KeyRing, LearnedProfile, Progress, Request, RunEvent, RunId, Timestamp,
    TraceId,
};
use runner::{Job, LeaseLost, Limits, Ports, StartedProcesses};
use tokio::{
    sync::Notify,
    time::{Instant, sleep},
};

use super::{
    World,
    process::{Children, Task},
    relay::RelayWay,
};
use crate::{
    parts::unix_nanos,
    settle::{
        chance::Dice,
        exit::follow,
        stage::{Script, StagedRun, answer, keys, random},
        travel::{Fate, Loss, Piece, Travel, Weather},
        wire::TOKEN,
    },
};

/// The time to send the tasks to the processes before the first span is due.
const TELLING_NS: u64 = 2_000_000;

pub(super) struct RealStage<'a, 's> {
    script: &'a Script<'s>,
    world: &'a World,
    children: &'a Children,
    weather: Weather,
    dice: Dice,
    keys: KeyRing,
    random: [u8; 32],
    state: Mutex<Option<(u64, Attempt)>>,
    fired: Notify,
}

impl<'a, 's> RealStage<'a, 's> {
    pub(super) fn new(
        script: &'a Script<'s>,
        world: &'a World,
        children: &'a Children,
        weather: Weather,
        dice: &mut Dice,
    ) -> Self {
        Self {
            script,
            world,
            children,
            weather,
            random: random(dice),
            dice: Dice::new(dice.next()),
            keys: keys(),
            state: Mutex::default(),
            fired: Notify::new(),
        }
    }

    /// Plays the script for a run, and watches it.
    pub(super) async fn perform(self, learned: &LearnedProfile) -> Result<(StagedRun, Travel)> {
        let script = self.script;
        let started = script
            .system
            .started
            .map(|batch_delay| StartedProcesses { marker: TOKEN.to_owned(), batch_delay });
        let job = Job {
            run_id: RunId::new(self.now(), [1; 10]),
            plan: &script.test.plan,
            vars: &Vars::default(),
            files: &Files::default(),
            progress: Progress::New,
            limits: Limits::default(),
            learned,
            started: started.as_ref(),
            timeout: None,
        };
        let crashing = self.crash();
        tokio::pin!(crashing);
        let began = (Instant::now(), unix_nanos());
        let exit = tokio::select! {
            biased;
            failed = &mut crashing => return Err(failed),
            exit = async {
                let finished = runner::run(job, &self).await?;
                anyhow::Ok(follow(finished, &self, script.watched).await)
            } => exit?,
        };
        let (fired, attempt) = (*self.state()).context("nothing was fired")?;
        let ended = StagedRun::of(exit, began.0 + Duration::from_nanos(fired - began.1));
        let travel = travel(script, &self.world.relay.end(&attempt.trace_id), fired);
        Ok((ended, travel))
    }

    /// Kills the process of a crash at its time; returns only on failure.
    async fn crash(&self) -> anyhow::Error {
        self.fired.notified().await;
        if let Some(crash) = self.script.played.crash {
            self.until(crash.at).await;
            if let Err(error) = self.children.kill(crash.process).await {
                return error;
            }
        }
        std::future::pending().await
    }

    fn state(&self) -> MutexGuard<'_, Option<(u64, Attempt)>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn until(&self, at: u64) {
        let fired = self.state().map(|(fired, _)| fired).unwrap_or_default();
        sleep(Duration::from_nanos((fired + at).saturating_sub(unix_nanos()))).await;
    }

    async fn tell_all(&self, fired: u64, attempt: &Attempt) -> Result<()> {
        let (system, played) = (self.script.system, &self.script.played);
        let ids = (*attempt.trace_id.as_bytes(), *attempt.span_id.as_bytes());
        for process in 0..system.processes.len() {
            if let Some(task) = Task::of(system, process, played, ids, fired) {
                self.children.tell(process, &task).await?;
            }
        }
        Ok(())
    }
}

impl Ports for RealStage<'_, '_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(unix_nanos())
    }

    fn random(&self) -> [u8; 32] {
        self.random
    }

    fn keys(&self) -> &KeyRing {
        &self.keys
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        self.world.relay.expect(trace, self.weather, self.dice.clone());
        self.world.inbox.expect(trace)
    }

    fn has_lost_spans(&self, trace: TraceId) -> bool {
        self.world.inbox.refused(trace) > 0
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let fired = unix_nanos() + TELLING_NS;
        *self.state() = Some((fired, *attempt));
        self.tell_all(fired, attempt).await.map_err(|error| LeaseLost(format!("{error:#}")))?;
        self.fired.notify_one();
        self.until(self.script.played.answer_at).await;
        Ok(answer(&self.script.played))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    fn tell(&self, _event: RunEvent) {}
}

/// Returns the true arrivals of the spans.
fn travel(script: &Script<'_>, way: &RelayWay, fired: u64) -> Travel {
    let spans = &script.played.spans;
    let mut travel = Travel { fates: vec![Fate::default(); spans.len()], ..Travel::default() };
    let mut heard = way.heard.clone();
    heard.sort_by_key(|heard| heard.at_ns);
    for heard in heard {
        let at = heard.at_ns.saturating_sub(fired);
        let known = |id: &u64| spans.iter().position(|span| span.id == *id);
        let numbers: Vec<_> = heard.ids.iter().filter_map(known).collect();
        let Some(process) = numbers.first().map(|number| spans[*number].process) else { continue };
        let is_copy = numbers.iter().all(|number| travel.fates[*number].at.is_some());
        for number in &numbers {
            travel.fates[*number].at.get_or_insert(at);
        }
        travel.pieces.push(Piece { at, process, spans: numbers, is_copy });
    }
    for (number, span) in spans.iter().enumerate() {
        let fate = &mut travel.fates[number];
        let has_died = script.played.crash.is_some_and(|crash| crash.process == span.process);
        let is_lost = has_died && fate.at.is_none() && span.end.is_some();
        fate.loss = match way.withheld.contains(&span.id) {
            true => Some(Loss::Withheld),
            false => is_lost.then_some(Loss::Crashed),
        };
    }
    travel
}
