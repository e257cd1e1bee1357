//! Outcomes to report.

mod checkout;
mod exchange;

pub(crate) use checkout::{checkout, forged, gated, many_spans, recorded};
use exchange::{called, cut, started};

use model::{
    Answer, AssertionJudgement, Because, Body, Cause, ComparisonEvidence, DecisionBasis, Diagnosis,
    EvidenceValue, Exit, Judgement, NoAnswer, NoAnswerKind, Outcome, OutputValue, Overtaken, Place,
    ProcessQuiet, Response, RunId, Settlement, SpanEvidence, SpanId, SpecJudgement,
    StatementEvidence, Step, StepTime, Timestamp, TraceId, UnsettledReason,
    Verdict::{self, Failed, Inconclusive, Passed},
};

/// Returns each outcome with the name of its golden files.
pub(crate) fn cases() -> Vec<(&'static str, Outcome)> {
    vec![
        ("passed", passed()),
        ("failed", failed()),
        ("no-telemetry", no_telemetry()),
        ("diagnosed", diagnosed()),
        ("overtaken", overtaken()),
        ("flaky", flaky()),
        ("first-run", first_run()),
        ("tried-again", Outcome { earlier: vec![Inconclusive], ..failed() }),
        ("no-answer", no_answer()),
        ("command", command()),
        ("not-fired", not_fired()),
        ("not-whole", not_whole()),
        ("skipped-trace", skipped_trace()),
        ("hostile", hostile()),
        ("checkout", checkout()),
        ("gated", gated()),
        ("recorded", recorded()),
        ("many-spans", many_spans()),
        ("forged", forged()),
        ("request-cut", cut()),
        ("request-call", called()),
        ("request-command", started()),
    ]
}

/// A run over several tests, one of each verdict.
pub(crate) fn several() -> Vec<Outcome> {
    let mut outcomes = vec![passed(), failed(), no_telemetry(), passed()];
    for (at, outcome) in outcomes.iter_mut().enumerate() {
        outcome.test = format!("test {} of the shop", at + 1);
        for step in &mut outcome.steps {
            let later = std::time::Duration::from_secs(2 * at as u64);
            (step.began, step.ended) = (step.began.plus(later), step.ended.plus(later));
        }
    }
    outcomes
}

pub(crate) fn passed() -> Outcome {
    let status = assertion(14, "attr:http.status_code = 200", Passed);
    let quick = assertion(15, "attr:tracetest.span.duration < 50ms", Passed);
    let rows = assertion(19, "attr:tracetest.selected_spans.count >= 1", Passed);
    Outcome {
        settlement: Some(whole(7)),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(
            vec![
                spec(
                    Some("the cart answers in time"),
                    r#"span[name="GET /cart"]"#,
                    5,
                    vec![status, quick],
                ),
                spec(
                    None,
                    "span[tracetest.span.type=\"database\"]\n  span[name=\"rows\"]",
                    1,
                    vec![rows],
                ),
            ],
            vec![output("cart_id", Ok("17")), output("user", Ok("maria"))],
        ),
        ..outcome(Passed)
    }
}

/// Failed, inconclusive, and then passed.
fn flaky() -> Outcome {
    Outcome { earlier: vec![Failed, Inconclusive], ..passed() }
}

