//! Builds the request of a run from a plan: it contains no `${…}` any more.
//!
//! Deliberately absent so far: triggers of type `grpc`, `kafka` and `playwrightengine`. A plan with one of them is judged like
//! any other (`resolve`), but not sent.

mod files;
mod fill;
mod url;

use std::path::Path;

use model::{ExecRequest, Fault, Faulty, Place, Request};
use thiserror::Error;

use crate::{
    document::TriggerKind,
    eval::resolve::Vars,
    plan::{Plan, ResolvedPlan},
    secrets::Secrets,
    value::function::{Draw, Purpose, Seed},
};
pub use files::Files;
use fill::Filler;
pub(crate) use url::{split_scheme, wrong_port};

/// Why a plan cannot be resolved.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    /// A `${…}` names a variable that does not exist.
    #[error(
        "the variable `{name}` at {} has no value: set it, or take it out of the test",
        EditorPosition(place)
    )]
    Missing {
        /// The name of the variable.
        name: String,
        /// The location of the `${…}`.
        place: Place,
    },
    /// A `${…}` has no value.
    #[error("the expression at {} has no value: {reason}", EditorPosition(place))]
    Valueless {
        /// The reason.
        reason: String,
        /// The location of the `${…}`.
        place: Place,
    },
    /// The URL, after filling in variables, is not one that a request can be sent to.
    #[error(
        "the URL at {} is not complete: expected `http://` or `https://` and a host",
        EditorPosition(place)
    )]
    Url {
        /// The location of the URL.
        place: Place,
    },
    /// The URL, after filling in variables, has an invalid port.
    #[error(
        "the port of the URL at {} is none: expected a number up to 65535",
        EditorPosition(place)
    )]
    Port {
        /// The location of the URL.
        place: Place,
    },
    /// A header, after filling in variables, cannot be sent.
    #[error("the header at {} cannot be sent: {reason}", EditorPosition(place))]
    Header {
        /// The location of its key.
        place: Place,
        /// The reason.
        reason: &'static str,
    },
    /// The trace id, after filling in variables, is invalid.
    #[error(
        "the id of the trace at {} is not one: expected 32 hexadecimal digits",
        EditorPosition(place)
    )]
    TraceId {
        /// The location of the trace id.
        place: Place,
    },
    /// The content of a file that the trigger needs was not loaded.
    #[error(
        "the file `{path}`, named at {}, is not at hand: a server keeps documents without the files beside them; \
         write what it holds into the document, or run the test locally",
        EditorPosition(place)
    )]
    Unread {
        /// The path as written.
        path: String,
        /// The location of the path.
        place: Place,
    },
    /// The content of a file is invalid.
    #[error("the file `{path}`, named at {}, {reason}", EditorPosition(place))]
    File {
        /// The path as written.
        path: String,
        /// The location of the path.
        place: Place,
        /// The reason.
        reason: String,
    },
    /// The test is valid, but uses a feature that this version does not support.
    #[error("{what} at {} cannot be fired by this version yet", EditorPosition(place))]
    Later {
        /// The feature, such as a type of trigger.
        what: String,
        /// The location of the feature.
        place: Place,
    },
}

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
        TriggerKind::Grpc(_) | TriggerKind::Kafka(_) | TriggerKind::PlaywrightEngine(_) => {
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

impl Faulty for ResolveError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }
}

/// A location in the `file:line:column` form of editors.
struct EditorPosition<'a>(&'a Place);

impl std::fmt::Display for EditorPosition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.0.file, self.0.line, self.0.column)
    }
}
