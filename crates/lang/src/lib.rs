//! The test language: read, compile, resolve, judge.
//!
//! ```text
//! text --read--> documents --compile--> plan --resolve--> what is sent and checked --judge--> verdicts
//! ```
//!
//! [`read`] takes a file apart and [`compile`] understands the strings in it; both tell every mistake at once, as
//! diagnostics that point at the place, also inside a YAML string; [`plans`] does both for a whole file. [`resolve`]
//! fills in variables and draws what chance and time give, [`judge`] holds the evidence of a run against it. Beside
//! these: [`select`] and [`explain`](explain_plan) show what a selector does, [`format`](fn@format) writes the embedded
//! strings in their one form, [`analyze`](fn@analyze) holds a trace against rules, [`schema`](fn@schema) describes the
//! documents to editors.
//!
//! `syntax` knows strings and trees, `value` knows values, `eval` knows what a tree says of a trace, `document` knows
//! YAML. The grammar is in `docs/language/grammar.md`, the decisions behind it in `docs/adr/0010-claims.md`.
//!
//! Deliberately absent: network, clock, randomness, files. Whatever the input is, nothing here panics.

mod analyze;
mod awaited;
mod budget;
mod compile;
mod coverage;
mod document;
mod eval;
mod explain;
mod format;
mod gates;
mod judge;
mod plan;
mod planned_test;
mod request;
mod schema;
mod secrets;
mod selection;
mod storable;
mod syntax;
mod value;

pub use analyze::{PLUGINS, PluginInfo, PluginRules, RULES, RuleInfo, RuleSetting, Rules, analyze};
pub use budget::{Cancel, Work, is_cancelled};
pub use compile::compile;
pub use coverage::{Coverage, coverage, trigger};
pub use document::{
    Analyzer, Document, FileRef, Gate, QualityGate, Reference, RequiredGate, SettleProfile, Step,
    Test, TestSuite, TraceStore, Variable, VariableSet, kinds_beside_test, read, trace_store,
};
pub use eval::decided::DecidedBy;
pub use eval::resolve::{Vars, resolve};
pub use explain::{
    ExplainedSpec, ExplainedStatement, Explanation, SelectorExplanation, SelectorStep, SpanSample,
    explain_plan, explain_selector,
};
pub use format::{FormattedText, format};
pub use gates::{CURRENT, Gates};
pub use judge::{Evidence, StepOutput, analysis, judge, judge_measured, outputs};
pub use plan::{Plan, ResolvedPlan, Settle};
pub use planned_test::{PlannedTest, plans, plans_if_any};
pub use request::{Files, ResolveError, ResolvedRequest, request, secrets};
pub use schema::schema;
pub use secrets::Secrets;
pub use selection::select;
pub use storable::{StorableDocument, storable_documents};
pub use value::function::Seed;
