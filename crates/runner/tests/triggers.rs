//! From a document to its outcome, with triggers that are really fired.

use std::{fs, sync::Mutex, time::Duration};

use bytes::Bytes;
use drivers::{
    arrivals::{Arrival, Arrivals},
    trigger::{self, AnswerHold, Triggers},
};
use lang::{Files, Plan, Vars};
use model::{
    Answer, Attempt, Key, KeyRing, LearnedProfile, Progress, Request, RunEvent, RunId, SpanId,
    Timestamp, Trace, TraceId, Verdict,
    trace::{ResourceData, ScopeData, SpanData},
};
use runner::{FinishedRun, Job, LeaseLost, Limits, Ports, run};
use source::Text;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpListener,
    sync::mpsc,
    task::JoinSet,
    time::Instant,
};

/// An environment in which only the trigger is real.
struct World {
    began: Instant,
    triggers: Triggers,
    keys: KeyRing,
    /// The spans of traces, until the run requests them.
    spans: Mutex<Vec<(TraceId, Bytes)>>,
    /// Keeps the streams of spans open.
    senders: Mutex<Vec<mpsc::Sender<Arrival>>>,
}

impl World {
    fn new(commands: trigger::Commands) -> Self {
        let environment = vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())];
        let limits = trigger::TriggerLimits::default();
        Self {
            began: Instant::now(),
            triggers: Triggers::new(trigger::TriggerConfig {
                limits,
                environment,
                commands,
                networks: None,
            }),
            keys: KeyRing::new(Key::from_bytes([9; 16]), Vec::new()),
            spans: Mutex::default(),
            senders: Mutex::default(),
        }
    }

    async fn run(&self, plan: &Plan, vars: &Vars, files: &Files) -> FinishedRun {
        let job = Job {
            run_id: RunId::new(Timestamp::from_nanos(0), [1; 10]),
            plan,
            vars,
            files,
            timeout: None,
            progress: Progress::New,
            limits: Limits::default(),
            learned: &LearnedProfile::default(),
            started: None,
        };
        run(job, self).await.expect("a verdict")
    }
}

impl Ports for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_nanos(1_000_000_000_000_000_000).plus(self.began.elapsed())
    }

    fn random(&self) -> [u8; 32] {
        [7; 32]
    }

    fn keys(&self) -> &KeyRing {
        &self.keys
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        let (sender, receiver) = mpsc::channel(64);
        for (id, bytes) in self.spans.lock().expect("no panic").drain(..) {
            assert_eq!(id, trace, "the run asks for this trace");
            sender.try_send(Arrival::pushed(bytes)).expect("room");
        }
        self.senders.lock().expect("no panic").push(sender);
        Arrivals::new(receiver)
    }

    fn has_lost_spans(&self, _trace: TraceId) -> bool {
        false
    }

    async fn attempted(&self, _attempt: &Attempt) -> Result<(), LeaseLost> {
        Ok(())
    }

    async fn fire(&self, request: &Request, attempt: &Attempt) -> Result<Answer, LeaseLost> {
        let fired = self.triggers.fire(request, attempt, || true, &AnswerHold::unlimited()).await;
        fired.ok_or_else(|| LeaseLost("withheld".to_owned()))
    }

    async fn answered(&self, _answer: &Answer) -> Result<(), LeaseLost> {
        Ok(())
    }

    fn tell(&self, _event: RunEvent) {}
}

fn plan(spec: &str) -> Plan {
    let indented: String = spec.lines().map(|line| format!("  {line}\n")).collect();
    let document = format!("type: Test\nspec:\n  name: t\n{indented}");
    let (planned, found) = lang::plans(&Text::new("t.yaml", document));
    assert_eq!(planned.len(), 1, "{}", source::draw(&found, source::Colour::Never));
    planned[0].plan.clone()
}

fn vars() -> Vars {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    Vars {
        variables: [pair("USER", "meowth"), pair("PASSWORD", "s3cr3t-pass")].into(),
        secrets: ["PASSWORD".to_owned()].into(),
        ..Vars::default()
    }
}

/// Starts a server that responds once with all bytes that it received.
async fn echo(tasks: &mut JoinSet<()>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
    let address = listener.local_addr().expect("an address");
    tasks.spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("accepted");
        let mut request = vec![0; 64 * 1024];
        let count = stream.read(&mut request).await.expect("a request");
        let head = format!("HTTP/1.1 201 Created\r\ncontent-length: {count}\r\n\r\n");
        stream.write_all(head.as_bytes()).await.expect("said");
        stream.write_all(&request[..count]).await.expect("said");
    });
    format!("http://{address}")
}

