//! The checker on histories: a good one has no violation, and each planted fault has its own.

use super::*;
use crate::chaos::schedule::Component;

/// Two runs of one test, of which the second deletes; a reader that reconnects; a worker that was killed.
fn good() -> Vec<HistoryLine> {
    let claims = vec![
        CountClaim { span: "delete customer".to_owned(), least: 0, most: Some(0) },
        CountClaim { span: "GET /order".to_owned(), least: 1, most: None },
    ];
    let test = ChaosTest { id: "kept".to_owned(), claims };
    let mut history = vec![HistoryLine::Begin { seed: 1, tests: vec![test] }];
    for (number, verdicts) in [(1, ["passed", "passed"]), (2, ["failed", "passed"])] {
        let (key, run) = (format!("key-{number}"), format!("run-{number}"));
        let trace = format!("trace-{number}");
        let test = "kept".to_owned();
        history.extend([
            HistoryLine::Request { at: 1_000, key: key.clone(), test: test.clone() },
            HistoryLine::Reply { at: 1_010, key: key.clone(), status: None, run: None },
            HistoryLine::Request { at: 1_020, key: key.clone(), test },
            reply(&key, &run),
            HistoryLine::Trigger { at: 1_100, key: key.clone(), trace: trace.clone() },
            emission(&trace, "front", &["GET /order"]),
        ]);
        if number == 2 {
            history.push(emission(&trace, "ledger", &["delete customer"]));
        }
        history.extend([event(number, 0, &run, 1), event(number, 0, &run, 2)]);
        history.push(stream_end(number, &run, StreamEnd::Left));
        history.extend([event(number, 1, &run, 3), event(number, 1, &run, 4)]);
        history.push(stream_end(number, &run, StreamEnd::Complete));
        history.push(HistoryLine::Record(RecordedRun {
            key: Some(key),
            claims: verdicts.map(str::to_owned).to_vec(),
            verdict: Some(verdicts[0].to_owned()),
            ..record(&run)
        }));
    }
    history.push(fault(FaultKind::Kill, Component::Worker(0)));
    history
}

fn reply(key: &str, run: &str) -> HistoryLine {
    let (key, run) = (key.to_owned(), Some(run.to_owned()));
    HistoryLine::Reply { at: 1_030, key, status: Some(202), run }
}

fn emission(trace: &str, service: &str, spans: &[&str]) -> HistoryLine {
    let spans = spans.iter().map(|span| (*span).to_owned()).collect();
    let (trace, service) = (trace.to_owned(), service.to_owned());
    HistoryLine::Emission { at: 1_200, trace, service, spans, is_announced: true }
}

/// A deletion of the first run that no call announces, and its acknowledgement before or after the response.
fn unannounced(is_in_time: bool) -> Vec<HistoryLine> {
    let (trace, service) = ("trace-1".to_owned(), "ledger".to_owned());
    let spans = vec!["delete customer".to_owned()];
    let (of, by, tries) = (trace.clone(), service.clone(), 2);
    let export =
        HistoryLine::Export { at: 1_210, trace: of, service: by, tries, is_acknowledged: true };
    let response = HistoryLine::Response { at: 1_210, trace: trace.clone() };
    let emission = HistoryLine::Emission { at: 1_200, trace, service, spans, is_announced: false };
    let mut history = good();
    history.push(emission);
    history.extend(if is_in_time { [export, response] } else { [response, export] });
    history
}

fn event(reader: u64, connection: u32, run: &str, n: u64) -> HistoryLine {
    let (run, event) = (run.to_owned(), "taken".to_owned());
    HistoryLine::Event { at: 1_300, reader, connection, run, n, event }
}

fn stream_end(reader: u64, run: &str, end: StreamEnd) -> HistoryLine {
    HistoryLine::StreamEnd { at: 1_400, reader, connection: 0, run: run.to_owned(), end }
}

fn fault(fault: FaultKind, component: Component) -> HistoryLine {
    HistoryLine::Fault { fault, component, from: 1_500, to: 2_500 }
}

fn record(run: &str) -> RecordedRun {
    RecordedRun {
        run: run.to_owned(),
        test: "kept".to_owned(),
        accepted_at: 1_025,
        ended_at: Some(4_000),
        owners: 1,
        final_verdicts: 1,
        judged_at: 4,
        is_attempted: true,
        ..RecordedRun::default()
    }
}

/// Changes the record of the first run.
fn with_record(change: impl Fn(&mut RecordedRun)) -> Vec<HistoryLine> {
    let mut history = good();
    let records = history.iter_mut().filter_map(|line| match line {
        HistoryLine::Record(record) if record.run == "run-1" => Some(record),
        _ => None,
    });
    records.for_each(change);
    history
}

fn inconclusive(unsettled: &[&str], no_answer: Option<&str>) -> Vec<HistoryLine> {
    with_record(|record| {
        record.verdict = Some("inconclusive".to_owned());
        record.claims = vec!["inconclusive".to_owned(), "passed".to_owned()];
        record.unsettled = unsettled.iter().map(|reason| (*reason).to_owned()).collect();
        record.no_answer = no_answer.map(str::to_owned);
    })
}

fn and(mut history: Vec<HistoryLine>, line: HistoryLine) -> Vec<HistoryLine> {
    history.push(line);
    history
}

fn without(gone: &HistoryLine) -> Vec<HistoryLine> {
    good().into_iter().filter(|line| line != gone).collect()
}

#[test]
fn a_good_history_has_no_violation_and_its_figures() {
    let findings = check(&good());
    assert_eq!(findings.violations, []);
    assert_eq!((findings.accepted, findings.recorded, findings.triggers), (2, 2, 2));
    assert_eq!((findings.decided, findings.by_absence), (4, 1), "one claim of the first run");
    assert_eq!((findings.readers, findings.reconnects), (2, 2));
    assert_eq!(findings.inconclusive, 0);
    assert_eq!(findings.delays_ms, [2_975, 2_975]);
}

