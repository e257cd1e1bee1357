//! Dice, and what is asked of them here.

pub(super) use crate::lang::chance::Dice;

/// A number between these, both included.
pub(super) fn between(dice: &mut Dice, least: u64, most: u64) -> u64 {
    least + dice.next() % (most - least + 1)
}

/// Whether a throw that succeeds in so many of a hundred did.
pub(super) fn percent(dice: &mut Dice, chance: usize) -> bool {
    dice.below(100) < chance
}
