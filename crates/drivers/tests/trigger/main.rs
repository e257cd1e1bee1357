//! Triggers against real servers, real proxies and real programs, which cause the faults themselves.
//!
//! `conformance.rs` has the requirements of every trigger; each of the others has one topic.

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
