//! Checks that no input causes a panic.

mod chance;
#[path = "noise/mod.rs"]
mod input;

use chance::Dice;
use input::{Fate, KINDS, run};

/// The number of inputs of each kind; `cargo xtask prove lang` takes a million in all.
const INPUTS: usize = 150;

#[test]
fn no_input_panics_and_enough_are_accepted() {
    for kind in KINDS {
        let mut dice = Dice::new(kind as u64);
        let accepted = (0..INPUTS).filter(|_| run(kind, &mut dice) == Fate::Accepted).count();
        assert!(accepted >= INPUTS / 20, "{kind:?}: {accepted} accepted");
    }
}
