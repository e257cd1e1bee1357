//! The diagnoses of runs that did not pass, as golden files: one case, one file with all diagnoses.
//!
//! The observations are written by hand here. `crates/cli/tests/diagnosis.rs` tests the same causes with real systems.

mod scene;

use std::{path::Path, time::Duration};

use drivers::receiver::Counts;
use golden::Golden;
use model::{
    Answer, Because, Body, Cause, Command, ExecRequest, Exit, HttpRequest, ProcessQuiet,
    Propagator, Request, TraceId, UnsettledReason, Verdict, trace::Kind,
};
use runner::diagnosis::Process;
use scene::{Scene, http, parent, span};

type Case = (&'static str, Cause, Scene);

#[test]
fn every_cause_is_told() {
    let cases = silence()
        .into_iter()
        .chain(variables())
        .chain(lost())
        .chain(parts())
        .chain(rest())
        .chain(triggers());
    let mut golden = Golden::default();
    let mut count = 0;
    for (name, first, scene) in cases {
        let found = scene.diagnose();
        let causes: Vec<_> = found.iter().map(|it| it.cause).collect();
        assert_eq!(causes.first(), Some(&first), "{name}: {found:#?}");
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnosis/golden").join(name);
        golden.compare(&file.with_extension("txt"), &Scene::shown(&found));
        count += 1;
    }
    golden.finish(count);
}

#[test]
fn nothing_is_said_where_nothing_is_missing() {
    let edge = || span(1, 0, "GET /", "shop").kind(Kind::Client);
    let health =
        || span(9, 0, "GET /health", "probe").kind(Kind::Server).attribute("url.path", "/health");
    let cases = [
        ("passed", Scene::new(Verdict::Passed).unsettled(UnsettledReason::SpansLost)),
        ("failed, whole", Scene::new(Verdict::Failed).spans([span(1, 0, "GET /", "shop")])),
        (
            "failed by what was there",
            Scene::new(Verdict::Failed).unsettled(UnsettledReason::NotWaited),
        ),
        // A foreign service that was called in the meantime is not the other side of a call that it does not resemble.
        (
            "failed, whole, a leaf",
            Scene::new(Verdict::Failed).spans([edge()]).foreign(5, [health()]),
        ),
        ("no answer", Scene::silent().unsettled(UnsettledReason::NotAnswered)),
        ("nobody knows", Scene::silent().unseen()),
        ("inconclusive, whole", Scene::new(Verdict::Inconclusive)),
    ];
    for (name, scene) in cases {
        assert_eq!(scene.diagnose(), [], "{name}");
    }
}

#[test]
fn much_is_said_in_little() {
    let strangers = (0..2000u16).map(|n| (n, span(1, 0, &"x".repeat(9999), &format!("job-{n}"))));
    let mut scene = Scene::silent();
    for (_, stranger) in strangers {
        scene = scene.foreign(5, [stranger]);
    }
    for n in 0..64 {
        scene = scene.refusal(5, &format!("word {n}"));
    }
    let found = scene.diagnose();
    assert!(!found.is_empty() && found.len() <= 6);
    for diagnosis in found {
        assert!(diagnosis.says.len() < 1000 && diagnosis.spans.len() <= 3, "{diagnosis:?}");
    }
}

fn silence() -> Vec<Case> {
    let served = |id, path: &str| {
        let name = format!("GET {path}");
        span(id, 0, &name, "shop").kind(Kind::Server).attribute("url.path", path)
    };
    let job = || span(1, 0, "clean up", "jobs").at(-5000, 10);
    let wrong_path = "nothing is at `/api/v2/spans`; send to `/v1/traces`";
    let wrong_type = "content of type `text/plain` is not taken";
    let other = "00-0123456789abcdef0123456789abcdef-0123456789abcdef-01";
    vec![
        ("nothing-connected", Cause::NothingConnected, Scene::silent()),
        ("nothing-connected-started", Cause::NothingConnected, Scene::silent().started()),
        ("rejected", Cause::Rejected, Scene::silent().refusal(3, wrong_path)),
        (
            "rejected-in-several-ways",
            Cause::Rejected,
            Scene::silent().refusal(3, wrong_path).refusal(4, wrong_path).refusal(9, wrong_type),
        ),
        ("rejected-before", Cause::Rejected, Scene::silent().refusal(-300, wrong_type)),
        (
            "other-trace-instead-of-ours",
            Cause::OtherTraces,
            Scene::silent()
                .foreign(10, [served(1, "/health").at(1, 1)])
                .foreign(20, [served(2, "/cart").at(3, 9), span(3, 2, "query", "shop")])
                .foreign(20, [served(4, "/cart").at(900, 9)]),
        ),
        ("other-traces-before", Cause::OtherTraces, Scene::silent().foreign(-2000, [job()])),
        (
            "other-traces-meanwhile",
            Cause::OtherTraces,
            Scene::silent().foreign(5, [job()]).foreign(5, [span(2, 0, "tick", "clock")]),
        ),
        (
            "other-traces-unmarked",
            Cause::OtherTraces,
            Scene::silent().started().foreign(5, [served(1, "/cart")]),
        ),
        (
            "no-spans-metrics",
            Cause::NoSpans,
            Scene::silent().counts(Counts { metrics: 30, logs: 1, ..Counts::default() }),
        ),
        (
            "no-spans-of-this-run",
            Cause::NoSpans,
            Scene::silent().counts(Counts { kept: 12, metrics: 3, ..Counts::default() }),
        ),
        ("no-spans-idle", Cause::NoSpans, Scene::silent().connections(2, 0)),
        ("no-spans-empty", Cause::NoSpans, Scene::silent().connections(1, 4)),
        (
            "answer-not-sampled",
            Cause::NotSampled,
            Scene::silent().header("TraceResponse", "00-{trace}-00f067aa0ba902b7-00"),
        ),
        (
            "answer-not-sampled-timing",
            Cause::NotSampled,
            Scene::silent().header(
                "Server-Timing",
                "db;dur=53, traceparent;desc=\"00-{trace}-00f067aa0ba902b7-00\"",
            ),
        ),
        ("answer-other-trace", Cause::ContextLost, Scene::silent().header("traceresponse", other)),
        (
            "answer-sampled",
            Cause::NothingConnected,
            Scene::silent().header("traceresponse", "00-{trace}-00f067aa0ba902b7-01"),
        ),
    ]
}

fn variables() -> Vec<Case> {
    let set: Vec<_> = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:4000"),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
    ]
    .map(|(key, value)| (key.to_owned(), value.to_owned()))
    .to_vec();
    let with = |variables: &[(&'static str, &'static str)]| {
        let mark = ("OTEL_RESOURCE_ATTRIBUTES", "team=shop,qualitytrace.started=t0ken");
        let set_too = set.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let own = variables.iter().copied();
        let kept = set_too.filter(|(key, _)| variables.iter().all(|(name, _)| name != key));
        let process = Process::new("node", &set, kept.chain(own).chain([mark]));
        Scene::silent().started().process(process.clone()).process(process)
    };
    let bare = Process::new("gunicorn", &set, [("PATH", "/bin")]);
    vec![
        ("sampler-off", Cause::NotSampled, with(&[("OTEL_TRACES_SAMPLER", "always_off")])),
        (
            "sampler-of-the-caller",
            Cause::NothingConnected,
            with(&[("OTEL_TRACES_SAMPLER", "parentbased_always_off")]),
        ),
        ("disabled", Cause::SwitchedOff, with(&[("OTEL_SDK_DISABLED", "true")])),
        ("exporter-none", Cause::SwitchedOff, with(&[("OTEL_TRACES_EXPORTER", "none")])),
        (
            "sent-elsewhere",
            Cause::SentElsewhere,
            with(&[(
                "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
                "http://me:secret@collector:4318/v1/traces",
            )]),
        ),
        ("configured-by-file", Cause::VariablesIgnored, with(&[("OTEL_CONFIG_FILE", "otel.yaml")])),
        ("variables-as-set", Cause::NothingConnected, with(&[])),
        (
            "variables-not-passed-on",
            Cause::VariablesIgnored,
            Scene::silent().started().process(bare),
        ),
    ]
}

