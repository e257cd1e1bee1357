//! One owner at a time, and the state that an owner leaves to the next.

use std::collections::BTreeSet;

use db::{AwaitedTrace, BusPlace, Db, DbError, OtlpTrace, RunCompletion, RunLeases, State};
use model::{
    Answer, Attempt, BusSlot, Fault, Faulty, NoAnswer, NoAnswerKind, Progress, RunEvent, RunId,
    SpanId, TraceId, Verdict, What,
};
use sqlx::Row;
use tokio::task::JoinSet;

use crate::scratch::{self, LEASE, NO_LEASE, Scratch, answer, at, attempt, outcome, project};

#[test]
fn two_workers_never_take_the_same_run() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        for number in 0..200 {
            scratch.accept(number).await;
        }
        let mut workers = JoinSet::new();
        for number in 0..8 {
            let db = scratch.db.clone();
            workers.spawn(async move {
                let mut taken = Vec::new();
                while let Some(run) =
                    scratch::take(&db, &format!("w{number}"), LEASE).await.expect("asked")
                {
                    assert_eq!((run.epoch, run.progress), (1, Progress::New));
                    taken.push(run.run_id);
                }
                taken
            });
        }
        let taken: Vec<RunId> = workers.join_all().await.concat();
        assert_eq!(taken.len(), 200, "each was taken once");
        assert_eq!(taken.into_iter().collect::<BTreeSet<_>>().len(), 200, "and by one");
    });
}

#[test]
fn the_oldest_comes_first_and_a_live_lease_keeps_others_out() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let (young, old) = (scratch.accept(20).await, scratch.accept(10).await);
        let first = scratch.take(LEASE).await;
        assert_eq!(first.run_id, old);
        assert_eq!(first.project, project());
        assert_eq!(first.accepted_at, at(1));
        assert_eq!(first.traceparent, scratch::new_run(10).traceparent);
        assert_eq!(scratch.take(NO_LEASE).await.run_id, young);

        let again = scratch.take(LEASE).await;
        assert_eq!((again.run_id, again.epoch), (young, 2), "its lease was over at once");
        assert_eq!(scratch::take(&scratch.db, "w", LEASE).await.expect("asked"), None);
        scratch::renew(&scratch.db, young, 2, NO_LEASE).await.expect("owned");
        assert_eq!(scratch.take(LEASE).await.epoch, 3, "a renewed lease counts anew");
    });
}

#[test]
fn the_database_says_when_a_lease_is_over() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let left =
            "select extract(epoch from lease_until - clock_timestamp())::float8 from open_runs";
        scratch.take(LEASE).await;
        let mut raw = scratch.raw().await;
        for _ in 0..2 {
            let left: f64 = sqlx::query(left).fetch_one(&mut raw).await.expect("one run").get(0);
            assert!((500.0..=600.0).contains(&left), "{left} s of a lease of 600 s");
            scratch::renew(&scratch.db, run, 1, LEASE).await.expect("owned");
        }
    });
}

#[test]
fn leases_are_renewed_together_and_each_by_its_own_epoch() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let (one, two, other) =
            (scratch.accept(1).await, scratch.accept(2).await, scratch.accept(3).await);
        assert_eq!(scratch.take_many(3, 10).await.runs.len(), 3);
        let all = [(one, 1), (two, 1), (other, 7), (scratch::run_id(4), 1)];
        let mut renewed = scratch.db.renew(&all, NO_LEASE).await.expect("asked");
        renewed.sort_by_key(|(run, _)| run.as_uuid());
        assert_eq!(renewed, [(one, None), (two, None)]);
        let again = scratch.take_many(3, 10).await.runs;
        let again: Vec<_> = again.iter().map(|run| (run.run_id, run.epoch)).collect();
        assert_eq!(again, [(one, 2), (two, 2)], "the third is still its owner's");
        assert_eq!(scratch.db.renew(&[], LEASE).await.expect("asked"), []);
    });
}

