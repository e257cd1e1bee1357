//! The transport of spans from their processes to the run: batches, and a chaos sender between.
//!
//! Each process exports its ended spans by its own batch delay. The transport delays, reorders, duplicates, splits and withholds.
//! Deliberately absent: bytes.

use super::{
    chance::{Dice, between, percent},
    play::{SimulatedRun, SimulatedSpan},
    system::{Batch, MS, SECOND, System},
    trouble::Exports,
};

/// The quality of the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weather {
    Calm,
    /// Delays, reorders, duplicates and splits.
    Rough,
    /// Withholds as well.
    Withholding,
    /// Rough, and the receiver refuses some exports.
    Refusing,
}

/// Spans of one process that arrive together.
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) process: usize,
    pub(super) spans: Vec<usize>,
    /// Whether they arrived before.
    pub(super) is_copy: bool,
}

/// The fate of a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// When it arrives first.
    pub(super) at: Option<u64>,
    pub(super) loss: Option<Loss>,
}

/// The reason why a span arrives late or never.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Loss {
    /// The transport holds it back, for long or for ever.
    Withheld,
    /// It was in the batch of a process that died.
    Crashed,
    /// Its service does not send it.
    Unsent,
    /// It goes to another server.
    Elsewhere,
    /// The receiver refuses it.
    Refused,
}

/// All arrivals, in order.
#[derive(Default)]
pub(super) struct Travel {
    pub(super) pieces: Vec<Piece>,
    /// By the number of the span.
    pub(super) fates: Vec<Fate>,
    /// When a system that was requested to flush has done so.
    pub(super) drained_at: u64,
    /// When the receiver first refused an export.
    pub(super) refused_at: Option<u64>,
}

pub(super) fn travel(
    system: &System,
    played: &SimulatedRun<'_>,
    weather: Weather,
    dice: &mut Dice,
) -> Travel {
    let fates = vec![Fate::default(); played.spans.len()];
    let mut travel = Travel { fates, drained_at: played.answer_at, ..Travel::default() };
    for process in 0..system.processes.len() {
        let ended = travel.sent_by(system, played, process, dice);
        let drain = system.drains.then_some(played.answer_at);
        let crash = played.crash.filter(|crash| crash.process == process);
        for (sent, spans) in batches(&ended, system.processes[process].batch, drain, dice) {
            if crash.is_some_and(|crash| crash.at < sent) {
                travel.lose(&spans, Loss::Crashed);
                continue;
            }
            for spans in split(spans, weather, dice) {
                let piece =
                    Piece { at: sent + delay(weather, dice), process, spans, is_copy: false };
                travel.send(piece, weather, dice);
            }
        }
    }
    travel.pieces.sort_by_key(|piece| piece.at);
    travel.drained_at = whole_ms(travel.drained_at);
    travel
}

impl Travel {
    /// Returns the spans that a process sends here, by their end times.
    fn sent_by(
        &mut self,
        system: &System,
        played: &SimulatedRun<'_>,
        process: usize,
        dice: &mut Dice,
    ) -> Vec<(u64, usize)> {
        let mut ended = Vec::new();
        for (number, span) in played.spans.iter().enumerate() {
            let Some(end) = span.end.filter(|_| span.process == process) else { continue };
            if !is_sent(system, span, dice) {
                self.lose(&[number], Loss::Unsent);
            } else if system.processes[process].is_elsewhere {
                self.lose(&[number], Loss::Elsewhere);
            } else {
                ended.push((end, number));
            }
        }
        ended.sort_unstable();
        ended
    }

