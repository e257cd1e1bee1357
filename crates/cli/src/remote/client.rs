//! The connection to a server: requests, and their responses.

use std::time::Duration;

use http::{Method, StatusCode};
use model::{DocumentKind, Outcome, RunId, Secret, TestId};
use serde::{Deserialize, de::DeserializeOwned};
use server::config::Environment;
use source::Text;
use tokio::time::timeout;

use crate::{
    args::Connection,
    contexts::{self, ServerAccess},
    exit::Exit,
    terminal::Terminal,
};

use super::{
    error::{ANSWER_BYTES_MAX, ClientError},
    http::{Http, Request},
    tolerant,
};

/// The timeout of one request.
const REQUEST_MAX: Duration = Duration::from_secs(30);

#[derive(Debug, Deserialize)]
pub(super) struct ApplyResponse {
    /// Older servers store tests only, and name the field `tests`.
    #[serde(alias = "tests")]
    pub(super) documents: Vec<AppliedDocument>,
    pub(super) notices: String,
}

#[derive(Debug, Deserialize)]
pub(super) struct AppliedDocument {
    #[serde(default)]
    kind: Option<DocumentKind>,
    pub(super) id: TestId,
    pub(super) name: String,
    pub(super) version: i32,
    pub(super) changed: bool,
}

impl AppliedDocument {
    /// Older servers have tests only.
    pub(super) fn kind(&self) -> DocumentKind {
        self.kind.unwrap_or(DocumentKind::Test)
    }
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteRun {
    pub(super) id: RunId,
    pub(super) outcome: Option<Outcome>,
}

/// The state of a run or of a suite run that has ended.
pub(super) const ENDED: &str = "ended";

/// The fields of a suite run that the client needs.
#[derive(Debug, Deserialize)]
pub(super) struct RemoteSuiteRun {
    pub(super) id: RunId,
    pub(super) state: String,
    pub(super) steps: Vec<RemoteStep>,
}

#[derive(Debug, Deserialize)]
pub(super) struct RemoteStep {
    pub(super) test: TestId,
    pub(super) run: Option<RunId>,
    #[serde(default)]
    pub(super) reason: Option<String>,
}

/// The identity of the caller, as the server knows it.
#[derive(Debug, Deserialize)]
pub(crate) struct Me {
    pub(crate) name: String,
    pub(crate) role: String,
    /// None for all of them.
    #[serde(default)]
    pub(crate) projects: Option<Vec<String>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct Problem {
    detail: String,
}

/// A response with its body.
pub(super) struct WholeResponse {
    pub(super) status: StatusCode,
    pub(super) body: Vec<u8>,
}

/// Returns a client of the server that the arguments name.
pub(super) fn connect(
    given: &Connection,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Server, Exit> {
    let access = contexts::resolve(given, environment);
    let access = access.map_err(|error| terminal.refuse(&error))?;
    Server::new(&access).map_err(|error| terminal.refuse(&error))
}

/// Fetches the identity of the caller.
pub(crate) async fn me(access: &ServerAccess) -> Result<Me, ClientError> {
    let server = Server::new(access)?;
    server.send(server.request(Method::GET, "/api/v1/me")).await
}

pub(super) struct Server {
    pub(super) url: String,
    pub(super) token: Option<Secret>,
    pub(super) project: String,
    pub(super) http: Http,
}

impl Server {
    pub(super) fn new(access: &ServerAccess) -> Result<Self, ClientError> {
        let http = Http::new(&access.url, access.ca.as_deref())?;
        let url = access.url.trim_end_matches('/').to_owned();
        let (token, project) = (access.token.clone(), access.project.clone());
        Ok(Self { url, token, project, http })
    }

    pub(super) async fn apply(
        &self,
        text: &Text,
        is_dry: bool,
    ) -> Result<ApplyResponse, ClientError> {
        let put = |path| {
            self.request_in_project(Method::PUT, path)
                .query(&[("file", text.name())])
                .header("content-type", "application/yaml")
                .body(text.content().to_owned())
        };
        if is_dry {
            return self.send(put("/api/v1/documents").query(&[("dryRun", "true")])).await;
        }
        match self.send(put("/api/v1/documents")).await {
            // An older server has no `/documents`.
            Err(ClientError::Refused { status: 404, .. }) => self.send(put("/api/v1/tests")).await,
            other => other,
        }
    }

    pub(super) fn request(&self, method: Method, path: &str) -> Request {
        Request::new(method, format!("{}{path}", self.url), self.token.as_ref())
    }

    /// Returns a request about the project.
    pub(super) fn request_in_project(&self, method: Method, path: &str) -> Request {
        self.request(method, path).query(&[("project", &self.project)])
    }

    pub(super) async fn send<T: DeserializeOwned>(
        &self,
        request: Request,
    ) -> Result<T, ClientError> {
        let body = self.body(request).await?;
        tolerant::read(&body).map_err(|error| self.foreign(&error))
    }

    pub(super) async fn text(&self, request: Request) -> Result<String, ClientError> {
        String::from_utf8(self.body(request).await?).map_err(|error| self.foreign(&error))
    }

    pub(super) fn unreachable(&self, reason: String) -> ClientError {
        ClientError::Unreachable { url: self.url.clone(), reason }
    }

    pub(super) fn foreign(&self, reason: &dyn std::error::Error) -> ClientError {
        ClientError::Foreign { url: self.url.clone(), reason: reason.to_string() }
    }

    pub(super) async fn body(&self, request: Request) -> Result<Vec<u8>, ClientError> {
        let late = |_| self.unreachable(format!("no answer within {} s", REQUEST_MAX.as_secs()));
        timeout(REQUEST_MAX, self.answered(request)).await.map_err(late)?
    }

    /// Returns the response to a request, whatever its status.
    pub(super) async fn whole(&self, request: Request) -> Result<WholeResponse, ClientError> {
        let late = |_| self.unreachable(format!("no answer within {} s", REQUEST_MAX.as_secs()));
        timeout(REQUEST_MAX, self.received(request)).await.map_err(late)?
    }

    async fn received(&self, request: Request) -> Result<WholeResponse, ClientError> {
        let unreachable = |reason| self.unreachable(reason);
        let mut answer = self.http.send(request).await.map_err(unreachable)?;
        let status = answer.status;
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(ClientError::TooLarge { url: self.url.clone() });
            }
        }
        Ok(WholeResponse { status, body })
    }

    pub(super) async fn answered(&self, request: Request) -> Result<Vec<u8>, ClientError> {
        let WholeResponse { status, body } = self.received(request).await?;
        if status.is_success() {
            return Ok(body);
        }
        let detail = serde_json::from_slice::<Problem>(&body)
            .map_or_else(|_| format!("HTTP {status}"), |problem| problem.detail);
        let status = status.as_u16();
        Err(ClientError::Refused { url: self.url.clone(), status, detail })
    }
}
