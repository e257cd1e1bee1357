//! Why a plan cannot be resolved.

use model::{ErrorCode, Fault, Faulty, Place};
use thiserror::Error;

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

impl Faulty for ResolveError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Missing { .. } => ErrorCode::VariableMissing,
            Self::Unread { .. } | Self::File { .. } => ErrorCode::FileUnreadable,
            _ => ErrorCode::TriggerInvalid,
        }
    }
}

/// A location in the `file:line:column` form of editors.
struct EditorPosition<'a>(&'a Place);

impl std::fmt::Display for EditorPosition<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.0.file, self.0.line, self.0.column)
    }
}
