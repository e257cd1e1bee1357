//! `status`: what a server is, whether it is ready, and how its exporters are doing.

use http::{Method, StatusCode};
use model::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ClientError,
};
use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing,
    terminal::Terminal,
};

#[derive(Deserialize)]
pub(super) struct ServerFacts {
    pub(super) version: String,
    pub(super) access: String,
}

/// What `/readyz` answers: with the exporters for those who may know of them.
#[derive(Deserialize)]
struct ReadinessBody {
    #[serde(default)]
    detail: String,
    #[serde(default)]
    telemetry: Vec<ExporterState>,
}

/// Whether a server is ready.
pub(super) struct Readiness {
    /// Why it is not; may be empty.
    pub(super) unready: Option<String>,
    exporters: Vec<ExporterState>,
    /// When it responded, by its clock.
    pub(super) date: Option<Timestamp>,
}

#[derive(Deserialize, Serialize)]
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
    let Readiness { unready, exporters, .. } = readiness(&server).await.map_err(refuse)?;
    let is_ready = unready.is_none();
    let reason = unready.filter(|reason| !reason.is_empty());
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
                for ExporterState { name, state } in &exporters {
                    terminal.result(&format!("exporter {name}: {state}"));
                }
            }
        }
        format => {
            let mut value = json!({"server": server.url, "ready": is_ready, "reason": reason});
            if let Some(ServerFacts { version, access }) = facts {
                value["version"] = version.into();
                value["access"] = access.into();
                value["exporters"] = json!(exporters);
            }
            listing::value(&value, format, terminal);
        }
    }
    Ok(if is_ready { Exit::Passed } else { Exit::Failed })
}

pub(super) async fn readiness(server: &Server) -> Result<Readiness, ClientError> {
    let answer = server.whole(server.request(Method::GET, "/readyz")).await?;
    let body: ReadinessBody =
        serde_json::from_slice(&answer.body).map_err(|error| server.foreign(&error))?;
    let reason = body.detail.strip_prefix("not ready: ").unwrap_or(&body.detail).to_owned();
    let unready = (answer.status != StatusCode::OK).then_some(reason);
    Ok(Readiness { unready, exporters: body.telemetry, date: answer.date })
}

pub(super) async fn facts(server: &Server) -> Result<ServerFacts, ClientError> {
    server.send(server.request(Method::GET, "/api/v1/server")).await
}
