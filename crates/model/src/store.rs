//! How a trace store is reached and queried.

use std::time::Duration;

use crate::{Secret, Tls};

/// How a trace store is reached and queried. `Debug` shows no credentials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoreConfig {
    /// The name that the user gave it.
    pub name: String,
    /// Its type, as documents name it.
    pub kind: String,
    /// The URL below which its API is.
    pub url: String,
    /// Whether it is queried by gRPC.
    pub is_grpc: bool,
    /// The headers of every query.
    pub headers: Vec<(String, Secret)>,
    /// The TLS settings.
    pub tls: Tls,
    /// How long after its arrival at the store a span may be missing from complete answers, if the user knows it.
    pub lag: Option<Duration>,
}
