//! The clock and the random number generator, passed down from `main`.

use crate::Timestamp;

/// The source of time and random numbers. Created in `main`, or by a test that controls both.
#[derive(Clone, Copy, Debug)]
pub struct World {
    now: fn() -> Timestamp,
    random: fn() -> [u8; 32],
}

impl World {
    /// Creates it from this wall clock and this random number generator, which MUST be secure enough to generate keys.
    pub const fn new(now: fn() -> Timestamp, random: fn() -> [u8; 32]) -> Self {
        Self { now, random }
    }

    /// Returns the current time.
    pub fn now(self) -> Timestamp {
        (self.now)()
    }

    /// Returns fresh random bytes, at most 32.
    pub fn random<const N: usize>(self) -> [u8; N] {
        const { assert!(N <= 32, "one throw of the dice has 32 bytes") };
        let mut bytes = [0; N];
        bytes.copy_from_slice(&(self.random)()[..N]);
        bytes
    }
}
