//! Documents of every kind: applied, read, listed, deleted, provisioned, sealed.

use db::{AppliedDocument, ApplyOptions, Db, DbError, NewDocument, Precondition};
use model::{DocumentKind, Fault, Faulty, TestId};
use sqlx::Row;

use crate::scratch::{self, Scratch, at, new_run, project, test_id};

const NOW: ApplyOptions =
    ApplyOptions { at: None, expected: Precondition::Anything, is_dry_run: false };

fn new(kind: DocumentKind, id: &str, document: &str) -> NewDocument {
    NewDocument {
        project: project(),
        kind,
        id: id.parse().expect("an id"),
        name: format!("{kind} {id}"),
        file: "all.yaml".to_owned(),
        document: document.to_owned(),
        host: None,
    }
}

async fn apply(
    db: &Db,
    document: NewDocument,
    expected: Precondition,
) -> Result<AppliedDocument, DbError> {
    let applying = ApplyOptions { at: Some(at(5)), expected, is_dry_run: false };
    Ok(db.apply(&[document], applying).await?[0])
}

async fn ids(db: &Db, kind: DocumentKind) -> Vec<String> {
    let listed = db.documents(&project(), kind, None, 100).await.expect("listed");
    listed.into_iter().map(|one| one.id.as_str().to_owned()).collect()
}

#[test]
fn every_kind_is_kept_with_its_versions() {
    scratch::with(|scratch| async move {
        let db = scratch.sealing(&[1]);
        let owner = project();
        for kind in DocumentKind::ALL {
            let (a, b) = (|| new(kind, "a", "first"), || new(kind, "a", "second"));
            let applied = [
                apply(&db, a(), Precondition::Anything).await.expect("new"),
                apply(&db, a(), Precondition::Anything).await.expect("the same"),
                apply(&db, b(), Precondition::Anything).await.expect("another"),
            ];
            let numbers = applied.map(|it| (it.version, it.changed));
            assert_eq!(numbers, [(1, true), (1, false), (2, true)], "{kind}");
            let id: TestId = "a".parse().expect("an id");
            let read = |version| db.document(&owner, kind, &id, version);
            let document = |stored: Option<db::StoredDocument>| stored.map(|it| it.document);
            assert_eq!(
                document(read(None).await.expect("read")),
                Some("second".to_owned()),
                "{kind}"
            );
            assert_eq!(
                document(read(Some(1)).await.expect("read")),
                Some("first".to_owned()),
                "{kind}"
            );
            assert_eq!(document(read(Some(3)).await.expect("read")), None, "{kind}");
            let versions = db.versions((&project(), kind, &id), None, 10).await.expect("listed");
            let numbers: Vec<_> = versions.iter().map(|it| (it.version, it.created_at)).collect();
            assert_eq!(numbers, [(2, Some(at(5))), (1, Some(at(5)))], "{kind}");
            let older = db.versions((&project(), kind, &id), Some(2), 10).await.expect("listed");
            assert_eq!(older.len(), 1, "{kind}");
            for id in ["c", "b"] {
                apply(&db, new(kind, id, "x"), Precondition::Nothing).await.expect("new");
            }
            assert_eq!(ids(&db, kind).await, ["a", "b", "c"], "{kind}");
            let after = "a".parse().expect("an id");
            let page = db.documents(&project(), kind, Some(&after), 1).await.expect("listed");
            assert_eq!(page.len(), 1);
            assert_eq!((page[0].id.as_str(), page[0].version), ("b", 1), "{kind}");
            let theirs = db.documents(&"other".parse().expect("a project"), kind, None, 9).await;
            assert_eq!(theirs.expect("listed"), [], "another project has none");
        }
    });
}

#[test]
fn what_is_expected_decides_and_a_number_never_comes_twice() {
    scratch::with(|scratch| async move {
        let db = scratch.sealing(&[1]);
        let (owner, id) = (project(), test_id());
        for kind in DocumentKind::ALL {
            let document = |text| new(kind, "shop", text);
            let refused = |result: Result<AppliedDocument, DbError>| match result {
                Err(DbError::Changed { found, .. }) => found,
                other => panic!("{kind}: {other:?}"),
            };
            assert_eq!(refused(apply(&db, document("a"), Precondition::Version(1)).await), None);
            assert_eq!(refused(apply(&db, document("a"), Precondition::Something).await), None);
            assert_eq!(ids(&db, kind).await, [""; 0], "nothing came of it");
            apply(&db, document("a"), Precondition::Nothing).await.expect("there was nothing");
            assert_eq!(refused(apply(&db, document("b"), Precondition::Nothing).await), Some(1));
            apply(&db, document("b"), Precondition::Version(1)).await.expect("it was 1");
            assert_eq!(refused(apply(&db, document("c"), Precondition::Version(1)).await), Some(2));
            let delete = |expected| db.delete(&owner, kind, &id, expected);
            let error = delete(Precondition::Version(1)).await.expect_err("it is 2");
            assert_eq!(error.fault(), Fault::Conflict, "{error}");
            delete(Precondition::Version(2)).await.expect("deleted");
            delete(Precondition::Anything).await.expect_err("it is gone");
            assert_eq!(ids(&db, kind).await, [""; 0]);
            let gone = db.document(&project(), kind, &id, Some(1)).await.expect("read");
            assert_eq!(gone, None, "{kind}: nor is an old version");
            let again = apply(&db, document("b"), Precondition::Nothing).await.expect("back");
            assert_eq!((again.version, again.changed), (3, true), "{kind}");
        }
    });
}

