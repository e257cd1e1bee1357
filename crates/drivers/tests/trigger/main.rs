//! Triggers against real servers, real proxies and real programs, which make the faults themselves.
//!
//! `conformance.rs` is what every trigger has to keep to; the others are about one thing each.

#![expect(clippy::panic, reason = "these are tests, with functions that several of them share")]

mod answers;
mod certificates;
mod conformance;
#[cfg(unix)]
mod exec;
mod firing;
mod networks;
mod proxies;
mod proxy;
mod redirects;
mod server;
mod tls;
mod ways;
