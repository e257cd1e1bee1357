//! A run: its stored progress, its events, and its outcome.

use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Answer, Diagnosis, Judgement, Overtaken, RecordedRequest, RunId, Settlement, SpanId,
    SupersededVerdict, Timestamp, TraceId, Verdict,
};

/// The stored progress of a run, so that another worker can continue it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing was sent.
    New,
    /// The attempt is stored: the request may have been sent, and must not be sent again.
    Attempted(Attempt),
    /// The answer is stored too.
    Answered(Attempt, Answer),
}

/// The one attempt of a run to fire its trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// The trace under test.
    pub trace_id: TraceId,
    /// The id of the trigger's own span, the parent of the system's first span.
    pub span_id: SpanId,
    /// When it was stored, just before the first byte was sent.
    pub at: Timestamp,
}

/// An event of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEvent {
    /// The time of the event.
    pub at: Timestamp,
    /// The kind of the event.
    pub what: What,
}

/// The kinds of events of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// The run was accepted and waits for a worker.
    Accepted,
    /// A worker leased the run under this epoch.
    Taken {
        /// Each lease increases it; a worker with an older epoch can no longer write.
        epoch: i64,
    },
    /// The attempt is stored; the request is sent next.
    Attempted(Attempt),
    /// The system responded, with this status.
    Answered {
        /// The status of HTTP, or of another protocol.
        status: i32,
    },
    /// The trigger's program exited, with this code.
    Exited {
        /// The exit code; zero means success.
        code: i32,
    },
    /// Nothing was fired: the run uses an external trace id.
    NotFired,
    /// The system did not respond.
    NotAnswered {
        /// The reason.
        message: String,
    },
    /// The trace is complete, or its time is up.
    Settled(Settlement),
    /// The run has a verdict that spans may still change before it is final.
    Provisional {
        /// The provisional verdict.
        verdict: Verdict,
    },
    /// The run has its verdict.
    Judged {
        /// The final verdict, which never changes afterwards.
        verdict: Verdict,
    },
    /// Spans arrived after the verdict that would have changed it.
    Overtaken(Overtaken),
}

impl From<&Answer> for What {
    fn from(answer: &Answer) -> Self {
        match answer {
            Answer::Response(response) => Self::Answered { status: response.status.into() },
            Answer::Reply(reply) => Self::Answered { status: reply.status },
            Answer::Exit(exit) => Self::Exited { code: exit.code },
            Answer::NotFired => Self::NotFired,
            Answer::NoAnswer(none) => Self::NotAnswered { message: none.message.clone() },
        }
    }
}

/// A step in the life of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// From accepted to leased.
    Queue,
    /// Compiles the document to a plan.
    Compile,
    /// Applies variables and resolves templates.
    Resolve,
    /// Sends the request and receives the response.
    Trigger,
    /// Waits until the trace is complete.
    Settle,
    /// Evaluates the evidence to verdicts.
    Judge,
    /// Waits until a provisional verdict is final.
    Linger,
    /// Stores verdict and events in the database.
    Record,
}

/// The start and end of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepTime {
    /// The step.
    pub step: Step,
    /// Its start.
    pub began: Timestamp,
    /// Its end.
    pub ended: Timestamp,
}

/// The outcome of a run, from which a report is rendered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// The run; none if a recorded trace was judged.
    pub run_id: Option<RunId>,
    /// The test's name.
    pub test: String,
    /// The verdict.
    pub verdict: Verdict,
    /// Whether spans may still change the verdict: the trace is complete, and has not lingered yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// The provisional verdict, if spans superseded it before it was final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededVerdict>,
    /// The verdicts of earlier attempts of the test, if retries were requested. A run that passed after them is flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Verdict>,
    /// Why the run is inconclusive, in addition to the assertions, each with advice.
    pub reasons: Vec<String>,
    /// Why telemetry is missing, the likeliest cause first; empty if the trace is complete.
    #[serde(default)]
    pub diagnoses: Vec<Diagnosis>,
    /// The trace under test; none if nothing was fired.
    pub trace_id: Option<TraceId>,
    /// The request of the trigger; none if nothing was fired, and in an outcome that an earlier version recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<RecordedRequest>,
    /// How the trigger ended; none if nothing was fired.
    pub answer: Option<Answer>,
    /// Why the trace counts as complete, or why it does not; none if the test collects no trace.
    pub settlement: Option<Settlement>,
    /// The verdict with spans that arrived after the verdict, if they would have changed it.
    #[serde(default)]
    pub overtaken: Option<Overtaken>,
    /// The verdicts of the assertions, and the outputs.
    pub judgement: Judgement,
    /// The analyzer's result for the trace; none if the analyzer did not run.
    #[serde(default)]
    pub analysis: Option<Analysis>,
    /// The steps, by start time.
    pub steps: Vec<StepTime>,
}

impl Outcome {
    /// Creates an inconclusive outcome of which only the reason is known.
    pub fn open(test: String, reason: String) -> Self {
        Self {
            run_id: None,
            test,
            verdict: Verdict::Inconclusive,
            provisional: false,
            superseded: None,
            earlier: Vec::new(),
            reasons: vec![reason],
            diagnoses: Vec::new(),
            trace_id: None,
            request: None,
            answer: None,
            settlement: None,
            overtaken: None,
            judgement: Judgement::bare(Verdict::Inconclusive),
            analysis: None,
            steps: Vec::new(),
        }
    }

    /// Whether the test passed, but not at the first attempt.
    pub fn is_flaky(&self) -> bool {
        self.verdict == Verdict::Passed && !self.earlier.is_empty()
    }
}

impl Step {
    /// Returns the step as one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queue => "queue",
            Self::Compile => "compile",
            Self::Resolve => "resolve",
            Self::Trigger => "trigger",
            Self::Settle => "settle",
            Self::Judge => "judge",
            Self::Linger => "linger",
            Self::Record => "record",
        }
    }
}

impl What {
    /// Returns the kind as one word, as it is serialized.
    pub fn as_str(&self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Taken { .. } => "taken",
            Self::Attempted(_) => "attempted",
            Self::Answered { .. } => "answered",
            Self::Exited { .. } => "exited",
            Self::NotFired => "notFired",
            Self::NotAnswered { .. } => "notAnswered",
            Self::Settled(_) => "settled",
            Self::Provisional { .. } => "provisional",
            Self::Judged { .. } => "judged",
            Self::Overtaken(_) => "overtaken",
        }
    }
}

impl Progress {
    /// Returns the attempt, if one is stored.
    pub fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::New => None,
            Self::Attempted(attempt) | Self::Answered(attempt, _) => Some(*attempt),
        }
    }
}
