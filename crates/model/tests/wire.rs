//! The serialized format is stable: the JSON of an outcome and of every event, against golden files.

use std::{fs, path::Path, time::Duration};

use golden::Golden;
use model::{
    Analysis, Answer, Arrivals, AssertionJudgement, Attempt, Because, Body, CallRequest, CallValue,
    Cause, ClaimJudgement, Command, ComparisonEvidence, DecisionBasis, Diagnosis, EvidenceList,
    EvidenceRange, EvidenceValue, ExecRequest, Exit, Finding, GroupEvidence, GroupKeyPart,
    GroupsEvidence, HttpRequest, Judgement, LearnedProfile, LearnedService, LearnedTest, Level,
    NearMiss, NoAnswer, NoAnswerKind, Outcome, OutputValue, Overtaken, Place, PluginAnalysis,
    ProcessQuiet, Propagator, RecordedRequest, Reply, Request, Response, RuleAnalysis, RunEvent,
    RunId, Settlement, SpanDetail, SpanEvidence, SpanId, SpecJudgement, StatementEvidence, Step,
    StepTime, StoreGap, StoreQueries, SupersededVerdict, TextMut, Timestamp, Tls, TraceId,
    TreeSpan, UnansweredPeer, UnsettledReason, Verdict, What,
};
use serde::{Serialize, de::DeserializeOwned};

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(1_794_708_000_000_000_000 + millis * 1_000_000)
}

fn attempt() -> Attempt {
    Attempt {
        trace_id: TraceId::from_bytes([0xab; 16]).expect("not zero"),
        span_id: SpanId::from_bytes([0xcd; 8]).expect("not zero"),
        at: at(3),
    }
}

fn gap() -> StoreGap {
    StoreGap { store: "prod".to_owned(), message: "503 Service Unavailable".to_owned() }
}

fn settlement() -> Settlement {
    Settlement {
        unsettled: vec![
            UnsettledReason::NoTelemetry,
            UnsettledReason::NotAnswered,
            UnsettledReason::ParentsAbsent(vec![attempt().span_id]),
            UnsettledReason::EdgesOpen(vec![attempt().span_id]),
            UnsettledReason::ExpectedAbsent(vec!["billing".to_owned()]),
            UnsettledReason::NotQuiet,
            UnsettledReason::NotWaited,
            UnsettledReason::TooLarge,
            UnsettledReason::SpansLost,
            UnsettledReason::Unproved("the marker did not come".to_owned()),
            UnsettledReason::OtherServers(vec!["quality-1:11633".to_owned()]),
            UnsettledReason::Partial,
            UnsettledReason::ContextLost(vec![attempt().span_id]),
            UnsettledReason::NotSampled,
            UnsettledReason::Sampled(attempt().span_id),
            UnsettledReason::StoreUnread(gap()),
            UnsettledReason::StorePartial(gap()),
        ],
        spans: 2,
        waited_ns: 30_000_000_000,
        silent_ns: Some(12_000_000),
        quiet_ns: 6_000_000_000,
        last_at: Some(at(40)),
        linger_ns: 1_000_000_000,
        logs: 2,
        drained: true,
        processes: vec![ProcessQuiet {
            service: "cart".to_owned(),
            instance: Some("cart-0".to_owned()),
            spans: 2,
            delay_ns: 4_000_000,
            silent_ns: 12_000_000,
            quiet_ns: 6_000_000_000,
            because: Because::Unknown,
            arrivals: Some(Arrivals {
                first_ns: 16_000_000,
                every_ns: 1_000_000,
                spans: vec![1, 0, 0, 1],
            }),
        }],
        stores: vec![StoreQueries {
            store: "prod".to_owned(),
            lag_ns: 2_000_000_000,
            lacks: vec![SpanDetail::Flags, SpanDetail::NameCase],
        }],
        unanswered: vec![UnansweredPeer {
            service: "cart".to_owned(),
            peer: "bank:443".to_owned(),
            calls: 2,
            declared: true,
        }],
    }
}

fn superseded() -> SupersededVerdict {
    SupersededVerdict {
        verdict: Verdict::Passed,
        spans: 1,
        after_ns: Some(300_000_000),
        service: Some("cart".to_owned()),
    }
}

fn overtaken() -> Overtaken {
    Overtaken {
        verdict: Verdict::Passed,
        spans: 1,
        after_ns: 250_000_000,
        service: Some("cart".to_owned()),
    }
}

fn diagnosis() -> Diagnosis {
    Diagnosis {
        cause: Cause::ContextLost,
        says: "`cart` began a second trace".to_owned(),
        spans: vec![attempt().span_id],
        advice: "pass `traceparent` on".to_owned(),
    }
}

