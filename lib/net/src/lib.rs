//! Connections of a client: the one place that resolves names, checks addresses, sets up TLS and speaks HTTP.
//!
//! [`dial`] connects to a target, through a proxy if there is one, within network rules. [`tls`] builds the configuration of a TLS
//! client from trusted authorities and a client certificate. [`grpc`] has frames and statuses of gRPC. [`exchange`](exchange()) sends one request on one connection;
//! [`HttpClient`] sends many over HTTP/1.1 or HTTP/2 and keeps its connections. Usable by any program.
//!
//! Deliberately absent: redirects, which could send a credential to another host; retries and timeouts, which only the caller can
//! choose; the environment, which the caller reads.

mod certificate;
pub mod dial;
mod exchange;
pub mod grpc;
mod network;
mod pool;
mod proxy;
mod target;
pub mod tls;

pub use certificate::{CertificateRefusal, ServerCertificate, server_certificate};
pub use exchange::{Exchange, HttpError, exchange};
pub use hyper::body::{Body, Incoming};
pub use network::{ExtraTarget, InvalidNetwork, METADATA, Network, NetworkRefusal, Networks};
pub use pool::{Egress, HttpClient, HttpVersion, SendError, connect_error};
pub use proxy::{Proxies, Proxy};

/// Formats an error with its sources, since the outermost error alone has little information.
pub fn error_chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let words = cause.to_string();
        if !text.ends_with(&words) {
            text = format!("{text}: {words}");
        }
        source = cause.source();
    }
    text
}
