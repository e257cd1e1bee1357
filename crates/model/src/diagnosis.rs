//! Why telemetry is missing.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// Why telemetry is missing: what was seen, and what to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diagnosis {
    /// The cause, for programs.
    pub cause: Cause,
    /// What was seen, in one sentence.
    pub says: String,
    /// The spans that it rests on, of this trace or of another; at most as many as a diagnosis names.
    pub spans: Vec<SpanId>,
    /// What to do.
    pub advice: String,
}

/// The causes that can be told apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// Nobody connected to the receiver.
    NothingConnected,
    /// Somebody connected, and everything they sent was rejected.
    Rejected,
    /// Somebody connected, and sent no span: nothing at all, or metrics and logs alone.
    NoSpans,
    /// Other traces arrived and none of ours.
    OtherTraces,
    /// The command was started with our variables and its telemetry comes as if they were not there.
    VariablesIgnored,
    /// A process that we started has been told by its variables to send no spans.
    SwitchedOff,
    /// A process that we started has been told by its variables to send to somebody else.
    SentElsewhere,
    /// A second trace of the same service began in the meantime: the context was lost at this hop.
    ContextLost,
    /// A span of another trace links to ours: what happened there is not in our trace.
    Linked,
    /// A span names a remote parent that never came.
    ParentRemote,
    /// A span names a parent in its own process that never came.
    ParentLocal,
    /// The other side of a call never came, and nothing of it was seen.
    OtherSideAbsent,
    /// A peer was called and sent no span; the trace is judged without what happened there.
    PeerSilent,
    /// A service says that it does not keep our trace.
    NotSampled,
    /// A process had no time to be quiet for as long as it must be.
    NotQuiet,
    /// A process's clock differs from ours.
    ClockSkew,
    /// A sender says that it lost spans or was refused.
    SenderLost,
    /// The store that is asked has parts of the trace only.
    StoreLags,
}
