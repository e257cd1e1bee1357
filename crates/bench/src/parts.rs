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
pub use relay::Relay;
pub use server::{CommandResult, Server, qualitytrace};
pub use sink::{Sink, SinkData, SpanId, unix_nanos};
pub use target::{TEST_THAT_FIRES_NOTHING, Target};

/// Where ports are looked for: below those that systems give to connections. A port that somebody tries to connect to
/// while nobody listens on it could otherwise be given to that very connection, which then talks to itself.
const PORTS: std::ops::Range<u16> = 10_000..32_000;

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

/// A port that is free now and stays so while nobody listens on it.
pub fn free_port() -> Result<u16> {
    free_ports(1)
}

/// The first of so many ports in a row that are free now.
pub fn free_ports(row: u16) -> Result<u16> {
    static NEXT: AtomicU16 = AtomicU16::new(0);
    let count = PORTS.end - PORTS.start - row;
    // Processes that run at the same time look in different places.
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
