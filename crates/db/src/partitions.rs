//! Monthly partitions of runs, events and traces: created ahead, and dropped after the retention period.
//!
//! A run's id contains its time, so that a month is a range of ids. One replica at a time does the maintenance; it may run at any
//! rate. Deliberately absent: moving rows. Rows that were written before there were partitions stay in the default tables, and
//! are deleted there row by row.

use std::time::Duration;

use model::Timestamp;
use sqlx::{AssertSqlSafe, PgConnection, types::Uuid};

use crate::{Db, DbError};

/// How many months are created ahead of the current one.
const AHEAD: i32 = 2;

/// Rows that are deleted at a time from a default table.
const ROWS_MAX: i64 = 10_000;

/// The key of the advisory lock that serializes replicas.
const TURN: i64 = 0x7175_616c_6974_7900;

/// The bits of an id that do not encode its time.
const RANDOM_BITS: u32 = 80;

/// Retention periods; none: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Runs and their events.
    pub runs: Option<Duration>,
    /// Their traces.
    pub traces: Option<Duration>,
}

/// The result of the maintenance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MaintenanceReport {
    /// Tables that were created.
    pub made: Vec<String>,
    /// Tables that were dropped.
    pub dropped: Vec<String>,
    /// Rows that were deleted.
    pub deleted: u64,
}

/// A month: the suffix of its tables, and the range of its run ids, `from` inclusive, `until` exclusive.
#[derive(Debug)]
struct Month {
    name: String,
    from: Uuid,
    until: Uuid,
}

impl Db {
    /// Creates the tables of the coming months and drops expired ones; does nothing while another replica does it.
    pub async fn upkeep(
        &self,
        now: Timestamp,
        keep: Keep,
    ) -> Result<Option<MaintenanceReport>, DbError> {
        let upkeep = async {
            let mut transaction = self.begin().await?;
            let turn =
                sqlx::query_scalar!("select pg_try_advisory_xact_lock($1) as \"is_ours!\"", TURN);
            if !turn.fetch_one(&mut *transaction).await? {
                return Ok(None);
            }
            // A reader of a table that is to be dropped is not blocked for long; the next maintenance tries again.
            sqlx::query!("set local lock_timeout = '2s'").execute(&mut *transaction).await?;
            let mut upkept = MaintenanceReport::default();
            for table in ["runs", "events", "traces"] {
                let keep = if table == "traces" { keep.traces } else { keep.runs };
                make(&mut transaction, table, now, &mut upkept).await?;
                if let Some(keep) = keep {
                    let cutoff = Timestamp::from_nanos(
                        now.as_nanos()
                            .saturating_sub(u64::try_from(keep.as_nanos()).unwrap_or(u64::MAX)),
                    );
                    drop_before(&mut transaction, table, cutoff, &mut upkept).await?;
                    if table == "runs" {
                        upkept.deleted += forget_open(&mut transaction, cutoff).await?;
                    }
                }
            }
            transaction.commit().await?;
            Ok(Some(upkept))
        };
        upkeep.await.map_err(|error| self.error(error))
    }
}

async fn make(
    connection: &mut PgConnection,
    table: &'static str,
    now: Timestamp,
    upkept: &mut MaintenanceReport,
) -> Result<(), sqlx::Error> {
    let known = tables(connection, table).await?;
    for month in months(connection, now, AHEAD).await? {
        let name = format!("{table}_{}", month.name);
        if known.contains(&name) || has_rows(connection, table, &month).await? {
            continue;
        }
        let Month { from, until, .. } = month;
        // The text consists of a constant, a year, a month and two numbers.
        let made = format!(
            "create table {name} partition of {table} for values from ('{from}') to ('{until}')"
        );
        sqlx::query(AssertSqlSafe(made)).execute(&mut *connection).await?;
        if table == "traces" {
            // The bytes are compressed already.
            let stored = format!("alter table {name} alter column otlp_zstd set storage external");
            sqlx::query(AssertSqlSafe(stored)).execute(&mut *connection).await?;
        }
        upkept.made.push(name);
    }
    Ok(())
}

