//! Builds the request of a run from a plan: it contains no `${…}` any more.
//!
//! A plan with a trigger of a protocol that no run can fire yet is judged like any other (`resolve`), but not sent.

mod files;
mod fill;
mod url;

use std::path::Path;

use model::{ExecRequest, Request};

use crate::{
    document::TriggerKind,
    plan::{Plan, ResolvedPlan},
    resolve_error::ResolveError,
    secrets::Secrets,
    value::function::{Draw, Purpose, Seed},
    vars::Vars,
};
pub use files::Files;
use fill::Filler;
pub(crate) use url::{split_scheme, wrong_port};

/// The request of a run, and the secrets in it.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// The request to send.
    pub request: Request,
    /// The texts in the request that were computed from secrets.
    pub(crate) secrets: Secrets,
}

/// Builds the request for a run of the plan.
pub fn request(
    plan: &Plan,
    vars: &Vars,
    seed: &Seed,
    files: &Files,
) -> Result<ResolvedRequest, ResolveError> {
    let trigger = &plan.trigger;
    let draw = Draw::new(seed, Purpose::Request);
    let mut filler = Filler { vars, files, draw, secrets: Secrets::default(), noted: 0 };
    let request = match &trigger.kind {
        TriggerKind::Http(http) => Request::Http(filler.http(http, trigger)?),
        TriggerKind::Graphql(graphql) => Request::Http(filler.graphql(graphql, trigger)?),
        TriggerKind::TraceId(id) => Request::TraceId(filler.trace_id(id)?),
        TriggerKind::Exec(exec) => Request::Exec(ExecRequest {
            command: filler.command(&exec.command)?,
            env: filler.env(&exec.env)?,
            workdir: workdir(&trigger.place.file, filler.optional(exec.workdir.as_ref())?),
            timeout: trigger.timeout,
            propagation: trigger.propagation.clone(),
        }),
        TriggerKind::Call(call) if call.protocol.is_fired => {
            Request::Call(filler.call(call, trigger)?)
        }
        TriggerKind::Call(_) => {
            let what = format!("a trigger of type `{}`", trigger.name);
            return Err(ResolveError::Later { what, place: trigger.place.clone() });
        }
    };
    Ok(ResolvedRequest { request, secrets: filler.secrets })
}

impl ResolvedPlan {
    /// Adds the texts that were computed from secrets for the request to the secrets to mask.
    pub fn hide(&mut self, asked: &ResolvedRequest) {
        self.secrets.extend(&asked.secrets);
    }

    /// Returns the secrets to mask in all output of the run.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

/// Returns the secrets to mask in all output of a run of the plan.
pub fn secrets(plan: &Plan, vars: &Vars, seed: &Seed, files: &Files) -> Secrets {
    let mut secrets = Secrets::of(vars);
    // If the request cannot be built, it contains no computed secrets.
    if let Ok(asked) = request(plan, vars, seed, files) {
        secrets.extend(&asked.secrets);
    }
    secrets
}

/// Returns the folder of the document, or a folder that is written relative to it.
fn workdir(document: &str, written: Option<String>) -> Option<String> {
    let folder = Path::new(document).parent().unwrap_or(Path::new(""));
    let chosen = folder.join(written.unwrap_or_default());
    Some(chosen.to_string_lossy().into_owned()).filter(|chosen| !chosen.is_empty())
}