#[expect(clippy::too_many_lines, reason = "a table")]
fn lost() -> Vec<Case> {
    let called = || {
        span(2, 1, "POST", "gateway")
            .kind(Kind::Client)
            .at(5, 40)
            .attribute("url.full", "http://orders:8080/orders?x=1")
            .attribute("server.address", "orders")
    };
    let gateway =
        || [span(1, 0, "POST /checkout", "gateway").kind(Kind::Server).at(1, 60), called()];
    let orders = |path: &str| {
        let name = format!("POST {path}");
        span(3, 0, &name, "orders").kind(Kind::Server).at(8, 20).attribute("url.path", path)
    };
    let open = || UnsettledReason::EdgesOpen(vec![parent(2)]);
    let published = || span(2, 1, "orders publish", "gateway").kind(Kind::Producer).at(5, 1);
    let consumed = || span(4, 0, "orders process", "shipping").kind(Kind::Consumer).at(400, 5);
    let partial = || Scene::new(Verdict::Inconclusive).spans(gateway());
    vec![
        (
            "context-lost",
            Cause::ContextLost,
            // Selects the trace that is similar to the call, though another one arrived earlier.
            partial()
                .unsettled(open())
                .foreign(30, [orders("/health").at(7, 1)])
                .foreign(30, [orders("/orders")]),
        ),
        (
            "context-lost-by-time",
            Cause::ContextLost,
            partial()
                .unsettled(open())
                .foreign(30, [span(3, 0, "handle", "orders").kind(Kind::Server).at(8, 2)]),
        ),
        (
            "context-lost-message",
            Cause::ContextLost,
            Scene::new(Verdict::Inconclusive)
                .spans([published()])
                .unsettled(open())
                .foreign(500, [consumed()]),
        ),
        (
            "context-lost-though-whole",
            Cause::ContextLost,
            Scene::new(Verdict::Failed).spans(gateway()).foreign(30, [orders("/orders")]),
        ),
        (
            "context-lost-inside",
            Cause::ContextLost,
            partial()
                .unsettled(UnsettledReason::ExpectedAbsent(vec!["span[name=\"audit\"]".to_owned()]))
                .foreign(30, [span(5, 0, "audit", "gateway").at(20, 5)])
                .foreign(30, [span(6, 0, "GET /health", "gateway").kind(Kind::Server).at(20, 5)]),
        ),
        (
            "context-lost-expected",
            Cause::ContextLost,
            partial()
                .unsettled(UnsettledReason::ExpectedAbsent(vec!["shipping".to_owned()]))
                .foreign(500, [consumed()]),
        ),
        (
            "linked",
            Cause::Linked,
            Scene::new(Verdict::Inconclusive)
                .spans([published()])
                .unsettled(open())
                .foreign(500, [consumed().linked(2)]),
        ),
        ("other-side-absent", Cause::OtherSideAbsent, partial().unsettled(open())),
        (
            "trigger-not-entered",
            Cause::ContextLost,
            Scene::new(Verdict::Inconclusive)
                .spans([span(1, 0, "handle", "gateway").parentless()])
                .unsettled(UnsettledReason::EdgesOpen(vec![parent(200)])),
        ),
        (
            "trigger-not-entered-by-proxy",
            Cause::ParentRemote,
            Scene::new(Verdict::Inconclusive)
                .spans([span(1, 99, "GET /cart", "gateway").kind(Kind::Server)])
                .unsettled(UnsettledReason::ParentsAbsent(vec![parent(1)]))
                .unsettled(UnsettledReason::EdgesOpen(vec![parent(200)])),
        ),
    ]
}

