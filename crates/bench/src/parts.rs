//! Real parts, started for one test or benchmark and stopped with it.
//!
//! The environment variables that `cargo xtask services env` prints state where Postgres listens and where the Collector's binary
//! is.

mod api;
mod cluster;
mod collector;
mod database;
mod gate;
mod mount;
mod nats;
pub(crate) mod open_runs;
pub(crate) mod proc;
mod relay;
mod server;
mod sink;
mod target;

use std::{
    net::{Ipv4Addr, TcpListener},
    sync::atomic::{AtomicU16, Ordering},
};

use anyhow::{Context, Result, bail};

pub use api::{Api, answer};
pub use cluster::Cluster;
pub use collector::{CollectedData, CollectedLog, CollectedSpan, Collector};
pub use database::Database;
pub use gate::{Gate, Hold};
pub use mount::Mount;
pub(crate) use mount::set_fixed;
pub use nats::NatsCluster;
pub use relay::Relay;
pub use server::{CommandResult, Server, qualitytrace, words};
pub use sink::{Sink, SinkData, SpanId, unix_nanos};
pub use target::{TEST_THAT_FIRES_NOTHING, Target};

/// The range of ports that are tried: below the ephemeral ports of the system. Otherwise a connection to a port without a
/// listener could get that very port as its own, and would then talk to itself.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

/// Starts a Collector with this configuration, in a folder that exists as long as it does, and waits until it listens on these
/// ports.
pub async fn collector_of(
    configuration: &str,
    ports: &[u16],
) -> Result<(tokio::process::Child, tempfile::TempDir)> {
    let folder = tempfile::TempDir::new()?;
    std::fs::write(folder.path().join(collector::CONFIGURATION), configuration)?;
    Ok((collector::start(folder.path(), ports).await?, folder))
}

/// Returns an environment variable; the error explains how to set it.
#[expect(clippy::disallowed_methods, reason = "the environment enters tests and benches here")]
pub fn setting(name: &str) -> Result<String> {
    std::env::var(name).with_context(|| {
        format!(
            "`{name}` is not set: run through `cargo xtask ci`, or after `cargo xtask services up` \
             with `eval \"$(cargo xtask services env)\"`"
        )
    })
}

/// Returns a port that is free now and stays so until it is bound.
pub fn free_port() -> Result<u16> {
    free_ports(1)
}

/// Returns the first of this many consecutive ports that are free now.
pub fn free_ports(row: u16) -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start - row;
    // Concurrent processes start at different ports.
    let first = (std::process::id() % u32::from(count / 64)) as u16 * 64;
    for _ in 0..count {
        let next = NEXT.fetch_add(row, Ordering::Relaxed);
        let port = PORTS.start + (first.wrapping_add(next)) % count;
        if (port..port + row).all(|port| TcpListener::bind((Ipv4Addr::LOCALHOST, port)).is_ok()) {
            return Ok(port);
        }
    }
    bail!("no {row} ports in a row from {} to {} are free", PORTS.start, PORTS.end)
}
