//! Tests and their versions.

use db::{AppliedDocument, DbError, NewTest, RunAcceptance, StoredTest};
use model::{Fault, Faulty, Project};
use sqlx::Row;

use crate::scratch::{self, LEASE, apply, new_run, new_test, project, run_id, test_id};

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
            let applied = apply(&scratch.db, test.clone()).await;
            assert_eq!(applied, AppliedDocument { version, changed }, "{test:?}");
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
            tasks.spawn(async move { apply(&db, new_test("b")).await });
        }
        let applied = tasks.join_all().await;
        assert!(applied.iter().all(|applied| applied.version == 2), "{applied:?}");
        assert_eq!(applied.iter().filter(|applied| applied.changed).count(), 1);
    });
}

/// A test with a numbered id.
fn numbered(number: u32, document: &str) -> NewTest {
    NewTest { id: format!("test-{number}").parse().expect("a test id"), ..new_test(document) }
}

#[test]
fn tests_are_kept_together_or_not_at_all() {
    scratch::with(|scratch| async move {
        let error = scratch
            .db
            .apply_tests(&[numbered(1, "a"), numbered(2, "a\0b")])
            .await
            .expect_err("one cannot be kept");
        assert_eq!(error.fault(), Fault::Invalid, "{error}");
        let first = scratch.db.test(&project(), &numbered(1, "a").id).await.expect("asked");
        assert_eq!(first, None, "so none is");
        assert_eq!(scratch.db.apply_tests(&[]).await.expect("nothing to do"), []);

        let tests = [numbered(2, "a"), numbered(1, "a"), numbered(2, "b"), numbered(1, "a")];
        let applied = scratch.db.apply_tests(&tests).await.expect("applied");
        let expected = [(1, true), (1, true), (2, true), (1, false)];
        assert_eq!(
            applied,
            expected.map(|(version, changed)| AppliedDocument { version, changed })
        );
    });
}

#[test]
fn who_apply_the_same_tests_in_another_order_wait_for_each_other() {
    scratch::with(|scratch| async move {
        for round in 0..10 {
            let document = round.to_string();
            let mut tasks = tokio::task::JoinSet::new();
            for turn in 0..6 {
                let mut tests: Vec<NewTest> =
                    (0..40).map(|number| numbered(number, &document)).collect();
                if turn % 2 == 0 {
                    tests.reverse();
                }
                let db = scratch.db.clone();
                tasks.spawn(async move { db.apply_tests(&tests).await.expect("no deadlock") });
            }
            let applied = tasks.join_all().await.concat();
            assert!(applied.iter().all(|applied| applied.version == round + 1));
            assert_eq!(applied.iter().filter(|applied| applied.changed).count(), 40);
        }
    });
}

#[test]
fn a_version_never_changes() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        scratch.accept(1).await;
        let versions = async || -> String {
            let all = "select string_agg(v::text, '|' order by v.version) from test_versions v";
            sqlx::query(all).fetch_one(&mut scratch.raw().await).await.expect("read").get(0)
        };
        let before = versions().await;
        let moved = |document| NewTest { file: "elsewhere.yaml".to_owned(), ..new_test(document) };
        assert!(!apply(&scratch.db, moved("a")).await.changed);
        assert_eq!(versions().await, before);
        assert!(apply(&scratch.db, moved("b")).await.changed);
        assert!(versions().await.starts_with(&before));
        let taken = scratch.take(LEASE).await.test;
        assert_eq!((taken.version, taken.document.as_str()), (1, "a"));
        assert_eq!(taken.file, "elsewhere.yaml", "where it was last applied from");
    });
}

#[test]
fn a_run_keeps_the_version_it_started_with() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        assert_eq!(
            scratch.db.create_run(&new_run(1)).await.expect("accepted"),
            RunAcceptance::New { version: 1 }
        );
        scratch.apply("b").await;
        assert_eq!(
            scratch.db.create_run(&new_run(2)).await.expect("accepted"),
            RunAcceptance::New { version: 2 }
        );
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
        let applied = apply(&scratch.db, theirs).await;
        assert_eq!(applied, AppliedDocument { version: 1, changed: true });
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

        let error = scratch.db.apply_tests(&[new_test("a\0b")]).await.expect_err("a NUL");
        assert_eq!(error.fault(), Fault::Invalid, "{error}");

        scratch.apply("a").await;
        scratch.accept(1).await;
        let error = scratch.db.create_run(&new_run(1)).await.expect_err("twice");
        assert!(matches!(error, DbError::RunExists { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Conflict);
    });
}
