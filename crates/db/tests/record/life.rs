//! The start values of a run, its stop request, and its verdict.

use std::time::Duration;

use db::{
    DbError, IdempotencyKey, NewRun, RunAcceptance, RunCompletion, RunFilter, RunVars, Starter,
    State,
};
use model::{Fault, Faulty, Overtaken, RunEvent, Verdict, What};
use tokio::task::JoinSet;

use crate::scratch::{self, LEASE, NO_LEASE, Scratch, at, new_run, outcome, project, run_id};

fn with_key(number: u32, key: &str, request: &str) -> NewRun {
    let key = IdempotencyKey { key: key.to_owned(), request: request.to_owned() };
    NewRun { key: Some(key), ..new_run(number) }
}

async fn count(scratch: &Scratch, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(&mut scratch.raw().await).await.expect("counted")
}

#[test]
fn a_repeated_request_starts_nothing() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let start = async |run: NewRun| scratch.db.create_run(&run).await;
        let first = start(with_key(1, "k", "the request")).await.expect("accepted");
        assert_eq!(first, RunAcceptance::New { version: 1 });
        let again = start(with_key(2, "k", "the request")).await.expect("known");
        assert_eq!(again, RunAcceptance::Again { run: run_id(1) });
        let other = start(with_key(3, "k", "another request")).await.expect_err("another");
        assert_eq!(other.fault(), Fault::Conflict);
        assert!(matches!(other, DbError::OtherRequest { .. }), "{other}");
        start(with_key(4, "l", "the request")).await.expect("another key");
        let nothing = NewRun { test: "absent".parse().expect("an id"), ..with_key(5, "m", "r") };
        let error = start(nothing).await.expect_err("no such test");
        assert!(matches!(error, DbError::NoSuchTest { .. }), "{error}");
        start(with_key(6, "m", "r")).await.expect("a refused request has used no key");
        assert_eq!(count(&scratch, "select count(*) from runs").await, 3);
    });
}

#[test]
fn of_many_equal_requests_at_once_one_starts() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let mut starts = JoinSet::new();
        for number in 0..16 {
            let db = scratch.db.clone();
            starts.spawn(async move { db.create_run(&with_key(number, "k", "r")).await });
        }
        let accepted: Vec<_> =
            starts.join_all().await.into_iter().map(|it| it.expect("accepted")).collect();
        let new = |it: &&RunAcceptance| matches!(it, RunAcceptance::New { .. });
        assert_eq!(accepted.iter().filter(new).count(), 1, "{accepted:?}");
        let again: Vec<_> = accepted.iter().filter(|it| !new(it)).collect();
        assert!(again.iter().all(|it| *it == again[0]), "{accepted:?}");
        assert_eq!(count(&scratch, "select count(*) from runs").await, 1);
        assert_eq!(count(&scratch, "select count(*) from events").await, 1);
    });
}

#[test]
fn what_a_run_is_started_with_reaches_its_owner() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let vars = RunVars {
            sets: vec!["staging".to_owned()],
            values: [("name".to_owned(), "NUL \0, quote \"".to_owned())].into(),
            revision: Some("abc".to_owned()),
        };
        let timeout = Some(Duration::from_millis(1500));
        let starter = Starter::Person;
        let run = NewRun { vars: vars.clone(), timeout, starter, ..new_run(1) };
        scratch.db.create_run(&run).await.expect("accepted");
        let taken = scratch.take(LEASE).await;
        assert_eq!(taken.starter, Some(starter));
        assert_eq!((taken.vars, taken.timeout, taken.stop_at), (vars, timeout, None));
        let newest = RunFilter { project: project(), limit: 1, ..RunFilter::default() };
        let listed = scratch.db.runs(&newest).await.expect("listed");
        assert_eq!(listed[0].revision.as_deref(), Some("abc"));
    });
}

