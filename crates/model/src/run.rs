//! A run: what its record holds, what it tells while it goes on, what it ends with.

use serde::{Deserialize, Serialize};

use crate::{
    Analysis, Answer, Diagnosis, Judgement, Overtaken, RunId, Settlement, SpanId,
    SupersededVerdict, Timestamp, TraceId, Verdict,
};

/// What the record of a run holds, so that another worker can go on with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Nothing was sent.
    New,
    /// The attempt is recorded: the request may have been sent, and must not be sent again.
    Attempted(Attempt),
    /// The answer is recorded too.
    Answered(Attempt, Answer),
}

/// The one attempt of a run to fire its trigger.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Attempt {
    /// The trace under test.
    pub trace_id: TraceId,
    /// The trigger's own span, parent of the system's first one.
    pub span_id: SpanId,
    /// When it was recorded, just before the first byte.
    pub at: Timestamp,
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RunEvent {
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// What can happen in a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum What {
    /// The run was accepted and waits for a worker.
    Accepted,
    /// A worker took it under this epoch of its lease.
    Taken {
        /// Raised by every taking; older ones can write no more.
        epoch: i64,
    },
    /// The attempt is recorded; the request is sent next.
    Attempted(Attempt),
    /// The system answered, with this status.
    Answered {
        /// The HTTP status.
        status: u16,
    },
    /// The program that was the trigger ended, with this code.
    Exited {
        /// Zero where it says that all went well.
        code: i32,
    },
    /// The trace is somebody else's: there was nothing to fire.
    NotFired,
    /// The system did not answer.
    NotAnswered {
        /// What happened instead.
        message: String,
    },
    /// The trace is whole, or its time is up.
    Settled(Settlement),
    /// The run has a verdict that spans may still change before it is final.
    Provisional {
        /// What it is for now.
        verdict: Verdict,
    },
    /// The run has its verdict.
    Judged {
        /// Never changed afterwards.
        verdict: Verdict,
    },
    /// Spans came after the verdict that would have changed it.
    Overtaken(Overtaken),
}

/// A step in the life of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// From accepted to taken.
    Queue,
    /// Document to plan.
    Compile,
    /// Variables in, templates gone.
    Resolve,
    /// The request and its answer.
    Trigger,
    /// Waiting until the trace is whole.
    Settle,
    /// Evidence to verdicts.
    Judge,
    /// Waiting until a provisional verdict is final.
    Linger,
    /// Verdict and events into the record.
    Record,
}

/// When a step began and ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct StepTime {
    /// Which one.
    pub step: Step,
    /// Its begin.
    pub began: Timestamp,
    /// Its end.
    pub ended: Timestamp,
}

/// What a run ends with, and a report is made from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Outcome {
    /// The run; none where a recorded trace was judged.
    pub run_id: Option<RunId>,
    /// The test's name.
    pub test: String,
    /// The one verdict.
    pub verdict: Verdict,
    /// Whether spans may still change the verdict: the trace is complete, and has not lingered yet.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub provisional: bool,
    /// The provisional verdict, where spans replaced it before it was final.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub superseded: Option<SupersededVerdict>,
    /// The verdicts of earlier runs of the test, which were asked to be tried again. One that passed after them is flaky.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<Verdict>,
    /// Why it is inconclusive beyond what the assertions say, each with what to do.
    pub reasons: Vec<String>,
    /// Why telemetry is missing, the likeliest cause first; empty where the trace is whole.
    #[serde(default)]
    pub diagnoses: Vec<Diagnosis>,
    /// The trace under test; none where nothing was fired.
    pub trace_id: Option<TraceId>,
    /// How the trigger ended; none where nothing was fired.
    pub answer: Option<Answer>,
    /// Why the trace was taken as whole, or not; none where the test asks for no trace.
    pub settlement: Option<Settlement>,
    /// What spans that came after the verdict would have made of it, where they would have changed it.
    #[serde(default)]
    pub overtaken: Option<Overtaken>,
    /// The verdicts of the assertions, and the outputs.
    pub judgement: Judgement,
    /// What the analyzer says of the trace; none where it did not look.
    #[serde(default)]
    pub analysis: Option<Analysis>,
    /// The steps, in the order they began.
    pub steps: Vec<StepTime>,
}

impl Outcome {
    /// An outcome of which nothing is known but why.
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
            answer: None,
            settlement: None,
            overtaken: None,
            judgement: Judgement::bare(Verdict::Inconclusive),
            analysis: None,
            steps: Vec::new(),
        }
    }

    /// Whether the test passed, but not at once.
    pub fn is_flaky(&self) -> bool {
        self.verdict == Verdict::Passed && !self.earlier.is_empty()
    }
}

impl Step {
    /// The step as one word.
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
    /// What happened as one word: that under which it is written.
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
    /// The attempt, where one is recorded.
    pub fn attempt(&self) -> Option<Attempt> {
        match self {
            Self::New => None,
            Self::Attempted(attempt) | Self::Answered(attempt, _) => Some(*attempt),
        }
    }
}
