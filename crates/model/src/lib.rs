//! The shared types of Qualitytrace: ids, traces, requests and responses, runs, verdicts.
//!
//! Everything here is a plain value. Deliberately absent: async, I/O, the clock, random numbers (the caller passes in all
//! four), and the test language with its documents, in which every word has a location; they are in `lang`.

mod analysis;
mod answer;
mod diagnosis;
mod error_code;
mod fault;
mod id;
mod judgement;
mod kind;
mod learned;
mod recorded_request;
mod request;
mod role;
mod run;
mod secret;
mod settlement;
mod statement_evidence;
mod store;
mod text_mut;
mod time;
pub mod trace;
mod trace_id;
mod verdict;
mod world;

pub use analysis::{Analysis, Finding, Level, PluginAnalysis, RuleAnalysis};
pub use answer::{Answer, Body, Exit, NoAnswer, NoAnswerKind, Reply, Response, TriggerStatus};
pub use diagnosis::{Cause, Diagnosis};
pub use error_code::{ErrorCode, ErrorPage};
pub use fault::{Fault, Faulty};
pub use id::{InvalidId, Project, RunId, SpanId, TestId, TokenId, TraceId};
pub use judgement::{
    AssertionJudgement, ClaimJudgement, DecisionBasis, Judgement, OutputValue, Place, SpanEvidence,
    SpecJudgement, TreeSpan,
};
pub use kind::{DocumentKind, UnknownKind};
pub use learned::{AbsentParents, LearnedProfile, LearnedService, LearnedTest};
pub use recorded_request::RecordedRequest;
pub use request::{
    CallRequest, CallValue, Command, ContextCarrier, ExecRequest, HttpRequest, Identity,
    Propagator, Request, Tls, Verify,
};
pub use role::Role;
pub use run::{Attempt, Outcome, Progress, RunEvent, Step, StepTime, What};
pub use secret::Secret;
pub use settlement::{
    Arrivals, Because, Overtaken, ProcessQuiet, Settlement, StoreGap, StoreQueries,
    SupersededVerdict, UnansweredPeer, UnsettledReason,
};
pub use statement_evidence::{
    ComparisonEvidence, EvidenceList, EvidenceRange, EvidenceValue, GroupEvidence, GroupKeyPart,
    GroupsEvidence, NearMiss, StatementEvidence,
};
pub use store::{SpanDetail, StoreConfig};
pub use text_mut::TextMut;
pub use time::Timestamp;
pub use trace::Trace;
pub use trace_id::{BusSlot, InvalidKey, Key, KeyRing};
pub use verdict::Verdict;
pub use world::World;
