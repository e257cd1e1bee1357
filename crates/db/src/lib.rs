//! The record in Postgres: tests, runs, events, traces, and who owns a run.
//!
//! One worker owns a run from taking to verdict, under a lease by the database's clock and an epoch that each
//! taking raises. Every write of an owner names its epoch and changes nothing under another one, so that a
//! worker that slept cannot spoil the work of its successor.
//!
//! Queries are checked against the migrations when this crate is compiled, from the data in `.sqlx`.
//!
//! Deliberately absent: HTTP, spans (a trace is bytes here), retries (a caller knows better whether the same
//! call makes sense later), and any deletion.

mod connect;
mod error;
mod id_key;
mod lease;
mod run;
mod test;
mod trace;

use std::{fmt, sync::Arc};

use sqlx::{PgPool, migrate::Migrator};

pub use connect::Connect;
pub use error::DbError;
pub use lease::{Finished, Taken};
pub use run::{NewRun, State, StoredRun};
pub use test::{Applied, NewTest, StoredTest};
pub use trace::OtlpTrace;

static MIGRATIONS: Migrator = sqlx::migrate!();

/// The record. A clone is the same one.
#[derive(Clone)]
pub struct Db {
    pool: PgPool,
    /// Where it is, for messages: host, port and name of the database.
    at: Arc<str>,
    trace_bytes_max: usize,
}

impl Db {
    /// Connects, waiting for as long as [`Connect::acquire_timeout`] says while nobody listens there.
    pub async fn connect(connect: &Connect) -> Result<Self, DbError> {
        let at: Arc<str> = connect.at().into();
        let pool = connect
            .pool()?
            .connect_with(connect.options()?)
            .await
            .map_err(|error| DbError::of(&at, error))?;
        Ok(Self { pool, at, trace_bytes_max: connect.trace_bytes_max })
    }

    /// Brings the tables up to date. Several may do it at once: they wait for each other.
    pub async fn migrate(&self) -> Result<(), DbError> {
        MIGRATIONS.run(&self.pool).await.map_err(|error| DbError::of_migration(&self.at, error))
    }

    /// Asks whether Postgres answers.
    pub async fn ping(&self) -> Result<(), DbError> {
        sqlx::query!("select 1 as one").fetch_one(&self.pool).await.map_err(|e| self.error(e))?;
        Ok(())
    }

    /// Waits for calls under way, then closes the connections. Calls after it fail.
    pub async fn close(&self) {
        self.pool.close().await;
    }

    fn error(&self, error: sqlx::Error) -> DbError {
        DbError::of(&self.at, error)
    }
}

impl fmt::Debug for Db {
    // By hand: the pool would show its options, and with them the password.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Db").field("at", &self.at).finish_non_exhaustive()
    }
}
