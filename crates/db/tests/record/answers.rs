//! Responses: sealed until the verdict, and large ones read apart from their row.

use db::{BusPlace, Db, DbError, RunCompletion};
use model::{Answer, Body, Exit, Outcome, Progress, RunId, Verdict};
use sqlx::Row;

use crate::scratch::{
    self, LEASE, NO_LEASE, Scratch, answer, at, attempt, outcome, project, raw, take,
};

/// Creates a run that has this response in the database.
async fn answered(scratch: &Scratch, db: &Db, answer: &Answer) -> RunId {
    scratch.apply("a").await;
    let run = scratch.accept(1).await;
    scratch.take(NO_LEASE).await;
    db.attempted(run, 1, &attempt(), &BusPlace::default()).await.expect("owned");
    db.answered(run, 1, answer, at(4)).await.expect("owned");
    db.answered(run, 1, answer, at(5)).await.expect("a repeat is the same");
    run
}

/// Returns the response of the open run as it is stored; none after the verdict.
async fn sealed_answer(scratch: &Scratch, run: RunId) -> Option<Vec<u8>> {
    let query = "select answer_sealed from open_runs where id = $1";
    let row = sqlx::query(query).bind(run.as_uuid());
    let row = row.fetch_optional(&mut raw(&scratch.connect).await).await.expect("read");
    row.map(|row| row.get(0))
}

/// A response that is six times as large when encoded as JSON.
fn large(code: i32) -> Answer {
    let stdout = Body::Text("\u{1}".repeat(300_000).into());
    Answer::Exit(Exit { code, stdout, stderr: String::new(), duration_ns: 1 })
}

#[test]
fn an_answer_is_sealed_until_the_verdict() {
    scratch::with(|scratch| async move {
        let db = scratch.sealing(&[1]);
        let run = answered(&scratch, &db, &answer()).await;
        let sealed = sealed_answer(&scratch, run).await.expect("an answer");
        assert!(!sealed.windows(5).any(|bytes| bytes == b"quote"), "nobody reads it there");
        let taken = take(&db, "other", NO_LEASE).await.expect("asked").expect("a run");
        let other = scratch.sealing(&[2, 1]);
        let known = other.progress(&taken).await.expect("another host with the key opens it");
        assert_eq!(known, Progress::Answered(attempt(), answer()));
        let lost = scratch.sealing(&[2]).progress(&taken).await.expect_err("without it");
        assert!(lost.to_string().contains("secrets.keys"), "{lost}");
        let moved = "update open_runs set answer_sealed = set_byte(answer_sealed, 30, 7)";
        sqlx::query(moved).execute(&mut raw(&scratch.connect).await).await.expect("changed");
        let changed = db.progress(&taken).await.expect_err("it was changed");
        assert!(matches!(changed, DbError::Corrupt { .. }), "{changed}");
        let ended = outcome(run, Verdict::Passed);
        let finished = RunCompletion { outcome: &ended, events: &[], trace: None };
        db.finish(run, taken.epoch, &finished).await.expect("owned");
        assert_eq!(sealed_answer(&scratch, run).await, None, "it is gone");
    });
}

#[test]
fn a_large_answer_is_small_in_its_row_and_comes_back_whole() {
    scratch::with(|scratch| async move {
        let db = &scratch.db;
        let run = answered(&scratch, db, &large(0)).await;
        let sealed = sealed_answer(&scratch, run).await.expect("an answer");
        assert!(sealed.len() < 10_000, "{} bytes", sealed.len());
        let fenced = db.answered(run, 1, &large(1), at(5)).await.expect_err("there is one");
        assert!(matches!(fenced, DbError::Fenced { .. }), "{fenced}");
        let taken = scratch.take(LEASE).await;
        assert_eq!(taken.answer_bytes, Some(300_000));
        assert_eq!(taken.progress, Progress::Attempted(attempt()), "it is not read along");
        assert_eq!(scratch.progress(&taken).await, Progress::Answered(attempt(), large(0)));
        let ended = Outcome { answer: Some(large(0)), ..outcome(run, Verdict::Passed) };
        let finished = RunCompletion { outcome: &ended, events: &[], trace: None };
        db.finish(run, taken.epoch, &finished).await.expect("owned");
        db.finish(run, taken.epoch, &finished).await.expect("a repeat is the same");
        let size = "select octet_length(outcome::text) from runs where id = $1";
        let size = sqlx::query_scalar(size).bind(run.as_uuid());
        let size: i32 = size.fetch_one(&mut scratch.raw().await).await.expect("an outcome");
        assert!(size < 10_000, "{size} bytes");
        let stored = db.run(&project(), run).await.expect("asked").expect("there");
        assert!(stored.answer_apart);
        assert_eq!(stored.outcome.expect("an outcome").answer, None, "it is not read along");
        assert_eq!(db.outcome(&project(), run).await.expect("asked"), Some(ended));
    });
}
