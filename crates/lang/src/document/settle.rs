//! How long a test waits for its trace.

use std::time::Duration;

/// How long to wait for a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settle {
    /// The time from the trigger's response until the trace is judged as it is.
    pub timeout: Duration,
    /// The quiet period after which a process is assumed to have exported everything; `None` if the test leaves that to the
    /// learned profile of the process.
    pub flush: Option<Duration>,
}
