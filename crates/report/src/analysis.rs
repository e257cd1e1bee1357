//! What the analyzer says, in short.

use model::{Analysis, RuleAnalysis};

use crate::{points::NAME_CHARS_MAX, text::shown, totals::counted};

/// How many broken rules are named.
const RULES_MAX: usize = 20;

/// The score, and what it has to reach.
pub(crate) fn score(analysis: &Analysis) -> String {
    format!("score {}, at least {} required", analysis.score, analysis.minimum_score)
}

/// A line for each broken rule.
pub(crate) fn broken(analysis: &Analysis) -> Vec<String> {
    let rules = analysis.plugins.iter().flat_map(|plugin| {
        plugin.rules.iter().filter(|rule| !rule.holds()).map(|rule| {
            let (plugin, rule_id) =
                (shown(&plugin.id, NAME_CHARS_MAX), shown(&rule.id, NAME_CHARS_MAX));
            format!("{plugin}: {rule_id}: {}", counted(findings(rule), "finding"))
        })
    });
    rules.take(RULES_MAX).collect()
}

/// How often a rule is broken.
pub(crate) fn findings(rule: &RuleAnalysis) -> u64 {
    rule.more_findings.saturating_add(rule.findings.len() as u64)
}
