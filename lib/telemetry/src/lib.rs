#![doc = include_str!("../README.md")]
//!
//! # How it is built
//!
//! When an item ends, the thread that ended it encodes it once, and appends it to the journal of each exporter that
//! receives it. Behind each journal a sender, a thread with its own runtime, reads batches, concatenates them into
//! requests, and acknowledges the items that the destination has acknowledged. A plan is swapped as a unit beneath
//! processors that stay installed.
//!
//! # What is deliberately absent
//!
//! The environment, configuration files and the clock: the caller reads them and passes them in. Names of spans and
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
pub use life::{Telemetry, To, validate};
pub use plan::Roles;
pub use probe::{Probe, probe};
pub use span::{FinishedSpan, ParentState};
pub use watch::{Delivery, Status};

pub use opentelemetry;
/// The SDK's propagators: W3C trace context and baggage.
pub use opentelemetry_sdk::propagation;
pub use source;