#[test]
fn the_next_owner_goes_on_where_the_last_one_came_to() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let first = scratch.take(NO_LEASE).await;
        assert_eq!(first.progress, Progress::New);
        let second = scratch.take(NO_LEASE).await;
        assert_eq!(second.progress, Progress::New, "taken is not attempted");

        let bus = BusPlace { slot: Some(BusSlot(65_535)), state: Some("a state".to_owned()) };
        scratch.db.attempted(run, second.epoch, &attempt(), &bus).await.expect("owned");
        let third = scratch.take(NO_LEASE).await;
        assert_eq!(third.progress, Progress::Attempted(attempt()), "to the nanosecond");
        assert_eq!(third.bus, bus);
        let awaited = scratch.db.awaited_traces(true, 10).await.expect("asked");
        let trace = attempt().trace_id;
        assert_eq!(awaited, [AwaitedTrace { project: third.project, trace, slot: bus.slot }]);

        scratch.db.answered(run, third.epoch, &answer(), at(4)).await.expect("owned");
        let fourth = scratch.take(NO_LEASE).await;
        assert_eq!(scratch.progress(&fourth).await, Progress::Answered(attempt(), answer()));
        assert_eq!(fourth.stalls, 3, "three owners let their lease pass");
        assert_eq!(fourth.epoch, 4);
        assert_eq!(fourth.test, first.test);
    });
}

#[test]
fn no_answer_is_an_answer_too() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        scratch.take(NO_LEASE).await;
        scratch.db.attempted(run, 1, &attempt(), &BusPlace::default()).await.expect("owned");
        let message = "nobody listens at `127.0.0.1:1`".to_owned();
        let none =
            Answer::NoAnswer(NoAnswer { kind: NoAnswerKind::Connection, message: message.clone() });
        scratch.db.answered(run, 1, &none, at(4)).await.expect("owned");
        let next = scratch.take(LEASE).await;
        assert_eq!(scratch.progress(&next).await, Progress::Answered(attempt(), none));
        let events = scratch.db.events(&project(), run, 3, 1).await.expect("asked");
        assert_eq!(events, [(4, RunEvent { at: at(4), what: What::NotAnswered { message } })]);
    });
}

/// The writes of an owner.
#[derive(Clone, Copy, Debug)]
enum Write {
    Renew,
    Attempted,
    Answered,
    Provisional,
    Finish,
}

const WRITES: [Write; 5] =
    [Write::Renew, Write::Attempted, Write::Answered, Write::Provisional, Write::Finish];

async fn write(db: &Db, run: RunId, epoch: i64, write: Write) -> Result<(), DbError> {
    match write {
        Write::Renew => scratch::renew(db, run, epoch, LEASE).await.map(drop),
        Write::Attempted => db.attempted(run, epoch, &attempt(), &BusPlace::default()).await,
        Write::Answered => db.answered(run, epoch, &answer(), at(4)).await,
        Write::Provisional => {
            let verdict = Verdict::Passed;
            let events = [RunEvent { at: at(5), what: What::Provisional { verdict } }];
            db.provisional(run, epoch, verdict, &events).await
        }
        Write::Finish => {
            let outcome = outcome(run, Verdict::Passed);
            let events = [RunEvent { at: at(5), what: What::Judged { verdict: Verdict::Passed } }];
            let otlp = b"otlp".as_slice().into();
            let trace = Some(OtlpTrace { spans: 1, otlp, columns: None });
            db.finish(run, epoch, &RunCompletion { outcome: &outcome, events: &events, trace })
                .await
        }
    }
}

/// Returns all stored rows of runs, events and traces.
async fn everything(scratch: &Scratch) -> String {
    let all = "select concat((select string_agg(runs::text, '|') from runs), (select string_agg(open_runs::text, '|') from open_runs),
                             (select string_agg(events::text, '|' order by n) from events),
                             (select string_agg(traces::text, '|') from traces))";
    sqlx::query(all).fetch_one(&mut scratch.raw().await).await.expect("read").get(0)
}

async fn assert_fenced(scratch: &Scratch, run: RunId, epoch: i64, writes: &[Write]) {
    let before = everything(scratch).await;
    for one in writes {
        let error = write(&scratch.db, run, epoch, *one).await.expect_err("fenced");
        assert!(matches!(error, DbError::Fenced { .. }), "{one:?}: {error}");
        assert_eq!(error.fault(), Fault::Conflict);
        assert_eq!(everything(scratch).await, before, "{one:?} wrote something");
    }
}

async fn assert_repeats(scratch: &Scratch, run: RunId, epoch: i64, writes: &[Write]) {
    let before = everything(scratch).await;
    for one in writes {
        write(&scratch.db, run, epoch, *one).await.expect("a repeat");
        assert_eq!(everything(scratch).await, before, "{one:?} wrote something");
    }
}