/// A planted fault: what it is, its history, and what the checker has to find.
type PlantedCase = (&'static str, Vec<HistoryLine>, Vec<Violation>);

fn planted_verdicts() -> Vec<PlantedCase> {
    let (run, key) = ("run-1".to_owned(), "key-1".to_owned());
    let trigger =
        || HistoryLine::Trigger { at: 1_150, key: key.clone(), trace: "again".to_owned() };
    let wrong = |claim, verdict: &str, spans| Violation::WrongVerdict {
        run: run.clone(),
        claim,
        verdict: verdict.to_owned(),
        spans,
    };
    vec![
        ("a second trigger", and(good(), trigger()), vec![Violation::Triggers(run.clone(), 2)]),
        (
            "a dropped batch",
            and(good(), emission("trace-1", "ledger", &["delete customer"])),
            vec![wrong(0, "passed", 1)],
        ),
        (
            "a batch that was acknowledged before the response",
            unannounced(true),
            vec![wrong(0, "passed", 1)],
        ),
        ("a batch that was acknowledged afterwards", unannounced(false), vec![]),
        (
            "presence that is not seen",
            with_record(|record| record.claims[1] = "failed".to_owned()),
            vec![wrong(1, "failed", 1)],
        ),
        (
            "a verdict written twice",
            with_record(|record| record.final_verdicts = 2),
            vec![Violation::FinalVerdicts(run.clone(), 2)],
        ),
        (
            "a run without a verdict",
            with_record(|record| (record.verdict, record.final_verdicts) = (None, 0)),
            vec![Violation::FinalVerdicts(run.clone(), 0)],
        ),
        (
            "an accepted run that does not exist",
            and(good(), reply("key-3", "run-3")),
            vec![Violation::LostRun("run-3".to_owned())],
        ),
    ]
}

fn planted_losses() -> Vec<PlantedCase> {
    let (run, key) = ("run-1".to_owned(), "key-1".to_owned());
    vec![
        (
            "a second run of a key",
            and(
                and(good(), reply("key-1", "run-3")),
                HistoryLine::Record(RecordedRun {
                    key: Some(key.clone()),
                    verdict: Some("passed".to_owned()),
                    ..record("run-3")
                }),
            ),
            vec![Violation::KeyWithRuns(key.clone(), vec![run.clone(), "run-3".to_owned()])],
        ),
        (
            "a trigger without a record",
            with_record(|record| record.is_attempted = false),
            vec![Violation::UnrecordedTrigger(key.clone())],
        ),
        (
            "a gap in events",
            without(&event(1, 1, "run-1", 3)),
            vec![Violation::EventOrder(1, run.clone(), 2, 4)],
        ),
        (
            "a last event that is missing",
            without(&event(1, 1, "run-1", 4)),
            vec![Violation::EventsMissing(1, run.clone())],
        ),
        (
            "a stream without an end",
            without(&stream_end(1, "run-1", StreamEnd::Complete)),
            vec![Violation::EventsMissing(1, run.clone())],
        ),
        (
            "inconclusive without a fault that explains it",
            inconclusive(&["spansLost"], None),
            vec![Violation::Unexplained(run.clone(), "spansLost".to_owned())],
        ),
        (
            "inconclusive without a reason",
            inconclusive(&[], None),
            vec![Violation::Unexplained(run.clone(), "other: ".to_owned())],
        ),
    ]
}

#[test]
fn each_planted_fault_is_found() {
    for (name, history, violations) in planted_verdicts().into_iter().chain(planted_losses()) {
        assert_eq!(check(&history).violations, violations, "{name}");
    }
}

#[test]
fn an_event_twice_is_out_of_order() {
    let mut history = good();
    let at = history.iter().position(|line| *line == event(1, 1, "run-1", 3)).unwrap();
    history.insert(at, event(1, 1, "run-1", 2));
    assert_eq!(check(&history).violations, [Violation::EventOrder(1, "run-1".to_owned(), 2, 2)]);
}

#[test]
fn what_a_fault_of_its_time_explains_is_counted_by_its_cause() {
    let worker = check(&inconclusive(&["notAnswered"], Some("unknown")));
    assert_eq!(worker.violations, []);
    assert_eq!((worker.unanswered, worker.wiped, worker.inconclusive), (1, 0, 0));

    let wipe = fault(FaultKind::Wipe, Component::Store);
    let wiped = check(&and(inconclusive(&["unproved"], None), wipe));
    assert_eq!(wiped.violations, []);
    assert_eq!((wiped.unanswered, wiped.wiped, wiped.inconclusive), (0, 1, 0));

    let cut = fault(FaultKind::CutNats, Component::Replica(1));
    let lost = check(&and(inconclusive(&["spansLost"], None), cut));
    assert_eq!(lost.violations, []);
    assert_eq!((lost.unanswered, lost.wiped, lost.inconclusive), (0, 0, 1));
    assert_eq!(lost.inconclusive_percent(), 50.0);
    assert_eq!(
        lost.excused.into_keys().collect::<Vec<_>>(),
        ["replica cut off from NATS: spansLost"]
    );
}

#[test]
fn a_fault_of_another_time_explains_nothing() {
    let (component, from, to) = (Component::NatsNode(0), 4_001, 5_000);
    let late = HistoryLine::Fault { fault: FaultKind::Kill, component, from, to };
    let findings = check(&and(inconclusive(&["spansLost"], None), late));
    assert_eq!(
        findings.violations,
        [Violation::Unexplained("run-1".to_owned(), "spansLost".to_owned())]
    );
}
