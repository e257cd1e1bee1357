//! The clock and the dice, handed down from `main`.

use crate::Timestamp;

/// Where time and chance come from. Made in `main`, or by a test that wants both under its hand.
#[derive(Clone, Copy, Debug)]
pub struct World {
    now: fn() -> Timestamp,
    random: fn() -> [u8; 32],
}

impl World {
    /// A world of this wall clock and these dice, which MUST be fit for keys.
    pub const fn new(now: fn() -> Timestamp, random: fn() -> [u8; 32]) -> Self {
        Self { now, random }
    }

    /// The moment.
    pub fn now(self) -> Timestamp {
        (self.now)()
    }

    /// Fresh random bytes, at most 32.
    pub fn random<const N: usize>(self) -> [u8; N] {
        const { assert!(N <= 32, "one throw of the dice has 32 bytes") };
        let mut bytes = [0; N];
        bytes.copy_from_slice(&(self.random)()[..N]);
        bytes
    }
}
