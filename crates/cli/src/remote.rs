//! The client of a server: applies documents, starts runs, waits for their outcomes.
//!
//! Client and server may be of different versions: what a newer server adds to its answers is passed over, and what an
//! older one does not have is asked for in the older way.

mod documents;
mod tolerant;

use std::{collections::HashSet, time::Duration};

use model::{DocumentKind, Fault, Faulty, Outcome, RunId, Secret, TestId};
use reqwest::{Client, Method, RequestBuilder, redirect::Policy};
use serde::{Deserialize, de::DeserializeOwned};
use server::config::Environment;
use source::Text;
use thiserror::Error;
use tokio::time::{Instant, sleep};

use crate::{
    args,
    chosen::Item,
    documents::{files, read},
    exit::Exit,
    profiles::{self, Known},
    reports::Reports,
    run,
    terminal::Terminal,
};

pub(crate) use documents::{delete, export, get, list};

/// The project of runs.
const PROJECT: &str = "default";

/// How long one request may take.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// How long a run is waited for.
const RUN_MAX: Duration = Duration::from_secs(15 * 60);
/// How long a server may fail to tell of a run before it is given up.
const SILENCE_MAX: Duration = Duration::from_secs(10);
/// Bytes of an answer at the most.
const ANSWER_BYTES_MAX: usize = 64 << 20;
/// How often a run is looked at.
const POLL: Duration = Duration::from_millis(100);

#[derive(Debug, Deserialize)]
struct Applied {
    /// Older servers keep tests alone, and call them so.
    #[serde(alias = "tests")]
    documents: Vec<Kept>,
    notices: String,
}

#[derive(Debug, Deserialize)]
struct Kept {
    #[serde(default)]
    kind: Option<DocumentKind>,
    id: TestId,
    name: String,
    version: i32,
    changed: bool,
}

#[derive(Debug, Deserialize)]
struct Run {
    id: RunId,
    outcome: Option<Outcome>,
}

/// Whom a server knows its caller as.
#[derive(Debug, Deserialize)]
pub(crate) struct Me {
    pub(crate) name: String,
    pub(crate) role: String,
}

#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

/// Why a server did not do what was asked.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("no HTTP client can be made: {reason}")]
    Client { reason: String },
    #[error("the server at `{url}` cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("the server at `{url}` refused: {}", refusal(.detail))]
    Refused { url: String, status: u16, detail: String },
    #[error("the server at `{url}` answered what this version does not understand: {reason}")]
    Foreign { url: String, reason: String },
    #[error("the server at `{url}` answered more than {ANSWER_BYTES_MAX} bytes")]
    TooLarge { url: String },
    #[error("the run `{run}` did not end within {} minutes; it goes on at the server", RUN_MAX.as_secs() / 60)]
    TooLong { run: RunId },
}

impl Faulty for ClientError {
    fn fault(&self) -> Fault {
        match self {
            Self::Client { .. } => Fault::Internal,
            Self::Unreachable { .. } | Self::TooLong { .. } => Fault::Upstream,
            Self::Refused { status: 408 | 429, .. } => Fault::Overloaded,
            Self::Refused { status: 400..=499, .. } => Fault::Invalid,
            Self::TooLarge { .. } => Fault::Invalid,
            Self::Refused { .. } => Fault::Upstream,
            Self::Foreign { .. } => Fault::Invalid,
        }
    }
}

/// Keeps the documents of files on a server.
pub(crate) async fn apply(
    args: &args::Apply,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let known = at(&args.at, environment, terminal)?;
    let server = Server::new(&known).map_err(|error| terminal.refuse(&error))?;
    for file in files(&args.paths, terminal)? {
        let text = read(&file, terminal)?;
        let applied = server.apply(&text, &args.at.project).await;
        let applied = applied.map_err(|error| terminal.refuse(&error))?;
        terminal.line(&applied.notices);
        for one in applied.documents {
            let kind = one.kind.unwrap_or(DocumentKind::Test);
            let change = if one.changed { "new" } else { "unchanged" };
            terminal.result(&format!(
                "{kind} {} `{}`: version {} ({change})",
                one.id, one.name, one.version
            ));
        }
    }
    Ok(Exit::Passed)
}

/// Runs tests on a server, one after the other.
pub(crate) async fn run(
    args: &args::Run,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let known = profiles::known(args.server.as_deref(), &args.identity, environment);
    let known = known.map_err(|error| terminal.refuse(&error))?;
    let url = &known.url;
    let mut reports = Reports::new(&args.output.reports, terminal)?;
    let items = run::items(args, terminal)?;
    let server = Server::new(&known).map_err(|error| terminal.refuse(&error))?;
    reports.expect(items.len());
    let mut exits = Vec::new();
    let mut kept = HashSet::new();
    for item in items {
        let Item::Test(test) = item else {
            terminal.line("error: a server runs no suites yet; leave out `--server`, or name tests by `--test`");
            return Err(Exit::Refused);
        };
        if kept.insert(test.file.clone()) {
            let text = read(&test.file, terminal)?;
            let applied =
                server.apply(&text, PROJECT).await.map_err(|error| terminal.refuse(&error))?;
            terminal.line(&applied.notices);
        }
        if !args.output.quiet {
            terminal.line(&format!("{}: running on {url}", test.plan.name));
        }
        let exit = match server.run(&test.plan.id).await {
            Ok(outcome) => {
                let exit = outcome.verdict.into();
                reports.add(outcome, None);
                exit
            }
            Err(error) => terminal.refuse(&error),
        };
        exits.push(exit);
        if args.pace.fail_fast && exit != Exit::Passed {
            break;
        }
    }
    reports.finish()?;
    Ok(Exit::over(exits))
}