#[test]
fn a_worker_that_lost_its_run_writes_nothing() {
    // The progress of the run decides which conditions hold, so the test tries each write at each point.
    let steps = [Write::Attempted, Write::Answered, Write::Provisional];
    for done in [&[][..], &steps[..1], &steps[..2], &steps] {
        scratch::with(|scratch| async move {
            scratch.apply("a").await;
            let run = scratch.accept(1).await;
            let sleeper = scratch.take(NO_LEASE).await;
            for one in done {
                write(&scratch.db, run, sleeper.epoch, *one).await.expect("still its own");
            }
            let kept = scratch::renew(&scratch.db, run, sleeper.epoch, NO_LEASE).await;
            kept.expect("still its own");
            let owner = scratch.take(LEASE).await;
            assert_eq!(owner.epoch, sleeper.epoch + 1);
            assert_fenced(&scratch, run, sleeper.epoch, &WRITES).await;
            assert_fenced(&scratch, run, owner.epoch + 1, &WRITES).await;
            write(&scratch.db, run, owner.epoch, Write::Finish).await.expect("the owner may");
        });
    }
}

#[test]
fn an_owner_takes_each_step_once_and_in_order_and_may_repeat_it() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        assert_fenced(&scratch, run, 0, &[Write::Answered]).await;
        let epoch = scratch.take(LEASE).await.epoch;
        assert_fenced(&scratch, run, epoch, &[Write::Answered]).await;
        write(&scratch.db, run, epoch, Write::Attempted).await.expect("owned");
        assert_repeats(&scratch, run, epoch, &[Write::Attempted]).await;
        write(&scratch.db, run, epoch, Write::Answered).await.expect("owned");
        assert_repeats(&scratch, run, epoch, &[Write::Attempted, Write::Answered]).await;
        write(&scratch.db, run, epoch, Write::Renew).await.expect("owned");
        write(&scratch.db, run, epoch, Write::Provisional).await.expect("owned");
        assert_repeats(&scratch, run, epoch, &[Write::Answered, Write::Provisional]).await;
        write(&scratch.db, run, epoch, Write::Finish).await.expect("owned");
        let steps = [Write::Attempted, Write::Answered, Write::Provisional, Write::Finish];
        assert_repeats(&scratch, run, epoch, &steps).await;
        assert_fenced(&scratch, run, epoch - 1, &WRITES).await;
        assert_fenced(&scratch, run, epoch + 1, &WRITES).await;
        write(&scratch.db, run, epoch, Write::Renew).await.expect("it raced with its own verdict");
        assert_eq!(scratch::take(&scratch.db, "w", LEASE).await.expect("asked"), None, "it ended");
    });
}

#[test]
fn a_step_with_other_values_is_no_repeat() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let epoch = scratch.take(LEASE).await.epoch;
        write(&scratch.db, run, epoch, Write::Attempted).await.expect("owned");
        let other_attempts = [
            Attempt { trace_id: TraceId::from_bytes([1; 16]).expect("not zero"), ..attempt() },
            Attempt { span_id: SpanId::from_bytes([1; 8]).expect("not zero"), ..attempt() },
            Attempt { at: at(9), ..attempt() },
        ];
        for other in other_attempts {
            let error = scratch
                .db
                .attempted(run, epoch, &other, &BusPlace::default())
                .await
                .expect_err("another");
            assert!(matches!(error, DbError::Fenced { .. }), "{other:?}: {error}");
        }
        write(&scratch.db, run, epoch, Write::Answered).await.expect("owned");
        let none = NoAnswer { kind: NoAnswerKind::Timeout, message: String::new() };
        let none = Answer::NoAnswer(none);
        let error = scratch.db.answered(run, epoch, &none, at(4)).await.expect_err("another");
        assert!(matches!(error, DbError::Fenced { .. }), "{error}");
        write(&scratch.db, run, epoch, Write::Finish).await.expect("owned");
        let mut other = outcome(run, Verdict::Passed);
        other.reasons.clear();
        let finished = RunCompletion { outcome: &other, events: &[], trace: None };
        let error = scratch.db.finish(run, epoch, &finished).await.expect_err("another");
        assert!(matches!(error, DbError::Fenced { .. }), "{error}");
    });
}

