//! What the analyzer says of a trace: plugins, their rules, and what each rule found.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// How well a trace keeps the rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Analysis {
    /// From 0 to 100: the mean of the plugins that take part.
    pub score: u32,
    /// What the score has to reach.
    pub minimum_score: u32,
    /// One for each plugin that took part.
    pub plugins: Vec<PluginAnalysis>,
}

/// What the rules of one plugin say.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginAnalysis {
    /// Its id.
    pub id: String,
    /// From 0 to 100: the share that the rules which hold have of the weights of those that count.
    pub score: u32,
    /// One for each rule that took part.
    pub rules: Vec<RuleAnalysis>,
}

/// What one rule says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleAnalysis {
    /// Its id.
    pub id: String,
    /// How much it matters.
    pub level: Level,
    /// Its share in the score of its plugin.
    pub weight: u32,
    /// What breaks it, at most as many as the analyzer keeps; none where it holds.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more_findings: u64,
}

/// How much a rule matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// It counts in the score, and for the gate on rules.
    Error,
    /// It is told and counts nowhere.
    Warning,
}

/// One thing that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// The span; none where it is about the whole trace.
    pub span_id: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// What is wrong and what to do, in one sentence.
    pub message: String,
}

impl RuleAnalysis {
    /// Whether nothing breaks it.
    pub fn holds(&self) -> bool {
        self.findings.is_empty() && self.more_findings == 0
    }
}
