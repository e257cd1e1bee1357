//! Connecting, migrating, and the id key.

use std::time::Duration;

use db::{BusMember, Connect, Db, DbError, NewServer};
use model::{Fault, Faulty, Key};
use sqlx::Row;
use tokio::{task::JoinSet, time::Instant};

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

/// A migration that this version does not know, with this number.
async fn apply_unknown(raw: &mut sqlx::PgConnection, version: i64) {
    let unknown =
        "insert into _sqlx_migrations (version, description, success, checksum, execution_time)
             values ($1, 'unknown', true, '', 0)";
    sqlx::query(unknown).bind(version).execute(raw).await.expect("applied");
}

#[test]
fn a_server_starts_on_newer_tables_unless_they_require_a_newer_one() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        apply_unknown(&mut raw, 9998).await;
        scratch.db.migrate().await.expect("they are compatible");
        apply_unknown(&mut raw, 9999).await;
        sqlx::query("select require_schema(9999)").execute(&mut raw).await.expect("required");
        let error = scratch.db.migrate().await.expect_err("refused");
        assert_eq!(error.fault(), Fault::Conflict);
        for words in
            ["too old", "require migration 9999", "start the version that the other servers have"]
        {
            assert!(error.to_string().contains(words), "{error}");
        }
    });
}

#[test]
fn tables_of_another_line_of_versions_are_refused() {
    scratch::with(|scratch| async move {
        apply_unknown(&mut scratch.raw().await, 0).await;
        let error = scratch.db.migrate().await.expect_err("refused");
        assert_eq!(error.fault(), Fault::Conflict);
        assert!(error.to_string().contains("of another version of this program"), "{error}");
    });
}

/// The statements of servers wait behind a migration that waits for a lock, so it waits for a short time only, and comes again.
#[test]
fn a_migration_does_not_hold_up_statements_while_it_waits_for_a_transaction() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let mut raw = scratch.raw().await;
        // The last migration that changes the table of servers is applied again.
        for undo in [
            "delete from _sqlx_migrations where version = 23",
            "drop function require_schema(bigint)",
            "drop table agreement",
            "alter table servers drop column schema_version, drop column bus_version",
        ] {
            sqlx::query(undo).execute(&mut raw).await.expect("undone");
        }
        let mut long = scratch.raw().await;
        for begin in ["begin", "select count(*) from servers"] {
            sqlx::query(begin).execute(&mut long).await.expect("begun");
        }
        let (db, mut migration) = (scratch.db.clone(), JoinSet::new());
        migration.spawn(async move { db.migrate().await });
        let (mut longest, began) = (Duration::ZERO, Instant::now());
        // Some tries of the migration, of which at least one makes a statement wait.
        while longest < Duration::from_millis(100) || began.elapsed() < Duration::from_secs(2) {
            assert!(began.elapsed() < Duration::from_secs(60), "no try of a migration was seen");
            let asked = Instant::now();
            let count = sqlx::query("select count(*) from servers").execute(&mut raw).await;
            count.expect("it waits no longer than the migration");
            longest = longest.max(asked.elapsed());
        }
        assert!(longest < Duration::from_secs(1), "{longest:?}");
        assert!(migration.try_join_next().is_none(), "it waits for the transaction");
        sqlx::query("commit").execute(&mut long).await.expect("ended");
        let migrated = migration.join_next().await.expect("it runs");
        migrated.expect("no panic").expect("migrated");
    });
}

#[test]
fn tables_are_not_migrated_beside_a_server_that_would_misread_them() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        let counts_for = Duration::from_secs(600);
        let server = server("old");
        scratch.db.enter_server(&server, counts_for).await.expect("entered");
        let require = "select require_schema(9999)";
        let error = sqlx::query(require).execute(&mut raw).await.expect_err("refused");
        assert!(error.to_string().contains("(old)"), "{error}");
        scratch.db.leave_server(server.process).await.expect("left");
        sqlx::query(require).execute(&mut raw).await.expect("it has ended");
        let error = scratch.db.enter_server(&server, counts_for).await.expect_err("too old now");
        assert!(matches!(error, DbError::TooOld { .. }), "{error}");
        // A server of before there were versions has none in its row.
        let before =
            "update servers set schema_version = null, counts_until = now() + interval '1 min'";
        sqlx::query(before).execute(&mut raw).await.expect("changed");
        sqlx::query("select require_schema(23)").execute(&mut raw).await.expect_err("refused");
    });
}

#[test]
fn servers_write_the_messages_that_all_of_them_read() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let counts_for = Duration::from_secs(600);
        let with = |name: &str, bus_version| {
            let (slot, slots) = (None, None);
            let bus = BusMember { bus: None, is_shared_from_start: true, slot, slots };
            NewServer { bus_version, bus: Some(bus), ..server(name) }
        };
        let (old, new) = (with("old", 1), with("new", 2));
        db.enter_server(&old, counts_for).await.expect("entered");
        db.enter_server(&new, counts_for).await.expect("entered");
        assert_eq!(db.agree_bus_version(2).await.expect("agreed"), 1);
        db.leave_server(old.process).await.expect("left");
        db.enter_server(&old, counts_for).await.expect("it may come back until then");
        assert_eq!(db.agree_bus_version(2).await.expect("agreed"), 1);
        db.leave_server(old.process).await.expect("left");
        assert_eq!(db.agree_bus_version(1).await.expect("agreed"), 1, "no more than it reads");
        assert_eq!(db.agree_bus_version(2).await.expect("agreed"), 2);
        let error = db.enter_server(&old, counts_for).await.expect_err("too old now");
        for words in ["write version 2 of messages", "reads version 1"] {
            assert!(error.to_string().contains(words), "{error}");
        }
        let alone = NewServer { bus: None, ..old };
        db.enter_server(&alone, counts_for).await.expect("it reads no messages");
        assert_eq!(db.agree_bus_version(2).await.expect("agreed"), 2, "it never falls");
    });
}

fn server(name: &str) -> NewServer {
    let number = name.bytes().fold(0, u8::wrapping_add);
    NewServer {
        id: [number; 16],
        process: [number; 16],
        name: name.to_owned(),
        roles: vec!["worker".to_owned()],
        version: "0.0.0".to_owned(),
        bus_version: 1,
        minting_key: "a".to_owned(),
        known_keys: vec!["a".to_owned()],
        bus: None,
    }
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
