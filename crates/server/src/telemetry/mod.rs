//! The server's own telemetry: its names, and the spans, events and metrics that are created under them.

pub(crate) mod call;
pub(crate) mod calls;
pub mod catalogue;
pub(crate) mod events;
pub(crate) mod export;
mod instance;
pub(crate) mod log_context;
mod metrics;
pub(crate) mod own_endpoint;
pub(crate) mod spans;
pub(crate) mod traceparent;
