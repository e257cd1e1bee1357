//! How spans get from their processes to the run: batches, and a chaos sender between.
//!
//! Each process sends what has ended by its own batch delay. What is between delays, reorders, duplicates, splits and
//! withholds. Deliberately absent: bytes.

use super::{
    chance::{Dice, between, percent},
    play::Played,
    system::{Batch, MS, SECOND, System},
};

/// How bad the way is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Weather {
    Calm,
    /// Delays, reorders, duplicates and splits.
    Rough,
    /// Withholds as well.
    Withholding,
}

/// Spans of one process that arrive together.
pub(super) struct Piece {
    pub(super) at: u64,
    pub(super) process: usize,
    pub(super) spans: Vec<usize>,
    /// Whether they came before.
    pub(super) is_copy: bool,
}

/// What became of a span.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Fate {
    /// When it arrives first.
    pub(super) at: Option<u64>,
    pub(super) is_withheld: bool,
    /// It was in the batch of a process that died.
    pub(super) is_lost: bool,
}

/// All that arrives, in order.
#[derive(Default)]
pub(super) struct Travel {
    pub(super) pieces: Vec<Piece>,
    /// By the number of the span.
    pub(super) fates: Vec<Fate>,
    /// When a system that is told to send all it has, has done so.
    pub(super) drained_at: u64,
}

pub(super) fn travel(
    system: &System,
    played: &Played<'_>,
    weather: Weather,
    dice: &mut Dice,
) -> Travel {
    let mut fates = vec![Fate::default(); played.spans.len()];
    let mut pieces = Vec::new();
    let mut drained_at = played.answer_at;
    for process in 0..system.processes.len() {
        let mut ended: Vec<_> = (0..played.spans.len())
            .filter(|span| played.spans[*span].process == process)
            .filter_map(|span| Some((played.spans[span].end?, span)))
            .collect();
        ended.sort_unstable();
        let drain = system.drains.then_some(played.answer_at);
        let crash = played.crash.filter(|crash| crash.process == process);
        for (sent, spans) in batches(&ended, system.processes[process].batch, drain, dice) {
            if crash.is_some_and(|crash| crash.at < sent) {
                spans.iter().for_each(|span| fates[*span].is_lost = true);
                continue;
            }
            for spans in split(spans, weather, dice) {
                let delay = delay(weather, dice);
                let withheld = withheld(weather, dice);
                if withheld != Some(None) {
                    let at = whole_ms(sent + delay + withheld.flatten().unwrap_or_default());
                    if withheld.is_none() {
                        drained_at = drained_at.max(at);
                    }
                    if let Some(at) = copied(at, weather, dice) {
                        pieces.push(Piece { at, process, spans: spans.clone(), is_copy: true });
                    }
                    spans.iter().for_each(|span| fates[*span].at = Some(at));
                    pieces.push(Piece { at, process, spans: spans.clone(), is_copy: false });
                }
                if withheld.is_some() {
                    spans.iter().for_each(|span| fates[*span].is_withheld = true);
                }
            }
        }
    }
    pieces.sort_by_key(|piece| piece.at);
    Travel { pieces, fates, drained_at: whole_ms(drained_at) }
}

/// What a process sends, with the times.
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

/// Whether it is withheld, and if it comes at all, for how long.
fn withheld(weather: Weather, dice: &mut Dice) -> Option<Option<u64>> {
    let is_withheld = weather == Weather::Withholding && percent(dice, 10);
    is_withheld.then(|| percent(dice, 50).then(|| between(dice, SECOND, 40 * SECOND)))
}

/// When it comes again, if it does.
fn copied(at: u64, weather: Weather, dice: &mut Dice) -> Option<u64> {
    let is_copied = weather != Weather::Calm && percent(dice, 10);
    is_copied.then(|| whole_ms(at + between(dice, 0, 3 * SECOND)))
}

/// Timers have a grain of a millisecond.
fn whole_ms(at: u64) -> u64 {
    at.div_ceil(MS) * MS
}
