//! Traces: read back byte for byte, within the bound.

use db::{DbError, Keep, OtlpTrace, RunCompletion, State};
use model::{Fault, Faulty, RunId, Verdict};
use sqlx::Row;

use crate::scratch::{self, LEASE, Scratch, TRACE_BYTES_MAX, outcome, project};

async fn finish(scratch: &Scratch, run: RunId, otlp: Vec<u8>) -> Result<(), DbError> {
    finish_with(scratch, run, otlp, None).await
}

async fn finish_with(
    scratch: &Scratch,
    run: RunId,
    otlp: Vec<u8>,
    columns: Option<Vec<u8>>,
) -> Result<(), DbError> {
    let outcome = outcome(run, Verdict::Passed);
    let columns = columns.map(Into::into);
    let trace = Some(OtlpTrace { spans: 3, otlp: otlp.into(), columns });
    scratch.db.finish(run, 1, &RunCompletion { outcome: &outcome, events: &[], trace }).await
}

#[test]
fn a_trace_comes_back_as_it_was() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        for (number, otlp) in (0..).zip([vec![], b"spans".to_vec(), vec![7; TRACE_BYTES_MAX]]) {
            let run = scratch.accept(number).await;
            scratch.take(LEASE).await;
            assert_eq!(scratch.db.trace(&project(), run).await.expect("asked"), None);
            finish(&scratch, run, otlp.clone()).await.expect("owned");
            let read = scratch.db.trace(&project(), run).await.expect("asked");
            assert!(read.as_ref() == Some(&otlp), "{} bytes", otlp.len());
        }
        let size = "select max(octet_length(otlp_zstd)), sum(spans)::bigint from traces";
        let row = sqlx::query(size).fetch_one(&mut scratch.raw().await).await.expect("read");
        assert!(row.get::<i32, _>(0) < 4096, "a megabyte of the same is small");
        assert_eq!(row.get::<i64, _>(1), 9);
    });
}

#[test]
fn a_trace_over_the_bound_is_refused_and_the_run_left_as_it_was() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        scratch.take(LEASE).await;
        let error = finish(&scratch, run, vec![0; TRACE_BYTES_MAX + 1]).await.expect_err("refused");
        assert!(matches!(error, DbError::TraceTooLarge { .. }), "{error}");
        assert_eq!(error.fault(), Fault::Invalid);
        let left = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!(left.state, State::Running);
    });
}

#[test]
fn what_unpacks_to_more_than_the_bound_or_not_at_all_is_an_error() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        scratch.take(LEASE).await;
        finish(&scratch, run, b"spans".to_vec()).await.expect("owned");
        let bomb = zstd::bulk::compress(&vec![0; 64 * TRACE_BYTES_MAX], 3).expect("compressed");
        assert!(bomb.len() < 16 << 10, "a bomb is small: {}", bomb.len());
        let cases = [(bomb, Fault::Invalid), (b"no zstd".to_vec(), Fault::Internal)];
        for (bytes, fault) in cases {
            let put = sqlx::query("update traces set otlp_zstd = $1").bind(bytes);
            put.execute(&mut scratch.raw().await).await.expect("put");
            let error = scratch.db.trace(&project(), run).await.expect_err("refused");
            assert_eq!(error.fault(), fault, "{error}");
        }
    });
}

#[test]
fn columns_are_stored_with_their_trace_or_later_and_only_once() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let (db, project) = (&scratch.db, project());
        let run = scratch.accept(1).await;
        scratch.take(LEASE).await;
        assert_eq!(db.columns(&project, run).await.expect("read"), None);
        assert!(!db.has_trace(&project, run).await.expect("read"));
        finish_with(&scratch, run, b"spans".to_vec(), Some(b"columns".to_vec()))
            .await
            .expect("owned");
        assert!(db.has_trace(&project, run).await.expect("read"));
        let read = async |run| db.columns(&project, run).await.expect("read").expect("there").zstd;
        let first = read(run).await.expect("with its trace");
        assert_eq!(db.unpack_columns(run, first.clone()).await.expect("columns"), b"columns");
        db.keep_columns(&project, run, b"others".as_slice().into()).await.expect("nothing to do");
        assert_eq!(read(run).await, Some(first));

        let old = scratch.accept(2).await;
        scratch.take(LEASE).await;
        finish(&scratch, old, b"spans".to_vec()).await.expect("owned");
        assert_eq!(read(old).await, None);
        let other = "other".parse().expect("a name");
        db.keep_columns(&other, old, b"theirs".as_slice().into()).await.expect("nothing to do");
        assert_eq!(read(old).await, None, "another project has no such trace");
        let made = db.keep_columns(&project, old, b"made".as_slice().into()).await.expect("stored");
        assert_eq!(read(old).await, Some(made));
        let zstd = db.trace_zstd(&project, old).await.expect("read").expect("there");
        assert_eq!(zstd::bulk::decompress(&zstd, 100).expect("a frame"), b"spans");
    });
}

#[test]
fn columns_over_their_bound_are_left_out_and_the_trace_is_kept() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let (db, project) = (&scratch.db, project());
        let run = scratch.accept(1).await;
        scratch.take(LEASE).await;
        let large = vec![0; 2 * TRACE_BYTES_MAX + 1];
        finish_with(&scratch, run, b"spans".to_vec(), Some(large.clone())).await.expect("owned");
        let stored = db.columns(&project, run).await.expect("read").expect("the trace is there");
        assert_eq!(stored.zstd, None);
        let error = db.keep_columns(&project, run, large.into()).await.expect_err("refused");
        assert!(matches!(error, DbError::ColumnsTooLarge { .. }), "{error}");
        let bomb = zstd::bulk::compress(&vec![0; 64 * TRACE_BYTES_MAX], 3).expect("compressed");
        let error = db.unpack_columns(run, bomb).await.expect_err("refused");
        assert!(matches!(error, DbError::ColumnsTooLarge { .. }), "{error}");
        let broken = db.unpack_columns(run, b"no zstd".to_vec()).await.expect_err("refused");
        assert_eq!(broken.fault(), Fault::Internal, "{broken}");
    });
}

#[test]
fn columns_are_not_compressed_again_in_any_partition() {
    scratch::with(|scratch| async move {
        scratch
            .db
            .upkeep(scratch::at(0), Keep::default())
            .await
            .expect("done")
            .expect("no other server");
        let storage = "select count(*), count(*) filter (where attstorage = 'e') from pg_attribute
                       where attname = 'columns_zstd' and attrelid::regclass::text like 'traces%'";
        let row = sqlx::query(storage).fetch_one(&mut scratch.raw().await).await.expect("read");
        assert_eq!(
            (row.get::<i64, _>(0), row.get::<i64, _>(1)),
            (5, 5),
            "the table and four partitions"
        );
    });
}