fn parts() -> Vec<Case> {
    let stock = |id| span(id, 99, "GET /stock", "stock").kind(Kind::Server);
    let query = span(3, 98, "SELECT", "stock").kind(Kind::Client);
    let orphans =
        |ids: &[u8]| UnsettledReason::ParentsAbsent(ids.iter().map(|id| parent(*id)).collect());
    let shop = || span(1, 0, "GET /cart", "shop").kind(Kind::Server);
    let quiet = |because, service: &str| ProcessQuiet {
        service: service.to_owned(),
        instance: None,
        spans: 1,
        delay_ns: 0,
        silent_ns: 1_200_000_000,
        quiet_ns: 6_000_000_000,
        because,
        arrivals: None,
    };
    let loud = |because| {
        Scene::new(Verdict::Inconclusive)
            .spans([shop()])
            .unsettled(UnsettledReason::NotQuiet)
            .process_quiet(quiet(because, "shop"))
    };
    let partial = || Scene::new(Verdict::Inconclusive);
    vec![
        (
            "parent-remote-first",
            Cause::ParentRemote,
            partial().spans([stock(1), stock(2)]).unsettled(orphans(&[1, 2])),
        ),
        (
            "parent-remote-by-flags",
            Cause::ParentRemote,
            partial()
                .spans([shop(), span(2, 99, "stock", "stock").flags(0x301)])
                .unsettled(orphans(&[2])),
        ),
        ("parent-local", Cause::ParentLocal, partial().spans([query]).unsettled(orphans(&[3]))),
        ("not-quiet-unknown", Cause::NotQuiet, loud(Because::Unknown)),
        ("not-quiet-declared", Cause::NotQuiet, loud(Because::Declared)),
        ("not-quiet-learned", Cause::NotQuiet, loud(Because::Learned)),
        ("variables-ignored", Cause::VariablesIgnored, loud(Because::Unknown).started()),
    ]
}

