//! Connecting, migrating, and the id key.

use std::time::Duration;

use db::{Connect, Db, DbError};
use model::{Fault, Faulty, Key};
use sqlx::Row;

use crate::scratch;

#[test]
fn migrations_run_twice_and_side_by_side() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        sqlx::query("drop schema public cascade").execute(&mut raw).await.expect("emptied");
        sqlx::query("create schema public").execute(&mut raw).await.expect("made anew");
        let other = Db::connect(&scratch.connect).await.expect("connected");
        let (one, two) = tokio::join!(scratch.db.migrate(), other.migrate());
        one.and(two).expect("both wait for each other");
        other.migrate().await.expect("nothing is left to do");
        scratch.db.ping().await.expect("it answers");
        let parts = sqlx::query("select count(*) from pg_inherits").fetch_one(&mut raw).await;
        let parts: i64 = parts.expect("counted").get(0);
        assert!(parts >= 3, "runs, events and traces have a partition each");
    });
}

#[test]
fn tables_of_a_newer_version_are_not_touched() {
    scratch::with(|scratch| async move {
        let newer =
            "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
                     values (9999, 'later', true, '', 0)";
        sqlx::query(newer).execute(&mut scratch.raw().await).await.expect("pretended");
        let error = scratch.db.migrate().await.expect_err("refused");
        assert_eq!(error.fault(), Fault::Conflict);
        assert!(error.to_string().contains("of another version of this program"), "{error}");
    });
}

#[test]
fn the_first_id_key_stays() {
    scratch::with(|scratch| async move {
        let key = |byte| Key::from_bytes([byte; 16]);
        let (one, other) = tokio::join!(scratch.db.id_key(key(1)), scratch.db.id_key(key(2)));
        let kept = one.expect("a key");
        assert_eq!(other.expect("a key"), kept, "of two replicas that start, one makes it");
        assert!([key(1), key(2)].contains(&kept));
        assert_eq!(scratch.db.id_key(key(3)).await.expect("a key"), kept);
    });
}

#[test]
fn who_cannot_connect_is_told_where_and_what_to_do_and_no_password() {
    scratch::with(|scratch| async move {
        let quick = Connect {
            password: "hunter2".to_owned(),
            acquire_timeout: Duration::from_secs(3),
            ..scratch.connect.clone()
        };
        let cases = [
            (
                Connect {
                    dbname: "nowhere".to_owned(),
                    password: scratch.connect.password.clone(),
                    ..quick.clone()
                },
                Fault::Missing,
                "create database",
            ),
            (Connect { user: "nobody".to_owned(), ..quick.clone() }, Fault::Denied, "check user"),
            (Connect { port: 1, ..quick.clone() }, Fault::Upstream, ":1/"),
            (
                Connect { host: "no.such.host.invalid".to_owned(), ..quick },
                Fault::Upstream,
                "no.such.host",
            ),
        ];
        for (connect, fault, words) in cases {
            let error = Db::connect(&connect).await.expect_err("refused");
            let text = format!("{error} {error:?}");
            assert_eq!(error.fault(), fault, "{text}");
            assert!(text.contains(words), "{text}");
            assert!(text.contains("postgres"), "{text}");
            assert!(!text.contains("hunter2"), "{text}");
        }
        assert!(!format!("{:?}", scratch.db).contains("hunter2"));
    });
}

#[test]
fn a_record_that_goes_away_is_upstream() {
    scratch::with(|scratch| async move {
        scratch.db.close().await;
        let error = scratch.db.ping().await.expect_err("closed");
        assert!(matches!(error, DbError::Unreachable { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Upstream);
    });
}

#[test]
fn a_record_that_is_read_only_is_upstream() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        let change = format!(
            "alter database {} set default_transaction_read_only = on",
            scratch.connect.dbname
        );
        sqlx::query(sqlx::AssertSqlSafe(change)).execute(&mut raw).await.expect("changed");
        let db = Db::connect(&scratch.connect).await.expect("connected");
        let error = db.ping().await.expect_err("nothing can be written");
        assert!(error.to_string().contains("read-only"), "{error}");
        assert_eq!(error.fault(), Fault::Upstream);
    });
}
