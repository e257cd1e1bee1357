//! Trace stores: how they are polled, and that each real one gives back what it was sent.
//!
//! A store that is not installed is skipped: `cargo xtask services` reports which, and installs it by its name.

#![expect(
    clippy::disallowed_methods,
    clippy::print_stdout,
    reason = "a test has no main that hands down clock and environment, and prints what it skips"
)]

mod clickhouse;
mod conformance;
mod cutter;
mod faults;
mod jaeger;
mod page;
mod polling;
mod recipes;
mod sample;
mod search;
mod tempo;
mod zipkin;
