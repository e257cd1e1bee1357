//! Faults: how a caller can react to an error.
//!
//! An error type states what happened. Its [`Fault`] states the possible reaction, so that each edge maps it once: HTTP to a
//! status, the CLI to an exit code. Its name is an
//! [`ErrorCode`].

use std::error;

use crate::ErrorCode;

/// How a caller can react to an error.
///
/// Few variants on purpose: a new variant needs a new reaction of a caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong, and a retry will not help.
    Invalid,
    /// The named thing does not exist.
    Missing,
    /// The thing exists, in a state that forbids this.
    Conflict,
    /// The caller may not do this.
    Denied,
    /// A system that we depend on failed; the same call may succeed later.
    Upstream,
    /// The server is overloaded; the same call may succeed later.
    Overloaded,
    /// A bug in this program.
    Internal,
}

/// An error that knows its fault.
pub trait Faulty: error::Error {
    /// Returns how a caller can react to this error.
    fn fault(&self) -> Fault;

    /// Returns its name.
    fn code(&self) -> ErrorCode {
        ErrorCode::of(self.fault())
    }
}

impl Fault {
    /// Returns the fault as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "invalid",
            Self::Missing => "missing",
            Self::Conflict => "conflict",
            Self::Denied => "denied",
            Self::Upstream => "upstream",
            Self::Overloaded => "overloaded",
            Self::Internal => "internal",
        }
    }

    /// Whether the same call may succeed later.
    pub fn is_transient(self) -> bool {
        matches!(self, Self::Upstream | Self::Overloaded)
    }
}

#[cfg(test)]
mod tests {
    use super::Fault;

    #[test]
    fn only_the_world_gets_better_by_waiting() {
        let transient = [Fault::Upstream, Fault::Overloaded];
        let lasting =
            [Fault::Invalid, Fault::Missing, Fault::Conflict, Fault::Denied, Fault::Internal];
        assert!(transient.iter().all(|fault| fault.is_transient()));
        assert!(!lasting.iter().any(|fault| fault.is_transient()));
    }
}
