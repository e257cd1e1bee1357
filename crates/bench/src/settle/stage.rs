//! The environment of one run: responses and spans arrive at the times of the script.
//!
//! Deliberately absent: any decision. [`StagedRun`] holds the result of the run; other modules check it.

use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use drivers::{
    Arrival, Arrivals,
    receiver::{Counts, Foreign, ReceiverSnapshot},
};
use lang::{Files, Vars};
use model::{
    Answer, Attempt, Body, Key, KeyRing, LearnedProfile, NoAnswer, NoAnswerKind, Outcome,
    Overtaken, Progress, Request, Response, RunEvent, RunId, Timestamp, Trace, TraceId, Verdict,
};
use runner::{Job, LeaseLost, Limits, Ports, StartedProcesses};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use super::{
    chance::Dice,
    exit::{Exit, follow},
    noise::Noise,
    plan::Test,
    play::SimulatedRun,
    system::System,
    travel::{Piece, Travel},
    wire::{TOKEN, TraceOrigin, encode},
};

/// The start of the simulated time.
pub(super) const EPOCH: u64 = 1_800_000_000_000_000_000;
/// The capacity for messages that a run has not read yet; more than there ever are.
const MESSAGES_MAX: usize = 1024;

/// A run's script.
pub(super) struct Script<'s> {
    pub(super) system: &'s System,
    pub(super) test: &'s Test,
    pub(super) played: SimulatedRun<'s>,
    pub(super) travel: Travel,
    /// How long the run is watched after its last verdict.
    pub(super) watched: Duration,
    /// The exports of other clients meanwhile.
    pub(super) noise: Noise,
}

/// The result of a run. Times are nanoseconds since the trigger was fired.
pub(super) struct StagedRun {
    /// The outcome that determines the exit code, and the trace that was judged for it.
    pub(super) outcome: Outcome,
    pub(super) trace: Option<Arc<Trace>>,
    /// The first verdict.
    pub(super) first: Verdict,
    /// When the last verdict was available, and until when the run received spans.
    pub(super) verdict_at: u64,
    pub(super) watched_to: u64,
    pub(super) overtaken: Option<Overtaken>,
    /// Its observations for the learned profile.
    pub(super) seen: Vec<LearnedProfile>,
}

impl StagedRun {
    pub(super) fn of(exit: Exit, fired: Instant) -> Self {
        let since = |at: Instant| nanos(at.saturating_duration_since(fired));
        let (verdict_at, watched_to) = (since(exit.final_at), since(exit.watched_to));
        let Exit { outcome, trace, first, overtaken, seen, .. } = exit;
        Self { outcome, trace, first, verdict_at, watched_to, overtaken, seen }
    }

    /// Adds the observations to the learned profile of the next run.
    pub(super) fn teach(&self, learned: &mut LearnedProfile) {
        self.seen.iter().for_each(|seen| learned.observe(seen));
    }
}

/// The foreign spans that a receiver holds.
#[derive(Default)]
pub(super) struct Ring(Mutex<Vec<Foreign>>);

impl Ring {
    fn exports(&self) -> MutexGuard<'_, Vec<Foreign>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

struct SettleStage<'a, 's> {
    script: &'a Script<'s>,
    keys: &'a KeyRing,
    ring: &'a Ring,
    began: Instant,
    random: [u8; 32],
    state: Mutex<StageState>,
    fired: Notify,
}

#[derive(Default)]
struct StageState {
    sender: Option<mpsc::Sender<Arrival>>,
    fired: Option<(Instant, Attempt)>,
}

/// Plays a script for a run, and watches it.
pub(super) async fn perform(
    script: &Script<'_>,
    learned: &LearnedProfile,
    (keys, ring): (&KeyRing, &Ring),
    dice: &mut Dice,
) -> Result<StagedRun> {
    let (began, random) = (Instant::now(), random(dice));
    let stage = SettleStage {
        script,
        keys,
        ring,
        began,
        random,
        state: Mutex::default(),
        fired: Notify::new(),
    };
    let started = script
        .system
        .started
        .map(|batch_delay| StartedProcesses { marker: TOKEN.to_owned(), batch_delay });
    let job = Job {
        run_id: RunId::new(stage.now(), [1; 10]),
        plan: &script.test.plan,
        vars: &Vars::default(),
        files: &Files::default(),
        progress: Progress::New,
        limits: Limits::default(),
        learned,
        started: started.as_ref(),
        timeout: None,
    };
    let feeding = stage.feed();
    tokio::pin!(feeding);
    let ended = tokio::select! {
        biased;
        _ = &mut feeding => None,
        ended = async {
            // On the heap: many of these futures are joined, and an unoptimised build copies each of them several times.
            let finished = Box::pin(runner::run(job, &stage)).await?;
            anyhow::Ok(Box::pin(follow(finished, &stage, script.watched)).await)
        } => Some(ended),
    };
    let exit = ended.context("the world ended")??;
    let (fired, _) = stage.state().fired.context("nothing was fired")?;
    Ok(StagedRun::of(exit, fired))
}

impl SettleStage<'_, '_> {
    fn state(&self) -> MutexGuard<'_, StageState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Delivers the pieces at their arrival times; never ends.
    async fn feed(&self) -> std::convert::Infallible {
        self.fired.notified().await;
        let fired = self.state().fired;
        if let Some((fired, attempt)) = fired {
            let asked = TraceOrigin {
                trace: attempt.trace_id,
                trigger: Some(attempt.span_id),
                fired: EPOCH + nanos(fired - self.began),
            };
            for piece in &self.script.travel.pieces {
                sleep_until(fired + Duration::from_nanos(piece.at)).await;
                self.deliver(piece, &asked);
            }
        }
        std::future::pending().await
    }

