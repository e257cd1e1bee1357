//! The clock and the dice, handed down from `main`.

use crate::Timestamp;

/// Where time and chance come from. Made in `main`, or by a test that wants both under its hand.
#[derive(Clone, Copy, Debug)]
pub struct World {
    /// The wall clock.
    pub now: fn() -> Timestamp,
    /// Fresh random bytes, fit for keys.
    pub random: fn() -> [u8; 32],
}
