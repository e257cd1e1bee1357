//! The world of one run: answers and spans come when the script says so.
//!
//! Deliberately absent: any decision. What the run makes of it is told in [`Ended`] and looked at elsewhere.

use std::{
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use anyhow::{Context, Result};
use bytes::Bytes;
use drivers::{Arrival, Arrivals};
use lang::{Files, Vars};
use model::{
    Answer, Attempt, Body, Event, Key, KeyRing, Learned, NoAnswer, NoAnswerKind, Overtaken,
    Progress, Request, Response, RunId, Timestamp, TraceId,
};
use runner::{Finished, Job, Limits, Lost, Ports, Started, Watched};
use tokio::{
    sync::{Notify, mpsc},
    time::{Instant, sleep_until},
};

use super::{
    chance::Dice,
    plan::Test,
    play::Played,
    system::System,
    travel::Travel,
    wire::{Asked, TOKEN, encode},
};

/// When the simulated world began.
const EPOCH: u64 = 1_800_000_000_000_000_000;
/// Messages that a run has not read yet; more than there ever are.
const MESSAGES_MAX: usize = 1024;

/// A run's script.
pub(super) struct Script<'s> {
    pub(super) system: &'s System,
    pub(super) test: &'s Test,
    pub(super) played: Played<'s>,
    pub(super) travel: Travel,
    /// How long the run is watched after its verdict.
    pub(super) watched: Duration,
}

/// What came of a run.
pub(super) struct Ended {
    pub(super) finished: Finished,
    /// When the verdict was there, and until when spans were listened for, in nanoseconds since the trigger was fired.
    pub(super) verdict_at: u64,
    pub(super) watched_to: u64,
    pub(super) overtaken: Option<Overtaken>,
    /// What the watch has learned.
    pub(super) seen_late: Learned,
}

struct Stage<'a, 's> {
    script: &'a Script<'s>,
    keys: &'a KeyRing,
    began: Instant,
    random: [u8; 32],
    state: Mutex<State>,
    fired: Notify,
}

#[derive(Default)]
struct State {
    sender: Option<mpsc::Sender<Arrival>>,
    fired: Option<(Instant, Attempt)>,
}

/// Plays a script to a run, and watches it.
pub(super) async fn perform(
    script: &Script<'_>,
    learned: &Learned,
    keys: &KeyRing,
    dice: &mut Dice,
) -> Result<Ended> {
    let (began, random) = (Instant::now(), random(dice));
    let stage =
        Stage { script, keys, began, random, state: Mutex::default(), fired: Notify::new() };
    let started =
        script.system.started.map(|batch_delay| Started { marker: TOKEN.to_owned(), batch_delay });
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
    let finished = tokio::select! {
        biased;
        _ = &mut feeding => None,
        finished = runner::run(job, &stage) => Some(finished),
    };
    let mut finished = finished.context("the world ended")??;
    let (fired, _) = stage.state().fired.context("nothing was fired")?;
    let verdict_at = nanos(fired.elapsed());
    let end = Instant::now() + script.watched;
    let watched = match finished.watch.take() {
        None => None,
        Some(watch) => tokio::select! {
            biased;
            _ = &mut feeding => None,
            watched = watch.until(sleep_until(end)) => Some(watched),
        },
    };
    let watched_to = nanos(fired.elapsed());
    let Watched { overtaken, seen } = watched.unwrap_or_default();
    Ok(Ended { finished, verdict_at, watched_to, overtaken, seen_late: seen })
}

impl Stage<'_, '_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands over what arrives, when it does; never ends.
    async fn feed(&self) -> std::convert::Infallible {
        self.fired.notified().await;
        let fired = self.state().fired;
        if let Some((fired, attempt)) = fired {
            let asked = Asked {
                trace: attempt.trace_id,
                trigger: attempt.span_id,
                fired: EPOCH + nanos(fired - self.began),
            };
            for piece in &self.script.travel.pieces {
                sleep_until(fired + Duration::from_nanos(piece.at)).await;
                let bytes = encode(self.script.system, &self.script.played, piece, &asked);
                let arrival = Arrival { at: Instant::now(), bytes: Bytes::from(bytes) };
                if let Some(sender) = &self.state().sender {
                    // A run that has let go hears nothing more.
                    sender.try_send(arrival).ok();
                }
            }
        }
        std::future::pending().await
    }

    async fn until(&self, at: u64) {
        let fired = self.state().fired.map(|(fired, _)| fired);
        if let Some(fired) = fired {
            sleep_until(fired + Duration::from_nanos(at)).await;
        }
    }
}

impl Ports for Stage<'_, '_> {
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
        false
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), Lost> {
        Ok(())
    }

    async fn fire(&self, _request: &Request, attempt: &Attempt) -> Result<Answer, Lost> {
        self.state().fired = Some((Instant::now(), *attempt));
        self.fired.notify_one();
        self.until(self.script.played.answer_at).await;
        Ok(answer(&self.script.played))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), Lost> {
        Ok(())
    }

    async fn drain(&self) -> bool {
        if self.script.system.drains {
            self.until(self.script.travel.drained_at).await;
        }
        self.script.system.drains
    }

    fn tell(&self, _event: Event) {}
}

/// What the system answers.
pub(super) fn answer(played: &Played<'_>) -> Answer {
    match played.status {
        Some(status) => Answer::Response(Response {
            status,
            headers: Vec::new(),
            body: Body::Text(String::new()),
            duration_ns: played.answer_at,
        }),
        None => Answer::NoAnswer(NoAnswer {
            kind: NoAnswerKind::Connection,
            message: "the connection broke".to_owned(),
        }),
    }
}

/// What a run's ids are drawn from.
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