#[test]
fn a_deleted_test_starts_no_run_and_its_runs_go_on() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        scratch
            .db
            .delete(&project(), DocumentKind::Test, &test_id(), Precondition::Anything)
            .await
            .expect("deleted");
        let error = scratch.db.create_run(&new_run(2)).await.expect_err("no such test");
        assert!(matches!(error, DbError::NoSuchTest { .. }), "{error}");
        assert_eq!(scratch.take(scratch::LEASE).await.run_id, run, "what was accepted is run");
    });
}

/// Everything in the tables of documents, as text.
async fn everything(scratch: &Scratch) -> String {
    let rows = sqlx::query(
        "select documents::text || document_versions::text || encode(sealed, 'escape') as all
         from documents join document_versions using (project, kind)",
    );
    let rows = rows.fetch_all(&mut scratch.raw().await).await.expect("read");
    rows.iter().map(|row| row.get::<String, _>(0)).collect()
}

#[test]
fn the_database_alone_tells_no_secret_and_keys_can_be_changed() {
    scratch::with(|scratch| async move {
        let bare = scratch.db.apply(&[new(DocumentKind::VariableSet, "a", "hunter2")], NOW).await;
        assert!(matches!(bare, Err(DbError::NoSecretKey { .. })), "{bare:?}");
        let (old, both, other) =
            (scratch.sealing(&[1]), scratch.sealing(&[2, 1]), scratch.sealing(&[3]));
        for kind in [DocumentKind::VariableSet, DocumentKind::TraceStore] {
            let document = || new(kind, "a", "hunter2");
            apply(&old, document(), Precondition::Nothing).await.expect("sealed");
            let kept = everything(&scratch).await;
            assert!(kept.contains("all.yaml") && !kept.contains("hunter2"), "{kept}");
            let id: TestId = "a".parse().expect("an id");
            let read = both.document(&project(), kind, &id, None).await.expect("opened");
            assert_eq!(read.expect("there").document, "hunter2");
            let same = apply(&both, document(), Precondition::Anything).await.expect("known");
            assert!(!same.changed, "the key does not matter");
            let lost = other.document(&project(), kind, &id, None).await.expect_err("no key");
            assert!(lost.to_string().contains("secrets.keys"), "{lost}");
            let anew =
                apply(&other, document(), Precondition::Anything).await.expect("written anew");
            assert_eq!((anew.version, anew.changed), (2, true));
            both.delete(&project(), kind, &id, Precondition::Anything).await.expect("deleted");
        }
        assert_eq!(everything(&scratch).await, "", "what was deleted is gone");
    });
}

#[test]
fn provisioning_leaves_exactly_its_own() {
    scratch::with(|scratch| async move {
        let db = scratch.sealing(&[1]);
        let (suite, gate) = (DocumentKind::TestSuite, DocumentKind::QualityGate);
        apply(&db, new(suite, "mine", "m"), Precondition::Nothing).await.expect("applied");
        let first =
            [new(suite, "one", "1"), new(gate, "two", "2"), new(DocumentKind::Test, "t", "t")];
        let (applied, deleted) = db.provision(&first, at(6)).await.expect("provisioned");
        assert_eq!((applied.len(), deleted), (3, 0));
        let (again, deleted) = db.provision(&first, at(7)).await.expect("provisioned");
        assert!(again.iter().all(|it| !it.changed && it.version == 1) && deleted == 0);
        // A person applies one of them over the provisioned version.
        apply(&db, new(gate, "two", "mine now"), Precondition::Anything).await.expect("applied");
        let (_, deleted) =
            db.provision(&[new(suite, "three", "3")], at(8)).await.expect("provisioned");
        assert_eq!(deleted, 2, "`one` and the test");
        assert_eq!(ids(&db, suite).await, ["mine", "three"]);
        assert_eq!(ids(&db, gate).await, ["two"]);
        assert_eq!(ids(&db, DocumentKind::Test).await, [""; 0]);
    });
}

#[test]
fn the_migration_keeps_what_was_there() {
    scratch::with(|scratch| async move {
        let mut raw = scratch.raw().await;
        let before = [
            "drop schema public cascade; create schema public;",
            include_str!("../../migrations/0001_record.sql"),
            "insert into tests values ('default', 'shop', 1, 'a.yaml');
             insert into test_versions values ('default', 'shop', 1, 'Shop', 'the document');",
            include_str!("../../migrations/0004_documents.sql"),
        ];
        for statements in before {
            sqlx::raw_sql(statements).execute(&mut raw).await.expect("done");
        }
        let read = scratch.db.document(&project(), DocumentKind::Test, &test_id(), None).await;
        assert_eq!(read.expect("read").expect("there").document, "the document");
        let listed = scratch.db.documents(&project(), DocumentKind::Test, None, 9).await;
        assert_eq!(listed.expect("listed")[0].created_at, None, "nobody knows");
    });
}