#[test]
fn a_stop_is_seen_when_a_run_is_taken_and_when_its_lease_is_renewed() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let stop = async |second| scratch.db.stop_run(&project(), run, at(second)).await;
        let epoch = scratch.take(NO_LEASE).await.epoch;
        assert_eq!(scratch::renew(&scratch.db, run, epoch, NO_LEASE).await.expect("owned"), None);
        let other = "other".parse().expect("a project");
        scratch.db.stop_run(&other, run, at(4)).await.expect("asked");
        assert_eq!(scratch::renew(&scratch.db, run, epoch, NO_LEASE).await.expect("owned"), None);
        stop(5).await.expect("asked");
        stop(6).await.expect("asked again");
        assert_eq!(
            scratch::renew(&scratch.db, run, epoch, NO_LEASE).await.expect("owned"),
            Some(at(5))
        );
        let taken = scratch.take(LEASE).await;
        assert_eq!(taken.stop_at, Some(at(5)));
        let stored = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!((stored.state, stored.stop_at), (State::Running, Some(at(5))));

        let outcome = outcome(run, Verdict::Inconclusive);
        let finished = RunCompletion { outcome: &outcome, events: &[], trace: None };
        scratch.db.finish(run, taken.epoch, &finished).await.expect("owned");
        let late = scratch.accept(2).await;
        scratch.db.stop_run(&project(), late, at(7)).await.expect("asked");
        stop(8).await.expect("no error, and nothing to stop");
        let stored = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!((stored.state, stored.stop_at), (State::Ended, Some(at(5))));
    });
}

#[test]
fn only_who_judged_tells_that_a_verdict_was_overtaken_and_once() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let sleeper = scratch.take(NO_LEASE).await.epoch;
        let epoch = scratch.take(LEASE).await.epoch;
        let overtaken = Overtaken {
            verdict: Verdict::Failed,
            spans: 2,
            after_ns: 9,
            service: Some("shop \"1\"".to_owned()),
        };
        let write = async |epoch, overtaken: &Overtaken| {
            scratch.db.overtaken(run, epoch, overtaken, at(9)).await
        };
        let early = write(epoch, &overtaken).await.expect_err("there is no verdict yet");
        assert!(matches!(early, DbError::Fenced { .. }), "{early}");
        let passed = outcome(run, Verdict::Passed);
        let finished = RunCompletion { outcome: &passed, events: &[], trace: None };
        scratch.db.finish(run, epoch, &finished).await.expect("owned");

        let fenced = write(sleeper, &overtaken).await.expect_err("of another epoch");
        assert!(matches!(fenced, DbError::Fenced { .. }), "{fenced}");
        write(epoch, &overtaken).await.expect("it judged");
        write(epoch, &overtaken).await.expect("a repeat");
        let other = Overtaken { spans: 3, ..overtaken.clone() };
        let second = write(epoch, &other).await.expect_err("another one");
        assert!(matches!(second, DbError::Fenced { .. }), "{second}");

        let stored = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!(stored.verdict, Some(Verdict::Passed), "the verdict stays");
        let told = stored.outcome.expect("it ended");
        assert_eq!(told.overtaken, Some(overtaken.clone()));
        let events = scratch.db.events(&project(), run, 3, 10).await.expect("asked");
        assert_eq!(events, [(4, RunEvent { at: at(9), what: What::Overtaken(overtaken) })]);
    });
}

#[test]
fn runs_that_are_given_back_are_taken_at_once() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let (left, kept, ended) =
            (scratch.accept(1).await, scratch.accept(2).await, scratch.accept(3).await);
        assert_eq!(scratch.take_many(3, 10).await.runs.len(), 3);
        let outcome = outcome(ended, Verdict::Passed);
        let finished = RunCompletion { outcome: &outcome, events: &[], trace: None };
        scratch.db.finish(ended, 1, &finished).await.expect("owned");
        scratch.db.release(&[(left, 1), (kept, 7), (ended, 1)]).await.expect("given back");
        let again = scratch.take_many(3, 10).await.runs;
        assert_eq!(again.iter().map(|it| (it.run_id, it.epoch)).collect::<Vec<_>>(), [(left, 2)]);
        assert_eq!(again[0].stalls, 0, "who gives a run back did not stall");
    });
}
