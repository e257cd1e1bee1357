//! A run without a server: this process receives the spans itself.

use std::sync::Arc;

use drivers::{
    arrivals::Arrivals,
    inbox::{self, Inbox},
    receiver, trigger,
};
use lang::{Plan, Vars};
use model::{
    Answer, Attempt, Event, Key, KeyRing, Outcome, Progress, Request, RunId, Step, StepTime,
    Timestamp, TraceId, World,
};
use runner::{Job, Limits, Lost, Ports, RunError};

use crate::{args, documents, exit::Exit, reports::Reports, terminal::Terminal};

/// Runs the tests of a file, one after the other.
pub(crate) async fn run(
    args: &args::Run,
    environment: Vec<(String, String)>,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let began = world.now();
    let plans = documents::compile(&documents::read(&args.file, terminal)?, terminal)?;
    let compiled = StepTime { step: Step::Compile, began, ended: world.now() };
    let keys = KeyRing::new(Key::from_bytes(world.random()), Vec::new());
    let inbox = Arc::new(Inbox::new(keys.clone(), inbox::Limits::default()));
    let receiving = receiver::Config::new(args.otlp_grpc, args.otlp_http);
    let receiver = receiver::start(receiving, Arc::clone(&inbox)).await;
    let receiver = receiver.map_err(|error| terminal.refuse(&error))?;
    let http = trigger::Http::new(trigger::Limits::default());
    let http = http.map_err(|error| terminal.refuse(&error))?;
    terminal.line(&format!(
        "receiving OTLP on {} (gRPC) and {} (HTTP)",
        receiver.grpc_addr(),
        receiver.http_addr()
    ));
    let ports = LocalPorts { world, keys, inbox, http, terminal };
    let vars = Vars { environment: environment.into_iter().collect(), ..Vars::default() };
    reports.expect(plans.len());
    let mut exits = Vec::new();
    let mut spans_missed = false;
    for plan in &plans {
        exits.push(match one(plan, &vars, &ports).await {
            Ok(mut outcome) => {
                outcome.steps.insert(0, compiled);
                spans_missed |= outcome.settlement.as_ref().is_some_and(|it| !it.is_whole());
                let exit = outcome.verdict.into();
                reports.add(outcome);
                exit
            }
            Err(error) => terminal.refuse(&error),
        });
    }
    let counts = receiver.shutdown().await;
    if spans_missed {
        terminal.line(&format!(
            "received meanwhile: {} spans of these tests, {} of other traces, {} log records, {} metric points",
            counts.kept, counts.foreign, counts.logs, counts.metrics
        ));
    }
    reports.finish()?;
    Ok(Exit::over(exits))
}

async fn one(plan: &Plan, vars: &Vars, ports: &LocalPorts<'_>) -> Result<Outcome, RunError> {
    let job = Job {
        run_id: RunId::new(ports.now(), ports.world.random()),
        plan,
        vars,
        progress: Progress::New,
        limits: Limits::default(),
    };
    ports.terminal.line(&format!("{}: running", plan.name));
    runner::run(job, ports).await.map(|finished| finished.outcome)
}

/// The ports of a local run: nothing is recorded, since nobody could resume it.
struct LocalPorts<'a> {
    world: World,
    keys: KeyRing,
    inbox: Arc<Inbox>,
    http: trigger::Http,
    terminal: &'a Terminal,
}

impl Ports for LocalPorts<'_> {
    fn now(&self) -> Timestamp {
        self.world.now()
    }

    fn random(&self) -> [u8; 32] {
        self.world.random()
    }

    fn keys(&self) -> &KeyRing {
        &self.keys
    }

    async fn spans(&self, trace: TraceId) -> Arrivals {
        self.inbox.expect(trace)
    }

    fn has_lost_spans(&self, trace: TraceId) -> bool {
        self.inbox.refused(trace) > 0
    }

    async fn attempted(&self, attempt: &Attempt) -> Result<(), Lost> {
        self.terminal.line(&format!("  firing, trace {}", attempt.trace_id));
        Ok(())
    }

    async fn fire(&self, request: &Request, attempt: &Attempt) -> Result<Answer, Lost> {
        let Attempt { trace_id, span_id, .. } = *attempt;
        let answer = self.http.fire(request, trace_id, span_id, || true).await;
        answer.ok_or_else(|| Lost("nothing was sent".to_owned()))
    }

    async fn answered(&self, answer: &Answer) -> Result<(), Lost> {
        self.terminal.line(&match answer {
            Answer::Response(response) => format!("  answered {}", response.status),
            Answer::NoAnswer(no_answer) => format!("  no answer: {}", no_answer.message),
        });
        Ok(())
    }

    fn tell(&self, _event: Event) {
        // The report says all of it a moment later.
    }
}
