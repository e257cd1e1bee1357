//! The seed of a run's random and time functions.

use lang::Seed;
use model::RunId;

/// Returns the seed of a run's random and time functions: the run id, which the database stores. A worker that continues the
/// run computes the same values.
pub fn seed(run: RunId) -> Seed {
    let mut random = [0; 32];
    random[..16].copy_from_slice(run.as_uuid().as_bytes());
    Seed { now: run.created(), random }
}
