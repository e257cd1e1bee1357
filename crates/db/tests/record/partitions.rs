//! Partitions of months or days: created ahead, dropped after the retention period.

use std::time::Duration;

use db::{Keep, MaintenanceReport, PartitionPeriod};
use model::Timestamp;
use sqlx::{AssertSqlSafe, Connection, Row};

use crate::scratch::{Scratch, at, with};

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Returns the table of each run.
async fn tables(scratch: &Scratch) -> Vec<String> {
    let mut raw = scratch.raw().await;
    let asked = "select tableoid::regclass::text from runs order by id";
    let rows = sqlx::query(asked).fetch_all(&mut raw).await.expect("asked");
    rows.iter().map(|row| row.get(0)).collect()
}

async fn upkeep(scratch: &Scratch, now: Timestamp, keep: Keep) -> MaintenanceReport {
    scratch.db.upkeep(now, keep).await.expect("done").expect("nobody else does it")
}

fn named(month: &str) -> Vec<String> {
    ["runs", "events", "traces"].map(|table| format!("{table}_{month}")).into()
}

#[test]
fn months_are_made_ahead_and_dropped_when_they_are_over() {
    with(|scratch| async move {
        // at(0) is in November 2026.
        let made = upkeep(&scratch, at(0), Keep::default()).await.made;
        for month in ["2026_11", "2026_12", "2027_01"] {
            assert!(named(month).iter().all(|name| made.contains(name)), "{made:?}");
        }
        assert_eq!(made.len(), 9);
        assert_eq!(
            upkeep(&scratch, at(0), Keep::default()).await,
            MaintenanceReport::default(),
            "once"
        );
        scratch.apply("one").await;
        scratch.accept(1).await;
        scratch.accept(40 * 24 * 60 * 60).await;
        assert_eq!(tables(&scratch).await, ["runs_2026_11", "runs_2026_12"]);
        let later = at(0).plus(70 * DAY);
        let keep = Keep { runs: Some(60 * DAY), traces: Some(10 * DAY), ..Keep::default() };
        let MaintenanceReport { made, dropped, deleted } = upkeep(&scratch, later, keep).await;
        assert_eq!(
            made,
            [
                "runs_2027_02",
                "runs_2027_03",
                "events_2027_02",
                "events_2027_03",
                "traces_2027_02",
                "traces_2027_03"
            ]
        );
        // Runs that are 60 days old are from November; that month has not expired yet. For the traces it has.
        assert_eq!(dropped, ["traces_2026_11", "traces_2026_12"]);
        assert_eq!(deleted, 0);
        let dropped = upkeep(&scratch, later.plus(20 * DAY), keep).await.dropped;
        assert_eq!(dropped, ["runs_2026_11", "events_2026_11", "traces_2027_01"]);
        assert_eq!(tables(&scratch).await, ["runs_2026_12"]);
    });
}

#[test]
fn days_follow_a_month_that_has_its_table_and_months_follow_days() {
    let runs = |made: &[String]| -> Vec<String> {
        let runs = made.iter().filter_map(|name| name.strip_prefix("runs_"));
        runs.map(str::to_owned).collect()
    };
    let days = Keep { partition: PartitionPeriod::Day, runs: Some(3 * DAY), traces: None };
    let months = Keep { partition: PartitionPeriod::Month, ..days };
    with(|scratch| async move {
        // at(0) is 15 November 2026.
        let first = upkeep(&scratch, at(0), days).await.made;
        assert_eq!(runs(&first)[..2], ["2026_11_15", "2026_11_16"]);
        assert_eq!(runs(&first).len(), 8, "today, and seven days ahead");
        assert_eq!(upkeep(&scratch, at(0), days).await, MaintenanceReport::default(), "once");
        scratch.apply("one").await;
        for day in [0, 1, 5] {
            scratch.accept(day * 24 * 60 * 60).await;
        }
        let there = ["runs_2026_11_15", "runs_2026_11_16", "runs_2026_11_20"];
        assert_eq!(tables(&scratch).await, there);

        // The days of November are completed, since a table of the month would overlap them.
        let made = runs(&upkeep(&scratch, at(0), months).await.made);
        assert_eq!(made[..3], ["2026_12", "2027_01", "2026_11_23"]);
        assert_eq!(made.last().map(String::as_str), Some("2026_11_30"), "{made:?}");
        // December has its table, so that days begin in February.
        let made = upkeep(&scratch, at(0).plus(20 * DAY), days).await;
        assert!(made.made.is_empty(), "{made:?}");
        let dropped = runs(&made.dropped);
        assert_eq!(dropped.len(), 16, "November is over for runs that are kept for three days");
        let later = upkeep(&scratch, at(0).plus(76 * DAY), days).await;
        assert_eq!(runs(&later.made)[0], "2027_02_01", "{later:?}");
        assert_eq!(runs(&later.dropped), ["2026_12"]);
    });
}

#[test]
fn each_table_has_its_vacuum_settings() {
    with(|scratch| async move {
        upkeep(&scratch, at(0), Keep::default()).await;
        let without = "select count(*) from pg_inherits join pg_class on oid = inhrelid
             where relname ~ '_20[0-9]{2}_' and relkind = 'r' and reloptions is null";
        let without = sqlx::query(without).fetch_one(&mut scratch.raw().await).await;
        assert_eq!(without.expect("counted").get::<i64, _>(0), 0);
    });
}

#[test]
fn what_was_written_before_there_were_months_stays_where_it_is() {
    with(|scratch| async move {
        scratch.apply("one").await;
        scratch.accept(1).await;
        let made = upkeep(&scratch, at(0), Keep::default()).await.made;
        assert!(!made.contains(&"runs_2026_11".to_owned()), "{made:?}");
        assert!(made.contains(&"runs_2026_12".to_owned()), "{made:?}");
        scratch.accept(2).await;
        assert_eq!(tables(&scratch).await, ["runs_default", "runs_default"]);
        let keep = Keep { runs: Some(10 * DAY), ..Keep::default() };
        // Two runs, their two events, and what was open of them.
        assert_eq!(upkeep(&scratch, at(0).plus(11 * DAY), keep).await.deleted, 6);
        assert!(tables(&scratch).await.is_empty());
        assert_eq!(scratch.take_many(5, 5).await.runs, []);
    });
}

#[test]
fn one_replica_at_a_time() {
    with(|scratch| async move {
        let mut other = scratch.raw().await;
        let mut busy = other.begin().await.expect("begun");
        let lock = format!("select pg_advisory_xact_lock({})", 0x7175_616c_6974_7900_i64);
        sqlx::query(AssertSqlSafe(lock)).execute(&mut *busy).await.expect("locked");
        assert_eq!(scratch.db.upkeep(at(0), Keep::default()).await.expect("asked"), None);
        busy.rollback().await.expect("ended");
        assert!(scratch.db.upkeep(at(0), Keep::default()).await.expect("asked").is_some());
    });
}
