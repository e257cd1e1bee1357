//! The analyzer: checks the quality of the telemetry in a trace with rules that need no test.
//!
//! [`RULES`] is the table of all rules; [`Rules`] is the configuration of one user; [`analyze`] applies them. Each
//! plugin has a file of small functions. Tables beside them hold the requirements of the OpenTelemetry conventions. A
//! rule reads the trace as it is and never changes a verdict: the gates decide what a score or a broken rule means for
//! a run. The text of a finding contains no secret that a rule found.
//!
//! Deliberately absent: user-defined rules (claims serve that purpose), and a timeout. All rules together visit each
//! span, attribute and link a fixed number of times.

mod cardinality;
mod dns;
mod finding;
mod identifier;
mod naming;
mod repetition;
mod rules;
mod secret;
mod security;
mod standards;
mod statement;
mod structure;
mod world;

use model::{Analysis, Level, PluginAnalysis, RuleAnalysis, Trace};

pub(crate) use self::rules::Reads;
pub use self::rules::{PLUGINS, PluginInfo, PluginRules, RULES, RuleInfo, RuleSetting, Rules};
use self::{finding::Findings, world::AnalysisContext};

/// Analyzes `trace` with `rules`.
pub fn analyze(trace: &Trace, rules: &Rules) -> Analysis {
    let world = AnalysisContext::new(trace);
    let mut plugins = Vec::new();
    let mut scores = Vec::new();
    for plugin in rules.plugins().iter().filter(|plugin| plugin.is_enabled) {
        let told: Vec<_> =
            plugin.rules().iter().filter_map(|rule| apply(&world, plugin.id(), rule)).collect();
        let score = score(&told, RuleAnalysis::holds);
        scores.extend(score);
        plugins.push(PluginAnalysis {
            id: plugin.id().to_owned(),
            score: score.unwrap_or(100),
            rules: told,
        });
    }
    Analysis { score: mean(&scores), minimum_score: rules.minimum_score, plugins }
}

fn apply(world: &AnalysisContext<'_>, plugin: &str, setting: &RuleSetting) -> Option<RuleAnalysis> {
    let level = setting.level?;
    let info = RULES.iter().find(|info| info.plugin == plugin && info.id == setting.id())?;
    let mut findings = Findings::default();
    (info.check)(world, &mut findings);
    let (findings, more_findings) = findings.into_parts();
    let id = info.id.to_owned();
    Some(RuleAnalysis { id, level, weight: setting.weight, findings, more_findings })
}

/// Returns the score of the trace if exactly the rules hold for which `holds` returns true.
pub(crate) fn score_if(analysis: &Analysis, holds: impl Fn(&RuleAnalysis) -> bool) -> u32 {
    let scores = analysis.plugins.iter().filter_map(|plugin| score(&plugin.rules, &holds));
    mean(&scores.collect::<Vec<_>>())
}

/// Returns the input of the rule with this id.
pub(crate) fn reads(rule: &str) -> Reads {
    let info = RULES.iter().find(|info| info.id == rule);
    info.map_or(Reads::Relations, |info| info.reads)
}

/// Returns the weight of the rules that hold as a percentage of the weight of all rules that count (those of level
/// error). Returns `None` if no rule counts.
fn score(rules: &[RuleAnalysis], holds: impl Fn(&RuleAnalysis) -> bool) -> Option<u32> {
    let weight = |rule: &&RuleAnalysis| u64::from(rule.weight);
    let counting = || rules.iter().filter(|rule| rule.level == Level::Error);
    let all: u64 = counting().map(|rule| weight(&rule)).sum();
    let held: u64 = counting().filter(|rule| holds(rule)).map(|rule| weight(&rule)).sum();
    (held * 100).checked_div(all).and_then(|score| u32::try_from(score).ok())
}

/// Returns the mean of the plugin scores. A plugin without a rule that counts has no score and does not contribute.
fn mean(scores: &[u32]) -> u32 {
    let sum: u32 = scores.iter().sum();
    sum.checked_div(scores.len() as u32).unwrap_or(100)
}

#[cfg(test)]
mod tests {
    use model::{Finding, Level, RuleAnalysis};

    use super::{mean, score};

    fn rule(level: Level, weight: u32, holds: bool) -> RuleAnalysis {
        let finding = Finding { span_id: None, name: String::new(), message: String::new() };
        let findings = if holds { vec![] } else { vec![finding] };
        RuleAnalysis { id: String::new(), level, weight, findings, more_findings: 0 }
    }

    #[test]
    fn a_score_is_a_share_of_the_weights_that_count() {
        let cases = [
            (vec![], None),
            (vec![(Level::Error, 100, true)], Some(100)),
            (vec![(Level::Error, 100, false)], Some(0)),
            (vec![(Level::Error, 30, false), (Level::Error, 70, true)], Some(70)),
            (vec![(Level::Error, 1, true), (Level::Error, 2, false)], Some(33)),
            (vec![(Level::Error, 25, true), (Level::Warning, 75, false)], Some(100)),
            (vec![(Level::Warning, 75, false)], None),
            (vec![(Level::Error, 0, false)], None),
            (vec![(Level::Error, u32::MAX, true), (Level::Error, u32::MAX, false)], Some(50)),
        ];
        for (rules, expected) in cases {
            let rules: Vec<_> = rules.into_iter().map(|(l, w, h)| rule(l, w, h)).collect();
            assert_eq!(score(&rules, RuleAnalysis::holds), expected, "{rules:?}");
        }
    }

    #[test]
    fn a_mean_is_cut_to_a_whole_number() {
        assert_eq!(mean(&[75, 100, 30]), 68);
        assert_eq!(mean(&[0]), 0);
        assert_eq!(mean(&[]), 100);
    }
}
