//! `runs`: the runs on a server.

use http::Method;
use model::{ErrorCode, Outcome, RunId, TestId, Verdict, World};
use serde::Deserialize;
use serde_json::Value;
use server::config::Environment;

use super::{
    client::{ENDED, RemoteStep, RemoteSuiteRun, Server, connect},
    error::ClientError,
    traces,
};
use crate::{
    args::{self, OutputFormat, RunsCommand},
    documents::read,
    exit::Exit,
    files,
    listing::{self, ListedRow, Listing},
    reports::Reports,
    run::{Line, ProgressLevel},
    terminal::Terminal,
};

/// The maximum number of events that are shown.
const EVENTS_MAX: usize = 10_000;

/// A run that may have ended.
#[derive(Debug, Deserialize)]
struct EndedRun {
    id: RunId,
    test: TestId,
    outcome: Option<Outcome>,
}

#[derive(Debug, Deserialize)]
struct Rejudgement {
    test: TestId,
    outcome: Outcome,
}

/// Executes one of the commands.
pub(crate) async fn runs(
    command: &RunsCommand,
    environment: &Environment,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let connection = match command {
        RunsCommand::List(args) => &args.connection,
        RunsCommand::View(args) => &args.connection,
        RunsCommand::Watch(args) => &args.connection,
        RunsCommand::Report(args) => &args.connection,
        RunsCommand::Trace(args) => &args.connection,
        RunsCommand::Rejudge(args) => &args.connection,
        RunsCommand::Stop(args) => &args.connection,
    };
    let server = connect(connection, environment, terminal)?;
    match command {
        RunsCommand::List(args) => list(&server, args, world, terminal).await,
        RunsCommand::View(args) => view(&server, args, terminal).await,
        RunsCommand::Watch(args) => watch(&server, args, terminal).await,
        RunsCommand::Report(args) => report(&server, args, terminal).await,
        RunsCommand::Trace(args) => trace(&server, args, terminal).await,
        RunsCommand::Rejudge(args) => rejudge(&server, args, terminal).await,
        RunsCommand::Stop(args) => stop(&server, args, terminal).await,
    }
}

async fn list(
    server: &Server,
    args: &args::RunsList,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let now = world.now();
    let mut query: Vec<(&str, String)> = Vec::new();
    query.extend(args.test.as_ref().map(|test| ("test", test.to_string())));
    query.extend(args.verdict.map(|it| ("verdict", Verdict::from(it).as_str().to_owned())));
    query.extend(args.since.map(|since| ("from", since.at(now).to_string())));
    query.extend(args.until.map(|until| ("until", until.at(now).to_string())));
    let first = || {
        let request = server.request_in_project(Method::GET, "/api/v1/runs");
        query.iter().fold(request, |request, (name, value)| request.query(&[(*name, value)]))
    };
    let found = server.pages(first, args.limit as usize).await;
    let found = found.map_err(|error| terminal.refuse(&error))?;
    let rows = found.into_iter().map(row).collect();
    let heads = &["RUN", "TEST", "VERDICT", "ACCEPTED", "REVISION"];
    Listing { heads, rows, none: "no runs" }.print(args.output.format, terminal);
    Ok(Exit::Passed)
}

fn row(run: Value) -> ListedRow {
    let cells = vec![
        listing::text(&run, "id"),
        listing::text(&run, "test"),
        verdict(&run),
        listing::moment(&run, "acceptedAt"),
        listing::text(&run, "revision"),
    ];
    ListedRow { name: listing::text(&run, "id"), cells, value: run }
}

/// Returns the verdict of a run, or its state.
fn verdict(run: &Value) -> String {
    let field = if run["verdict"].is_null() { "state" } else { "verdict" };
    listing::text(run, field)
}

async fn view(server: &Server, args: &args::RunView, terminal: &Terminal) -> Result<Exit, Exit> {
    let request = server.request_in_project(Method::GET, &format!("/api/v1/runs/{}", args.run));
    let mut run: Value = server.send(request).await.map_err(|error| terminal.refuse(&error))?;
    let events = match args.events {
        true => server.events(args.run).await.map_err(|error| terminal.refuse(&error))?,
        false => Vec::new(),
    };
    match args.output.format {
        OutputFormat::Name => terminal.result(&listing::text(&run, "id")),
        OutputFormat::Json | OutputFormat::Yaml => {
            if args.events {
                run["events"] = events.into();
            }
            listing::value(&run, args.output.format, terminal);
        }
        OutputFormat::Table => {
            facts(&run, terminal);
            for event in &events {
                let at = listing::moment(&event["event"], "at");
                let what = words(&event["event"]["what"]);
                terminal.result(&format!("  {:>4}  {at}  {what}", listing::text(event, "n")));
            }
            if let Ok(outcome) = serde_json::from_value::<Outcome>(run["outcome"].take()) {
                let asked = args::ReportArgs { targets: Vec::new() };
                let mut reports = Reports::new(&asked, terminal)?;
                reports.expect(1);
                reports.add(outcome, None);
                reports.finish()?;
            }
        }
    }
    Ok(Exit::Passed)
}

