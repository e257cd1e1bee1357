//! Calls by further protocols. A protocol is one file in `call/` and its line in [`fire`].

use model::{Attempt, CallRequest, NoAnswer, NoAnswerKind, Reply};

use super::{AnswerHold, SendPermit, TriggerConfig, TriggerError};

/// What a protocol needs to fire a call.
#[expect(dead_code, reason = "the protocols read it, and there is none yet")]
pub(super) struct CallContext<'a> {
    /// The span under which the call is made.
    pub(super) attempt: &'a Attempt,
    /// Called right before the first byte of the request.
    pub(super) permit: SendPermit<'a>,
    /// Counts the reply while it is read.
    pub(super) hold: &'a AnswerHold,
    pub(super) config: &'a TriggerConfig,
}

/// Fires a call by its protocol.
#[expect(clippy::unused_async, reason = "the protocols wait, and there is none yet")]
pub(super) async fn fire(
    call: &CallRequest,
    _context: CallContext<'_>,
) -> Result<Reply, TriggerError> {
    Err(cannot_fire(call))
}

/// The error of a protocol that this version does not know.
fn cannot_fire(call: &CallRequest) -> TriggerError {
    let message = format!("this version cannot fire a trigger of type `{}`", call.protocol);
    TriggerError::Because(NoAnswer { kind: NoAnswerKind::Invalid, message })
}
