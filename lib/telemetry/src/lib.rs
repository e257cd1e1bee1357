#![doc = include_str!("../README.md")]

#[cfg(feature = "tracing")]
mod bridge;
pub mod config;
mod counts;
mod encode;
mod exporter;
mod host;
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

pub use counts::{Counts, Report};
pub use exporter::StartError;
pub use host::{Host, Notice};
pub use life::{Telemetry, To};
pub use plan::Roles;
pub use probe::{Probe, probe};
pub use span::FinishedSpan;

pub use opentelemetry;