fn rest() -> Vec<Case> {
    let partial = || Scene::new(Verdict::Inconclusive);
    let lost =
        || partial().spans([span(1, 0, "GET /cart", "shop")]).unsettled(UnsettledReason::SpansLost);
    let open = || UnsettledReason::EdgesOpen(vec![parent(1)]);
    let call = || span(1, 0, "GET", "shop").kind(Kind::Client).attribute("peer.service", "stock");
    let counts = |refused, invalid| Counts { refused, invalid, ..Counts::default() };
    vec![
        ("refused-for-want-of-room", Cause::SenderLost, lost().counts(counts(120, 0))),
        ("malformed-ids", Cause::SenderLost, lost().counts(counts(0, 1))),
        (
            "dropped-by-limits",
            Cause::SenderLost,
            partial()
                .spans([span(1, 0, "GET /cart", "shop").dropped(12, 3)])
                .unsettled(UnsettledReason::TooLarge),
        ),
        (
            "dropped-by-limits-though-whole",
            Cause::SenderLost,
            partial().spans([span(1, 0, "GET /cart", "shop").dropped(0, 3)]),
        ),
        (
            "answer-not-sampled-in-part",
            Cause::NotSampled,
            partial()
                .spans([call()])
                .unsettled(open())
                .header("traceresponse", "00-{trace}-00f067aa0ba902b7-00"),
        ),
        (
            "rejected-meanwhile",
            Cause::Rejected,
            partial()
                .spans([call()])
                .unsettled(open())
                .refusal(9, "the message has more than 16777216 bytes"),
        ),
        (
            "clock-behind",
            Cause::ClockSkew,
            partial().spans([span(1, 0, "GET /cart", "shop").at(-90_000, 5)]),
        ),
        (
            "clock-ahead",
            Cause::ClockSkew,
            partial().spans([span(1, 0, "GET /cart", "shop").at(90_000, 5)]),
        ),
        (
            "clock-behind-the-caller",
            Cause::ClockSkew,
            partial().spans([
                span(1, 0, "GET", "shop").kind(Kind::Client).at(4000, 900),
                span(2, 1, "GET /stock", "stock").kind(Kind::Server).at(1500, 5),
            ]),
        ),
    ]
}

/// The diagnoses of triggers other than a request with W3C headers.
fn triggers() -> Vec<Case> {
    let served = || span(1, 0, "GET /cart", "shop").kind(Kind::Server);
    let command = || {
        let exec = ExecRequest {
            command: Command::Line("k6 run cart.js".to_owned()),
            env: Vec::new(),
            workdir: None,
            timeout: Duration::from_secs(1),
            propagation: Vec::new(),
        };
        let (stdout, stderr) = (Body::Text("".into()), String::new());
        let exit = Exit { code: 0, stdout, stderr, duration_ns: 1 };
        Scene::silent().fired(Request::Exec(exec), Answer::Exit(exit))
    };
    let waited = |scene: Scene| {
        let id = TraceId::from_bytes([0xab; 16]).expect("not zero");
        scene.fired(Request::TraceId(id), Answer::NotFired)
    };
    let b3 = || {
        let request = HttpRequest { propagation: vec![Propagator::B3], ..http() };
        Scene::silent().asked(Request::Http(request))
    };
    vec![
        ("command-nothing-connected", Cause::NothingConnected, command()),
        ("command-other-trace", Cause::OtherTraces, command().foreign(5, [served()])),
        ("b3-other-trace", Cause::OtherTraces, b3().foreign(5, [served()])),
        ("id-nothing-connected", Cause::NothingConnected, waited(Scene::silent())),
        ("id-other-traces", Cause::OtherTraces, waited(Scene::silent().foreign(5, [served()]))),
        (
            "id-caller-absent",
            // A span that is older than the run is no evidence about its clock.
            Cause::ParentRemote,
            waited(
                Scene::new(Verdict::Inconclusive)
                    .spans([span(1, 99, "GET /cart", "shop").kind(Kind::Server).at(-90_000, 5)])
                    .unsettled(UnsettledReason::ParentsAbsent(vec![parent(1)])),
            ),
        ),
    ]
}
