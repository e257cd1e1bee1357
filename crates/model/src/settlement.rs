//! Why a trace counts as complete, or why it does not.

use serde::{Deserialize, Serialize};

use crate::{SpanDetail, SpanId, Timestamp, Verdict};

/// Why a trace counts as complete, or why it does not, and how long the run waited.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Settlement {
    /// Why the trace is not complete; empty for a complete one.
    pub unsettled: Vec<UnsettledReason>,
    /// Spans received, without the trigger's own span.
    pub spans: u64,
    /// From the trigger's response (or its failure) to the decision, in nanoseconds.
    pub waited_ns: u64,
    /// From the last arrival to the decision, in nanoseconds; none if no span arrived.
    pub silent_ns: Option<u64>,
    /// The longest quiet period of a process, in nanoseconds.
    pub quiet_ns: u64,
    /// When the last span arrived, by our clock.
    #[serde(default)]
    pub last_at: Option<Timestamp>,
    /// How long the run listened after the last arrival or the response before the verdict was final, in nanoseconds; zero if
    /// nothing was concluded from absence.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub linger_ns: u64,
    /// Log records of this trace that arrived. They are counted and discarded: a log record of an instrumentation is no event
    /// of a span.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub logs: u64,
    /// Whether the system flushed all its spans on request: the run did not wait for quiet periods.
    #[serde(default)]
    pub drained: bool,
    /// The processes that sent spans, in order of arrival; at most as many as a run distinguishes.
    #[serde(default)]
    pub processes: Vec<ProcessQuiet>,
    /// Peers that were called and sent no span, sorted by name; including those that the test declares absent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unanswered: Vec<UnansweredPeer>,
    /// The trace stores that were queried.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stores: Vec<StoreQueries>,
}

/// A trace store that was queried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreQueries {
    /// The name of the store.
    pub store: String,
    /// How long a span was allowed to be missing from its answers, in nanoseconds.
    pub lag_ns: u64,
    /// What it does not keep of spans.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lacks: Vec<SpanDetail>,
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
    /// Whether the test declares that it sends none (`settle.absent`).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub declared: bool,
}

/// The quiet period of one process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ProcessQuiet {
    /// The service.
    pub service: String,
    /// The process of the service, if its resource identifies it: an instance id, else host and pid.
    pub instance: Option<String>,
    /// The number of spans that it sent.
    pub spans: u64,
    /// The longest time from a span's end to its arrival, in nanoseconds, by our clock as far as it can be determined.
    pub delay_ns: u64,
    /// From its last arrival to the decision, in nanoseconds.
    pub silent_ns: u64,
    /// The quiet period that it got, in nanoseconds.
    pub quiet_ns: u64,
    /// The reason for this quiet period.
    pub because: Because,
    /// When its spans arrived; older records do not have it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<Arrivals>,
}

/// When the spans of a process arrived: their number in each of some equal times.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Arrivals {
    /// From its first arrival to the decision, in nanoseconds.
    pub first_ns: u64,
    /// How long each of the times is, in nanoseconds. The first begins with the first arrival.
    pub every_ns: u64,
    /// The number of spans that arrived in each time, up to that of the last arrival.
    pub spans: Vec<u64>,
}

/// The reason for the quiet period of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Because {
    /// Nothing requires more than the minimum wait.
    Least,
    /// The delay of its spans in this run.
    Seen,
    /// The test declares it.
    Declared,
    /// We set its batch delay when we started it.
    Started,
    /// The delay of its spans in earlier runs.
    Learned,
    /// The process is unknown: longer than the default batch delay of SDKs.
    Unknown,
}

/// One reason why a trace is not known to be complete.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum UnsettledReason {
    /// No span of the system arrived at all.
    NoTelemetry,
    /// The trigger has no response, so that it is unknown whether the system still works.
    NotAnswered,
    /// These spans name parents that never arrived.
    ParentsAbsent(Vec<SpanId>),
    /// These calls have no other side, and nothing states that there is none.
    EdgesOpen(Vec<SpanId>),
    /// Services and selectors, as written, that the test expects and that did not arrive.
    ExpectedAbsent(Vec<String>),
    /// Spans were still arriving at the deadline.
    NotQuiet,
    /// The run did not wait: the present spans decide all statements of the test.
    NotWaited,
    /// The trace has more spans or bytes than a run may store.
    TooLarge,
    /// Spans may have been lost on their way here.
    SpansLost,
    /// It could not be proved that all spans that servers accepted are here, for this reason.
    Unproved(String),
    /// These servers received spans during the run as well, and do not forward them to the run.
    OtherServers(Vec<String>),
    /// The program that recorded the trace states that it is partial.
    Partial,
    /// The other side of these calls started a new trace: the context was lost on the way.
    ContextLost(Vec<SpanId>),
    /// The response of the system states that it does not sample this trace.
    NotSampled,
    /// This span states that the system keeps only a share of its spans.
    Sampled(SpanId),
    /// The last query of a trace store failed or was refused, so that its spans are not known.
    StoreUnread(StoreGap),
    /// The last answer of a trace store may not have all its spans.
    StorePartial(StoreGap),
}

/// Why the answers of a trace store do not prove that a span is absent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StoreGap {
    /// The name of the store.
    pub store: String,
    /// What happened.
    pub message: String,
}

/// A verdict that late spans would have changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Overtaken {
    /// The verdict with the late spans.
    pub verdict: Verdict,
    /// The number of spans that arrived after the verdict.
    pub spans: u64,
    /// From the verdict to the span that would have changed it, in nanoseconds.
    pub after_ns: u64,
    /// The service that sent it, if it is known.
    pub service: Option<String>,
}

/// A provisional verdict that spans superseded before it was final.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct SupersededVerdict {
    /// The provisional verdict.
    pub verdict: Verdict,
    /// The number of spans that arrived after it.
    pub spans: u64,
    /// From the provisional verdict to the first of them, in nanoseconds; none if no span changed the verdict.
    pub after_ns: Option<u64>,
    /// The service that sent the first of them, if it is known.
    pub service: Option<String>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Settlement {
    /// Returns whether the trace is complete, and if not, why, in a few words.
    pub fn reason(&self) -> String {
        let word = |unsettled: &UnsettledReason| match unsettled {
            UnsettledReason::NoTelemetry => "no telemetry",
            UnsettledReason::NotAnswered => "not answered",
            UnsettledReason::ParentsAbsent(_) => "parents absent",
            UnsettledReason::EdgesOpen(_) => "edges open",
            UnsettledReason::ExpectedAbsent(_) => "expected absent",
            UnsettledReason::NotQuiet => "not quiet",
            UnsettledReason::NotWaited => "decided early",
            UnsettledReason::TooLarge => "too large",
            UnsettledReason::SpansLost => "spans lost",
            UnsettledReason::Unproved(_) => "unproved",
            UnsettledReason::OtherServers(_) => "other servers",
            UnsettledReason::Partial => "partial",
            UnsettledReason::ContextLost(_) => "context lost",
            UnsettledReason::NotSampled => "not sampled",
            UnsettledReason::Sampled(_) => "sampled",
            UnsettledReason::StoreUnread(_) => "store unread",
            UnsettledReason::StorePartial(_) => "store partial",
        };
        match self.unsettled.as_slice() {
            [] => "complete".to_owned(),
            unsettled => unsettled.iter().map(word).collect::<Vec<_>>().join(", "),
        }
    }

    /// Whether absence may be concluded from this trace.
    pub fn is_whole(&self) -> bool {
        self.unsettled.is_empty()
    }
}
