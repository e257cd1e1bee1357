//! Why a trace was taken as whole, or not.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// Why a trace was taken as whole, or not, and what was waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settlement {
    /// What kept the trace from being whole; empty for a whole one.
    pub unsettled: Vec<Unsettled>,
    /// Spans received, the trigger's own not counted.
    pub spans: u64,
    /// From the trigger's answer (or its failure) to the decision, in nanoseconds.
    pub waited_ns: u64,
    /// From the last arrival to the decision, in nanoseconds; none where no span came.
    pub silent_ns: Option<u64>,
    /// The quiet that was asked for, in nanoseconds.
    pub quiet_ns: u64,
}

/// One reason for which a trace is not known to be whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Unsettled {
    /// No span of the system came at all.
    NoTelemetry,
    /// The trigger has no answer, so that nobody knows what the system still does.
    NotAnswered,
    /// These spans name parents that never came.
    ParentsAbsent(Vec<SpanId>),
    /// Spans were still arriving at the deadline.
    NotQuiet,
    /// The trace has more spans or bytes than a run may keep.
    TooLarge,
    /// Spans may have been lost on their way here.
    SpansLost,
    /// Whoever recorded the trace says that it is a part.
    Partial,
}

impl Settlement {
    /// Whether absence may be concluded from this trace.
    pub fn is_whole(&self) -> bool {
        self.unsettled.is_empty()
    }
}