fn evidence() -> StatementEvidence {
    let number = |text: &str| EvidenceValue::Number(text.to_owned());
    let text = |text: &str| EvidenceValue::Text(text.to_owned());
    let comparison = |expected, found| ComparisonEvidence {
        span_id: Some(attempt().span_id),
        subject: "http.status_code".to_owned(),
        operator: "=".to_owned(),
        expected,
        found,
    };
    let range = EvidenceRange { low: EvidenceValue::DurationNs(0), high: number("0.5") };
    let list = EvidenceList { items: vec![EvidenceValue::Boolean(true), text("a")], more: 3 };
    let few = EvidenceList { items: vec![EvidenceValue::Null], more: 0 };
    let key = [("db.query.text", text("SELECT 1")), ("parent_id", EvidenceValue::Absent)];
    let key = key.map(|(name, value)| GroupKeyPart { name: name.to_owned(), value });
    let group = GroupEvidence { key: key.into(), value: number("12"), spans: 12, holds: false };
    StatementEvidence {
        comparisons: vec![
            comparison(Some(number("200")), Some(number("500"))),
            comparison(Some(EvidenceValue::List(list)), Some(EvidenceValue::AnyOf(few))),
            comparison(Some(EvidenceValue::Between(Box::new(range))), None),
            comparison(None, Some(EvidenceValue::Json("{\"a\":1}".to_owned()))),
        ],
        groups: Some(GroupsEvidence { worst: vec![group], more: 2, broken: 1 }),
        nearest: vec![NearMiss {
            span_id: attempt().span_id,
            name: "GET /cart".to_owned(),
            selector: "span[name=\"GET /car\"]".to_owned(),
            condition: "name = \"GET /car\"".to_owned(),
            found: Some(text("GET /cart")),
        }],
        deciding: vec![attempt().span_id],
        more_deciding: 4,
    }
}

fn outcome() -> Outcome {
    let place = Place { file: "shop.yaml".to_owned(), line: 12, column: 15 };
    let claim_place = Place { file: "shop.yaml".to_owned(), line: 20, column: 7 };
    let assertion = AssertionJudgement {
        assertion: "attr:http.status_code = 200".to_owned(),
        place: place.clone(),
        verdict: Verdict::Failed,
        decided: DecisionBasis::Presence,
        reason: None,
        spans: vec![SpanEvidence {
            span_id: Some(attempt().span_id),
            name: "GET /cart".to_owned(),
            verdict: Verdict::Failed,
            found: "500 = 200".to_owned(),
        }],
        more_spans: 4,
        evidence: Some(evidence()),
    };
    Outcome {
        run_id: Some(RunId::new(at(0), [1; 10])),
        test: "the cart answers".to_owned(),
        verdict: Verdict::Failed,
        reasons: vec!["2 spans name parents that never came".to_owned()],
        trace_id: Some(attempt().trace_id),
        request: None,
        answer: Some(answer()),
        settlement: Some(settlement()),
        diagnoses: vec![diagnosis()],
        provisional: true,
        superseded: Some(superseded()),
        overtaken: Some(overtaken()),
        earlier: Vec::new(),
        judgement: Judgement {
            verdict: Verdict::Failed,
            specs: vec![SpecJudgement {
                name: Some("status".to_owned()),
                selector: "span[name=\"GET /cart\"]".to_owned(),
                place,
                verdict: Verdict::Failed,
                matched: 5,
                assertions: vec![assertion],
            }],
            claims: vec![ClaimJudgement {
                name: None,
                claim: "count(span[]:root) = 1".to_owned(),
                place: claim_place,
                verdict: Verdict::Inconclusive,
                decided: DecisionBasis::Absence,
                reason: Some("the trace is not known to be complete".to_owned()),
                spans: Vec::new(),
                more_spans: 0,
                evidence: None,
            }],
            outputs: vec![OutputValue {
                name: "id".to_owned(),
                value: None,
                reason: Some("no span".to_owned()),
            }],
            tree: vec![TreeSpan {
                span_id: attempt().span_id,
                name: "GET /cart".to_owned(),
                service: Some("cart".to_owned()),
                depth: 1,
                duration_ns: Some(1_200_000),
                is_error: true,
            }],
        },
        analysis: Some(analysis()),
        steps: vec![StepTime { step: Step::Trigger, began: at(3), ended: at(5) }],
    }
}

fn answer() -> Answer {
    Answer::Response(Response {
        status: 500,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Body::Text("oh".into()),
        duration_ns: 1_500_000,
    })
}

fn analysis() -> Analysis {
    let finding = Finding {
        span_id: Some(attempt().span_id),
        name: "GET /cart".to_owned(),
        message: "`http.route` is missing".to_owned(),
    };
    let rule = RuleAnalysis {
        id: "required-attributes".to_owned(),
        level: Level::Error,
        weight: 25,
        findings: vec![finding],
        more_findings: 3,
    };
    let plugin = PluginAnalysis { id: "standards".to_owned(), score: 75, rules: vec![rule] };
    Analysis { score: 75, minimum_score: 80, plugins: vec![plugin] }
}

