//! A summary of the analyzer's result.

use model::{Analysis, RuleAnalysis};

use crate::{points::NAME_CHARS_MAX, text::shown, totals::counted};

/// The upper bound for broken rules that are listed.
const RULES_MAX: usize = 20;

/// Returns the score and the minimum score.
pub(crate) fn score(analysis: &Analysis) -> String {
    format!("score {}, at least {} required", analysis.score, analysis.minimum_score)
}

/// Returns a line for each broken rule.
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

/// Returns the number of findings of a rule.
pub(crate) fn findings(rule: &RuleAnalysis) -> u64 {
    rule.more_findings.saturating_add(rule.findings.len() as u64)
}
