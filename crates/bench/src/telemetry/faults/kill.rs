//! The program is killed at random moments, again and again, on one directory: while it starts, while it reads the files of the
//! program before it, while it sends. The Collector is stopped and restarted as well.

use std::{
    hash::{BuildHasher, RandomState},
    time::Duration,
};

use anyhow::{Context, Result};
use tokio::time::sleep;

use super::{Fault, Ground, collector::ids};
use crate::telemetry::{
    ended,
    kill::LOST_MAX,
    stand::TelemetryStand,
    subject::{Durability, EmitterLoad, Subject, Transport},
};

/// Spans per second.
const RATE: u64 = 2000;
/// The upper bound of a program's lifetime, in milliseconds.
const LIFE_MS: u64 = 1200;

/// A killed program loses at most its last milliseconds.
pub(super) async fn process(ground: &Ground) -> Result<Fault> {
    kills(ground, Durability::Process).await
}

/// A killed program that writes through loses nothing.
pub(super) async fn write_through(ground: &Ground) -> Result<Fault> {
    kills(ground, Durability::WriteThrough).await
}

async fn kills(ground: &Ground, durability: Durability) -> Result<Fault> {
    let mut fault = Fault::default();
    // Multiples of five: the Collector is down at the end.
    let kills = if ground.short { 5 } else { 100 };
    for transport in Transport::ALL {
        let mut stand =
            TelemetryStand::new(&ground.program, Subject::ours(durability, transport)).await?;
        let mut owed = Vec::new();
        for kill in 0..kills {
            if kill % 5 == 1 {
                stand.relay.start().await?;
            } else if kill % 5 == 4 {
                stand.relay.kill().await?;
            }
            let mut order = stand.order(EmitterLoad::Steady(RATE, 600_000));
            order.ended.set_extension(kill.to_string());
            order.throttle_ms = 50;
            let emitter = stand.emit(&order)?;
            sleep(some_time()).await;
            // For a program that was killed before its first span, no span is expected.
            let Ok((at, ended)) = emitter.kill().await else { continue };
            owed.push((ended, at));
        }
        stand.relay.start().await?;
        let last = stand.restart().await?.context("ours starts again")?;
        let counts = last.counts.context("ours counts")?;
        fault.promise(counts.delivered == counts.accepted, || format!("delivered: {counts:?}"));
        stand.quiet().await;
        let received = ids(&stand.sink);
        let (mut lost, mut oldest) = (0, Duration::ZERO);
        for (ended, at) in &owed {
            for span in ended.iter().filter(|span| !received.contains(&span.id)) {
                lost += 1;
                let age = ended::ran(ended, span.at, *at);
                oldest = oldest.max(age);
                if durability == Durability::WriteThrough || age > LOST_MAX {
                    fault.lost += 1;
                }
            }
            fault.accepted += ended.len() as u64;
        }
        fault.note(format!("{transport:?}: {kills} kills: {lost} lost, the oldest of {oldest:?}"));
    }
    Ok(fault)
}

fn some_time() -> Duration {
    Duration::from_millis(RandomState::new().hash_one(0_u8) % LIFE_MS)
}