fn events() -> Vec<RunEvent> {
    let whats = [
        What::Accepted,
        What::Taken { epoch: 1 },
        What::Attempted(attempt()),
        What::Answered { status: 200 },
        What::NotAnswered { message: "refused".to_owned() },
        What::Settled(settlement()),
        What::Provisional { verdict: Verdict::Passed },
        What::Judged { verdict: Verdict::Inconclusive },
        What::Overtaken(overtaken()),
        What::Exited { code: 1 },
        What::NotFired,
    ];
    (0..).zip(whats).map(|(millis, what)| RunEvent { at: at(millis), what }).collect()
}

#[test]
fn an_event_is_written_under_its_word() {
    for event in events() {
        let written = serde_json::to_value(&event.what).expect("an event is written");
        let object = written.as_object().and_then(|object| object.keys().next().cloned());
        let word = object.or_else(|| written.as_str().map(str::to_owned));
        assert_eq!(word.as_deref(), Some(event.what.as_str()), "{written}");
    }
}

fn answers() -> Vec<Answer> {
    let no_answer = |kind| Answer::NoAnswer(NoAnswer { kind, message: "…".to_owned() });
    let binary = Response {
        status: 200,
        headers: vec![],
        body: Body::Bytes(vec![255].into()),
        duration_ns: 1,
    };
    let kinds = [
        NoAnswerKind::Invalid,
        NoAnswerKind::Refused,
        NoAnswerKind::Connection,
        NoAnswerKind::Dns,
        NoAnswerKind::Tls,
        NoAnswerKind::Timeout,
        NoAnswerKind::Redirects,
        NoAnswerKind::Killed,
        NoAnswerKind::TooLarge,
        NoAnswerKind::Unknown,
    ];
    let exit = Exit {
        code: 1,
        stdout: Body::Text("1 order\n".into()),
        stderr: "no such order\n".to_owned(),
        duration_ns: 2_000_000,
    };
    let reply = Reply {
        protocol: "grpc".to_owned(),
        status: 5,
        status_name: "NOT_FOUND".to_owned(),
        is_error: true,
        headers: vec![("grpc-message".to_owned(), "no such order".to_owned())],
        body: Body::Text("{}".into()),
        duration_ns: 3_000_000,
    };
    let others =
        [Answer::Response(binary), Answer::Exit(exit), Answer::Reply(reply), Answer::NotFired];
    kinds.into_iter().map(no_answer).chain(others).collect()
}

/// Returns the records of a request of each kind, with credentials in every position.
fn requests() -> Vec<RecordedRequest> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let http = HttpRequest {
        method: "POST".to_owned(),
        url: "http://maria:hunter2@127.0.0.1:8080/cart?at=a@b".to_owned(),
        headers: vec![
            pair("content-type", "text/plain"),
            pair("Cookie", "hunter2"),
            pair("x-secret", "hunter2"),
        ],
        auth: Some(pair("Authorization", "Bearer hunter2")),
        body: Body::Text("one cart".into()),
        secret_headers: vec!["X-Secret".to_owned()],
        is_body_secret: false,
        timeout: Duration::from_secs(1),
        propagation: vec![Propagator::W3c],
        tls: Tls::default(),
        redirects_max: 0,
    };
    let exec = ExecRequest {
        command: Command::Words {
            program: "order".to_owned(),
            arguments: vec!["--sku".to_owned(), "17".to_owned()],
        },
        env: vec![pair("TOKEN", "hunter2")],
        workdir: Some("shop".to_owned()),
        timeout: Duration::from_secs(1),
        propagation: vec![],
    };
    let call = CallRequest {
        protocol: "grpc",
        peer: "address",
        method: Some("method"),
        fields: vec![
            ("address", CallValue::Text("127.0.0.1:9090".to_owned())),
            ("service", CallValue::Text("shop.Orders".to_owned())),
            ("method", CallValue::Text("shop.Orders.Get".to_owned())),
            ("metadata", CallValue::Pairs(vec![pair("x-tenant", "blue")])),
            ("auth", CallValue::Pairs(vec![pair("Authorization", "Bearer hunter2")])),
            ("request", CallValue::Body(Body::Bytes(vec![255].into()))),
        ],
        timeout: Duration::from_secs(1),
        propagation: vec![],
        tls: Tls::default(),
    };
    let requests = [Request::Http(http), Request::Exec(exec), Request::Call(call)];
    requests.iter().filter_map(RecordedRequest::of).collect()
}

