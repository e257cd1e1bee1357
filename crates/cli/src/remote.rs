//! The client of a server: applies documents, starts runs, follows them to their outcomes.
//!
//! Client and server may have different versions: the client ignores fields that a newer server adds to its responses, and
//! falls back to the older API if an older server lacks an endpoint.

mod documents;
mod http;
mod live;
mod run;
mod status;
mod tolerant;
mod traces;
mod trend;

use std::time::Duration;

use hyper::Method;
use model::{DocumentKind, Fault, Faulty, Outcome, RunId, Secret, TestId};
use serde::{Deserialize, de::DeserializeOwned};
use server::config::Environment;
use source::Text;
use thiserror::Error;
use tokio::time::{Instant, timeout};

use crate::{
    args,
    documents::{files, read},
    exit::Exit,
    profiles::{self, ServerProfile},
    terminal::Terminal,
};

use http::{Http, Request};
use live::{RUN_MAX, SILENCE_MAX};

pub(crate) use documents::{delete, export, get, list};
pub(crate) use run::run;
pub(crate) use status::status;
pub(crate) use traces::trace;
pub(crate) use trend::trend;

/// The project of runs.
const PROJECT: &str = "default";

/// The timeout of one request.
const REQUEST_MAX: Duration = Duration::from_secs(30);
/// The upper bound for a response, in bytes.
const ANSWER_BYTES_MAX: usize = 64 << 20;

#[derive(Debug, Deserialize)]
struct ApplyResponse {
    /// Older servers store tests only, and name the field `tests`.
    #[serde(alias = "tests")]
    documents: Vec<AppliedDocument>,
    notices: String,
}

#[derive(Debug, Deserialize)]
struct AppliedDocument {
    #[serde(default)]
    kind: Option<DocumentKind>,
    id: TestId,
    name: String,
    version: i32,
    changed: bool,
}

#[derive(Debug, Deserialize)]
struct RemoteRun {
    id: RunId,
    outcome: Option<Outcome>,
}

/// The identity of the caller, as the server knows it.
#[derive(Debug, Deserialize)]
pub(crate) struct Me {
    pub(crate) name: String,
    pub(crate) role: String,
}

#[derive(Debug, Deserialize)]
struct Problem {
    detail: String,
}

/// The reason why a request to a server failed.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("no HTTP client can be made: {reason}")]
    Client { reason: String },
    #[error("the authorities in `{path}` cannot be trusted: {reason}")]
    Ca { path: String, reason: String },
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
            Self::Foreign { .. } | Self::Ca { .. } => Fault::Invalid,
        }
    }
}

/// Stores the documents of files on a server.
pub(crate) async fn apply(
    args: &args::Apply,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.at, environment, terminal)?;
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

/// Returns a client of the server that the arguments name.
fn connect(at: &args::At, environment: &Environment, terminal: &Terminal) -> Result<Server, Exit> {
    connect_as(at.server.as_deref(), &at.identity, environment, terminal)
}

/// Returns a client of this server, or of the default profile's server.
fn connect_as(
    server: Option<&str>,
    identity: &args::Identity,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Server, Exit> {
    let known = profiles::known(server, identity, environment);
    let known = known.map_err(|error| terminal.refuse(&error))?;
    Server::new(&known).map_err(|error| terminal.refuse(&error))
}

/// Fetches the identity of the caller.
pub(crate) async fn me(known: &ServerProfile) -> Result<Me, ClientError> {
    let server = Server::new(known)?;
    server.send(server.request(Method::GET, "/api/v1/me")).await
}

struct Server {
    url: String,
    token: Option<Secret>,
    http: Http,
}

impl Server {
    fn new(known: &ServerProfile) -> Result<Self, ClientError> {
        let http = Http::new(&known.url, known.ca.as_deref())?;
        let url = known.url.trim_end_matches('/').to_owned();
        Ok(Self { url, token: known.token.clone(), http })
    }

    async fn apply(&self, text: &Text, project: &str) -> Result<ApplyResponse, ClientError> {
        let put = |path| {
            self.request(Method::PUT, path)
                .query(&[("project", project), ("file", text.name())])
                .header("content-type", "application/yaml")
                .body(text.content().to_owned())
        };
        match self.send(put("/api/v1/documents")).await {
            // An older server has no `/documents`.
            Err(ClientError::Refused { status: 404, .. }) => self.send(put("/api/v1/tests")).await,
            other => other,
        }
    }

    fn request(&self, method: Method, path: &str) -> Request {
        Request::new(method, format!("{}{path}", self.url), self.token.as_ref())
    }

    async fn send<T: DeserializeOwned>(&self, request: Request) -> Result<T, ClientError> {
        let body = self.body(request).await?;
        tolerant::read(&body).map_err(|error| self.foreign(&error))
    }

    async fn text(&self, request: Request) -> Result<String, ClientError> {
        String::from_utf8(self.body(request).await?).map_err(|error| self.foreign(&error))
    }

    fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Unreachable { url: self.url.clone(), reason }
    }

    fn foreign(&self, reason: &dyn std::error::Error) -> ClientError {
        ClientError::Foreign { url: self.url.clone(), reason: reason.to_string() }
    }

    async fn body(&self, request: Request) -> Result<Vec<u8>, ClientError> {
        let late = |_| self.unreachable(format!("no answer within {} s", REQUEST_MAX.as_secs()));
        timeout(REQUEST_MAX, self.answered(request)).await.map_err(late)?
    }

    async fn answered(&self, request: Request) -> Result<Vec<u8>, ClientError> {
        let url = || self.url.clone();
        let unreachable = |reason| self.unreachable(reason);
        let mut answer = self.http.send(request).await.map_err(unreachable)?;
        let status = answer.status;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
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

/// Whether a request may be retried: the server responded not long ago, and its runs continue without this client.
fn may_wait(error: &ClientError, heard: Instant) -> bool {
    error.fault().is_transient() && heard.elapsed() < SILENCE_MAX
}

/// Formats the error detail of a server; rendered diagnostics begin on a new line.
fn refusal(detail: &str) -> String {
    if detail.contains('\n') { format!("\n{}", detail.trim_end()) } else { detail.to_owned() }
}