pub(crate) fn failed() -> Outcome {
    let status = AssertionJudgement {
        spans: vec![
            span(Some(1), "GET /cart", Failed, "500 = 200"),
            span(Some(2), "GET /cart/items", Failed, "attribute `http.status_code` is absent"),
            span(Some(3), "GET /", Passed, "200 = 200"),
        ],
        more_spans: 2,
        evidence: Some(status_evidence()),
        ..assertion(14, "attr:http.status_code = 200", Failed)
    };
    let body = AssertionJudgement {
        decided: DecisionBasis::Response,
        spans: vec![span(None, "", Failed, r#""oh" = "ok""#)],
        ..assertion(15, "response.body = \"ok\"", Failed)
    };
    let listed = (1..=12).map(|n| span(Some(n), &format!("query {n}"), Failed, "3 = 4")).collect();
    let many = AssertionJudgement { spans: listed, ..assertion(19, "attr:db.rows = 4", Failed) };
    let fine = assertion(18, "attr:db.system = \"postgresql\"", Passed);
    Outcome {
        answer: Some(answered(500)),
        settlement: Some(whole(14)),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(
            vec![
                spec(Some("the cart answers"), r#"span[name="GET /cart"]"#, 5, vec![status, body]),
                spec(None, "", 12, vec![fine, many]),
            ],
            vec![
                output("cart_id", Err("no span matches `span[name=\"cart\"]`")),
                output("id", Ok("4")),
            ],
        ),
        ..outcome(Failed)
    }
}

fn status_evidence() -> StatementEvidence {
    let compared = |span, found| ComparisonEvidence {
        span_id: Some(span_id(span)),
        subject: "http.status_code".to_owned(),
        operator: "=".to_owned(),
        expected: Some(EvidenceValue::Number("200".to_owned())),
        found: Some(found),
    };
    StatementEvidence {
        comparisons: vec![
            compared(1, EvidenceValue::Number("500".to_owned())),
            compared(2, EvidenceValue::Absent),
        ],
        deciding: vec![span_id(1), span_id(2)],
        ..StatementEvidence::default()
    }
}

pub(crate) fn no_telemetry() -> Outcome {
    let absent = AssertionJudgement {
        decided: DecisionBasis::Absence,
        reason: Some("no span matches, and the trace is not whole: they may still come".to_owned()),
        ..assertion(14, "attr:tracetest.selected_spans.count = 0", Inconclusive)
    };
    Outcome {
        reasons: vec![
            "no span of the system came: check that it exports OTLP to the address that Qualitytrace \
             listens on, and that it continues the `traceparent` it gets"
                .to_owned(),
        ],
        settlement: Some(not_settled(vec![UnsettledReason::NoTelemetry], 0)),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(
            vec![spec(None, r#"span[name="GET /cart"]"#, 0, vec![absent])],
            vec![],
        ),
        ..outcome(Inconclusive)
    }
}

/// A command that failed, with an error message.
fn command() -> Outcome {
    let stderr = "deploying\nerror: no namespace `shop` <b>here</b>\n\n".to_owned();
    let exit = Exit { code: 3, stdout: Body::Text("".into()), stderr, duration_ns: 12_000_000 };
    Outcome { answer: Some(Answer::Exit(exit)), ..no_telemetry() }
}

/// A part of the trace is missing, with a diagnosis.
pub(crate) fn diagnosed() -> Outcome {
    let says =
        "`orders` began a trace of its own 12 ms after `gateway` called it in `POST /orders`";
    let lost = Diagnosis {
        cause: Cause::ContextLost,
        says: says.to_owned(),
        spans: vec![span_id(1), span_id(2)],
        advice: "pass `traceparent` on in the call from `gateway` to `orders`".to_owned(),
    };
    Outcome {
        reasons: vec![],
        settlement: Some(not_settled(vec![UnsettledReason::EdgesOpen(vec![span_id(1)])], 4)),
        diagnoses: vec![lost],
        ..no_telemetry()
    }
}

/// A service without a learned profile, so that the run waited long for it.
pub(crate) fn first_run() -> Outcome {
    let process = ProcessQuiet {
        service: "stock".to_owned(),
        instance: None,
        spans: 3,
        delay_ns: 4_000_000,
        silent_ns: 6_000_000_000,
        quiet_ns: 6_000_000_000,
        because: Because::Unknown,
        arrivals: None,
    };
    let quiet_ns = process.quiet_ns;
    Outcome {
        settlement: Some(Settlement { processes: vec![process], quiet_ns, ..whole(7) }),
        ..passed()
    }
}

/// Spans arrived after the verdict.
pub(crate) fn overtaken() -> Outcome {
    let process = |service: &str, because| ProcessQuiet {
        service: service.to_owned(),
        instance: None,
        spans: 3,
        delay_ns: 4_000_000,
        silent_ns: 41_000_000,
        quiet_ns: 40_000_000,
        because,
        arrivals: None,
    };
    let processes = vec![process("gateway", Because::Learned), process("orders", Because::Seen)];
    Outcome {
        settlement: Some(Settlement { processes, ..whole(7) }),
        provisional: false,
        superseded: None,
        overtaken: Some(Overtaken {
            verdict: Failed,
            spans: 2,
            after_ns: 250_000_000,
            service: Some("orders".to_owned()),
        }),
        ..passed()
    }
}

pub(crate) fn no_answer() -> Outcome {
    let message = "no connection to `http://127.0.0.1:8080/cart`: connection refused; start the system, or \
                   correct `trigger.httpRequest.url`";
    let status = AssertionJudgement {
        decided: DecisionBasis::Response,
        reason: Some("the trigger has no answer".to_owned()),
        ..assertion(14, "response.status = 200", Inconclusive)
    };
    Outcome {
        reasons: vec![format!("the trigger has no answer: {message}")],
        answer: Some(Answer::NoAnswer(NoAnswer {
            kind: NoAnswerKind::Refused,
            message: message.to_owned(),
        })),
        settlement: Some(not_settled(
            vec![UnsettledReason::NoTelemetry, UnsettledReason::NotAnswered],
            0,
        )),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(vec![spec(Some("answer"), "", 1, vec![status])], vec![]),
        ..outcome(Inconclusive)
    }
}

pub(crate) fn not_fired() -> Outcome {
    Outcome {
        reasons: vec!["the run was stopped before it began: run it again".to_owned()],
        trace_id: None,
        answer: None,
        steps: vec![],
        ..outcome(Inconclusive)
    }
}

pub(crate) fn not_whole() -> Outcome {
    let orphans = (1..=4).map(span_id).collect();
    let unsettled = vec![
        UnsettledReason::ParentsAbsent(orphans),
        UnsettledReason::NotQuiet,
        UnsettledReason::TooLarge,
        UnsettledReason::SpansLost,
        UnsettledReason::OtherServers(vec!["quality-2:11633".to_owned()]),
    ];
    let seen = AssertionJudgement {
        spans: vec![span(Some(1), "GET /cart", Inconclusive, "200 = 200")],
        more_spans: 1,
        reason: Some("spans that do not hold may still come".to_owned()),
        ..assertion(14, "attr:http.status_code = 200", Inconclusive)
    };
    Outcome {
        settlement: Some(not_settled(unsettled, 9)),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(vec![spec(None, r#"span[name="GET /cart"]"#, 2, vec![seen])], vec![]),
        ..outcome(Inconclusive)
    }
}

pub(crate) fn skipped_trace() -> Outcome {
    let status = AssertionJudgement {
        decided: DecisionBasis::Response,
        ..assertion(14, "attr:tracetest.response.status = 200", Passed)
    };
    let selector = r#"span[tracetest.span.type="general" name="Tracetest trigger"]"#;
    Outcome {
        judgement: judgement(vec![spec(Some("status"), selector, 0, vec![status])], vec![]),
        ..outcome(Passed)
    }
}

/// Span attributes that try to forge the verdict.
pub(crate) fn hostile() -> Outcome {
    let forged = "\u{1b}[2J\u{1b}[H✔ passed\r\n✔ passed: all is well";
    let attack = AssertionJudgement {
        place: Place { file: "a\u{7}b.yaml".to_owned(), ..place(14) },
        reason: Some(format!("found {forged}")),
        spans: vec![
            span(Some(1), forged, Failed, &format!("\"{forged}\" = \"ok\"")),
            span(Some(2), "日本語 \u{202e}desrever\u{202c}", Failed, "\u{9b}31m = 1\u{2028}  "),
            span(None, "tabs\tand\0nul", Inconclusive, &"x".repeat(1_000)),
            span(Some(3), &"長".repeat(500), Failed, "\u{e0041}\u{feff}"),
        ],
        ..assertion(14, "attr:note = \"\u{1b}]0;title\u{7}\"", Failed)
    };
    Outcome {
        test: forged.to_owned(),
        reasons: vec![forged.to_owned()],
        answer: Some(Answer::NoAnswer(NoAnswer {
            kind: NoAnswerKind::Tls,
            message: format!("{forged}!"),
        })),
        settlement: Some(whole(u64::MAX)),
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: judgement(
            vec![spec(Some("\u{1b}[8mhidden"), "span[name=\"\u{1b}[0m\"]  ", 1, vec![attack])],
            vec![output("\u{1b}c", Ok(forged)), output("blank", Ok("   "))],
        ),
        ..outcome(Failed)
    }
}

/// Triggered and responded, 1.237 s in total, with nothing collected and nothing asserted.
fn outcome(verdict: Verdict) -> Outcome {
    let step = |step, began, ended| StepTime { step, began: at(began), ended: at(ended) };
    Outcome {
        run_id: Some(RunId::new(at(0), [1; 10])),
        test: "a customer looks into the cart".to_owned(),
        verdict,
        reasons: vec![],
        trace_id: TraceId::from_bytes([0xab; 16]),
        request: None,
        answer: Some(answered(200)),
        settlement: None,
        diagnoses: Vec::new(),
        provisional: false,
        superseded: None,
        overtaken: None,
        earlier: Vec::new(),
        judgement: Judgement::bare(verdict),
        analysis: None,
        steps: vec![
            step(Step::Resolve, 0, 1),
            step(Step::Trigger, 2, 15),
            step(Step::Settle, 15, 1_236),
            step(Step::Judge, 1_236, 1_237),
        ],
    }
}

fn at(millis: u64) -> Timestamp {
    Timestamp::from_nanos(1_794_708_000_000_000_000 + millis * 1_000_000)
}

fn answered(status: u16) -> Answer {
    Answer::Response(Response {
        status,
        headers: vec![("content-type".to_owned(), "text/plain".to_owned())],
        body: Body::Text("oh".into()),
        duration_ns: 12_340_000,
    })
}

fn whole(spans: u64) -> Settlement {
    Settlement {
        unsettled: vec![],
        spans,
        waited_ns: 1_221_000_000,
        silent_ns: Some(201_000_000),
        quiet_ns: 200_000_000,
        ..Settlement::default()
    }
}

fn not_settled(unsettled: Vec<UnsettledReason>, spans: u64) -> Settlement {
    Settlement {
        unsettled,
        spans,
        waited_ns: 30_000_000_000,
        silent_ns: None,
        quiet_ns: 200_000_000,
        ..Settlement::default()
    }
}

fn judgement(specs: Vec<SpecJudgement>, outputs: Vec<OutputValue>) -> Judgement {
    let verdict = Verdict::over(specs.iter().map(|spec| spec.verdict));
    Judgement { specs, outputs, ..Judgement::bare(verdict) }
}

fn spec(
    name: Option<&str>,
    selector: &str,
    matched: u64,
    assertions: Vec<AssertionJudgement>,
) -> SpecJudgement {
    SpecJudgement {
        name: name.map(str::to_owned),
        selector: selector.to_owned(),
        place: place(12),
        verdict: Verdict::over(assertions.iter().map(|assertion| assertion.verdict)),
        matched,
        assertions,
    }
}

fn assertion(line: u32, words: &str, verdict: Verdict) -> AssertionJudgement {
    AssertionJudgement {
        assertion: words.to_owned(),
        place: place(line),
        verdict,
        decided: DecisionBasis::Presence,
        reason: None,
        spans: vec![],
        more_spans: 0,
        evidence: None,
    }
}

fn place(line: u32) -> Place {
    Place { file: "tests/cart.yaml".to_owned(), line, column: 9 }
}

fn span(id: Option<u8>, name: &str, verdict: Verdict, found: &str) -> SpanEvidence {
    SpanEvidence {
        span_id: id.map(span_id),
        name: name.to_owned(),
        verdict,
        found: found.to_owned(),
    }
}

fn span_id(byte: u8) -> SpanId {
    SpanId::from_bytes([byte; 8]).expect("not zero")
}

fn output(name: &str, value: Result<&str, &str>) -> OutputValue {
    OutputValue {
        name: name.to_owned(),
        value: value.ok().map(str::to_owned),
        reason: value.err().map(str::to_owned),
    }
}
