//! Telemetry that a system itself withholds, besides the faults of the transport.
//!
//! A trouble belongs to a system and lasts for all of its runs, like a service without an exporter. Deliberately absent: losses
//! in transport (`travel`), and processes that die (`play`).

use super::chance::{Dice, between, percent};

/// How often a system has any trouble, in percent: about half of the systems are healthy, like most real ones.
const TROUBLED: usize = 45;

/// The troubles of a system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Troubles {
    /// Some calls and messages lose the context: the callee begins its own trace.
    pub(super) loses_contexts: bool,
    /// A service sends no spans.
    pub(super) is_silent: bool,
    /// A service sends some of its spans.
    pub(super) is_half_silent: bool,
    /// A service drops attributes and events, and counts them.
    pub(super) drops: bool,
    /// Some clients give up while their servers continue.
    pub(super) gives_up: bool,
    /// Some processes send their spans to another server.
    pub(super) has_second_receiver: bool,
}

impl Troubles {
    /// Generates the troubles of a system: mostly none, else mostly one.
    pub(super) fn draw(dice: &mut Dice) -> Self {
        let mut troubles = Self::default();
        let count = match percent(dice, TROUBLED) {
            true => 1 + usize::from(percent(dice, 15)),
            false => 0,
        };
        for _ in 0..count {
            *match dice.below(6) {
                0 => &mut troubles.loses_contexts,
                1 => &mut troubles.is_silent,
                2 => &mut troubles.is_half_silent,
                3 => &mut troubles.drops,
                4 => &mut troubles.gives_up,
                _ => &mut troubles.has_second_receiver,
            } = true;
        }
        troubles
    }

    /// Returns how often a call or message loses the context, in percent; mostly always or never.
    pub(super) fn loses(&self, dice: &mut Dice) -> usize {
        match self.loses_contexts && percent(dice, 50) {
            true if percent(dice, 70) => 100,
            true => between(dice, 5, 60) as usize,
            false => 0,
        }
    }

    /// Returns how often the client of a call gives up, in percent.
    pub(super) fn gives_up(&self, dice: &mut Dice) -> usize {
        match self.gives_up && percent(dice, 50) {
            true => between(dice, 10, 90) as usize,
            false => 1,
        }
    }
}

/// The part of its spans that a service sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exports {
    All,
    /// It still propagates the context.
    Nothing,
    /// Without its internal spans.
    Calls,
    /// A random half.
    Half,
}

impl Exports {
    /// Generates the exports of the service of this number, of `services`. The service that responds to the trigger is never
    /// silent.
    pub(super) fn draw(
        troubles: &Troubles,
        number: usize,
        services: usize,
        dice: &mut Dice,
    ) -> Self {
        // One service in a few, and the last one if there was none before.
        let is_one = |dice: &mut Dice| percent(dice, 30) || number + 1 == services;
        if troubles.is_silent && number > 0 && is_one(dice) {
            return Self::Nothing;
        }
        match troubles.is_half_silent && is_one(dice) {
            true if percent(dice, 50) => Self::Calls,
            true => Self::Half,
            false => Self::All,
        }
    }
}
