//! Why a request to a server failed.

use std::time::Duration;

use model::{ErrorCode, Fault, Faulty, RunId};
use thiserror::Error;

/// The upper bound for a response, in bytes.
pub(super) const ANSWER_BYTES_MAX: usize = 64 << 20;
/// The timeout for a run.
pub(super) const RUN_MAX: Duration = Duration::from_secs(15 * 60);

/// The reason why a request to a server failed.
#[derive(Debug, Error)]
pub(crate) enum ClientError {
    #[error("the authorities in `{path}` cannot be trusted: {reason}")]
    Ca { path: String, reason: String },
    #[error(
        "the token was not sent to `{url}`: others can read it on its way without TLS; use https://, or give `--plain-http` where the \
         network between is trusted"
    )]
    PlainToken { url: String },
    #[error("the server at `{url}` cannot be reached: {reason}")]
    Unreachable { url: String, reason: String },
    #[error("the server at `{url}` refused: {}", refusal(.detail))]
    Refused { url: String, status: u16, code: ErrorCode, detail: String },
    #[error("the server at `{url}` answered what this version does not understand: {reason}")]
    Foreign { url: String, reason: String },
    #[error("the server at `{url}` answered more than {ANSWER_BYTES_MAX} bytes")]
    TooLarge { url: String },
    #[error("the run `{run}` did not end within {} minutes; it goes on at the server", RUN_MAX.as_secs() / 60)]
    TooLong { run: RunId },
}

impl Faulty for ClientError {
    fn fault(&self) -> Fault {
        match self {
            Self::Unreachable { .. } | Self::TooLong { .. } => Fault::Upstream,
            Self::Refused { status: 408 | 429, .. } => Fault::Overloaded,
            Self::Refused { status: 400..=499, .. } => Fault::Invalid,
            Self::TooLarge { .. } | Self::PlainToken { .. } => Fault::Invalid,
            Self::Refused { .. } => Fault::Upstream,
            Self::Foreign { .. } | Self::Ca { .. } => Fault::Invalid,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::Ca { .. } => ErrorCode::AuthorityInvalid,
            Self::PlainToken { .. } => ErrorCode::PlainToken,
            Self::Unreachable { .. } => ErrorCode::ServerUnreachable,
            Self::Refused { code, .. } => *code,
            Self::Foreign { .. } | Self::TooLarge { .. } => ErrorCode::ResponseUnknown,
            Self::TooLong { .. } => ErrorCode::RunActive,
        }
    }
}

/// Formats the error detail of a server; rendered diagnostics begin on a new line.
fn refusal(detail: &str) -> String {
    if detail.contains('\n') { format!("\n{}", detail.trim_end()) } else { detail.to_owned() }
}
