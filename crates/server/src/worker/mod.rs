//! Workers: they lease runs, execute them, let them linger, and watch for late spans after the verdict.
//!
//! One worker owns a run from the lease to the verdict. Every write has the epoch of the lease,
//! so that a worker with an expired lease can change nothing. `scheduler.rs` leases runs, `run.rs` executes one. Deliberately
//! absent: any state of a run that is not in the database; a worker may die at any line of this.

mod active_runs;
pub(crate) mod gates;
mod late;
mod learning;
mod lease_term;
pub(crate) mod plays;
mod ports;
mod proofs;
mod pump;
mod run;
pub(crate) mod scheduler;
mod slots;
pub(crate) mod state;
pub(crate) mod stores;
pub(crate) mod suites;
pub(crate) mod variables;