/// Returns what happened as its name, with what is a number or a text of it.
fn words(what: &Value) -> String {
    let Some((name, details)) = what.as_object().and_then(|it| it.iter().next()) else {
        return what.as_str().unwrap_or_default().to_owned();
    };
    let details = details.as_object().into_iter().flatten();
    let shown = details.filter(|(_, value)| value.is_string() || value.is_number());
    shown.fold(name.clone(), |words, (key, _)| {
        format!("{words} {key}={}", listing::text(&what[name], key))
    })
}

/// Prints the facts of a run, one a line.
fn facts(run: &Value, terminal: &Terminal) {
    let test = format!("{}, version {}", listing::text(run, "test"), listing::text(run, "version"));
    let trace = match run["trace"]["spans"].as_u64() {
        Some(spans) => format!("{}, {spans} spans stored", listing::text(run, "traceId")),
        None => listing::text(run, "traceId"),
    };
    let lines = [
        ("run", listing::text(run, "id")),
        ("test", test),
        ("state", verdict(run)),
        ("accepted", listing::moment(run, "acceptedAt")),
        ("ended", listing::moment(run, "endedAt")),
        ("revision", listing::text(run, "revision")),
        ("started by", listing::text(run, "startedBy")),
        ("trace", trace),
    ];
    for (name, value) in lines.iter().filter(|(_, value)| value != "-") {
        terminal.result(&format!("{name:<10}  {value}"));
    }
}

async fn watch(server: &Server, args: &args::RunWatch, terminal: &Terminal) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let refuse = |error: ClientError| terminal.refuse(&error);
    let run = server.run(args.run).await.map_err(refuse)?;
    let doing = format!("running on {}", server.url);
    let line = Line::of(run.test.as_str(), &doing, terminal, ProgressLevel::Steps);
    let outcome = server.follow(args.run, &line).await.map_err(refuse)?;
    drop(line);
    let verdict = outcome.verdict;
    reports.expect(1);
    server.report((args.run, &run.test), outcome, &mut reports, terminal).await?;
    reports.finish()?;
    Ok(verdict.into())
}

async fn report(
    server: &Server,
    args: &args::RunReport,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let refuse = |error: ClientError| terminal.refuse(&error);
    let open = |run: RunId| {
        terminal.error(
            ErrorCode::RunActive,
            format_args!("`{run}` has not ended, so there is no report yet: report it when it has"),
        );
        Exit::Refused
    };
    let steps = match server.run(args.run).await {
        Ok(run) => {
            let outcome = run.outcome.clone().ok_or_else(|| open(run.id))?;
            reports.expect(1);
            server.report((run.id, &run.test), outcome, &mut reports, terminal).await?;
            Vec::new()
        }
        Err(missing @ ClientError::Refused { status: 404, .. }) => {
            let path = format!("/api/v1/suite-runs/{}", args.run);
            let read = server.send(server.request_in_project(Method::GET, &path)).await;
            let suite_run: RemoteSuiteRun = read.map_err(|error| refuse(first(missing, error)))?;
            // Steps that have not begun yet have no run, as those that never will.
            if suite_run.state != ENDED {
                return Err(open(suite_run.id));
            }
            suite_run.steps
        }
        Err(error) => return Err(refuse(error)),
    };
    for RemoteStep { test, run, reason } in steps {
        match run {
            Some(id) => {
                let run = server.run(id).await.map_err(refuse)?;
                let outcome = run.outcome.clone().ok_or_else(|| open(run.id))?;
                server.report((id, &test), outcome, &mut reports, terminal).await?;
            }
            None => {
                let why = reason.unwrap_or_else(|| "it did not start".to_owned());
                reports.add(Outcome::open(test.to_string(), why), None);
            }
        }
    }
    reports.finish()?;
    Ok(Exit::Passed)
}

