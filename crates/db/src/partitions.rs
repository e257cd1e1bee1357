//! Partitions of runs, events and traces by month or by day: created ahead, and dropped after the retention period.
//!
//! A run's id contains its time, so that a period is a range of ids. One replica at a time does the maintenance; it may run at any
//! rate. A month that has its table keeps it, and one that has tables of days gets no other. Deliberately absent: moving rows. Rows
//! that were written before there were partitions stay in the default tables, and are deleted there row by row.

use std::time::Duration;

use model::Timestamp;
use sqlx::{AssertSqlSafe, PgConnection, types::Uuid};

use crate::{Db, DbError};

/// How many months, or days, are created ahead of the current one.
const MONTHS_AHEAD: i32 = 2;
const DAYS_AHEAD: i32 = 7;

/// The settings of each table: by default, vacuum would come after a fifth of its rows, and pause.
const VACUUM: &str = "autovacuum_vacuum_scale_factor = 0.02, autovacuum_vacuum_cost_delay = 0";

/// The length of a month's name.
const MONTH_LEN: usize = 7;

/// Rows that are deleted at a time from a default table.
const ROWS_MAX: i64 = 10_000;

/// The key of the advisory lock that serializes replicas.
const TURN: i64 = 0x7175_616c_6974_7900;

/// The bits of an id that do not encode its time.
const RANDOM_BITS: u32 = 80;

/// The period of a partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PartitionPeriod {
    /// A table for each month.
    #[default]
    Month,
    /// A table for each day.
    Day,
}

/// Retention periods; none: for ever.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// Runs and their events.
    pub runs: Option<Duration>,
    /// Their traces.
    pub traces: Option<Duration>,
    /// The period of the partitions that are created; they are dropped as a whole.
    pub partition: PartitionPeriod,
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

/// The range of a partition: the suffix of its tables, and its run ids, `from` inclusive, `until` exclusive.
#[derive(Debug)]
struct PartitionRange {
    /// `2026_11` or `2026_11_18`.
    name: String,
    from: Uuid,
    until: Uuid,
}

impl Db {
    /// Creates the tables of the coming periods and drops expired ones; does nothing while another replica does it.
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
                make(&mut transaction, table, (now, keep.partition), &mut upkept).await?;
                let keep = if table == "traces" { keep.traces } else { keep.runs };
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
    (now, period): (Timestamp, PartitionPeriod),
    upkept: &mut MaintenanceReport,
) -> Result<(), sqlx::Error> {
    let known = tables(connection, table).await?;
    for range in wanted(connection, table, (now, period), &known).await? {
        let name = format!("{table}_{}", range.name);
        if known.contains(&name) || has_rows(connection, table, &range).await? {
            continue;
        }
        let PartitionRange { from, until, .. } = range;
        // The text consists of constants, a date and two numbers.
        let made = format!(
            "create table {name} partition of {table} for values from ('{from}') to ('{until}') with ({VACUUM})"
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

/// Returns the ranges that should have tables, none of which overlaps a table of the other period.
async fn wanted(
    connection: &mut PgConnection,
    table: &str,
    (now, period): (Timestamp, PartitionPeriod),
    known: &[String],
) -> Result<Vec<PartitionRange>, sqlx::Error> {
    let months = ranges(connection, PartitionPeriod::Month, now, MONTHS_AHEAD).await?;
    // Three months have at most 92 days.
    let days_ahead = if period == PartitionPeriod::Day { DAYS_AHEAD } else { 92 };
    let days = ranges(connection, PartitionPeriod::Day, now, days_ahead).await?;
    let has_table = |month: &str| known.contains(&format!("{table}_{month}"));
    let has_days = |month: &str| {
        let prefix = format!("{table}_{month}_");
        known.iter().any(|name| name.starts_with(&prefix))
    };
    let is_daily = |month: &str| match period {
        PartitionPeriod::Day => !has_table(month),
        PartitionPeriod::Month => has_days(month),
    };
    let days = days.into_iter().filter(|day| is_daily(&day.name[..MONTH_LEN]));
    match period {
        PartitionPeriod::Day => Ok(days.collect()),
        PartitionPeriod::Month => {
            // All days of months that have some, up to the end of the last of these months.
            let last = months.last().map(|month| month.until);
            let days = days.filter(|day| last.is_none_or(|last| day.from < last));
            let days: Vec<_> = days.collect();
            let months = months.into_iter().filter(|month| !is_daily(&month.name));
            Ok(months.chain(days).collect())
        }
    }
}

async fn drop_before(
    connection: &mut PgConnection,
    table: &'static str,
    cutoff: Timestamp,
    upkept: &mut MaintenanceReport,
) -> Result<(), sqlx::Error> {
    let first = ranges(connection, PartitionPeriod::Day, cutoff, 0).await?.pop();
    let first = first.map(|day| day.name).unwrap_or_default();
    for name in tables(connection, table).await? {
        // A year has four digits, so that names sort by time. The name of a month is the begin of those of its days.
        let date = name[table.len()..].trim_start_matches('_');
        let is_date = date.starts_with(|digit: char| digit.is_ascii_digit());
        if is_date && first.get(..date.len()).is_some_and(|first| date < first) {
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

/// Returns the period of a time, and the next `more` periods.
async fn ranges(
    connection: &mut PgConnection,
    period: PartitionPeriod,
    at: Timestamp,
    more: i32,
) -> Result<Vec<PartitionRange>, sqlx::Error> {
    let (unit, form) = match period {
        PartitionPeriod::Month => ("month", "YYYY_MM"),
        PartitionPeriod::Day => ("day", "YYYY_MM_DD"),
    };
    let rows = sqlx::query!(
        "select to_char(period, $4) as \"name!\",
             (extract(epoch from period) * 1000)::bigint as \"from!\",
             (extract(epoch from period + ('1 ' || $3)::interval) * 1000)::bigint as \"until!\"
         from generate_series(0, $2) as ahead,
             lateral (select date_trunc($3, to_timestamp($1::bigint) at time zone 'UTC')
                 + ahead * ('1 ' || $3)::interval) as of_period (period)
         order by ahead",
        i64::try_from(at.as_secs()).unwrap_or(i64::MAX),
        more,
        unit,
        form,
    )
    .fetch_all(connection)
    .await?;
    let id = |ms: i64| Uuid::from_u128(u128::try_from(ms).unwrap_or_default() << RANDOM_BITS);
    let range = rows.into_iter().map(|row| PartitionRange {
        name: row.name,
        from: id(row.from),
        until: id(row.until),
    });
    Ok(range.collect())
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

/// Whether rows of this range are in the default table, written before it had its own.
async fn has_rows(
    connection: &mut PgConnection,
    table: &'static str,
    range: &PartitionRange,
) -> Result<bool, sqlx::Error> {
    let key = key(table);
    let asked =
        format!("select exists (select 1 from {table}_default where {key} >= $1 and {key} < $2)");
    sqlx::query_scalar(AssertSqlSafe(asked))
        .bind(range.from)
        .bind(range.until)
        .fetch_one(connection)
        .await
}

fn key(table: &str) -> &'static str {
    if table == "runs" { "id" } else { "run_id" }
}