    /// Sends a piece, with the faults of the transport.
    fn send(&mut self, mut piece: Piece, weather: Weather, dice: &mut Dice) {
        if weather == Weather::Refusing && percent(dice, 15) {
            let at = whole_ms(piece.at);
            self.refused_at = Some(self.refused_at.map_or(at, |first| first.min(at)));
            // A flushed system has tried this export too.
            self.drained_at = self.drained_at.max(at);
            return self.lose(&piece.spans, Loss::Refused);
        }
        let withheld = withheld(weather, dice);
        if withheld.is_some() {
            self.lose(&piece.spans, Loss::Withheld);
        }
        if withheld == Some(None) {
            return;
        }
        piece.at = whole_ms(piece.at + withheld.flatten().unwrap_or_default());
        if withheld.is_none() {
            self.drained_at = self.drained_at.max(piece.at);
        }
        if let Some(at) = copied(piece.at, weather, dice) {
            self.pieces.push(Piece { at, spans: piece.spans.clone(), is_copy: true, ..piece });
        }
        piece.spans.iter().for_each(|span| self.fates[*span].at = Some(piece.at));
        self.pieces.push(piece);
    }

    fn lose(&mut self, spans: &[usize], loss: Loss) {
        spans.iter().for_each(|span| self.fates[*span].loss = Some(loss));
    }
}

/// Whether a span's service sends it at all.
fn is_sent(system: &System, span: &SimulatedSpan<'_>, dice: &mut Dice) -> bool {
    match system.service_of(span.process).exports {
        Exports::All => true,
        Exports::Nothing => false,
        Exports::Calls => span.is_entry() || span.is_edge(),
        Exports::Half => percent(dice, 50),
    }
}

/// Returns the batches of a process, with their times.
fn batches(
    ended: &[(u64, usize)],
    batch: Batch,
    drain: Option<u64>,
    dice: &mut Dice,
) -> Vec<(u64, Vec<usize>)> {
    let phase = between(dice, 0, batch.delay - 1);
    let mut batches: Vec<(u64, Vec<usize>)> = Vec::new();
    for (end, span) in ended {
        let by_itself = match batch.is_periodic {
            true => phase + (end.saturating_sub(phase)).div_ceil(batch.delay) * batch.delay,
            false => match batches.last() {
                Some((sent, _)) if *sent >= *end => *sent,
                _ => end + batch.delay,
            },
        };
        let sent = drain.map_or(by_itself, |drain| by_itself.min(drain.max(*end)));
        match batches.last_mut() {
            Some((last, spans)) if *last == sent => spans.push(*span),
            _ => batches.push((sent, vec![*span])),
        }
    }
    batches
}

fn split(spans: Vec<usize>, weather: Weather, dice: &mut Dice) -> Vec<Vec<usize>> {
    if weather == Weather::Calm || spans.len() < 2 || percent(dice, 50) {
        return vec![spans];
    }
    let mut parts = vec![Vec::new(); 2 + dice.below(2)];
    for span in spans {
        let part = dice.below(parts.len());
        parts[part].push(span);
    }
    parts.retain(|part| !part.is_empty());
    parts
}

fn delay(weather: Weather, dice: &mut Dice) -> u64 {
    match (weather, dice.below(40)) {
        (Weather::Calm, _) => between(dice, MS / 5, 4 * MS),
        (_, 0) => between(dice, 0, 2 * SECOND),
        (_, 1..6) => between(dice, 0, 150 * MS),
        _ => between(dice, MS / 5, 20 * MS),
    }
}

/// Whether it is withheld, and for how long if it arrives at all.
fn withheld(weather: Weather, dice: &mut Dice) -> Option<Option<u64>> {
    let is_withheld = weather == Weather::Withholding && percent(dice, 10);
    is_withheld.then(|| percent(dice, 50).then(|| between(dice, SECOND, 40 * SECOND)))
}

/// When a copy arrives, if one does.
fn copied(at: u64, weather: Weather, dice: &mut Dice) -> Option<u64> {
    let is_copied = weather != Weather::Calm && percent(dice, 10);
    is_copied.then(|| whole_ms(at + between(dice, 0, 3 * SECOND)))
}

/// Timers have a granularity of a millisecond.
fn whole_ms(at: u64) -> u64 {
    at.div_ceil(MS) * MS
}
