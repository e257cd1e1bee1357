//! Traces of runs on a server.

use std::path::Path;

use http::Method;
use model::{ErrorCode, RunId, TestId, Trace};
use server::config::Environment;

use super::{
    client::{Server, connect},
    error::ClientError,
};
use crate::{args::Connection, exit::Exit, recording, run, terminal::Terminal};

/// Fetches the trace by which a run was judged.
pub(crate) async fn trace(
    run: RunId,
    connection: &Connection,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Trace, Exit> {
    let server = connect(connection, environment, terminal)?;
    let request = server.request_in_project(Method::GET, &format!("/api/v1/runs/{run}/trace"));
    let body = server.body(request).await;
    let body = body.map_err(|error| terminal.refuse(&error))?;
    recording::of_bytes(&body, None).map_err(|why| {
        terminal.error(
            ErrorCode::TraceInvalid,
            format_args!("cannot read the trace of the run `{run}`: {why}"),
        );
        Exit::Refused
    })
}

/// Fetches the trace by which a run was judged, and writes it to a file if a folder is given; none if no trigger was fired.
pub(super) async fn kept(
    server: &Server,
    run: RunId,
    test: &TestId,
    folder: Option<&Path>,
) -> Result<Option<Trace>, String> {
    let request = server.request_in_project(Method::GET, &format!("/api/v1/runs/{run}/trace"));
    let body = match server.body(request).await {
        Ok(body) => body,
        Err(ClientError::Refused { status: 404, .. }) => return Ok(None),
        Err(error) => return Err(error.to_string()),
    };
    let trace = recording::of_bytes(&body, None)?;
    if let Some(folder) = folder {
        run::keep_trace(folder, test, &trace)?;
    }
    Ok(Some(trace))
}
