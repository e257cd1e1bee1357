//! The database in Postgres: tests, runs, events, traces, and the ownership of runs.
//!
//! One worker owns a run from its lease to the verdict, under a lease by the database's clock and an epoch that each lease
//! increments. Every write of an owner names its epoch and changes nothing under another one, so that a worker that was suspended
//! cannot overwrite the work of its successor.
//!
//! Queries are checked against the migrations when this crate is compiled, from the data in `.sqlx`.
//!
//! Deliberately absent: HTTP, spans (a trace is bytes here), retries (a caller knows better whether the same
//! call makes sense later).

mod answer;
mod audit;
mod awaited;
mod begin;
mod connect;
mod document;
mod error;
mod history;
mod id_key;
mod learned;
mod lease;
mod lease_runs;
mod partitions;
mod provisional;
mod queue;
mod run;
mod schema;
mod secret;
mod secret_output;
mod server;
mod session;
mod suite_run;
mod test;
mod test_list;
mod token;
mod trace;

use std::{fmt, sync::Arc};

use sqlx::{Connection, PgPool};

pub use audit::{NewAudit, StoredAudit};
pub use awaited::AwaitedTrace;
pub use connect::Connect;
pub use document::{
    AppliedDocument, ApplyOptions, DocumentSummary, NewDocument, Precondition, StoredDocument,
    StoredVersion,
};
pub use error::DbError;
pub use history::{ListedRun, RunFilter};
pub use lease::RunCompletion;
pub use lease_runs::{DamagedRun, LeaseNumber, LeaseRequest, RunLease, RunLeases};
pub use partitions::{Keep, MaintenanceReport, PartitionPeriod};
pub use queue::QueuedRuns;
pub use run::{
    IdempotencyKey, NewRun, RunAcceptance, RunVars, Starter, State, StoredRun, StoredTraceSize,
};
pub use secret::SecretKeys;
pub use secret_output::SecretValues;
pub use server::{BusMember, BusPlace, Entry, KeyConflict, NewServer, OtherServer, Side};
pub use session::SessionPage;
pub use suite_run::{
    NewSuiteRun, StepOutcome, StepRun, StoredSuiteRun, SuiteLease, SuiteOutcome, SuiteStep,
};
pub use test::{NewTest, StoredTest};
pub use test_list::{ListedTest, TestFilter, TestOrder, VerdictRank};
pub use token::{NewToken, PersonId, StoredToken, TokenKind};
pub use trace::{OtlpTrace, StoredColumns};

/// A handle of the database. A clone shares its connections.
#[derive(Clone)]
pub struct Db {
    pool: PgPool,
    /// The location for messages: host, port and name of the database.
    at: Arc<str>,
    trace_bytes_max: usize,
    secrets: Arc<SecretKeys>,
}

impl Db {
    /// Connects. Retries up to [`Connect::acquire_timeout`] while Postgres does not accept connections.
    pub async fn connect(connect: &Connect) -> Result<Self, DbError> {
        let at: Arc<str> = connect.at().into();
        let pool = connect
            .pool()?
            .connect_with(connect.options()?)
            .await
            .map_err(|error| DbError::of(&at, error))?;
        Ok(Self::of(pool, connect))
    }

    fn of(pool: PgPool, connect: &Connect) -> Self {
        Self {
            pool,
            at: connect.at().into(),
            trace_bytes_max: connect.trace_bytes_max,
            secrets: Arc::new(SecretKeys::none()),
        }
    }

    /// Returns the same database handle, which seals secrets under these keys.
    #[must_use]
    pub fn with_secrets(self, keys: SecretKeys) -> Self {
        Self { secrets: Arc::new(keys), ..self }
    }

    /// Returns a handle without connecting: Postgres need not run yet, connections are opened on demand.
    pub fn lazy(connect: &Connect) -> Result<Self, DbError> {
        let options = connect.options()?;
        let pool = connect.pool()?.connect_lazy_with(options);
        Ok(Self::of(pool, connect))
    }

    /// Opens a connection outside the pool. It reports at once why it failed, whereas the pool waits and reports less.
    pub async fn greet(&self) -> Result<(), DbError> {
        let options = self.pool.connect_options();
        let greeted = sqlx::PgConnection::connect_with(&options).await;
        let connection = greeted.map_err(|error| self.error(error))?;
        connection.close().await.map_err(|error| self.error(error))
    }

    /// Checks that Postgres responds and accepts writes.
    pub async fn ping(&self) -> Result<(), DbError> {
        let row = sqlx::query!(
            "select pg_is_in_recovery() or current_setting('transaction_read_only') = 'on' as \"is_read_only!\""
        )
        .fetch_one(&self.pool)
        .await
        .map_err(|error| self.error(error))?;
        if row.is_read_only {
            let reason = "it is read-only".to_owned();
            return Err(DbError::Unable { at: self.at.to_string(), reason });
        }
        Ok(())
    }

    /// Waits for active calls, then closes the connections. Later calls fail.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn error(&self, error: sqlx::Error) -> DbError {
        DbError::of(&self.at, error)
    }
}

impl fmt::Debug for Db {
    // Not derived: the pool would show its options, and with them the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("at", &self.at).finish_non_exhaustive()
    }
}
