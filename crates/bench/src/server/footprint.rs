//! An idle server: the time until it is ready, and its memory.

use std::{path::Path, time::Duration};

use anyhow::{Context, Result};
use sqlx::AssertSqlSafe;
use tokio::time::sleep;

use super::{ms, row};
use crate::{
    parts::{Cluster, Server, proc},
    table::{Goal, Row, median},
};

const ROUNDS: usize = 7;
/// How long a server is idle before its memory is measured.
const IDLE: Duration = Duration::from_secs(3);

const RESIDENT_MB_MAX: f64 = 40.0;
const READY_MS_MAX: f64 = 300.0;

/// Starts servers, each with its own empty database, and then again with the same one.
pub(super) async fn measure(binary: &Path) -> Result<Vec<Row>> {
    let mut cluster = Cluster::create().await?;
    // With the defaults of Postgres: writes are on disk before a server is ready.
    cluster.start_with(&[]).await?;
    let (mut empty, mut again, mut resident, mut cpu) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let name = format!("round_{round}");
        let create = AssertSqlSafe(format!("create database {name}"));
        sqlx::raw_sql(create).execute(&mut cluster.connect().await?).await?;
        let configuration = cluster.section_of(&name);
        let before = cluster.cpu()?;
        let server = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
        let id = server.id().context("it runs")?;
        cpu.push(ms(proc::cpu(id)? + cluster.cpu()?.saturating_sub(before)));
        empty.push(ms(server.ready_after));
        sleep(IDLE).await;
        resident.push(proc::resident_mb(id)?);
        server.terminate().await?;
        let server = Server::start_with(binary, &configuration, "127.0.0.1:0").await?;
        again.push(ms(server.ready_after));
        server.terminate().await?;
    }
    cluster.stop().await?;
    let most = |most| Some(Goal::AtMost(most));
    Ok(vec![
        row("footprint: memory, idle", median(resident), "MB", most(RESIDENT_MB_MAX)),
        row("footprint: start to ready, empty database", median(empty), "ms", most(READY_MS_MAX)),
        row("footprint: CPU of both until then", median(cpu), "ms", None),
        row("footprint: start to ready, again", median(again), "ms", None),
    ])
}