async fn drop_before(
    connection: &mut PgConnection,
    table: &'static str,
    cutoff: Timestamp,
    upkept: &mut MaintenanceReport,
) -> Result<(), sqlx::Error> {
    let first = months(connection, cutoff, 0).await?.pop();
    let first = first.map(|month| format!("{table}_{}", month.name)).unwrap_or_default();
    for name in tables(connection, table).await? {
        // A year has four digits, so that names sort by time.
        if name.len() == first.len() && name < first {
            sqlx::query(AssertSqlSafe(format!("drop table {name}")))
                .execute(&mut *connection)
                .await?;
            upkept.dropped.push(name);
        }
    }
    let key = key(table);
    let old = format!(
        "delete from {table}_default where ctid = any (array(
             select ctid from {table}_default where {key} < $1 limit $2))"
    );
    let deleted = sqlx::query(AssertSqlSafe(old)).bind(least(cutoff)).bind(ROWS_MAX);
    upkept.deleted += deleted.execute(connection).await?.rows_affected();
    Ok(())
}

/// Deletes the open runs that are not among the runs any more, and returns their number.
async fn forget_open(connection: &mut PgConnection, cutoff: Timestamp) -> Result<u64, sqlx::Error> {
    let deleted = sqlx::query!(
        "delete from open_runs
         where id < $1 and not exists (select from runs where runs.id = open_runs.id)",
        least(cutoff),
    );
    Ok(deleted.execute(connection).await?.rows_affected())
}

/// Returns the month of a time, and the next `more` months.
async fn months(
    connection: &mut PgConnection,
    at: Timestamp,
    more: i32,
) -> Result<Vec<Month>, sqlx::Error> {
    let rows = sqlx::query!(
        "select to_char(month, 'YYYY_MM') as \"name!\",
             (extract(epoch from month) * 1000)::bigint as \"from!\",
             (extract(epoch from month + interval '1 month') * 1000)::bigint as \"until!\"
         from generate_series(0, $2) as ahead,
             lateral (select date_trunc('month', to_timestamp($1::bigint) at time zone 'UTC')
                 + make_interval(months => ahead)) as of_month (month)
         order by ahead",
        i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
        more,
    )
    .fetch_all(connection)
    .await?;
    let id = |ms: i64| Uuid::from_u128(u128::try_from(ms).unwrap_or_default() << RANDOM_BITS);
    let month = rows.into_iter().map(|row| Month {
        name: row.name,
        from: id(row.from),
        until: id(row.until),
    });
    Ok(month.collect())
}

/// Returns the smallest id of a time.
pub(crate) fn least(at: Timestamp) -> Uuid {
    Uuid::from_u128(u128::from(at.as_nanos() / 1_000_000) << RANDOM_BITS)
}

async fn tables(connection: &mut PgConnection, table: &str) -> Result<Vec<String>, sqlx::Error> {
    sqlx::query_scalar!(
        "select relname::text as \"name!\" from pg_inherits join pg_class on oid = inhrelid
         where inhparent = $1::text::regclass order by relname",
        table,
    )
    .fetch_all(connection)
    .await
}

/// Whether rows of this month are in the default table, written before the month had its own.
async fn has_rows(
    connection: &mut PgConnection,
    table: &'static str,
    month: &Month,
) -> Result<bool, sqlx::Error> {
    let key = key(table);
    let asked =
        format!("select exists (select 1 from {table}_default where {key} >= $1 and {key} < $2)");
    sqlx::query_scalar(AssertSqlSafe(asked))
        .bind(month.from)
        .bind(month.until)
        .fetch_one(connection)
        .await
}

fn key(table: &str) -> &'static str {
    if table == "runs" { "id" } else { "run_id" }
}
