//! Monthly partitions: created ahead, dropped after the retention period.

use std::time::Duration;

use db::{Keep, MaintenanceReport};
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
        let keep = Keep { runs: Some(60 * DAY), traces: Some(10 * DAY) };
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
fn what_was_written_before_there_were_months_stays_where_it_is() {
    with(|scratch| async move {
        scratch.apply("one").await;
        scratch.accept(1).await;
        let made = upkeep(&scratch, at(0), Keep::default()).await.made;
        assert!(!made.contains(&"runs_2026_11".to_owned()), "{made:?}");
        assert!(made.contains(&"runs_2026_12".to_owned()), "{made:?}");
        scratch.accept(2).await;
        assert_eq!(tables(&scratch).await, ["runs_default", "runs_default"]);
        let keep = Keep { runs: Some(10 * DAY), traces: None };
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
