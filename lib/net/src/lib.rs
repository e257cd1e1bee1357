//! Connections of a client: the one place that sets up TLS, and the one pool of HTTP connections.
//!
//! [`tls`] builds the configuration of a TLS client from trusted authorities and a client certificate. [`HttpClient`] sends
//! requests over HTTP/1.1 or HTTP/2 and keeps its connections. Usable by any program.
//!
//! Deliberately absent: redirects, which could send a credential to another host; proxies, which would come from the
//! environment; retries and timeouts, which only the caller can choose.

mod client;
pub mod tls;

pub use client::{HttpClient, HttpVersion, SendError};

/// Formats an error with its sources, since the outermost error alone has little information.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