#[test]
fn what_an_earlier_owner_wrote_is_not_the_next_ones_to_repeat() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let first = scratch.take(NO_LEASE).await.epoch;
        write(&scratch.db, run, first, Write::Attempted).await.expect("owned");
        let second = scratch.take(NO_LEASE).await.epoch;
        assert_fenced(&scratch, run, second, &[Write::Attempted]).await;
        write(&scratch.db, run, second, Write::Answered).await.expect("owned");
        let third = scratch.take(LEASE).await.epoch;
        assert_fenced(&scratch, run, third, &[Write::Attempted, Write::Answered]).await;
    });
}

#[test]
fn a_run_that_cannot_be_read_keeps_no_other_from_being_taken() {
    let damages = [
        "update open_runs set trace_id = decode(repeat('00', 16), 'hex')",
        "update open_runs set span_id = decode(repeat('00', 8), 'hex')",
    ];
    for damage in damages {
        scratch::with(|scratch| async move {
            scratch.apply("a").await;
            let damaged = scratch.accept(1).await;
            let epoch = scratch.take(NO_LEASE).await.epoch;
            write(&scratch.db, damaged, epoch, Write::Attempted).await.expect("owned");
            write(&scratch.db, damaged, epoch, Write::Answered).await.expect("owned");
            sqlx::query(damage).execute(&mut scratch.raw().await).await.expect("damaged");
            let whole = scratch.accept(2).await;

            let took = scratch.take_many(10, 10).await;
            let ids = |took: &RunLeases| took.runs.iter().map(|run| run.run_id).collect::<Vec<_>>();
            assert_eq!(ids(&took), [whole], "{damage}");
            let [it] = took.damaged.as_slice() else { panic!("{damage}: {took:?}") };
            assert_eq!((it.run_id, it.epoch, it.test.as_str()), (damaged, 2, "Shop"), "{damage}");
            assert!(it.reason.contains("the record is damaged"), "{damage}: {}", it.reason);
            write(&scratch.db, damaged, it.epoch, Write::Finish).await.expect("it can be ended");
            assert_eq!(
                scratch::take(&scratch.db, "w", LEASE).await.expect("asked"),
                None,
                "{damage}"
            );
        });
    }
}

#[test]
fn of_many_verdicts_one_is_written() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let epoch = scratch.take(LEASE).await.epoch;
        let mut tasks = JoinSet::new();
        for _ in 0..8 {
            let db = scratch.db.clone();
            tasks.spawn(async move { write(&db, run, epoch, Write::Finish).await });
        }
        for wrote in tasks.join_all().await {
            wrote.expect("written, or a repeat of what is written");
        }
        let events = scratch.db.events(&project(), run, 0, 100).await.expect("asked");
        assert_eq!(events.len(), 3, "accepted, taken, judged once: {events:?}");
    });
}

#[test]
fn a_run_tells_where_it_is_in_its_life() {
    scratch::with(|scratch| async move {
        scratch.apply("a").await;
        let run = scratch.accept(1).await;
        let read = async || scratch.db.run(&project(), run).await.expect("asked").expect("there");
        let queued = read().await;
        assert_eq!((queued.state, queued.verdict, queued.trace_id), (State::Queued, None, None));
        assert_eq!((queued.version, queued.accepted_at), (1, at(1)));

        let epoch = scratch.take(LEASE).await.epoch;
        write(&scratch.db, run, epoch, Write::Attempted).await.expect("owned");
        let running = read().await;
        assert_eq!((running.state, running.verdict), (State::Running, None));
        assert_eq!(running.trace_id, Some(attempt().trace_id));

        for verdict in [Verdict::Inconclusive, Verdict::Failed] {
            let outcome = outcome(run, verdict);
            let finished = RunCompletion { outcome: &outcome, events: &[], trace: None };
            let first = verdict == Verdict::Inconclusive;
            assert_eq!(scratch.db.finish(run, epoch, &finished).await.is_ok(), first);
        }
        let ended = read().await;
        assert_eq!((ended.state, ended.verdict), (State::Ended, Some(Verdict::Inconclusive)));
        assert_eq!(ended.outcome, Some(outcome(run, Verdict::Inconclusive)), "whole, NUL and all");
    });
}
