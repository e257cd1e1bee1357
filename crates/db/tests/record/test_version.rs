//! Tests and their versions.

use db::{Applied, DbError, NewTest, StoredTest};
use model::{Fault, Faulty, Project};

use crate::scratch::{self, LEASE, new_run, new_test, project, run_id, test_id};

#[test]
fn the_version_rises_with_the_document_and_with_nothing_else() {
    scratch::with(|scratch| async move {
        assert_eq!(scratch.db.test(&project(), &test_id()).await.expect("asked"), None);
        let moved = |document| NewTest { file: "elsewhere.yaml".to_owned(), ..new_test(document) };
        let cases = [
            (new_test("a"), 1, true),
            (new_test("a"), 1, false),
            (new_test("b"), 2, true),
            (moved("b"), 2, false),
            (new_test("a"), 3, true),
        ];
        for (test, version, changed) in cases {
            let applied = scratch.db.apply_test(&test).await.expect("applied");
            assert_eq!(applied, Applied { version, changed }, "{test:?}");
            let NewTest { id, name, file, document, .. } = test;
            let expected = StoredTest { id, name, version, file, document };
            let stored = scratch.db.test(&project(), &test_id()).await.expect("asked");
            assert_eq!(stored, Some(expected));
        }
    });
}

#[test]
fn of_many_who_apply_the_same_one_makes_the_version() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let db = scratch.db.clone();
            tasks.spawn(async move { db.apply_test(&new_test("b")).await.expect("applied") });
        }
        let applied = tasks.join_all().await;
        assert!(applied.iter().all(|applied| applied.version == 2), "{applied:?}");
        assert_eq!(applied.iter().filter(|applied| applied.changed).count(), 1);
    });
}

#[test]
fn a_run_keeps_the_version_it_started_with() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        assert_eq!(scratch.db.create_run(&new_run(1)).await.expect("accepted"), 1);
        scratch.apply("b").await;
        assert_eq!(scratch.db.create_run(&new_run(2)).await.expect("accepted"), 2);
        for (version, document) in [(1, "a"), (2, "b")] {
            let test = scratch.take(LEASE).await.test;
            assert_eq!((test.version, test.document.as_str()), (version, document));
            assert_eq!(test.id, test_id());
        }
    });
}

#[test]
fn projects_do_not_see_each_other() {
    scratch::with(|scratch| async move {
        let other: Project = "other".parse().expect("a project");
        scratch.apply("a").await;
        scratch.accept(1).await;
        assert_eq!(scratch.db.test(&other, &test_id()).await.expect("asked"), None);
        assert_eq!(scratch.db.run(&other, run_id(1)).await.expect("asked"), None);
        assert_eq!(scratch.db.events(&other, run_id(1), 0, 10).await.expect("asked"), []);
        let theirs = NewTest { project: other.clone(), ..new_test("c") };
        let applied = scratch.db.apply_test(&theirs).await.expect("applied");
        assert_eq!(applied, Applied { version: 1, changed: true });
        let ours = scratch.db.test(&project(), &test_id()).await.expect("asked");
        assert_eq!(ours.map(|test| test.document).as_deref(), Some("a"));
    });
}

#[test]
fn what_cannot_be_kept_is_refused() {
    scratch::with(|scratch| async move {
        let error = scratch.db.create_run(&new_run(1)).await.expect_err("no test");
        assert!(matches!(error, DbError::NoSuchTest { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Missing);
        assert_eq!(scratch.db.run(&project(), run_id(1)).await.expect("asked"), None);

        let error = scratch.db.apply_test(&new_test("a\0b")).await.expect_err("a NUL");
        assert_eq!(error.fault(), Fault::Invalid, "{error}");

        scratch.apply("a").await;
        scratch.accept(1).await;
        let error = scratch.db.create_run(&new_run(1)).await.expect_err("twice");
        assert!(matches!(error, DbError::RunExists { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Conflict);
    });
}
