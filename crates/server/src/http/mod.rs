//! The edge for HTTP: listeners, TLS, what a request may carry, which caller may send it, and the one form of errors.

pub(crate) mod accept;
pub(crate) mod app;
pub(crate) mod backlog;
pub(crate) mod compression;
pub(crate) mod extract;
pub(crate) mod guard;
pub(crate) mod immutable;
pub(crate) mod listen;
pub(crate) mod liveness;
pub(crate) mod observe;
pub(crate) mod permit;
pub(crate) mod problem;
pub(crate) mod router;
mod stall;
pub(crate) mod stream;
pub(crate) mod tls;
mod write_timeout;
