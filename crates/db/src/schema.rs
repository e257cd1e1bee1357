//! The tables: their migrations, and which servers may use them.
//!
//! A migration adds to the tables, and servers that do not know it continue. One that they would misread begins with
//! `select require_schema(…)`: it waits for their end, and refuses them from then on. ADR 0041 has the reasons.
//!
//! Deliberately absent: a way back. A server of the version before starts on newer tables, unless they require a newer one.

use std::{borrow::Cow, time::Duration};

use sqlx::{
    Connection, PgConnection,
    migrate::{MigrateError, Migrator},
};
use tokio::time::sleep;

use crate::{Db, DbError, error::sqlstate};

/// The migrations in their order.
static MIGRATIONS: Migrator = sqlx::migrate!();

/// The migration of the version after this one.
#[cfg(feature = "next-version")]
static NEXT: Migrator = sqlx::migrate!("./next-version");

/// The lock under which servers migrate, one after the other.
const TURN: i64 = 7_810_779_535;

/// How long a migration waits for the lock of a table: the statements of all servers wait behind it. It is less than
/// `deadlock_timeout`, so that of a migration and a statement that wait for each other it is the migration that gives up.
const LOCK_MAX: &str = "set lock_timeout = '300ms'";
/// The same for the last try: Postgres cancels an autovacuum that a migration waits for after `deadlock_timeout`, 1 s by default.
const LAST_LOCK_MAX: &str = "set lock_timeout = '2s'";
/// Tries with the first of these timeouts.
const TRIES: u32 = 10;
/// The pause between two tries, in which the statements that waited are executed.
const PAUSE: Duration = Duration::from_millis(200);

impl Db {
    /// Migrates the tables. Concurrent calls wait for each other.
    ///
    /// Tables of a later version are left as they are, unless this version is too old for them.
    pub async fn migrate(&self) -> Result<(), DbError> {
        let options = self.pool.connect_options();
        let connected = PgConnection::connect_with(&options).await;
        // A connection of its own: its end releases the locks of the session, however the migration ends.
        let mut connection = connected.map_err(|error| self.error(error))?;
        let migrated = self.migrate_on(&mut connection).await;
        let closed = connection.close().await;
        migrated.and_then(|()| closed.map_err(|error| self.error(error)))
    }

    /// Returns what the tables lack for this version; none if they have all of its migrations. It changes nothing.
    pub async fn missing_migrations(&self) -> Result<Option<String>, DbError> {
        let options = self.pool.connect_options();
        let connected = PgConnection::connect_with(&options).await;
        let mut connection = connected.map_err(|error| self.error(error))?;
        let missing = self.missing_on(&mut connection).await;
        let closed = connection.close().await;
        missing.and_then(|missing| closed.map(|()| missing).map_err(|error| self.error(error)))
    }

    async fn missing_on(&self, connection: &mut PgConnection) -> Result<Option<String>, DbError> {
        self.check_migrations(connection).await?;
        let has =
            sqlx::query_scalar!(r#"select to_regclass('_sqlx_migrations') is not null as "has!""#);
        let has = has.fetch_one(&mut *connection).await.map_err(|error| self.error(error))?;
        let applied: Vec<i64> = match has {
            false => Vec::new(),
            true => sqlx::query_scalar("select version from _sqlx_migrations where success")
                .fetch_all(&mut *connection)
                .await
                .map_err(|error| self.error(error))?,
        };
        let versions = migrator().iter().map(|it| it.version).collect::<Vec<_>>();
        let missing = versions.iter().filter(|version| !applied.contains(version)).count();
        Ok((missing > 0).then(|| format!("{missing} of {} migrations", versions.len())))
    }

    async fn migrate_on(&self, connection: &mut PgConnection) -> Result<(), DbError> {
        let turn = sqlx::query!("select pg_advisory_lock($1)", TURN).execute(&mut *connection);
        turn.await.map_err(|error| self.error(error))?;
        self.check_migrations(connection).await?;
        let (migrator, mut tries) = (migrator(), 0);
        loop {
            let lock_max = if tries < TRIES { LOCK_MAX } else { LAST_LOCK_MAX };
            let set = sqlx::query(lock_max).execute(&mut *connection).await;
            set.map_err(|error| self.error(error))?;
            // Not `run`: its future is not known to be `Send`.
            match migrator.run_direct(None, connection, false).await {
                Err(error) if tries < TRIES && is_lock_timeout(&error) => sleep(PAUSE).await,
                migrated => {
                    return migrated.map_err(|error| DbError::of_migration(&self.at, error));
                }
            }
            tries += 1;
        }
    }

    /// Refuses tables for which this version is too old, and those of a version that is neither older nor later.
    async fn check_migrations(&self, connection: &mut PgConnection) -> Result<(), DbError> {
        let has = sqlx::query!(
            r#"select to_regclass('agreement') is not null as "agreement!",
                   to_regclass('_sqlx_migrations') is not null as "migrations!""#
        )
        .fetch_one(&mut *connection)
        .await
        .map_err(|error| self.error(error))?;
        if has.agreement {
            let schema_min = sqlx::query_scalar!("select schema_min from agreement")
                .fetch_one(&mut *connection)
                .await
                .map_err(|error| self.error(error))?;
            if let Some(reason) = older_than(schema_min) {
                return Err(DbError::TooOld { at: self.at.to_string(), reason });
            }
        }
        if has.migrations {
            let versions: Vec<i64> = migrator().iter().map(|it| it.version).collect();
            let unknown: Option<i64> = sqlx::query_scalar(
                "select min(version) from _sqlx_migrations where version <> all ($1) and version < $2",
            )
            .bind(versions)
            .bind(version())
            .fetch_one(&mut *connection)
            .await
            .map_err(|error| self.error(error))?;
            if let Some(unknown) = unknown {
                let reason = format!("this version has no migration {unknown}");
                return Err(DbError::OtherVersion { at: self.at.to_string(), reason });
            }
        }
        Ok(())
    }
}

/// Returns the number of the last migration that this version knows.
pub(crate) fn version() -> i64 {
    migrator().iter().map(|migration| migration.version).max().unwrap_or_default()
}

/// Returns why this version is too old for tables that require this migration; none if it is not.
pub(crate) fn older_than(schema_min: i64) -> Option<String> {
    let version = version();
    (version < schema_min).then(|| {
        format!("its tables require migration {schema_min}, and the last one of this version is {version}")
    })
}

fn migrator() -> Migrator {
    let migrations = MIGRATIONS.migrations.to_vec();
    #[cfg(feature = "next-version")]
    let migrations = with_next(migrations);
    let mut migrator = Migrator { migrations: Cow::Owned(migrations), ..Migrator::DEFAULT };
    // Those of a later version.
    migrator.set_ignore_missing(true);
    migrator
}

#[cfg(feature = "next-version")]
fn with_next(mut migrations: Vec<sqlx::migrate::Migration>) -> Vec<sqlx::migrate::Migration> {
    let last = migrations.iter().map(|migration| migration.version).max().unwrap_or_default();
    let next = NEXT.migrations.iter().cloned();
    migrations
        .extend(next.map(|next| sqlx::migrate::Migration { version: last + next.version, ..next }));
    migrations
}

fn is_lock_timeout(error: &MigrateError) -> bool {
    match error {
        MigrateError::Execute(sqlx::Error::Database(answer))
        | MigrateError::ExecuteMigration(sqlx::Error::Database(answer), _) => {
            answer.code().is_some_and(|code| code == sqlstate::LOCK_NOT_AVAILABLE)
        }
        _ => false,
    }
}
