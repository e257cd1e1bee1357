//! Real parts, started for one test or bench and ended with it.
//!
//! Where Postgres listens and where the Collector's binary lies is told by the environment that
//! `cargo xtask services env` prints.

mod api;
mod cluster;
mod collector;
mod database;
mod gate;
pub(crate) mod proc;
mod relay;
mod server;
mod sink;
mod target;

use std::net::{Ipv4Addr, TcpListener};

use anyhow::{Context, Result};

pub use api::{Api, answer};
pub use cluster::Cluster;
pub use collector::{Collected, CollectedSpan, Collector};
pub use database::Database;
pub use gate::{Gate, Hold};
pub use relay::Relay;
pub(crate) use relay::steady_port;
pub use server::{Finished, Server, qualitytrace};
pub use sink::{Received, Sink, SpanId, unix_nanos};
pub use target::Target;

/// A Collector with this configuration, in a folder that is there as long as it is, once it listens on these ports.
pub(crate) async fn collector_of(
    configuration: &str,
    ports: &[u16],
) -> Result<(tokio::process::Child, tempfile::TempDir)> {
    let folder = tempfile::TempDir::new()?;
    std::fs::write(folder.path().join(collector::CONFIGURATION), configuration)?;
    Ok((collector::start(folder.path(), ports).await?, folder))
}

/// A setting of the environment; the error says how to come by it.
#[expect(clippy::disallowed_methods, reason = "the environment enters tests and benches here")]
pub fn setting(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!(
            "`{name}` is not set: run through `cargo xtask ci`, or after `cargo xtask services up` \
             with `eval \"$(cargo xtask services env)\"`"
        )
    })
}

/// A port that is free now. Somebody else may take it before it is used; tests run again are then the remedy.
pub fn free_port() -> Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}
