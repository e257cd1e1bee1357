//! One Postgres and one NATS node, with servers of any roles, and what each of them costs.

use std::{
    path::{Path, PathBuf},
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};
use tokio::time::Instant;

use super::ReplicaExtent;
use crate::parts::{Cluster, NatsCluster, Server, open_runs, proc};

/// Commits are on disk, as by default. Statements are counted, the time of each commit is stored, and there are connections for six
/// servers.
const SETTINGS: [&str; 3] = [
    "shared_preload_libraries=pg_stat_statements",
    "track_commit_timestamp=on",
    "max_connections=250",
];
/// How long all runs of a load may take.
const ENDED_MAX: Duration = Duration::from_secs(1200);

/// Postgres and NATS, until they are dropped.
pub(super) struct ReplicaStand {
    pub(super) cluster: Cluster,
    pub(super) nats: NatsCluster,
    is_synced: bool,
    binary: PathBuf,
}

/// CPU time since the start of each part.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct PartsCpu {
    pub(super) servers: Duration,
    pub(super) postgres: Duration,
    pub(super) nats: Duration,
}

impl ReplicaStand {
    pub(super) async fn start(binary: &Path, extent: ReplicaExtent) -> Result<Self> {
        let mut cluster = Cluster::create().await?;
        // Tests run beside others on one disk, and judge no time.
        let is_synced = extent != ReplicaExtent::Test;
        let more: &[&str] = if is_synced { &[] } else { &["fsync=off"] };
        cluster.start_with(&[&SETTINGS[..], more].concat()).await?;
        let nats = NatsCluster::start(1, is_synced).await?;
        let stand = Self { cluster, nats, is_synced, binary: binary.to_owned() };
        stand.execute("postgres", "create extension pg_stat_statements").await?;
        Ok(stand)
    }

    pub(super) async fn create_database(&self, name: &str) -> Result<()> {
        self.execute("postgres", &format!("create database {name}")).await
    }

    /// Starts a server on a database, with NATS.
    pub(super) async fn serve(&self, database: &str, more: &str) -> Result<Server> {
        let (synced, prefix) = (self.is_synced, database.replace('_', "-"));
        let nats = self.nats.section(&format!(", synced: {synced}, prefix: {prefix}"));
        self.serve_alone(database, &format!("{nats}{more}")).await
    }

    /// Starts a server on a database, without NATS.
    pub(super) async fn serve_alone(&self, database: &str, more: &str) -> Result<Server> {
        // Without a line for each run: the bench prints the log of each server.
        let section = self.cluster.section_of(database);
        let configuration = format!("{section}\nlog: {{level: warn}}\n{more}\n");
        Server::start_with(&self.binary, &configuration, "127.0.0.1:0").await
    }

    pub(super) async fn connect(&self, database: &str) -> Result<PgConnection> {
        Ok(PgConnection::connect_with(&self.cluster.options().database(database)).await?)
    }

    pub(super) async fn execute(&self, database: &str, statement: &str) -> Result<()> {
        let statement = AssertSqlSafe(statement.to_owned());
        sqlx::raw_sql(statement).execute(&mut self.connect(database).await?).await?;
        Ok(())
    }

    pub(super) async fn count(&self, database: &str, query: &'static str) -> Result<i64> {
        Ok(sqlx::query_scalar(query).fetch_one(&mut self.connect(database).await?).await?)
    }

    /// Returns how many statements clients of a database have executed.
    pub(super) async fn statements(&self, database: &str) -> Result<i64> {
        let calls = sqlx::query_scalar(
            "select coalesce(sum(calls), 0)::bigint from pg_stat_statements
             join pg_database on pg_database.oid = dbid where datname = $1",
        );
        Ok(calls.bind(database).fetch_one(&mut self.connect("postgres").await?).await?)
    }

    /// Returns the CPU time of Postgres, NATS and these servers.
    pub(super) fn cpu(&self, servers: &[&Server]) -> Result<PartsCpu> {
        let mut sum = Duration::ZERO;
        for server in servers {
            sum += proc::cpu(server.id().context("the server runs")?)?;
        }
        Ok(PartsCpu { servers: sum, postgres: self.cluster.cpu()?, nats: self.nats.cpu()? })
    }

    /// Waits until no run is open, and returns when all of them had a verdict, provisional or final.
    pub(super) async fn all_ended(&self, database: &str) -> Result<Instant> {
        open_runs::all_ended(&mut self.connect(database).await?, ENDED_MAX).await
    }
}

impl PartsCpu {
    /// Returns what was spent since then for each of so many units, in milliseconds: servers, Postgres, NATS.
    pub(super) fn spent(self, since: Self, units: usize) -> [f64; 3] {
        let parts = [
            (self.servers, since.servers),
            (self.postgres, since.postgres),
            (self.nats, since.nats),
        ];
        parts.map(|(now, then)| now.saturating_sub(then).as_secs_f64() * 1e3 / units as f64)
    }
}

/// Ends servers in order.
pub(super) async fn end(servers: Vec<Server>) -> Result<()> {
    for server in servers {
        ensure!(server.terminate().await? == Some(0), "a server did not end in order");
    }
    Ok(())
}
