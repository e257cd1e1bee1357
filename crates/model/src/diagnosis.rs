//! Why telemetry is missing.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// Why telemetry is missing: the observation and the advice.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Diagnosis {
    /// The cause, for programs.
    pub cause: Cause,
    /// The observation, in one sentence.
    pub says: String,
    /// The spans that prove it, of this trace or of another; at most as many as a diagnosis names.
    pub spans: Vec<SpanId>,
    /// The advice.
    pub advice: String,
}

/// The causes that can be distinguished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Cause {
    /// No sender connected to the receiver.
    NothingConnected,
    /// A sender connected, and the receiver rejected everything that it sent.
    Rejected,
    /// A sender connected, and sent no span: nothing at all, or only metrics and logs.
    NoSpans,
    /// Other traces arrived and none of ours.
    OtherTraces,
    /// The command was started with our variables, and its telemetry shows that it ignores them.
    VariablesIgnored,
    /// The variables of a process that we started disable its spans.
    SwitchedOff,
    /// The variables of a process that we started configure another endpoint.
    SentElsewhere,
    /// A second trace of the same service began in the meantime: the context was lost at this hop.
    ContextLost,
    /// A span of another trace links to ours: our trace does not contain the work of that trace.
    Linked,
    /// A span names a remote parent that never arrived.
    ParentRemote,
    /// A span names a parent in its own process that never arrived.
    ParentLocal,
    /// The other side of a call never arrived, and nothing else was observed of it.
    OtherSideAbsent,
    /// A peer was called and sent no span; the trace is judged without the work of the peer.
    PeerSilent,
    /// A service states that it does not sample our trace.
    NotSampled,
    /// A process could not complete its quiet period in time.
    NotQuiet,
    /// The clock of a process differs from ours.
    ClockSkew,
    /// A sender states that it lost spans or was refused.
    SenderLost,
    /// The queried store has only parts of the trace.
    StoreLags,
}
