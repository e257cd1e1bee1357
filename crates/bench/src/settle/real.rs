//! The same proof in real time: each process of a generated system is an OS process, and exports its spans through the stock SDK.
//!
//! A chaos relay is between them and the real receiver that the run reads from. The truth is the tasks of the processes, and the
//! times of the receiver's acknowledgements. Deliberately absent: controlled times, so that a seed reproduces only the system.

mod process;
mod relay;
mod stage;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use anyhow::{Context, Result};
use drivers::{
    inbox::{self, Inbox},
    receiver::{self, Receiver},
};
use model::LearnedProfile;
use tokio::task::JoinSet;

use super::{
    Run,
    chance::{Dice, between, percent},
    memory::Memory,
    noise::Noise,
    plan::Test,
    play::{Crash, play},
    referee::{SettleCase, rule},
    stage::{Script, keys},
    story,
    system::{MS, SMALL, System},
    tally::{self, SettleTally},
    travel::{Travel, Weather},
};
use process::Children;
pub use process::child;
use relay::SpanRelay;

use crate::parts::unix_nanos;

/// All of them concurrently.
const SYSTEMS: u64 = 50;
const RUNS_OF_SYSTEM: u64 = 4;
/// The accuracy of an arrival time: a busy machine acknowledges late.
const SLACK: u64 = 100 * MS;
const TESTS: usize = 4;
const USUAL: usize = 12;

/// The state that all systems share.
struct World {
    program: PathBuf,
    inbox: Arc<Inbox>,
    relay: SpanRelay,
    _receiver: Receiver,
}

/// Plays two hundred runs, many concurrently, with this program as each of the processes.
pub async fn runs(program: &Path) -> Result<SettleTally> {
    let began = unix_nanos();
    let inbox = Arc::new(Inbox::new(keys(), inbox::Limits::default()));
    let address = "127.0.0.1:0".parse()?;
    let receiver =
        receiver::start(receiver::Config::new(vec![address]), Arc::clone(&inbox)).await?;
    let target = receiver.addresses().first().copied().context("the receiver listens nowhere")?;
    let relay = SpanRelay::start(target).await?;
    let program = program.to_owned();
    let world = Arc::new(World { program, inbox, relay, _receiver: receiver });
    let mut playing = JoinSet::new();
    for number in 0..SYSTEMS {
        let world = Arc::clone(&world);
        playing.spawn(async move { system(&world, number).await });
    }
    let mut all = SettleTally::default();
    while let Some(tally) = playing.join_next().await {
        all.join(tally??);
    }
    (all.nanos, all.is_real) = (unix_nanos() - began, true);
    Ok(all)
}

/// Plays the runs of one system, one after the other.
async fn system(world: &World, number: u64) -> Result<SettleTally> {
    let mut dice = Dice::new(number.wrapping_mul(0x9e6c_63d0_876a_68ee));
    let system = System { drains: false, ..System::draw(&mut dice, SMALL) };
    let usual: Vec<_> = (0..USUAL).map(|_| play(&system, &mut dice, None)).collect();
    let tests: Vec<_> = (0..TESTS)
        .map(|number| Test::draw(number, &system, &usual, &mut dice))
        .collect::<Result<_>>()
        .with_context(|| format!("system {number}"))?;
    let children = Children::start(&world.program, world.relay.port(), &system).await?;
    let (mut learned, mut memory, mut tally) =
        (LearnedProfile::default(), Memory::default(), SettleTally::default());
    for run in 0..RUNS_OF_SYSTEM {
        let weather = match dice.below(10) {
            0..4 => Weather::Calm,
            4..8 => Weather::Rough,
            _ => Weather::Withholding,
        };
        let crash = percent(&mut dice, 8).then(|| Crash {
            process: dice.below(system.processes.len()),
            at: between(&mut dice, MS, 150 * MS),
        });
        let mut script = Script {
            system: &system,
            test: &tests[dice.below(tests.len())],
            played: play(&system, &mut dice, crash),
            travel: Travel::default(),
            watched: Duration::from_millis(between(&mut dice, 200, 700)),
            noise: Noise::default(),
        };
        let stage = stage::RealStage::new(&script, world, &children, weather, &mut dice);
        let (ended, travel) = stage.perform(&learned).await?;
        script.travel = travel;
        let case = SettleCase {
            script: &script,
            ended: &ended,
            memory: &memory,
            learned: &learned,
            slack: SLACK,
        };
        let ruling = rule(&case);
        let run = Run { seed: number * RUNS_OF_SYSTEM + run, weather, case, ruling };
        tally.add(&run);
        if run.ruling.is_wrong() {
            // It cannot be reproduced.
            tally::say(&story::write(&run)?);
        }
        memory.keep(&script, &ended);
        ended.teach(&mut learned);
        if let Some(crash) = crash {
            children.restart(crash.process).await?;
        }
    }
    Ok(tally)
}