/// Which server is meant, and what is shown to it.
fn at(at: &args::At, environment: &Environment, terminal: &Terminal) -> Result<Known, Exit> {
    let known = profiles::known(at.server.as_deref(), &at.identity, environment);
    known.map_err(|error| terminal.refuse(&error))
}

/// Whom a server knows its caller as.
pub(crate) async fn me(known: &Known) -> Result<Me, ClientError> {
    let server = Server::new(known)?;
    server.send(server.request(Method::GET, "/api/v1/me")).await
}

struct Server<'a> {
    url: &'a str,
    token: Option<&'a Secret>,
    client: Client,
}

impl<'a> Server<'a> {
    fn new(known: &'a Known) -> Result<Self, ClientError> {
        // A proxy would come from the environment, which enters through main alone.
        let client = Client::builder().no_proxy().redirect(Policy::none()).build();
        let client = client.map_err(|error| ClientError::Client { reason: chain(&error) })?;
        Ok(Self { url: known.url.trim_end_matches('/'), token: known.token.as_ref(), client })
    }

    async fn apply(&self, text: &Text, project: &str) -> Result<Applied, ClientError> {
        let put = |path| {
            self.request(Method::PUT, path)
                .query(&[("project", project), ("file", text.name())])
                .header("content-type", "application/yaml")
                .body(text.content().to_owned())
        };
        match self.send(put("/api/v1/documents")).await {
            // An older server.
            Err(ClientError::Refused { status: 404, .. }) => self.send(put("/api/v1/tests")).await,
            other => other,
        }
    }

    async fn run(&self, test: &TestId) -> Result<Outcome, ClientError> {
        let started = self.request(Method::POST, &format!("/api/v1/tests/{test}/runs"));
        let id = self.send::<Run>(started).await?.id;
        let began = Instant::now();
        let mut heard = began;
        while began.elapsed() < RUN_MAX {
            let read = self.request(Method::GET, &format!("/api/v1/runs/{id}"));
            match self.send::<Run>(read).await {
                Ok(Run { outcome: Some(outcome), .. }) => return Ok(outcome),
                Ok(Run { outcome: None, .. }) => heard = Instant::now(),
                // The run goes on at the server, and so may the server.
                Err(error) if error.fault().is_transient() && heard.elapsed() < SILENCE_MAX => {}
                Err(error) => return Err(error),
            }
            sleep(POLL).await;
        }
        Err(ClientError::TooLong { run: id })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        let request = self.client.request(method, format!("{}{path}", self.url));
        let request = request.timeout(REQUEST_MAX);
        match self.token {
            Some(token) => request.bearer_auth(token.expose()),
            None => request,
        }
    }

    async fn send<T: DeserializeOwned>(&self, request: RequestBuilder) -> Result<T, ClientError> {
        let body = self.body(request).await?;
        tolerant::read(&body).map_err(|error| self.foreign(&error))
    }

    async fn text(&self, request: RequestBuilder) -> Result<String, ClientError> {
        String::from_utf8(self.body(request).await?).map_err(|error| self.foreign(&error))
    }

    fn foreign(&self, reason: &dyn std::error::Error) -> ClientError {
        ClientError::Foreign { url: self.url.to_owned(), reason: reason.to_string() }
    }

    async fn body(&self, request: RequestBuilder) -> Result<Vec<u8>, ClientError> {
        let url = || self.url.to_owned();
        let unreachable =
            |error: reqwest::Error| ClientError::Unreachable { url: url(), reason: chain(&error) };
        let mut response = request.send().await.map_err(unreachable)?;
        let status = response.status();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(ClientError::TooLarge { url: url() });
            }
        }
        if status.is_success() {
            return Ok(body);
        }
        let detail = serde_json::from_slice::<Problem>(&body)
            .map_or_else(|_| format!("HTTP {status}"), |problem| problem.detail);
        let status = status.as_u16();
        Err(ClientError::Refused { url: url(), status, detail })
    }
}

/// What a server says; pictures of mistakes begin on a line of their own.
fn refusal(detail: &str) -> String {
    if detail.contains('\n') { format!("\n{}", detail.trim_end()) } else { detail.to_owned() }
}

/// An error with what lies under it, since the outermost alone says little.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text = format!("{text}: {cause}");
        source = cause.source();
    }
    text
}
