//! Requests of others that the receiver hears of while a run goes on: whole traces of healthy requests to the same system.
//!
//! They say nothing of the run and must change nothing of it.

use std::time::Duration;

use bytes::Bytes;
use drivers::receiver::Foreign;
use model::TraceId;
use tokio::time::Instant;

use super::{
    chance::{Dice, between},
    play::{SimulatedRun, play},
    stage::EPOCH,
    system::{MS, System},
    wire::{TraceOrigin, encode},
};

/// Requests of others in a second.
const RATE: u64 = 200;
/// How long they go on; what is heard at the end of a long wait is no more than at its begin.
const LASTS_MS: u64 = 8_000;
/// Different requests, which come again and again.
const KINDS: usize = 16;

/// The requests of others, as exports with the time at which each comes; mostly none.
#[derive(Default)]
pub(super) struct Noise {
    exports: Vec<(Duration, Bytes)>,
}

impl Noise {
    /// Draws the requests of others to a system, from the begin of a run on.
    pub(super) fn draw(system: &System, dice: &mut Dice) -> Self {
        let others: Vec<_> = (0..KINDS).map(|_| play(system, dice, None)).collect();
        let mut exports = Vec::new();
        for number in 0..RATE * LASTS_MS / 1_000 {
            let at = number * 1_000 * MS / RATE + between(dice, 0, 4 * MS);
            let other = &others[dice.below(KINDS)];
            exports.extend(export(system, other, EPOCH + at, dice).map(|bytes| {
                let later = other.answer_at + between(dice, MS, 100 * MS);
                (Duration::from_nanos(at + later), bytes)
            }));
        }
        exports.sort_by_key(|(at, _)| *at);
        Self { exports }
    }

    pub(super) fn is_silent(&self) -> bool {
        self.exports.is_empty()
    }

    /// What came by now.
    pub(super) fn until(&self, began: Instant) -> impl Iterator<Item = Foreign> {
        let now = Instant::now();
        let came = self.exports.iter().map(move |(at, bytes)| (began + *at, bytes));
        came.take_while(move |(at, _)| *at <= now)
            .map(|(at, bytes)| Foreign { at, bytes: bytes.clone() })
    }
}

/// What the service that is called from outside sends of a request of somebody else.
fn export(system: &System, other: &SimulatedRun<'_>, fired: u64, dice: &mut Dice) -> Option<Bytes> {
    let mut trace = [0; 16];
    trace.chunks_mut(8).for_each(|part| part.copy_from_slice(&(dice.next() | 1).to_be_bytes()));
    // Who calls from outside sends no spans.
    let asked = TraceOrigin { trace: TraceId::from_bytes(trace)?, trigger: None, fired };
    let root = other.spans.first().filter(|root| root.end.is_some())?;
    let is_its = |number: &usize| {
        let span = &other.spans[*number];
        span.process == root.process && span.end.is_some() && span.trace == 0
    };
    let numbers: Vec<_> = (0..other.spans.len()).filter(is_its).collect();
    Some(Bytes::from(encode((system, other), root.process, &numbers, &asked)))
}
