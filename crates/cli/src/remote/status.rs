//! `status`: what a server is, whether it is ready, and how its exporters are doing.

use http::{Method, StatusCode};
use model::Timestamp;
use serde::Deserialize;
use serde_json::json;
use server::config::Environment;

use super::{
    client::{Me, Server, connect},
    error::ClientError,
};
use crate::{
    args::{self, OutputFormat},
    contexts::ServerAccess,
    exit::Exit,
    listing,
    terminal::Terminal,
};

#[derive(Deserialize)]
struct ServerFacts {
    version: String,
    access: String,
}

/// What `/readyz` answers: with the exporters for those who may know of them.
#[derive(Deserialize)]
struct Readiness {
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    telemetry: Vec<ExporterState>,
}

#[derive(Deserialize, serde::Serialize)]
struct ExporterState {
    name: String,
    state: String,
}

/// Prints the state of a server. Its exit code is whether the server is ready.
pub(crate) async fn status(
    args: &args::Status,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let server = connect(&args.connection, environment, terminal)?;
    let refuse = |error| terminal.refuse(&error);
    let answer = server.whole(server.request(Method::GET, "/readyz")).await.map_err(refuse)?;
    let is_ready = answer.status == StatusCode::OK;
    let readiness = serde_json::from_slice(&answer.body);
    let readiness: Readiness = readiness.map_err(|error| refuse(server.foreign(&error)))?;
    let reason = readiness.detail.as_deref().filter(|_| !is_ready);
    let reason = reason.map(|it| it.strip_prefix("not ready: ").unwrap_or(it));
    // A server that is not ready answers nothing else.
    let facts = match args.ready || !is_ready {
        true => None,
        false => Some(facts(&server).await.map_err(refuse)?),
    };
    match args.output.format {
        OutputFormat::Name => terminal.result(if is_ready { "ready" } else { "not-ready" }),
        OutputFormat::Table => {
            if let Some(ServerFacts { version, access }) = &facts {
                terminal.result(&format!("{}: version {version}, access {access}", server.url));
            }
            match reason {
                None if is_ready => terminal.result("ready"),
                None => terminal.result("not ready"),
                Some(reason) => terminal.result(&format!("not ready: {reason}")),
            }
            if facts.is_some() {
                for ExporterState { name, state } in &readiness.telemetry {
                    terminal.result(&format!("exporter {name}: {state}"));
                }
            }
        }
        format => {
            let mut value = json!({"server": server.url, "ready": is_ready, "reason": reason});
            if let Some(ServerFacts { version, access }) = facts {
                value["version"] = version.into();
                value["access"] = access.into();
                value["exporters"] = json!(readiness.telemetry);
            }
            listing::value(&value, format, terminal);
        }
    }
    Ok(if is_ready { Exit::Passed } else { Exit::Failed })
}

async fn facts(server: &Server) -> Result<ServerFacts, ClientError> {
    server.send(server.request(Method::GET, "/api/v1/server")).await
}

/// What `doctor` sees of a server.
pub(crate) struct ServerLook {
    /// Why it is not ready.
    pub(crate) unready: Option<String>,
    pub(crate) version: Option<String>,
    /// `on` or `off`.
    pub(crate) access: Option<String>,
    /// The caller; none where access is off, or the server is not ready.
    pub(crate) me: Option<Result<Me, ClientError>>,
    /// The exporters by their names and states.
    pub(crate) exporters: Vec<(String, String)>,
    /// When it responded, by its clock.
    pub(crate) date: Option<Timestamp>,
}

/// Looks at a server; an error if it does not respond.
pub(crate) async fn look(access: &ServerAccess) -> Result<ServerLook, ClientError> {
    let server = Server::new(access)?;
    let answer = server.whole(server.request(Method::GET, "/readyz")).await?;
    let readiness: Readiness =
        serde_json::from_slice(&answer.body).map_err(|error| server.foreign(&error))?;
    let exporters = readiness.telemetry.into_iter().map(|it| (it.name, it.state)).collect();
    let unready = (answer.status != StatusCode::OK).then(|| readiness.detail.unwrap_or_default());
    let mut look =
        ServerLook { unready, version: None, access: None, me: None, exporters, date: answer.date };
    if look.unready.is_none() {
        let facts = facts(&server).await?;
        if facts.access != "off" {
            look.me = Some(server.send(server.request(Method::GET, "/api/v1/me")).await);
        }
        (look.version, look.access) = (Some(facts.version), Some(facts.access));
    }
    Ok(look)
}