    /// Delivers a piece to the run, and its foreign spans to the ring.
    fn deliver(&self, piece: &Piece, asked: &TraceOrigin) {
        let (system, played) = (self.script.system, &self.script.played);
        let is_own = |number: &usize| played.spans[*number].trace == 0;
        let (own, foreign): (Vec<_>, Vec<_>) = piece.spans.iter().copied().partition(is_own);
        let write =
            |spans: &[usize]| Bytes::from(encode((system, played), piece.process, spans, asked));
        let at = Instant::now();
        if !foreign.is_empty() {
            self.ring.exports().push(Foreign { at, bytes: write(&foreign) });
        }
        if let Some(sender) = self.state().sender.as_ref().filter(|_| !own.is_empty()) {
            // A run that has ended receives no more spans.
            sender.try_send(Arrival::pushed(write(&own))).ok();
        }
    }

    async fn until(&self, at: u64) {
        let fired = self.state().fired.map(|(fired, _)| fired);
        if let Some(fired) = fired {
            sleep_until(fired + Duration::from_nanos(at)).await;
        }
    }
}

impl Ports for SettleStage<'_, '_> {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(EPOCH).plus(self.began.elapsed())
    }

    fn random(&self) -> [u8; 32] {
        self.random
    }

    fn keys(&self) -> &KeyRing {
        self.keys
    }

    async fn spans(&self, _trace: TraceId) -> Arrivals {
        let (sender, receiver) = mpsc::channel(MESSAGES_MAX);
        self.state().sender = Some(sender);
        Arrivals::new(receiver)
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        let fired = self.state().fired.map(|(fired, _)| fired);
        let now = fired.map(|fired| nanos(fired.elapsed()));
        self.script.travel.refused_at.zip(now).is_some_and(|(at, now)| at <= now)
    }

    async fn other_servers(&self, _trace: TraceId) -> Result<Vec<String>, LeaseLost> {
        let has_one = self.script.system.troubles.has_second_receiver;
        Ok(has_one.then(|| "other:4317".to_owned()).into_iter().collect())
    }

    async fn seen(&self) -> Option<ReceiverSnapshot> {
        let mut foreign = self.ring.exports().clone();
        foreign.extend(self.script.noise.until(self.began));
        foreign.sort_by_key(|export| export.at);
        let counts = Counts::default();
        Some(ReceiverSnapshot {
            counts,
            connections: 0,
            requests: 0,
            refusals: Vec::new(),
            foreign,
            servers: None,
        })
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        self.state().fired = Some((Instant::now(), *attempt));
        self.fired.notify_one();
        self.until(self.script.played.answer_at).await;
        Ok(answer(&self.script.played))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn drain(&self) -> bool {
        if self.script.system.drains {
            self.until(self.script.travel.drained_at).await;
        }
        self.script.system.drains
    }

    fn tell(&self, _event: RunEvent) {}
}

/// Returns the response of the system.
pub(super) fn answer(played: &SimulatedRun<'_>) -> Answer {
    match played.status {
        Some(status) => Answer::Response(Response {
            status,
            headers: Vec::new(),
            body: Body::Text("".into()),
            duration_ns: played.answer_at,
        }),
        None => Answer::NoAnswer(NoAnswer {
            kind: NoAnswerKind::Connection,
            message: "the connection broke".to_owned(),
        }),
    }
}

/// Returns the random bytes for a run's ids.
pub(super) fn random(dice: &mut Dice) -> [u8; 32] {
    let mut random = [0; 32];
    random.chunks_mut(8).for_each(|part| part.copy_from_slice(&dice.next().to_be_bytes()));
    random
}

/// The keys of the simulated deployment.
pub(super) fn keys() -> KeyRing {
    KeyRing::new(Key::from_bytes([9; 16]), Vec::new())
}

fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
