//! The result of the analyzer for a trace: plugins, their rules, and the findings of each rule.

use serde::{Deserialize, Serialize};

use crate::SpanId;

/// The analyzer's result for a trace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Analysis {
    /// From 0 to 100: the mean of the plugins that take part.
    pub score: u32,
    /// The score that a trace must reach.
    pub minimum_score: u32,
    /// One for each plugin that took part.
    pub plugins: Vec<PluginAnalysis>,
}

/// The result of one plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PluginAnalysis {
    /// Its id.
    pub id: String,
    /// From 0 to 100: the share of the rules that hold in the total weight of the rules that count.
    pub score: u32,
    /// One for each rule that took part.
    pub rules: Vec<RuleAnalysis>,
}

/// The result of one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct RuleAnalysis {
    /// Its id.
    pub id: String,
    /// The severity of the rule.
    pub level: Level,
    /// Its weight in the score of its plugin.
    pub weight: u32,
    /// The findings that break the rule, at most as many as the analyzer stores; empty if the rule holds.
    pub findings: Vec<Finding>,
    /// Findings that are not listed.
    pub more_findings: u64,
}

/// The severity of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Level {
    /// It counts in the score, and for the gate on rules.
    Error,
    /// It is reported, and counts nowhere.
    Warning,
}

/// One finding that breaks a rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Finding {
    /// The span; none if the finding is about the complete trace.
    pub span_id: Option<SpanId>,
    /// Its name.
    pub name: String,
    /// The problem and its fix, in one sentence.
    pub message: String,
}

impl RuleAnalysis {
    /// Whether nothing breaks the rule.
    pub fn holds(&self) -> bool {
        self.findings.is_empty() && self.more_findings == 0
    }
}
