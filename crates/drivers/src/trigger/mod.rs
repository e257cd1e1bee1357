//! Triggers: a resolved request in, an answer out.
//!
//! [`Triggers`] fires any request. A trigger always gives an answer: that there was none is one too, with its kind. It is
//! fired once; nothing of it goes on when its future is dropped.
//!
//! Deliberately absent: a trait. A request is an enum, and so is what can be done with one.

mod answer_memory;
mod context;
mod exec;
mod http;
mod network;

use std::path::PathBuf;

use model::{Answer, Attempt, NoAnswer, Request};

pub use answer_memory::{AnswerHold, AnswerMemory};
pub use context::propagate;
use http::Http;
pub use network::{InvalidNetwork, METADATA, Network, NetworkRefusal, Networks};

/// What triggers are made from.
#[derive(Clone, Debug)]
pub struct TriggerConfig {
    /// How much an answer may hold.
    pub limits: TriggerLimits,
    /// The environment: of it are the proxies, and commands get all of it.
    pub environment: Vec<(String, String)>,
    /// Which commands are run.
    pub commands: Commands,
    /// What may be reached. None where tests are those of whoever runs them, who may reach what this machine reaches.
    pub networks: Option<Networks>,
}

/// Which commands are run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Commands {
    /// Every one: tests are those of whoever runs them.
    All,
    /// Some. Tests are strangers'.
    Listed(AllowedCommands),
}

/// What strangers' tests may run. They choose neither the folder nor, by its variables, which program a name means or what it
/// loads.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AllowedCommands {
    /// The programs, each by its whole path.
    pub programs: Vec<PathBuf>,
    /// The variables that a test may set, by name.
    pub variables: Vec<String>,
}

/// How much an answer may hold.
#[derive(Clone, Copy, Debug)]
pub struct TriggerLimits {
    /// Bytes of a body, and of what a command writes to its standard output. Of an answer that has more, nothing is kept.
    pub response_bytes_max: usize,
    /// Bytes of what a command writes to its standard error. The last ones are kept.
    pub stderr_bytes_max: usize,
}

/// Fires requests.
#[derive(Debug)]
pub struct Triggers {
    config: TriggerConfig,
    http: Http,
}

/// Whether the request may still be sent.
type SendPermit<'a> = &'a (dyn Fn() -> bool + Sync);

/// Why a trigger has no answer: nothing to speak of, or one of its kind.
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
    /// Triggers that trust whom this machine trusts.
    pub fn new(config: TriggerConfig) -> Self {
        let http = Http::new(&config);
        Self { config, http }
    }

    /// Fires a request as part of a trace, under the attempt's span, and waits for the whole answer.
    ///
    /// `permit` is asked right before the first byte of the request, when all is connected, or before the command is
    /// started. Where it says no, nothing is sent, and there is no answer to speak of. `hold` counts the answer
    /// while it is read and for as long as it is held.
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
