//! From a plan to what is fired: from here on no `${…}` exists.
//!
//! Deliberately absent so far: triggers of type `grpc`, `kafka` and `playwrightengine`. A plan with one of them is
//! judged like any other (`resolve`), but not fired.

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
    /// A `${…}` names something that is not there.
    #[error(
        "the variable `{name}` at {} has no value: set it, or take it out of the test",
        EditorPosition(place)
    )]
    Missing {
        /// The variable.
        name: String,
        /// Where it is named.
        place: Place,
    },
    /// A `${…}` has no value.
    #[error("the expression at {} has no value: {reason}", EditorPosition(place))]
    Valueless {
        /// Why.
        reason: String,
        /// Where it stands.
        place: Place,
    },
    /// The URL, filled in, is not one that can be sent to.
    #[error(
        "the URL at {} is not complete: expected `http://` or `https://` and a host",
        EditorPosition(place)
    )]
    Url {
        /// Where the URL stands.
        place: Place,
    },
    #[error(
        "the port of the URL at {} is none: expected a number up to 65535",
        EditorPosition(place)
    /// The URL, filled in, names a port that is none.
    )]
    Port {
        /// Where the URL stands.
        place: Place,
    },
    /// A header, filled in, is not one that can be sent.
    #[error("the header at {} cannot be sent: {reason}", EditorPosition(place))]
    Header {
        /// Where its key stands.
        place: Place,
        /// What is wrong with it.
        reason: &'static str,
    },
    #[error(
        "the id of the trace at {} is not one: expected 32 hexadecimal digits",
        EditorPosition(place)
    /// The id of the trace, filled in, is none.
    )]
    TraceId {
        /// Where the id stands.
        place: Place,
    },
    /// A file that the trigger needs was not read.
    #[error(
        "the file `{path}`, named at {}, is not at hand: a server keeps documents without the files beside them; \
         write what it holds into the document, or run the test locally",
        EditorPosition(place)
    )]
    Unread {
        /// As written.
        path: String,
        /// Where it is named.
        place: Place,
    },
    /// A file was read, and what it holds is of no use.
    #[error("the file `{path}`, named at {}, {reason}", EditorPosition(place))]
    File {
        /// As written.
        path: String,
        /// Where it is named.
        place: Place,
        /// What is wrong with it.
        reason: String,
    },
    /// The test is right and asks for something that this version does not do.
    #[error("{what} at {} cannot be fired by this version yet", EditorPosition(place))]
    Later {
        /// What it is, such as a type of trigger.
        what: String,
        /// Where it stands.
        place: Place,
    },
}

/// What is fired for a run, and what of it nobody may see.
#[derive(Clone, Debug)]
pub struct ResolvedRequest {
    /// What is fired.
    pub request: Request,
    /// The texts in it that were computed from secrets.
    pub(crate) secrets: Secrets,
}

/// What is fired for a run of the plan.
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
    /// Keeps secret what was computed from secrets for the request.
    pub fn hide(&mut self, asked: &ResolvedRequest) {
        self.secrets.extend(&asked.secrets);
    }

    /// What nobody may see of all that is told of the run.
    pub fn secrets(&self) -> &Secrets {
        &self.secrets
    }
}

/// What nobody may see of all that is told of a run of the plan.
pub fn secrets(plan: &Plan, vars: &Vars, seed: &Seed, files: &Files) -> Secrets {
    let mut secrets = Secrets::of(vars);
    // Where it cannot be fired, nothing is computed for it.
    if let Ok(asked) = request(plan, vars, seed, files) {
        secrets.extend(&asked.secrets);
    }
    secrets
}

/// The folder of the document, or one that is named from there.
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

/// A place as an editor understands it.
struct EditorPosition<'a>(&'a Place);

impl std::fmt::Display for EditorPosition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.0.file, self.0.line, self.0.column)
    }
}
