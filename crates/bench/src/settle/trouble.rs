//! What a system withholds by itself, besides what its network does to spans.
//!
//! A trouble belongs to a system and lasts for all of its runs, as a service without an exporter does. Deliberately absent:
//! what is lost on the way (`travel`), and processes that die (`play`).

use super::chance::{Dice, between, percent};

/// How often a system has any trouble, in percent: half of the systems are what most systems are.
const TROUBLED: usize = 45;

/// The troubles of a system.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Troubles {
    /// Some calls and messages lose the context: the callee begins a trace of its own.
    pub(super) loses_contexts: bool,
    /// A service sends no spans.
    pub(super) is_silent: bool,
    /// A service sends some of its spans.
    pub(super) is_half_silent: bool,
    /// A service drops attributes and events, and counts them.
    pub(super) drops: bool,
    /// Some clients give up while their servers go on.
    pub(super) gives_up: bool,
    /// Some processes send their spans to another server.
    pub(super) has_second_receiver: bool,
}

impl Troubles {
    /// Draws the troubles of a system: mostly none, else mostly one.
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

    /// How often a call or message loses the context, in percent; mostly each time or never.
    pub(super) fn loses(&self, dice: &mut Dice) -> usize {
        match self.loses_contexts && percent(dice, 50) {
            true if percent(dice, 70) => 100,
            true => between(dice, 5, 60) as usize,
            false => 0,
        }
    }

    /// How often the client of a call gives up, in percent.
    pub(super) fn gives_up(&self, dice: &mut Dice) -> usize {
        match self.gives_up && percent(dice, 50) {
            true => between(dice, 10, 90) as usize,
            false => 1,
        }
    }
}

/// Which of its spans a service sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Exports {
    All,
    /// It passes the context on all the same.
    Nothing,
    /// Not what it does by itself.
    Calls,
    /// Every other one, as it comes.
    Half,
}

impl Exports {
    /// Draws what the service of this number sends, of so many. The one that answers the trigger is never silent.
    pub(super) fn draw(
        troubles: &Troubles,
        number: usize,
        services: usize,
        dice: &mut Dice,
    ) -> Self {
        // One service of a few, and the last one where none was before.
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
