#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! An item that ends is encoded once, on the thread that ended it, and appended to the journal of each exporter that
//! wants it. Behind each journal a sender, a thread with a runtime of its own, reads batches, concatenates them into
//! requests, and acknowledges what the destination has acknowledged. A plan is swapped as a whole beneath processors
//! that stay installed.
//!
//! # What is deliberately absent
//!
//! The environment, files of configuration and the clock: they are read by the caller and handed in. Names of spans and
//! metrics. A subscriber for `tracing`: a program has one, and adds a layer to it.
#![warn(missing_docs)]

#[cfg(feature = "tracing")]
mod bridge;
pub mod config;
mod counts;
mod draining;
mod encode;
mod exporter;
mod host;
mod leftovers;
mod life;
mod marks;
mod metrics;
mod pipeline;
pub mod plan;
mod probe;
mod processor;
mod record;
mod self_metrics;
mod send;
mod span;
mod watch;

pub use counts::{Counts, Report};
pub use exporter::StartError;
pub use host::{Host, Notice, Topic, suppress_this_thread};
pub use life::{Telemetry, To, check};
pub use plan::Roles;
pub use probe::{Probe, probe};
pub use span::{FinishedSpan, ParentState};
pub use watch::{Delivery, Status};

pub use opentelemetry;
/// The SDK's propagators: W3C trace context and baggage.
pub use opentelemetry_sdk::propagation;
pub use source;
