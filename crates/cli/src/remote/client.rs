//! The connection to a server: requests, and their responses.

use std::time::Duration;

use http::{Method, StatusCode, header::DATE};
use model::{DocumentKind, ErrorCode, Outcome, RunId, Secret, TestId, Timestamp};
use serde::{Deserialize, de::DeserializeOwned};
use server::config::Environment;
use source::Text;
use tokio::time::timeout;
use url::{Host, Url};

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
    #[serde(default)]
    code: String,
}

/// A response with its body.
pub(super) struct WholeResponse {
    pub(super) status: StatusCode,
    /// When the server responded, by its clock.
    pub(super) date: Option<Timestamp>,
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
        if access.token.is_some() && !access.is_plain && is_readable(&access.url) {
            return Err(ClientError::PlainToken { url: access.url.clone() });
        }
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
        let date = answer.headers.get(DATE).and_then(|value| value.to_str().ok());
        let date = date.and_then(Timestamp::of_http_date);
        let mut body = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > ANSWER_BYTES_MAX {
                return Err(ClientError::TooLarge { url: self.url.clone() });
            }
        }
        Ok(WholeResponse { status, date, body })
    }

    pub(super) async fn answered(&self, request: Request) -> Result<Vec<u8>, ClientError> {
        let answer = self.received(request).await?;
        if answer.status.is_success() {
            return Ok(answer.body);
        }
        let (code, detail) = answer.problem();
        let (url, status) = (self.url.clone(), answer.status.as_u16());
        Err(ClientError::Refused { url, status, code, detail })
    }
}

/// Whether others can read what is sent there: it goes to another machine without TLS.
pub(crate) fn is_readable(url: &str) -> bool {
    let Ok(url) = Url::parse(url) else { return true };
    let is_here = match url.host() {
        Some(Host::Domain(name)) => name == "localhost",
        Some(Host::Ipv4(address)) => address.is_loopback(),
        Some(Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    url.scheme() == "http" && !is_here
}

impl WholeResponse {
    /// Returns the name and the words of the error that it is; by its status where this version does not know them.
    pub(super) fn problem(&self) -> (ErrorCode, String) {
        let problem = serde_json::from_slice::<Problem>(&self.body).ok();
        let code = problem.as_ref().and_then(|it| ErrorCode::parse(&it.code));
        let code = code.unwrap_or_else(|| ErrorCode::of_status(self.status.as_u16()));
        (code, problem.map_or_else(|| format!("HTTP {}", self.status), |it| it.detail))
    }
}

#[cfg(test)]
mod tests {
    use super::is_readable;

    #[test]
    fn a_token_is_readable_on_its_way_to_another_machine_without_tls() {
        let readable = [
            "http://quality.test",
            "HTTP://10.0.0.1:80/a",
            "http://localhost.evil",
            "http://[::2]",
        ];
        let unreadable =
            ["https://quality.test", "http://127.0.0.9:1", "http://localhost/a", "http://[::1]:1"];
        assert!(readable.into_iter().all(is_readable));
        assert!(!unreadable.into_iter().any(is_readable));
    }
}
