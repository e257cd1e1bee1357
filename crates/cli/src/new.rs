//! `new`: creates a test from a curl command, by running it once and proposing specs and claims from the trace.

mod curl;
mod document;
mod propose;

use std::{
    fs::File,
    io::Read,
    net::{Ipv4Addr, SocketAddr},
    path::{Component, Path},
    time::Duration,
};

use lang::{Evidence, Plan, Seed, Vars};
use model::{Answer, ErrorCode, Judgement, Settlement, SpanId, Trace, Verdict, World};
use runner::FinishedRun;
use source::Text;
use url::{Url, form_urlencoded};

use crate::{
    args::{self, NewArgs},
    exit::Exit,
    init::{self, InitError},
    learn,
    reports::Reports,
    run::{self, Line, Open, ProgressLevel, state},
    terminal::Terminal,
};
use curl::Curl;
use document::Draft;
use propose::Proposals;

/// The upper bound for a file of `-d @FILE`, in bytes.
const FILE_BYTES_MAX: u64 = 1024 * 1024;
/// A quiet period of this length means that the system had no learned profile.
const UNKNOWN_NS: u64 = 6_000_000_000;
/// Headers that often contain a secret.
const SECRETS: &[&str] =
    &["authorization", "cookie", "x-api-key", "api-key", "proxy-authorization"];

/// Sends the command's request once, and writes a test from the observed run.
pub(crate) async fn new(
    args: &NewArgs,
    environment: Vec<(String, String)>,
    world: World,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let curl = curl::parse(&args.command, &text_file).map_err(|error| terminal.refuse(&error))?;
    let name = Name::of(&curl);
    let path = args.output.clone();
    let path = path.unwrap_or_else(|| Path::new(run::FOLDER).join(format!("{}.yaml", name.id)));
    if path.exists() {
        let exit = terminal.refuse(&InitError::There(path.display().to_string()));
        terminal.line("note: `--output FILE` writes to another file");
        return Err(exit);
    }
    let curl = beside(curl, path.parent().unwrap_or(Path::new("")));
    let plan = plan(&fired(&name, &curl), &path);
    let plan = plan.map_err(|mistakes| terminal.report(&mistakes)).map_err(|()| Exit::Refused)?;
    let finished = fire(args, &plan, environment, (world, terminal)).await?;
    let whole = finished.outcome.settlement.as_ref().is_some_and(Settlement::is_whole);
    let (Some(trace), Some(trigger), true) = (&finished.trace, &finished.trigger, whole) else {
        return not_shown(finished, terminal);
    };
    let settlement = &finished.outcome.settlement.clone().unwrap_or_default();
    let shown = ObservedRun { answer: &finished.answer, trace, trigger: trigger.id, settlement };
    let seed = Seed { now: world.now(), random: world.random() };
    let (proposals, text) = proposed(&name, &curl, shown, &seed).map_err(|mistakes| {
        terminal.report(&mistakes);
        Exit::Inconclusive
    })?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = path.file_name().unwrap_or_default();
    let path = init::write(folder, file, &text).map_err(|error| terminal.refuse(&error))?;
    terminal.report(&done(&path, &proposals, shown, &curl));
    Ok(Exit::Passed)
}

/// Returns the message about a test that was written.
fn done(path: &str, proposals: &Proposals, shown: ObservedRun<'_>, curl: &Curl) -> String {
    let Proposals { specs, claims } = proposals;
    let status = shown.answer.response().map_or(0, |response| response.status);
    let mut text = format!(
        "answered {status}, with {} spans\nwrote {path}: {} specs and {} claims, all of which hold\n",
        shown.settlement.spans,
        specs.len(),
        claims.len()
    );
    let is_secret = |(name, _): &(String, String)| {
        SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
    };
    if curl.basic.is_some() || curl.bearer.is_some() || curl.headers.iter().any(is_secret) {
        text.push_str(
            "it holds what may be a secret: write `${env:NAME}` in its place before you share it\n",
        );
    }
    text.push_str(&format!("\n  qualitytrace run {path}\n"));
    if shown.settlement.quiet_ns >= UNKNOWN_NS {
        text.push_str(
            "\nUntil three runs have shown how soon the system sends its spans, each waits 6 s for more of them; \
             `settle: {flush: 1s}` in the test says it at once.\n",
        );
    }
    text
}

