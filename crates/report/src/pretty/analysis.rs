//! The analyzer's result: the score, each plugin, and the broken rules.
//!
//! Deliberately absent: whether a low score fails the test. The user's gate decides that, and the verdict includes it.

use model::{Analysis, Level, PluginAnalysis, RuleAnalysis};

use super::page::{GAP, Page, Paint, Signs, columns};
use crate::{
    analysis::{findings, score},
    points::{NAME_CHARS_MAX, VALUE_CHARS_MAX},
    text::shown,
    totals::counted,
};

/// The upper bound for findings of a rule that are listed.
const FINDINGS_MAX: usize = 5;
/// The upper bound for a span name beside a finding, in characters.
const SPAN_NAME_CHARS_MAX: usize = 48;

pub(super) fn section(page: &mut Page, analysis: Option<&Analysis>) {
    let Some(analysis) = analysis else { return };
    page.gap();
    let paint = if analysis.score < analysis.minimum_score { Paint::Bad } else { Paint::Good };
    let score = page.paint(paint, &score(analysis));
    page.line(0, &format!("analyzer: {score}"));
    for plugin in &analysis.plugins {
        let broken: Vec<&RuleAnalysis> = plugin.rules.iter().filter(|rule| !rule.holds()).collect();
        page.line(2, &plugin_line(plugin, broken.len()));
        for rule in broken {
            rule_lines(page, rule);
        }
    }
}

fn plugin_line(plugin: &PluginAnalysis, broken: usize) -> String {
    let id = shown(&plugin.id, NAME_CHARS_MAX);
    let rules = counted(plugin.rules.len() as u64, "rule");
    let rules = match broken {
        0 => format!("{rules}, all kept"),
        broken => format!("{rules}, {broken} broken"),
    };
    format!("{id}: score {} ({rules})", plugin.score)
}

fn rule_lines(page: &mut Page, rule: &RuleAnalysis) {
    let number = findings(rule);
    let id = shown(&rule.id, NAME_CHARS_MAX);
    let mark = match (page.signs, rule.level) {
        (Signs::Drawn, Level::Error) => page.paint(Paint::Bad, "✘"),
        (Signs::Drawn, Level::Warning) => page.paint(Paint::Doubt, "!"),
        (Signs::Words, Level::Error) => "error:".to_owned(),
        (Signs::Words, Level::Warning) => "warning:".to_owned(),
    };
    page.line(4, &format!("{mark} {id}: {}", counted(number, "finding")));
    let listed = &rule.findings[..rule.findings.len().min(FINDINGS_MAX)];
    let names: Vec<String> =
        listed.iter().map(|finding| shown(&finding.name, SPAN_NAME_CHARS_MAX)).collect();
    let width = columns(names.iter().map(String::as_str));
    for (finding, name) in listed.iter().zip(&names) {
        let message = shown(&finding.message, VALUE_CHARS_MAX);
        let name = match width {
            0 => String::new(),
            width => format!("{name:<width$}{GAP}"),
        };
        page.line(6, &format!("{name}{message}"));
    }
    match number - listed.len() as u64 {
        0 => {}
        more => page.line(6, &format!("and {}", counted(more, "more finding"))),
    }
}
