//! Traces of runs on a server.

use hyper::Method;
use model::{RunId, Trace};
use server::config::Environment;

use super::connect;
use crate::{args, exit::Exit, recording, terminal::Terminal};

/// The trace that a run was judged by.
pub(crate) async fn trace(
    run: RunId,
    place: &args::At,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Trace, Exit> {
    let server = connect(place, environment, terminal)?;
    let request = server.request(Method::GET, &format!("/api/v1/runs/{run}/trace"));
    let body = server.body(request.query(&[("project", &place.project)])).await;
    let body = body.map_err(|error| terminal.refuse(&error))?;
    recording::of_bytes(&body, None).map_err(|why| {
        terminal.line(&format!("error: cannot read the trace of the run `{run}`: {why}"));
        Exit::Refused
    })
}
