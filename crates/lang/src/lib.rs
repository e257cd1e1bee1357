//! The test language: parse, compile, resolve, judge.
//!
//! ```text
//! text --read--> documents --compile--> plan --resolve--> what is sent and checked --judge--> verdicts
//! ```
//!
//! [`read`] parses a file into documents, [`compile`] parses the strings in a document. Both report all diagnostics at once, each
//! with its location, also inside a YAML string. [`plans`] does both for a complete file. [`resolve`] fills in variables and
//! generates the random and time values. [`judge`] evaluates the resolved plan on the evidence of a run. In addition: [`select`]
//! and [`explain`](explain_plan) show what a selector matches, [`format`](fn@format) prints the embedded strings in canonical
//! form, [`analyze`](fn@analyze) checks a trace against rules, [`schema`](fn@schema) describes the documents to editors.
//!
//! `syntax` has the syntax trees, their parser and their printer. `value` has the values, `eval` evaluates a tree on a trace,
//! `document` parses YAML. The grammar is in `docs/language/grammar.md`, the decisions behind it in `docs/adr/0010-claims.md`.
//!
//! Deliberately absent: network, clock, randomness, files. No input makes this crate panic.

mod analyze;
mod awaited;
mod budget;
mod compile;
mod coverage;
mod document;
mod eval;
mod explain;
mod external_effects;
mod format;
mod gates;
mod judge;
mod plan;
mod planned_test;
mod request;
mod resolve;
mod resolve_error;
mod schema;
mod secrets;
mod selection;
mod storable;
mod syntax;
mod value;
mod vars;

pub use analyze::{PLUGINS, PluginInfo, PluginRules, RULES, RuleInfo, RuleSetting, Rules, analyze};
pub use budget::{Cancel, Work, is_cancelled};
pub use compile::compile;
pub use coverage::{Coverage, coverage, trigger};
pub use document::{
    Analyzer, CURRENT, Document, FileRef, Gate, NoticeContext, QualityGate, Reference,
    RequiredGate, Settle, SettleProfile, Step, StoreInputs, Test, TestSuite, TraceStore, Variable,
    VariableSet, kinds_beside_test, read, trace_store,
};
pub use eval::decided::DecidedBy;
pub use explain::{
    ExplainedSpec, ExplainedStatement, Explanation, SelectorExplanation, SelectorStep, SpanSample,
    explain_plan, explain_selector,
};
pub use external_effects::{Destination, ExternalEffects};
pub use format::{FormattedText, format};
pub use gates::Gates;
pub use judge::{BeyondStore, Evidence, StepOutput, analysis, judge, judge_measured, outputs};
pub use plan::{Plan, ResolvedPlan};
pub use planned_test::{PlannedTest, plans, plans_if_any};
pub use request::{Files, ResolvedRequest, request, secrets};
pub use resolve::resolve;
pub use resolve_error::ResolveError;
pub use schema::{DOCUMENT_FORMAT, schema};
pub use secrets::Secrets;
pub use selection::{SelectionError, select, select_within_budget};
pub use storable::{StorableDocument, storable_documents};
pub use value::function::Seed;
pub use vars::Vars;