/// A value that is computed from a secret for the request is never shown, though the system echoes it; it is still judged.
#[tokio::test]
async fn a_file_is_sent_and_no_secret_comes_back() {
    let mut tasks = JoinSet::new();
    let url = echo(&mut tasks).await;
    let plan = plan(&format!(
        "skipTraceCollection: true
trigger:
  type: http
  httpRequest:
    method: POST
    url: {url}/orders
    body: ./order.json
    auth: {{type: basic, basic: {{username: '${{var:USER}}', password: '${{var:PASSWORD}}'}}}}
trace:
  - response.status = 201
  - response.body contains \"bWVvd3RoOnMzY3IzdC1wYXNz\"
  - response.body contains \"to meowth, by s3cr3t-pass\"
"
    ));
    let mut files = Files::default();
    let file = plan.files()[0].clone();
    files.insert(&file, b"to ${var:USER}, by ${var:PASSWORD}".to_vec());
    let finished = World::new(trigger::Commands::All).run(&plan, &vars(), &files).await;
    let outcome = &finished.outcome;
    assert_eq!(outcome.verdict, Verdict::Passed, "{outcome:#?}");
    let shown = format!("{outcome:?} {:?}", finished.trigger);
    assert!(shown.contains("authorization: Basic ***") && shown.contains("by ***"), "{shown}");
    for secret in ["s3cr3t-pass", "bWVvd3RoOnMzY3IzdC1wYXNz"] {
        assert!(!shown.contains(secret), "{shown}");
        assert!(format!("{:?}", finished.answer).contains(secret), "outputs are taken from it");
    }
}

#[tokio::test]
async fn a_query_is_a_request() {
    let mut tasks = JoinSet::new();
    let url = echo(&mut tasks).await;
    let plan = plan(&format!(
        "skipTraceCollection: true
trigger:
  type: graphql
  graphql:
    url: {url}/graphql
    body:
      query: 'query Q($id: ID!) {{ order(id: $id) {{ total }} }}'
      variables: {{id: '${{var:USER}}', deep: [1, 2.50, true, ~]}}
      operationName: Q
trace:
  - response.body starts-with \"POST /graphql HTTP/1.1\"
  - 'response.body contains \"content-type: application/json\"'
outputs:
  - name: SENT
    selector: span[]
    value: response.body | regex '[{{]\"query.*'
"
    ));
    let outcome =
        World::new(trigger::Commands::All).run(&plan, &vars(), &Files::default()).await.outcome;
    assert_eq!(outcome.verdict, Verdict::Passed, "{outcome:#?}");
    assert_eq!(
        outcome.judgement.outputs[0].value.as_deref(),
        Some(
            r#"{"query":"query Q($id: ID!) { order(id: $id) { total } }","variables":{"id":"meowth","deep":[1,2.50,true,null]},"operationName":"Q"}"#
        ),
    );
}

