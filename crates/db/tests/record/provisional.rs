//! A verdict that lingers: one provisional, then one final, whichever worker dies in between.

use db::{BusPlace, DbError, LeaseRequest, RunCompletion, RunFilter, State};
use model::{Progress, RunEvent, RunId, Verdict, What};

use crate::scratch::{self, LEASE, NO_LEASE, Scratch, answer, at, attempt, outcome, project};

/// The events of a provisional verdict.
fn lingers(verdict: Verdict) -> [RunEvent; 1] {
    [RunEvent { at: at(5), what: What::Provisional { verdict } }]
}

/// Creates a run that has its response, and returns its epoch.
async fn answered(scratch: &Scratch, lease: std::time::Duration) -> (RunId, i64) {
    scratch.apply("a").await;
    let run = scratch.accept(1).await;
    let epoch = scratch.take(lease).await.epoch;
    scratch.db.attempted(run, epoch, &attempt(), &BusPlace::default()).await.expect("owned");
    scratch.db.answered(run, epoch, &answer(), at(4)).await.expect("owned");
    (run, epoch)
}

/// Returns the verdicts in the events: the provisional ones and the final ones.
async fn verdicts(scratch: &Scratch, run: RunId) -> (Vec<Verdict>, Vec<Verdict>) {
    let events = scratch.db.events(&project(), run, 0, 100).await.expect("asked");
    let (mut provisional, mut last) = (Vec::new(), Vec::new());
    for (_, event) in events {
        match event.what {
            What::Provisional { verdict } => provisional.push(verdict),
            What::Judged { verdict } => last.push(verdict),
            _ => {}
        }
    }
    (provisional, last)
}

async fn finish(scratch: &Scratch, run: RunId, epoch: i64) -> Result<(), DbError> {
    let outcome = outcome(run, Verdict::Failed);
    let events = [RunEvent { at: at(6), what: What::Judged { verdict: Verdict::Failed } }];
    let finished = RunCompletion { outcome: &outcome, events: &events, trace: None };
    scratch.db.finish(run, epoch, &finished).await
}

#[test]
fn a_provisional_verdict_is_shown_until_the_final_one_and_is_none() {
    scratch::with(|scratch| async move {
        let (run, epoch) = answered(&scratch, LEASE).await;
        let events = lingers(Verdict::Passed);
        for _ in 0..2 {
            let written = scratch.db.provisional(run, epoch, Verdict::Passed, &events).await;
            written.expect("written, or a repeat");
        }
        let read = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!((read.state, read.verdict), (State::Running, None));
        assert_eq!((read.provisional, read.outcome), (Some(Verdict::Passed), None));
        let wanted = RunFilter { limit: 10, ..RunFilter::default() };
        let listed = scratch.db.runs(&wanted).await.expect("asked");
        assert_eq!((listed[0].verdict, listed[0].provisional), (None, Some(Verdict::Passed)));
        let passed = RunFilter { verdict: Some(Verdict::Passed), ..wanted.clone() };
        assert_eq!(scratch.db.runs(&passed).await.expect("asked"), [], "it has not passed");
        assert_eq!(scratch::take(&scratch.db, "w", LEASE).await.expect("asked"), None, "owned");

        finish(&scratch, run, epoch).await.expect("owned");
        let read = scratch.db.run(&project(), run).await.expect("asked").expect("there");
        assert_eq!((read.verdict, read.provisional), (Some(Verdict::Failed), None));
        let listed = scratch.db.runs(&wanted).await.expect("asked");
        assert_eq!((listed[0].verdict, listed[0].provisional), (Some(Verdict::Failed), None));
        let told = (vec![Verdict::Passed], vec![Verdict::Failed]);
        assert_eq!(verdicts(&scratch, run).await, told, "one of each");
    });
}

#[test]
fn whoever_takes_a_run_that_lingers_goes_on_and_ends_it() {
    scratch::with(|scratch| async move {
        let (run, epoch) = answered(&scratch, NO_LEASE).await;
        let events = lingers(Verdict::Passed);
        scratch.db.provisional(run, epoch, Verdict::Passed, &events).await.expect("owned");
        let next = scratch.take(LEASE).await;
        assert_eq!((next.run_id, next.epoch), (run, epoch + 1));
        assert_eq!(next.provisional, Some(Verdict::Passed));
        assert_eq!(scratch.progress(&next).await, Progress::Answered(attempt(), answer()));
        for (epoch, verdict) in
            [(epoch, Verdict::Passed), (next.epoch, Verdict::Passed), (next.epoch, Verdict::Failed)]
        {
            let error = scratch.db.provisional(run, epoch, verdict, &lingers(verdict)).await;
            let error = error.expect_err("there is one already");
            assert!(matches!(error, DbError::Fenced { .. }), "{error}");
        }
        let error = finish(&scratch, run, epoch).await.expect_err("it is the next one's");
        assert!(matches!(error, DbError::Fenced { .. }), "{error}");
        finish(&scratch, run, next.epoch).await.expect("owned");
        let told = (vec![Verdict::Passed], vec![Verdict::Failed]);
        assert_eq!(verdicts(&scratch, run).await, told, "one of each");
    });
}

#[test]
fn a_run_that_lingers_holds_no_place_at_its_host() {
    scratch::with(|scratch| async move {
        let host = db::NewTest { host: Some("shop:80".to_owned()), ..scratch::new_test("a") };
        scratch::apply(&scratch.db, host).await;
        let first = scratch.accept(1).await;
        scratch.accept(2).await;
        let one = LeaseRequest { runs_max: 10, host_max: 1, ..scratch::taking("w", LEASE) };
        let took = scratch.lease(&one).await.runs;
        assert_eq!(took.iter().map(|run| run.run_id).collect::<Vec<_>>(), [first]);
        assert_eq!(scratch.lease(&one).await.runs, [], "the host is busy");
        let events = lingers(Verdict::Passed);
        scratch.db.provisional(first, 1, Verdict::Passed, &events).await.expect("owned");
        assert_eq!(scratch.lease(&one).await.runs.len(), 1, "and is not now");
    });
}