#[test]
fn a_recorded_request_has_no_credentials_and_is_bounded() {
    let written = serde_json::to_string(&requests()).expect("it can be written");
    assert!(!written.contains("hunter2"), "{written}");
    let external = Request::TraceId(attempt().trace_id);
    assert_eq!(RecordedRequest::of(&external), None, "nothing is fired");
    let small = requests().remove(0);
    let long = RecordedRequest {
        target: "é".repeat(3_000),
        fields: vec![("x".to_owned(), "é".repeat(3_000)); 70],
        body: Body::Text("é".repeat(20_000).into()),
        ..small.clone()
    };
    for (request, more_fields) in [(small, 0), (long, 6)] {
        let mut cut = request.clone();
        cut.cut();
        assert_eq!(cut.more_fields, more_fields);
        assert_eq!(cut == request, more_fields == 0, "what fits stays");
        let written = serde_json::to_string(&cut).expect("it can be written");
        assert!(written.len() < 256 << 10, "{}", written.len());
        let once = cut.clone();
        cut.cut();
        assert_eq!(cut, once, "what is cut fits");
    }
    let outcome = Outcome { request: requests().pop(), ..outcome() };
    let text = serde_json::to_string(&outcome).expect("it can be written");
    assert_eq!(serde_json::from_str::<Outcome>(&text).expect("it can be read"), outcome);
}

fn learned() -> LearnedProfile {
    let orders = LearnedService {
        runs: 3,
        delays_ns: vec![4_000_000, 5_000_000, 4_500_000],
        late_ns: 900_000_000,
        leaves: [("bank.example:443".to_owned(), 3)].into(),
        instrumented: ["kafka:9092/mails".to_owned(), "stock".to_owned()].into(),
        absent_parents: 3,
        present_parents: 1,
        unannounced: ["mailer".to_owned()].into(),
    };
    let services = [("orders".to_owned(), orders), ("stock".to_owned(), LearnedService::default())];
    let test = LearnedTest { runs: 3, gaps_ms: vec![40, 1005, 38] };
    let pushed = LearnedProfile {
        services: services.into(),
        tests: [("buy".to_owned(), test)].into(),
        ..LearnedProfile::default()
    };
    LearnedProfile { stores: [("prod".to_owned(), pushed.clone())].into(), ..pushed }
}

/// Compares the serialized `value` with the golden file, and parses the golden file back to `value`.
fn check<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(
    files: &mut Golden,
    name: &str,
    value: &T,
) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden").join(name);
    let written = serde_json::to_string_pretty(value).expect("it can be written") + "\n";
    files.compare(&path, &written);
    // `finish` reports an absent file.
    let golden = fs::read_to_string(&path).unwrap_or(written);
    assert_eq!(&serde_json::from_str::<T>(&golden).expect("the golden file can be read"), value);
}

#[test]
fn what_is_promised_is_written_and_read() {
    let mut files = Golden::default();
    check(&mut files, "outcome-v1.json", &outcome());
    check(&mut files, "events-v1.json", &events());
    check(&mut files, "answers-v1.json", &answers());
    check(&mut files, "learned-v1.json", &learned());
    check(&mut files, "requests-v1.json", &requests());
    files.finish(5);
}

/// An outcome that was stored before a field existed is parsed without it.
#[test]
fn older_outcomes_are_read() {
    let read = older("outcome-v1-before-claims.json");
    assert!(read.judgement.claims.is_empty() && read.analysis.is_none());
    assert_eq!(read.run_id, outcome().run_id);
}

#[test]
fn an_outcome_from_before_evidence_differs_only_by_it() {
    let mut now = outcome();
    for spec in &mut now.judgement.specs {
        spec.assertions.iter_mut().for_each(|assertion| assertion.evidence = None);
    }
    // Its arrivals came later still.
    let processes = now.settlement.iter_mut().flat_map(|settlement| &mut settlement.processes);
    processes.for_each(|process| process.arrivals = None);
    assert_eq!(older("outcome-v1-before-evidence.json"), now);
}

fn older(name: &str) -> Outcome {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/older").join(name);
    let text = fs::read_to_string(path).expect("the file can be read");
    serde_json::from_str(&text).expect("an older outcome can be read")
}

/// A secret may be in every text of the evidence, also in digits.
#[test]
fn every_text_of_the_evidence_is_masked() {
    let mut masked = outcome();
    for text in masked.texts_mut() {
        if let TextMut::Text(text) = text {
            *text = "***".to_owned();
        }
    }
    let evidence = &masked.judgement.specs[0].assertions[0].evidence;
    let written = serde_json::to_string(evidence).expect("it can be written");
    for text in ["500", "0.5", "SELECT", "query", "cart", "status", "="] {
        assert!(!written.contains(text), "{text} in {written}");
    }
}