/// Commands: the reported exit status, and the verdict.
#[tokio::test]
async fn a_command_is_judged_by_its_end() {
    let script = "printf '{\"id\": 7}'; printf no >&2; exit";
    let cases = [
        (0, "response.status = 0", Verdict::Passed),
        (3, "response.status = 3", Verdict::Passed),
        (3, "response.status = 0", Verdict::Failed),
        (0, "response.body | json_path '$.id' = 7", Verdict::Passed),
        (0, "response.duration < 10s", Verdict::Passed),
        (0, "response.header.content-type exists", Verdict::Failed),
        (0, "", Verdict::Passed),
        // A failure that no assertion covers is never a pass.
        (3, "", Verdict::Inconclusive),
    ];
    for (code, claim, verdict) in cases {
        let claims = if claim.is_empty() { String::new() } else { format!("\"{claim}\"") };
        let plan = plan(&format!(
            "skipTraceCollection: true
trigger:
  type: exec
  exec: {{command: \"{} {code}\"}}
trace: [{claims}]
",
            script.replace('"', "\\\""),
        ));
        let outcome =
            World::new(trigger::Commands::All).run(&plan, &vars(), &Files::default()).await.outcome;
        assert_eq!(outcome.verdict, verdict, "{code} {claim}: {outcome:#?}");
        let is_told = outcome.reasons.iter().any(|it| it.contains("a code other than 0"));
        assert_eq!(is_told, verdict == Verdict::Inconclusive, "{claim}");
        let Some(Answer::Exit(exit)) = outcome.answer else { panic!("{claim}") };
        assert_eq!((exit.code, exit.stderr.as_str()), (code, "no"));
    }
}

/// A command's span reports its end like that of a request, and no secret that the command writes is shown.
#[tokio::test]
async fn a_command_has_its_span_and_keeps_secrets() {
    let folder = std::env::temp_dir().join(format!("qualitytrace-{}", std::process::id()));
    fs::create_dir_all(&folder).expect("a folder");
    let plan = plan(&format!(
        "trigger:
  type: exec
  exec:
    command: [sh, -c, 'printf \"$IN by $PASS, $TRACEPARENT\"; pwd >&2; printf $PASS >&2']
    env: {{IN: '${{var:USER}}', PASS: '${{var:PASSWORD}}'}}
    workdir: {}
settle: {{timeout: 1s, flush: 10ms}}
specs:
  - selector: span[name=\"Tracetest trigger\"]
    assertions:
      - attr:tracetest.response.status = 0
      - attr:process.exit.code = 0
      - attr:tracetest.response.body starts-with \"meowth by \"
      - attr:qualitytrace.response.stderr contains \"***\"
",
        folder.display()
    ));
    let finished = World::new(trigger::Commands::All).run(&plan, &vars(), &Files::default()).await;
    fs::remove_dir_all(&folder).expect("removed");
    let outcome = &finished.outcome;
    let specs = &outcome.judgement.specs[0].assertions;
    let found: Vec<_> = specs.iter().flat_map(|it| &it.spans).map(|it| it.verdict).collect();
    assert_eq!(found, [Verdict::Passed; 4], "{specs:#?}");
    let shown = format!("{outcome:?} {:?} {:?}", finished.trigger, finished.trace);
    assert!(!shown.contains("s3cr3t-pass"), "{shown}");
    let trace = outcome.trace_id.expect("an id");
    let Answer::Exit(exit) = &*finished.answer else { panic!("an exit") };
    let said = String::from_utf8_lossy(exit.stdout.as_bytes());
    assert!(said.starts_with(&format!("meowth by s3cr3t-pass, 00-{trace}-")), "{said}");
    assert!(exit.stderr.starts_with(&folder.display().to_string()), "{}", exit.stderr);
}

#[tokio::test]
async fn where_no_command_is_run_the_run_says_so() {
    let plan = plan(
        "trigger: {type: exec, exec: {command: [touch, /nowhere/x]}}\ntrace: [response.status = 0]",
    );
    let outcome = World::new(trigger::Commands::Listed(trigger::AllowedCommands::default()))
        .run(&plan, &vars(), &Files::default())
        .await
        .outcome;
    assert_eq!(outcome.verdict, Verdict::Inconclusive);
    let Some(Answer::NoAnswer(answer)) = outcome.answer else { panic!("an answer") };
    assert!(answer.message.contains("a server runs no commands"), "{}", answer.message);
}

/// An external trace id: it is the id of the run's trace, and the trace contains no span of ours.
#[tokio::test]
async fn a_trace_that_is_there_is_judged_as_it_is() {
    let id: TraceId = "0af7651916cd43dd8448eb211c80319c".parse().expect("an id");
    let plan = plan(&format!(
        "trigger: {{type: traceid, traceid: {{id: {id}}}}}
settle: {{timeout: 5s, flush: 10ms}}
trace:
  - count(span[]) = 1
  - response.status = 200
"
    ));
    let world = World::new(trigger::Commands::All);
    let mut trace = Trace::new(id);
    let resource = trace.resource(ResourceData::default()).expect("room");
    let scope = trace.scope(ScopeData::default()).expect("room");
    let mut span = SpanData::new(SpanId::from_bytes([1; 8]).expect("an id"), None, "theirs");
    span.end = Timestamp::from_nanos(5);
    trace.push(resource, scope, span).expect("room");
    world.spans.lock().expect("no panic").push((id, otlp::encode(&trace).into()));
    let finished = world.run(&plan, &vars(), &Files::default()).await;
    let outcome = finished.outcome;
    assert_eq!(outcome.trace_id, Some(id));
    assert_eq!(outcome.answer, Some(Answer::NotFired));
    assert_eq!(finished.trigger, None);
    assert_eq!(finished.trace.expect("kept").len(), 1);
    let verdicts = outcome.judgement.claims.iter().map(|claim| claim.verdict);
    let verdicts: Vec<_> = verdicts.collect();
    assert_eq!(verdicts, [Verdict::Passed, Verdict::Inconclusive], "{:#?}", outcome.judgement);
    let reason = outcome.judgement.claims[1].reason.as_deref().unwrap_or_default();
    assert!(reason.contains("nothing was fired"), "{reason}");
    assert!(
        outcome.settlement.expect("settled").waited_ns < Duration::from_secs(5).as_nanos() as u64
    );
}
