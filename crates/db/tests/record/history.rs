//! Lists of runs: their content, and that their cost does not depend on the length of the history.

use std::{
    future::poll_fn,
    pin::pin,
    task::{Context, Poll},
};

use db::{Connect, Db, Keep, RunFilter};
use model::Verdict;
use serde_json::Value;
use sqlx::{AssertSqlSafe, Row};

use crate::scratch::{at, attempt, new_run, new_test, project, run_id, test_id, with};

/// Drops a future when it is woken after `polls` polls; returns whether it had completed by then.
async fn broken_off(work: impl Future, polls: u32) -> bool {
    let (mut work, mut left) = (pin!(work), polls);
    let step = |context: &mut Context<'_>| {
        if left == 0 {
            return Poll::Ready(false);
        }
        left -= 1;
        work.as_mut().poll(context).map(|_| true)
    };
    poll_fn(step).await
}

/// A caller may cancel a request at any moment, and later writes on the same connections are still committed.
#[test]
fn a_list_that_is_broken_off_leaves_no_transaction_open() {
    with(|scratch| async move {
        scratch.apply("one").await;
        let one = Connect { pool_max: 1, ..scratch.connect.clone() };
        let db = Db::connect(&one).await.expect("connected");
        let all = RunFilter { project: project(), limit: 500, ..RunFilter::default() };
        let mut written = 0;
        // On a busy machine the response may be there at the second poll already: then the test tries again.
        for _ in 0..50 {
            let mut polls = 1;
            while !broken_off(db.runs(&all), polls).await {
                written += 1;
                db.create_run(&new_run(written)).await.expect("accepted");
                let seen = scratch.db.runs(&all).await.expect("listed").len();
                assert_eq!(seen, written as usize, "after a list that ended at poll {polls}");
                polls += 1;
            }
            if polls > 2 {
                return;
            }
        }
        panic!("no list could be broken off at its second poll");
    });
}

#[test]
fn runs_are_listed_by_what_is_asked() {
    with(|scratch| async move {
        scratch.apply("one").await;
        for number in 1..=4 {
            scratch.accept(number).await;
        }
        scratch.end_next(Verdict::Passed).await;
        scratch.end_next(Verdict::Failed).await;
        let all = RunFilter { project: project(), limit: 10, ..RunFilter::default() };
        let cases = [
            (all.clone(), vec![4, 3, 2, 1]),
            (RunFilter { limit: 2, ..all.clone() }, vec![4, 3]),
            (RunFilter { before: Some(run_id(3)), ..all.clone() }, vec![2, 1]),
            (RunFilter { test: Some(test_id()), ..all.clone() }, vec![4, 3, 2, 1]),
            (RunFilter { test: Some("other".parse().expect("an id")), ..all.clone() }, vec![]),
            (RunFilter { verdict: Some(Verdict::Failed), ..all.clone() }, vec![2]),
            (
                RunFilter { test: Some(test_id()), verdict: Some(Verdict::Passed), ..all.clone() },
                vec![1],
            ),
            (RunFilter { from: Some(at(2)), until: Some(at(4)), ..all.clone() }, vec![3, 2]),
            (RunFilter { project: "other".parse().expect("a project"), ..all.clone() }, vec![]),
        ];
        for (wanted, expected) in cases {
            let listed = scratch.db.runs(&wanted).await.expect("listed");
            let ids: Vec<_> = listed.iter().map(|run| run.id).collect();
            let expected: Vec<_> = expected.into_iter().map(run_id).collect();
            assert_eq!(ids, expected, "{wanted:?}");
        }
        let of_trace =
            scratch.db.runs_of_trace(&project(), attempt().trace_id, 10).await.expect("listed");
        assert_eq!(of_trace.len(), 2);
        assert_eq!(of_trace[0].verdict, Some(Verdict::Failed));
        assert_eq!(of_trace[0].ended_at, Some(at(9)));
    });
}

/// Every list statement, with its values.
const STATEMENTS: [(&str, &str); 5] = [
    (include_str!("../../queries/history/newest.sql"), "'default', $FROM, $UNTIL, 50"),
    (include_str!("../../queries/history/of_test.sql"), "'default', $FROM, $UNTIL, 50, 'shop'"),
    (
        include_str!("../../queries/history/by_verdict.sql"),
        "'default', $FROM, $UNTIL, 50, 'failed'",
    ),
    (
        include_str!("../../queries/history/of_test_by_verdict.sql"),
        "'default', $FROM, $UNTIL, 50, 'shop', 'passed'",
    ),
    (
        include_str!("../../queries/history/of_trace.sql"),
        "'default', '\\xabababababababababababababababab', 50",
    ),
];

/// Pages that a list of fifty may read: its rows, and the path to them in the index of each month.
const PAGES_MAX: u64 = 400;

#[test]
fn lists_go_by_an_index_however_long_the_history_is() {
    with(|scratch| async move {
        scratch.db.upkeep(at(0), Keep::default()).await.expect("done");
        scratch.db.apply_tests(&[new_test("one")]).await.expect("applied");
        let mut raw = scratch.raw().await;
        // Every hundredth failed; ids are times, a second apart, over three months.
        let fill = "insert into runs (project, id, test_id, test_version, accepted_at_ns, events_last, epoch, verdict, outcome,
                trace_id, span_id, attempted_at_ns, attempted_epoch)
            select 'default', (lpad(to_hex(1794708000000 + n::bigint * 100000), 12, '0') || '70007000700070007000')::uuid,
                'shop', 1, 1, 1, 1, case when n % 100 = 0 then 'failed' else 'passed' end, '{}'::json,
                decode(md5(n::text), 'hex'), decode(left(md5(n::text), 16), 'hex'), 1, 1
            from generate_series(1, 60000) as n";
        sqlx::query(fill).execute(&mut raw).await.expect("filled");
        sqlx::query("analyze").execute(&mut raw).await.expect("analyzed");
        for (number, (statement, values)) in STATEMENTS.iter().enumerate() {
            // As a driver executes it: prepared, and with a generic plan.
            let values = values
                .replace("$FROM", "'00000000-0000-0000-0000-000000000000'")
                .replace("$UNTIL", "'ffffffff-ffff-ffff-ffff-ffffffffffff'");
            for text in [
                "set plan_cache_mode = force_generic_plan".to_owned(),
                format!("prepare list{number} as {statement}"),
            ] {
                sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut raw).await.expect("prepared");
            }
            let asked =
                format!("explain (analyze, buffers, format json) execute list{number} ({values})");
            let row =
                sqlx::raw_sql(AssertSqlSafe(asked)).fetch_one(&mut raw).await.expect("explained");
            let plan: Value = row.get(0);
            let whole = &plan[0]["Plan"];
            assert!(!reads_all(whole), "{statement}\n{plan:#}");
            let pages = pages(whole);
            assert!(pages <= PAGES_MAX, "{pages} pages: {statement}\n{plan:#}");
        }
    });
}

/// The pages that a plan node and its children have read.
fn pages(plan: &Value) -> u64 {
    let of = |key: &str| plan[key].as_u64().unwrap_or(0);
    of("Shared Hit Blocks") + of("Shared Read Blocks")
}

/// Whether a plan scans a table sequentially; a table without rows, such as the default one, may be scanned.
fn reads_all(plan: &Value) -> bool {
    let is_scan = plan["Node Type"].as_str().is_some_and(|it| it.contains("Seq Scan"));
    let below = plan["Plans"].as_array();
    (is_scan && pages(plan) > 0) || below.is_some_and(|plans| plans.iter().any(reads_all))
}
