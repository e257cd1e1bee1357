//! `status`: what a server is, whether it is ready, and how its exporters are doing.

use http::{Method, StatusCode};
use serde::Deserialize;
use serde_json::json;
use server::config::Environment;

use super::client::{Server, connect};
use crate::{
    args::{self, OutputFormat},
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

async fn facts(server: &Server) -> Result<ServerFacts, super::error::ClientError> {
    server.send(server.request(Method::GET, "/api/v1/server")).await
}