/// Returns the error of an id that is neither of a run nor of a suite run: that there is no such run.
fn first(missing: ClientError, error: ClientError) -> ClientError {
    match error {
        ClientError::Refused { status: 404, .. } => missing,
        other => other,
    }
}

async fn trace(server: &Server, args: &args::RunTrace, terminal: &Terminal) -> Result<Exit, Exit> {
    if args.output.is_none() && terminal.is_shown() {
        terminal.error(
            ErrorCode::BinaryOutput,
            "a trace is no text: give it a file, `-o trace.pb`, or pipe it",
        );
        return Err(Exit::Refused);
    }
    let path = format!("/api/v1/runs/{}/trace", args.run);
    let bytes = server.body(server.request_in_project(Method::GET, &path)).await;
    let bytes = bytes.map_err(|error| terminal.refuse(&error))?;
    let Some(file) = &args.output else {
        terminal.bytes(&bytes);
        return Ok(Exit::Passed);
    };
    files::create(file, &bytes, "remove it, or name another file", terminal)?;
    terminal.line(&format!("{}: {} bytes", file.display(), bytes.len()));
    Ok(Exit::Passed)
}

async fn rejudge(
    server: &Server,
    args: &args::RunRejudge,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut reports = Reports::new(&args.reports, terminal)?;
    let path = format!("/api/v1/runs/{}/judgements", args.run);
    let mut request = server.request_in_project(Method::POST, &path);
    if let Some(version) = args.version {
        request = request.query(&[("version", &version.to_string())]);
    }
    if let Some(file) = &args.document {
        let text = read(file, terminal)?;
        request = request
            .query(&[("file", text.name())])
            .header("content-type", "application/yaml")
            .body(text.content().to_owned());
    }
    let judged = server.send::<Rejudgement>(request).await;
    let Rejudgement { test, outcome } = judged.map_err(|error| terminal.refuse(&error))?;
    let verdict = outcome.verdict;
    reports.expect(1);
    server.report((args.run, &test), outcome, &mut reports, terminal).await?;
    reports.finish()?;
    Ok(verdict.into())
}

async fn stop(server: &Server, args: &args::RunStop, terminal: &Terminal) -> Result<Exit, Exit> {
    let mut exits = Vec::new();
    for run in &args.runs {
        let stop = async |kind: &str| -> Result<Value, ClientError> {
            let path = format!("/api/v1/{kind}/{run}/stop");
            server.send(server.request_in_project(Method::POST, &path)).await
        };
        let stopped = match stop("runs").await {
            Err(missing @ ClientError::Refused { status: 404, .. }) => {
                stop("suite-runs").await.map_err(|error| first(missing, error))
            }
            other => other,
        };
        match stopped {
            Ok(stopped) => terminal.result(&format!("{run}: {}", verdict(&stopped))),
            Err(error) => exits.push(terminal.refuse(&error)),
        }
    }
    Ok(Exit::over(exits))
}

impl Server {
    async fn run(&self, run: RunId) -> Result<EndedRun, ClientError> {
        self.send(self.request_in_project(Method::GET, &format!("/api/v1/runs/{run}"))).await
    }

    /// Returns the events of a run as the API has them.
    async fn events(&self, run: RunId) -> Result<Vec<Value>, ClientError> {
        let mut all: Vec<Value> = Vec::new();
        while all.len() < EVENTS_MAX {
            let after = all.last().map_or(0, |event| event["n"].as_i64().unwrap_or(i64::MAX));
            let request =
                self.request_in_project(Method::GET, &format!("/api/v1/runs/{run}/events"));
            let page: Vec<Value> =
                self.send(request.query(&[("after", &after.to_string())])).await?;
            if page.is_empty() {
                break;
            }
            all.extend(page);
        }
        Ok(all)
    }

    /// Adds an outcome to the reports, with its trace if one of them shows it.
    async fn report(
        &self,
        (run, test): (RunId, &TestId),
        outcome: Outcome,
        reports: &mut Reports<'_>,
        terminal: &Terminal,
    ) -> Result<(), Exit> {
        let trace = match reports.show_traces() {
            true => traces::kept(self, run, test, None).await,
            false => Ok(None),
        };
        let trace = trace.map_err(|why| {
            terminal.error(ErrorCode::TraceInvalid, format_args!("no trace of {test}: {why}"));
            Exit::Refused
        })?;
        reports.add(outcome, trace.as_ref());
        Ok(())
    }
}
