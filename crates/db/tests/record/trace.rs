//! Traces: read back byte for byte, within the bound.

use db::{DbError, OtlpTrace, RunCompletion, State};
use model::{Fault, Faulty, RunId, Verdict};
use sqlx::Row;

use crate::scratch::{self, LEASE, Scratch, TRACE_BYTES_MAX, outcome, project};

async fn finish(scratch: &Scratch, run: RunId, otlp: Vec<u8>) -> Result<(), DbError> {
    let outcome = outcome(run, Verdict::Passed);
    let trace = Some(OtlpTrace { spans: 3, otlp: otlp.into() });
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
