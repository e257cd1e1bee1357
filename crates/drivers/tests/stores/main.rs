//! Trace stores: how they are polled, and that each real one gives back what it was sent.
//!
//! A store that is not installed is skipped: `cargo xtask services` says which, and installs it by its name.

mod conformance;
mod cutter;
mod faults;
mod jaeger;
mod page;
mod polling;
mod sample;
