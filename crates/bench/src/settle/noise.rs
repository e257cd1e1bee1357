//! Requests of other clients during a run: complete foreign traces of healthy requests to the same system.
//!
//! They must not affect the run.

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

/// Requests of other clients per second.
const RATE: u64 = 200;
/// How long they continue; the end of a long wait has no more noise than its begin.
const LASTS_MS: u64 = 8_000;
/// Different requests, which repeat.
const KINDS: usize = 16;

/// The requests of other clients, as exports with their arrival times; mostly empty.
#[derive(Default)]
pub(super) struct Noise {
    exports: Vec<(Duration, Bytes)>,
}

impl Noise {
    /// Generates the requests of other clients to a system, from the begin of a run on.
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

    /// Returns the exports that arrived by now.
    pub(super) fn until(&self, began: Instant) -> impl Iterator<Item = Foreign> {
        let now = Instant::now();
        let came = self.exports.iter().map(move |(at, bytes)| (began + *at, bytes));
        came.take_while(move |(at, _)| *at <= now)
            .map(|(at, bytes)| Foreign { at, bytes: bytes.clone() })
    }
}

/// Encodes the export of the called service for a request of another client.
fn export(system: &System, other: &SimulatedRun<'_>, fired: u64, dice: &mut Dice) -> Option<Bytes> {
    let mut trace = [0; 16];
    trace.chunks_mut(8).for_each(|part| part.copy_from_slice(&(dice.next() | 1).to_be_bytes()));
    // The outside client sends no spans.
    let asked = TraceOrigin { trace: TraceId::from_bytes(trace)?, trigger: None, fired };
    let root = other.spans.first().filter(|root| root.end.is_some())?;
    let is_its = |number: &usize| {
        let span = &other.spans[*number];
        span.process == root.process && span.end.is_some() && span.trace == 0
    };
    let numbers: Vec<_> = (0..other.spans.len()).filter(is_its).collect();
    Some(Bytes::from(encode((system, other), root.process, &numbers, &asked)))
}
