//! Triggers: fire a resolved request and return an answer.
//!
//! [`Triggers`] fires any request. A trigger always returns an [`Answer`]: a missing response is one too, with its kind. It is
//! fired once; when its future is dropped, all its work stops.
//!
//! Deliberately absent: a trait. A request is an enum, and the triggers match on it.

mod answer_memory;
mod call;
mod context;
mod exec;
mod http;

use std::path::PathBuf;

use model::{Answer, Attempt, NoAnswer, Request};
use net::Networks;

pub use answer_memory::{AnswerHold, AnswerMemory};
use call::CallContext;
pub use context::propagate;
use http::Http;

/// The configuration of triggers.
#[derive(Clone, Debug)]
pub struct TriggerConfig {
    /// The size limits of a response.
    pub limits: TriggerLimits,
    /// The environment: it configures the proxies, and commands inherit all of it.
    pub environment: Vec<(String, String)>,
    /// The commands that may run.
    pub commands: Commands,
    /// The networks that may be reached. None if users run their own tests, and may reach all that this machine reaches.
    pub networks: Option<Networks>,
}

/// The commands that may run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// All commands: users run their own tests.
    All,
    /// Listed commands only: the tests are untrusted documents.
    Listed(AllowedCommands),
}

/// The commands that untrusted tests may run. A test selects neither the directory nor, by variables, which program a name
/// selects or what it loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedCommands {
    /// The programs, each by its absolute path.
    pub programs: Vec<PathBuf>,
    /// The variables that a test may set, by name.
    pub variables: Vec<String>,
}

/// The size limits of a response.
#[derive(Clone, Copy, Debug)]
pub struct TriggerLimits {
    /// The maximum bytes of a body, and of a command's standard output. A larger response is discarded completely.
    pub response_bytes_max: usize,
    /// The maximum bytes of a command's standard error. Only the last bytes are stored.
    pub stderr_bytes_max: usize,
}

/// Fires requests.
#[derive(Debug)]
pub struct Triggers {
    config: TriggerConfig,
    http: Http,
}

/// A callback that returns whether the request may still be sent.
type SendPermit<'a> = &'a (dyn Fn() -> bool + Sync);

/// Why a trigger has no answer: the permit was denied, or a failure with its kind.
enum TriggerError {
    Withheld,
    Because(NoAnswer),
}

impl Default for TriggerLimits {
    fn default() -> Self {
        Self { response_bytes_max: 16 * 1024 * 1024, stderr_bytes_max: 64 * 1024 }
    }
}

impl Triggers {
    /// Creates triggers that trust the roots of this machine.
    pub fn new(config: TriggerConfig) -> Self {
        let http = Http::new(&config);
        Self { config, http }
    }

    /// Fires a request as part of a trace, under the attempt's span, and waits for the complete response.
    ///
    /// `permit` is called right before the first byte of the request, when the connection is established, or before the command
    /// starts. If it returns false, nothing is sent, and there is no answer. `hold` counts the response while it is read and
    /// for as long as it is held.
    pub async fn fire(
        &self,
        request: &Request,
        attempt: &Attempt,
        permit: impl Fn() -> bool + Sync,
        hold: &AnswerHold,
    ) -> Option<Answer> {
        let fired = match request {
            Request::Http(request) => {
                self.http.fire(request, attempt, &permit, hold).await.map(Answer::Response)
            }
            Request::Exec(request) => {
                exec::fire(request, attempt, &self.config, (&permit, hold)).await.map(Answer::Exit)
            }
            Request::Call(call) => {
                let config = &self.config;
                let context = CallContext { attempt, permit: &permit, hold, config };
                call::fire(call, context).await.map(Answer::Reply)
            }
            Request::TraceId(_) => match permit() {
                true => Ok(Answer::NotFired),
                false => Err(TriggerError::Withheld),
            },
        };
        match fired {
            Ok(answer) => Some(answer),
            Err(TriggerError::Withheld) => None,
            Err(TriggerError::Because(no_answer)) => Some(Answer::NoAnswer(no_answer)),
        }
    }
}
