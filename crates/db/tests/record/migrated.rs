//! Each migration, from the one before it, with rows in the tables.

use std::borrow::Cow;

use db::{Db, RunAcceptance, State};
use model::{Progress, Verdict};
use sqlx::{PgConnection, migrate::Migrator};

use crate::scratch::{self, LEASE, answer, attempt, outcome, project, run_id};

static ALL: Migrator = sqlx::migrate!();

/// The rows of a database at migration 0001: a test, and a run in each state.
const OF_0001: &str = "
    insert into tests values ('default', 'shop', 1, 'tests/shop.yaml');
    insert into test_versions values ('default', 'shop', 1, 'Shop', 'a');
    insert into runs (id, project, test_id, test_version, accepted_at_ns, events_last)
        values ('$1', 'default', 'shop', 1, 1, 1);
    insert into runs (id, project, test_id, test_version, accepted_at_ns, epoch, lease_until, worker, trace_id, span_id,
            attempted_at_ns, attempted_epoch, answer, answered_epoch, events_last)
        values ('$2', 'default', 'shop', 1, 1, 1, now(), 'w', decode(repeat('ab', 16), 'hex'),
            decode(repeat('cd', 8), 'hex'), $attempted, 1, '$answer', 1, 4);
    insert into runs (id, project, test_id, test_version, accepted_at_ns, epoch, worker, verdict, outcome, events_last)
        values ('$3', 'default', 'shop', 1, 1, 1, 'w', 'passed', '$outcome', 5);
    insert into events select project, id, events_last, '{}' from runs;
";

fn quoted(value: &impl serde::Serialize) -> String {
    serde_json::to_string(value).expect("it can be written").replace('\'', "''")
}

/// Empties a database, and migrates it up to this migration.
async fn migrate_to(raw: &mut PgConnection, last: usize) {
    for statement in ["drop schema public cascade", "create schema public"] {
        sqlx::query(statement).execute(&mut *raw).await.expect("emptied");
    }
    let migrations = Cow::Borrowed(&ALL.migrations[..last]);
    let mut first = Migrator { migrations, ..Migrator::DEFAULT };
    first.set_ignore_missing(false);
    first.run(raw).await.expect("migrated");
}

#[test]
fn kinds_of_documents_before_0017_have_their_new_names() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        migrate_to(&mut raw, 16).await;
        let rows = "
            insert into documents (project, kind, id, version, file)
                select 'default', kind, 'one', 1, 'a.yaml'
                from unnest(array['suite', 'analyzer', 'settleProfile', 'gate']) as kind;
            insert into document_versions (project, kind, document_id, version, name, document)
                select project, kind, id, version, kind, kind from documents;
            insert into documents (project, kind, id, version, file)
                values ('default', 'store', 'one', 1, 'a.yaml');
            insert into document_versions (project, kind, document_id, version, name, sealed)
                values ('default', 'store', 'one', 1, 'store', 'sealed');
        ";
        sqlx::raw_sql(rows).execute(&mut raw).await.expect("filled");
        let db = Db::connect(&scratch.connect).await.expect("connected");
        db.migrate().await.expect("migrated from 0016");
        let kinds = "select name, documents.kind from documents join document_versions
            on document_id = id and document_versions.kind = documents.kind order by name";
        let kinds: Vec<(String, String)> =
            sqlx::query_as(kinds).fetch_all(&mut raw).await.expect("asked");
        let expected = [
            ("analyzer", "analyzer"),
            ("gate", "qualityGate"),
            ("settleProfile", "settleProfile"),
            ("store", "traceStore"),
            ("suite", "testSuite"),
        ];
        assert_eq!(kinds, expected.map(|(old, new)| (old.to_owned(), new.to_owned())));
        let old = "update documents set kind = 'gate' where kind = 'qualityGate'";
        assert!(sqlx::query(old).execute(&mut raw).await.is_err(), "old names are refused");
    });
}

#[test]
fn a_record_of_0001_goes_on() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        migrate_to(&mut raw, 1).await;
        let ids = [run_id(1), run_id(2), run_id(3)];
        let rows = OF_0001
            .replace("$attempted", &attempt().at.as_nanos().to_string())
            .replace("$answer", &quoted(&answer()))
            .replace("$outcome", &quoted(&outcome(ids[2], Verdict::Passed)))
            .replace("$1", &ids[0].to_string())
            .replace("$2", &ids[1].to_string())
            .replace("$3", &ids[2].to_string());
        sqlx::raw_sql(sqlx::AssertSqlSafe(rows)).execute(&mut raw).await.expect("filled");

        let db = Db::connect(&scratch.connect).await.expect("connected");
        db.migrate().await.expect("migrated from 0001");
        let ended = db.run(&project(), ids[2]).await.expect("asked").expect("there");
        assert_eq!(ended.outcome, Some(outcome(ids[2], Verdict::Passed)));
        let taken = scratch.take_many(10, 1).await.runs;
        assert_eq!(taken.iter().map(|run| run.run_id).collect::<Vec<_>>(), ids[..2]);
        let listed = db.runs_of_trace(&project(), attempt().trace_id, 10).await.expect("read");
        let listed: Vec<_> = listed.iter().map(|run| (run.id, run.state)).collect();
        assert_eq!(listed, [(ids[1], State::Running)], "once, and not as ended");
        assert_eq!(scratch.progress(&taken[1]).await, Progress::Answered(attempt(), answer()));
        let accepted = db.create_run(&scratch::new_run(4)).await.expect("accepted");
        assert_eq!(accepted, RunAcceptance::New { version: 1 });
        assert_eq!(scratch.take(LEASE).await.run_id, run_id(4));
    });
}

#[test]
fn a_server_from_before_open_runs_had_a_table_is_refused() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        scratch.apply("a").await;
        scratch.accept(1).await;
        let before = [
            "insert into runs (id, project, test_id, test_version, accepted_at_ns, events_last)
                 values (gen_random_uuid(), 'default', 'shop', 1, 1, 1)",
            "update runs set stop_at_ns = 1 where verdict is null and stop_at_ns is null",
            "update runs set attempted_epoch = epoch where verdict is null",
            "select * from running_runs()",
        ];
        for statement in before {
            let error = sqlx::query(statement).execute(&mut raw).await.expect_err("refused");
            let error = error.to_string();
            assert!(error.contains("start that version here too"), "{statement}: {error}");
        }
        assert_eq!(scratch.take_many(5, 5).await.runs.len(), 1, "nothing was changed");
    });
}
