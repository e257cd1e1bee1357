//! Random generators, and helpers for them.

pub(super) use crate::lang::chance::Dice;

/// Returns a random number between these, both included.
pub(super) fn between(dice: &mut Dice, least: u64, most: u64) -> u64 {
    least + dice.next() % (most - least + 1)
}

/// Returns true with this probability in percent.
pub(super) fn percent(dice: &mut Dice, chance: usize) -> bool {
    dice.below(100) < chance
}