/// Reports the result of a request without a complete trace, and that no test was written.
fn not_shown(mut finished: FinishedRun, terminal: &Terminal) -> Result<Exit, Exit> {
    // This output was only requested to make the run wait for the complete trace.
    finished.outcome.judgement.outputs.clear();
    let mut reports = Reports::new(&args::ReportArgs { targets: Vec::new() }, terminal)?;
    reports.expect(1);
    reports.add(finished.outcome, finished.trace.as_deref());
    reports.finish()?;
    terminal.error(
        ErrorCode::TraceIncomplete,
        "no test was written: only a complete trace shows what a test can state",
    );
    Err(Exit::Inconclusive)
}

/// Runs a plan locally, and stores the learned profile.
async fn fire(
    args: &NewArgs,
    plan: &Plan,
    environment: Vec<(String, String)>,
    (world, terminal): (World, &Terminal),
) -> Result<FinishedRun, Exit> {
    let loopback = |port| SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let otlp = &args.otlp;
    let otlp = if otlp.is_empty() { vec![loopback(4317), loopback(4318)] } else { otlp.clone() };
    let learned = learn::known(terminal);
    let open = Open::listen(otlp, learned, environment, world).await;
    let session = open.map_err(|error| terminal.refuse(&error))?.session();
    let line = Line::begin(&plan.name, terminal, ProgressLevel::Tests);
    let finished = session.run(plan, &Vars::default(), &line, None).await;
    let (finished, _) = finished.map_err(|error| terminal.refuse(&error))?;
    drop(line);
    let _lock = state::lock().await;
    let mut learned = state::learned(terminal);
    learned.observe(&finished.seen);
    state::keep_learned(learned, terminal);
    Ok(finished)
}

/// Reads a file that the command names.
fn text_file(path: &str) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut text = String::new();
    // Reads one byte more than allowed to detect a file that is too large, whatever size its metadata states.
    let mut bounded = file.take(FILE_BYTES_MAX + 1);
    bounded.read_to_string(&mut text).map_err(|error| error.to_string())?;
    match text.len() as u64 <= FILE_BYTES_MAX {
        true => Ok(text),
        false => Err(format!("it has more than {FILE_BYTES_MAX} bytes")),
    }
}

/// Returns the request with its file paths relative to the folder of the document. The paths of curl are relative to the
/// working folder.
fn beside(mut curl: Curl, folder: &Path) -> Curl {
    let is_below = folder.components().all(|part| matches!(part, Component::Normal(_)));
    let up = "../".repeat(folder.components().count());
    for file in [&mut curl.ca_file, &mut curl.cert_file, &mut curl.key_file].into_iter().flatten() {
        if Path::new(file).is_absolute() {
            continue;
        }
        *file = match (is_below, Path::new(file).canonicalize()) {
            (false, Ok(whole)) => whole.display().to_string(),
            _ => format!("{up}{file}"),
        };
    }
    curl
}

/// The observed run of the request.
#[derive(Clone, Copy, Debug)]
struct ObservedRun<'a> {
    answer: &'a Answer,
    trace: &'a Trace,
    trigger: SpanId,
    settlement: &'a Settlement,
}

/// The name of a test, and its id, which is valid as a file name.
#[derive(Debug, PartialEq, Eq)]
struct Name {
    name: String,
    id: String,
}

impl Name {
    fn of(curl: &Curl) -> Self {
        let behind = curl.url.split_once("://").map_or(curl.url.as_str(), |(_, rest)| rest);
        let path = behind.find('/').map_or("/", |at| &behind[at..]);
        let path = path.split(['?', '#']).next().unwrap_or(path);
        let name = format!("{} {path}", curl.method);
        let letters = name
            .chars()
            .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' });
        let letters: String = letters.collect();
        let words: Vec<_> = letters.split('-').filter(|word| !word.is_empty()).collect();
        let mut id = words.join("-");
        id.truncate(100);
        Self { name, id }
    }
}

