//! Why a trace was taken as whole, or not.

use serde::{Deserialize, Serialize};

use crate::{SpanId, Timestamp, Verdict};

/// Why a trace was taken as whole, or not, and what was waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settlement {
    /// What kept the trace from being whole; empty for a whole one.
    pub unsettled: Vec<UnsettledReason>,
    /// Spans received, the trigger's own not counted.
    pub spans: u64,
    /// From the trigger's answer (or its failure) to the decision, in nanoseconds.
    pub waited_ns: u64,
    /// From the last arrival to the decision, in nanoseconds; none where no span came.
    pub silent_ns: Option<u64>,
    /// The longest quiet that was asked of a process, in nanoseconds.
    pub quiet_ns: u64,
    /// When the last span arrived, by our clock.
    #[serde(default)]
    pub last_at: Option<Timestamp>,
    /// How long it was listened on after the last arrival or the response before the verdict was final, in nanoseconds; zero
    /// where nothing was concluded from absence.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub linger_ns: u64,
    /// Log records of this trace that came. They are counted and not kept: what an instrumentation reports as a log record
    /// is no event of a span.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub logs: u64,
    /// Whether the system was told to send all it had, and did: nobody was waited for to be quiet.
    #[serde(default)]
    pub drained: bool,
    /// The processes that sent spans, in the order they came; at most as many as a run tells apart.
    #[serde(default)]
    pub processes: Vec<ProcessQuiet>,
    /// Peers that were called and sent no span, in the order of their names; those that the test declares absent included.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<UnansweredPeer>,
}

/// A peer that was called and sent no span.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UnansweredPeer {
    /// The service that called it.
    pub service: String,
    /// The peer, as the calls name it.
    pub peer: String,
    /// Calls without another side.
    pub calls: u64,
    /// Whether the test says that it sends none (`settle.absent`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
}

/// How quiet one process was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessQuiet {
    /// The service.
    pub service: String,
    /// Which of its processes, where it says: an instance id, else host and pid.
    pub instance: Option<String>,
    /// Spans that it sent.
    pub spans: u64,
    /// The longest from a span's end to its arrival, in nanoseconds, by our clock as far as it can be told.
    pub delay_ns: u64,
    /// From its last arrival to the decision, in nanoseconds.
    pub silent_ns: u64,
    /// The quiet that was asked of it, in nanoseconds.
    pub quiet_ns: u64,
    /// Where that quiet comes from.
    pub because: Because,
}

/// Where the quiet that a process has to keep comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// Nothing asks for more than the least that is ever waited.
    Least,
    /// From how late its spans came in this run.
    Seen,
    /// The test says so.
    Declared,
    /// We set its batch delay when we started it.
    Started,
    /// From how late its spans came in earlier runs.
    Learned,
    /// Nothing is known of it: longer than SDKs keep their spans by default.
    Unknown,
}

/// One reason for which a trace is not known to be whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnsettledReason {
    /// No span of the system came at all.
    NoTelemetry,
    /// The trigger has no answer, so that nobody knows what the system still does.
    NotAnswered,
    /// These spans name parents that never came.
    ParentsAbsent(Vec<SpanId>),
    /// These calls have no other side, and nothing says that there is none.
    EdgesOpen(Vec<SpanId>),
    /// What the test expects did not come: services, and selectors as written.
    ExpectedAbsent(Vec<String>),
    /// Spans were still arriving at the deadline.
    NotQuiet,
    /// Nobody waited: what is there decides all that the test says.
    NotWaited,
    /// The trace has more spans or bytes than a run may keep.
    TooLarge,
    /// Spans may have been lost on their way here.
    SpansLost,
    /// These servers received spans during the run as well, and nothing passes on to the run what they received.
    OtherServers(Vec<String>),
    /// Whoever recorded the trace says that it is a part.
    Partial,
    /// What these calls called began a trace of its own: the context was lost on the way.
    ContextLost(Vec<SpanId>),
    /// The system answered that it does not sample this trace.
    NotSampled,
}

/// A verdict that later spans would have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overtaken {
    /// What the verdict would have been.
    pub verdict: Verdict,
    /// Spans that came after it.
    pub spans: u64,
    /// From the verdict to the span that would have changed it, in nanoseconds.
    pub after_ns: u64,
    /// The service that sent it, if it says.
    pub service: Option<String>,
}

/// A provisional verdict that spans replaced before it was final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupersededVerdict {
    /// The provisional verdict.
    pub verdict: Verdict,
    /// Spans that came after it.
    pub spans: u64,
    /// From the provisional verdict to the first of them, in nanoseconds; none where it was not a span that changed it.
    pub after_ns: Option<u64>,
    /// The service that sent the first of them, if it says.
    pub service: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Settlement {
    /// Whether absence may be concluded from this trace.
    pub fn is_whole(&self) -> bool {
        self.unsettled.is_empty()
    }
}
