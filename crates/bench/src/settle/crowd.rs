//! Eight concurrent runs, one of which loses a context: the other seven are decided as if they were alone.

use std::time::Duration;

use anyhow::Result;
use model::{LearnedProfile, Verdict};

use super::{
    USUAL,
    chance::Dice,
    noise::Noise,
    plan::Test,
    play::{CallTarget, SimulatedRun, play},
    stage::{self, Ring, Script, perform},
    system::{LARGE, Peer, System},
    travel::{Weather, travel},
};

/// Concurrent runs, including the one that loses a context.
const AT_A_TIME: usize = 8;
/// Requests that are played to find these.
const TRIES: usize = 60;

/// The effect of a run that lost a context on concurrent runs.
#[derive(Debug, Default)]
pub(super) struct Crowds {
    pub(super) others: u64,
    /// Runs with a verdict that differs from their verdict alone.
    pub(super) disturbed: u64,
    /// A system with such a run.
    pub(super) example: Option<u64>,
}

impl Crowds {
    pub(super) fn join(&mut self, other: &Self) {
        self.others += other.others;
        self.disturbed += other.disturbed;
        self.example = self.example.or(other.example);
    }

    /// Plays a system in which some requests lose a context and others do not; most systems have no such requests.
    pub(super) async fn play(&mut self, number: u64) -> Result<()> {
        let mut dice = Dice::new(number.wrapping_mul(0xa076_1d64_78bd_642f));
        let system = System::draw(&mut dice, LARGE);
        let usual: Vec<_> = (0..USUAL).map(|_| play(&system, &mut dice, None)).collect();
        let test = Test::draw(0, &system, &usual, &mut dice)?;
        let is_lost = |played: &SimulatedRun<'_>| played.spans.iter().any(|span| span.trace != 0);
        let tries: Vec<_> = (0..TRIES).map(|_| play(&system, &mut dice, None)).collect();
        let (lost, others): (Vec<_>, Vec<_>) = tries.into_iter().partition(is_lost);
        let others = others.into_iter().filter(is_healthy);
        let company = lost.into_iter().take(1).chain(others).take(AT_A_TIME);
        let scripts: Vec<_> =
            company.map(|played| script(&system, &test, played, &mut dice)).collect();
        // Without a lost context, the first run is one of the others.
        let Ok(scripts) = <[_; AT_A_TIME]>::try_from(scripts) else { return Ok(()) };
        if !is_lost(&scripts[0].played) {
            return Ok(());
        }
        let company = Box::pin(together(&scripts, &mut dice)).await?;
        for (script, verdict) in scripts.iter().zip(company).skip(1) {
            let alone = verdict_of(script, &Ring::default(), &mut dice).await?;
            self.others += 1;
            if alone != verdict {
                self.disturbed += 1;
                self.example = Some(number);
            }
        }
        Ok(())
    }
}

/// Whether each call of a service that sends spans has its other side.
fn is_healthy(played: &SimulatedRun<'_>) -> bool {
    let is_inside = |peer: &Peer| match peer {
        Peer::Service(name) | Peer::Address(name, _) => !name.starts_with("outside"),
        Peer::Unsaid => false,
    };
    let is_answered = |number: usize| {
        let mut others = played.spans.iter();
        others.any(|span| span.caller == Some(number) || span.is_inner_of(number))
    };
    played.spans.iter().enumerate().all(|(number, span)| match span.target {
        CallTarget::Peer(peer) => !is_inside(peer) || is_answered(number),
        CallTarget::None | CallTarget::Database | CallTarget::Queue(_) => true,
    })
}

fn script<'s>(
    system: &'s System,
    test: &'s Test,
    played: SimulatedRun<'s>,
    dice: &mut Dice,
) -> Script<'s> {
    let travel = travel(system, &played, Weather::Calm, dice);
    let watched = Duration::from_millis(1);
    Script { system, test, played, travel, watched, noise: Noise::default() }
}

/// Returns the verdicts of runs that share a receiver.
async fn together(scripts: &[Script<'_>; AT_A_TIME], dice: &mut Dice) -> Result<Vec<Verdict>> {
    let ring = Ring::default();
    let seeds = [(); AT_A_TIME].map(|()| dice.next());
    let run = async |at: usize| verdict_of(&scripts[at], &ring, &mut Dice::new(seeds[at])).await;
    let (a, b, c, d, e, f, g, h) =
        tokio::join!(run(0), run(1), run(2), run(3), run(4), run(5), run(6), run(7));
    [a, b, c, d, e, f, g, h].into_iter().collect()
}

async fn verdict_of(script: &Script<'_>, ring: &Ring, dice: &mut Dice) -> Result<Verdict> {
    let ended = perform(script, &LearnedProfile::default(), (&stage::keys(), ring), dice).await?;
    Ok(ended.outcome.verdict)
}