/// Returns the plan of one GET request without a test, which waits for the complete trace. Secrets of the URL are in its request only.
pub(crate) fn one_request(url: &Url, timeout: Duration) -> Result<Plan, String> {
    let decoded = |text: &str| {
        // A plus sign is itself, and no blank.
        let pair = format!("={}", text.replace('+', "%2B").replace('&', "%26"));
        form_urlencoded::parse(pair.as_bytes()).map(|(_, value)| value.into_owned()).collect()
    };
    let has_user = !url.username().is_empty() || url.password().is_some();
    let basic =
        has_user.then(|| (decoded(url.username()), decoded(url.password().unwrap_or_default())));
    let mut bare = url.clone();
    // Every URL with a host can have a user, and so can have none.
    let _none = bare.set_username("").and_then(|()| bare.set_password(None));
    let seconds = format!("{}", timeout.as_secs_f64());
    let (method, url) = ("GET".to_owned(), bare.to_string());
    let curl = Curl { method, url, basic, seconds_max: Some(seconds), ..Curl::default() };
    let document = fired(&Name::of(&curl), &curl);
    let settle = format!("  settle:\n    timeout: {}ms\n", timeout.as_millis());
    plan(&(document + &settle), Path::new("the request"))
}

/// Returns the document for the first run. It has no specs. Its output makes the run wait for the complete trace.
fn fired(name: &Name, curl: &Curl) -> String {
    let proposals = &Proposals::default();
    let draft = Draft { id: &name.id, name: &name.name, curl, redirects: true, proposals };
    let output = "  outputs:\n    - name: ALL\n      selector: span[name=\"Qualitytrace trigger\"]\n      value: name\n";
    draft.text() + output
}

/// Returns the document with all proposals that hold for the observed run.
fn proposed(
    name: &Name,
    curl: &Curl,
    shown: ObservedRun<'_>,
    seed: &Seed,
) -> Result<(Proposals, String), String> {
    // Without a redirect in the run, the document need not set the number of redirects.
    let status = shown.answer.response().map(|response| response.status);
    let redirects = status.is_some_and(|status| (300..400).contains(&status));
    let draft = |proposals: &Proposals| {
        Draft { id: &name.id, name: &name.name, curl, redirects, proposals }.text()
    };
    let proposals = propose::propose(shown.answer, shown.trace);
    let judged = judge(&draft(&proposals), shown, seed)?;
    let proposals = held(proposals, &judged);
    let text = draft(&proposals);
    Ok((proposals, text))
}

/// Returns the proposals that hold.
fn held(mut proposals: Proposals, judged: &Judgement) -> Proposals {
    for (spec, judged) in proposals.specs.iter_mut().zip(&judged.specs) {
        let mut verdicts = judged.assertions.iter().map(|assertion| assertion.verdict);
        spec.assertions.retain(|_| verdicts.next() == Some(Verdict::Passed));
    }
    proposals.specs.retain(|spec| !spec.assertions.is_empty());
    let mut verdicts = judged.claims.iter().map(|claim| claim.verdict);
    proposals.claims.retain(|_| verdicts.next() == Some(Verdict::Passed));
    proposals
}

/// Judges a document against the observed run.
fn judge(document: &str, shown: ObservedRun<'_>, seed: &Seed) -> Result<Judgement, String> {
    let plan = plan(document, Path::new("the new test"))?;
    let resolved = lang::resolve(&plan, &Vars::default(), seed).map_err(|it| it.to_string())?;
    let evidence = Evidence {
        trace: Some(shown.trace),
        trigger: Some(shown.trigger),
        answer: Some(shown.answer),
        settlement: Some(shown.settlement),
    };
    Ok(lang::judge(&resolved, &evidence))
}

/// Returns the plan of a generated document, or its rendered diagnostics.
fn plan(document: &str, path: &Path) -> Result<Plan, String> {
    let (mut plans, mistakes) = lang::plans(&Text::new(path.display().to_string(), document));
    match plans.pop() {
        Some(planned) => Ok(planned.plan),
        None => Err(source::draw(&mistakes, source::Colour::Never)),
    }
}

#[cfg(test)]
mod tests;
