//! Tests of the analyzer on written traces: the findings of each rule for each span, the scores, and no trace is too large for
//! it.

mod hostile;
mod notation;
mod score;

use std::{collections::BTreeSet, fs, path::Path};

use golden::Golden;
use lang::{RULES, RuleInfo, Rules, analyze};
use model::{Level, RuleAnalysis, Trace};

/// `cases/RULE.case`, or `cases/RULE.WHAT.case`, has a trace and the findings of the rule. Each rule has a case with findings for
/// some spans and none for others.
#[test]
fn each_rule_says_what_its_cases_show() {
    let mut golden = Golden::default();
    let mut shown = BTreeSet::new();
    for file in golden::files(&here().join("cases"), &["case"]) {
        let name = file.file_name().and_then(|name| name.to_str()).expect("a name in letters");
        let id = name.split('.').next().unwrap_or_default();
        let info = RULES.iter().find(|info| info.id == id).expect("a case is named after a rule");
        let text = fs::read_to_string(&file).expect("a case can be read");
        let given = text.split("\n---\n").next().unwrap_or_default();
        let trace = notation::trace(given);
        let told = only(&trace, info);
        let spans: BTreeSet<_> = told.findings.iter().filter_map(|it| it.span_id).collect();
        if !spans.is_empty() && spans.len() < trace.len() {
            shown.insert(id.to_owned());
        }
        golden.compare(&file, &format!("{given}\n---\n{}", written(&told)));
    }
    golden.finish(RULES.len());
    let all: BTreeSet<_> = RULES.iter().map(|info| info.id.to_owned()).collect();
    assert_eq!(shown, all, "each rule has a case where it holds for some spans");
}

/// The documentation has a line for each rule, with its default.
#[test]
fn the_documentation_is_about_these_rules() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/analyzer.md");
    let text = fs::read_to_string(file).expect("the documentation can be read");
    for info in RULES {
        let level = match info.level {
            Level::Error => "error",
            Level::Warning => "warning",
        };
        let start = format!("| `{}` | `{}` | {} | `{level}` |", info.plugin, info.id, info.weight);
        let lines = text.lines().filter(|line| line.starts_with(&start)).count();
        assert_eq!(lines, 1, "{start}");
    }
    let told = text.lines().filter(|line| {
        RULES.iter().any(|info| line.starts_with(&format!("| `{}` |", info.plugin)))
    });
    assert_eq!(told.count(), RULES.len(), "a line about a rule that is not there");
}

/// Returns the findings of one rule.
fn only(trace: &Trace, info: &RuleInfo) -> RuleAnalysis {
    let mut rules = Rules::without_plugins();
    let plugin = rules.plugin_mut(info.plugin).expect("it is in the table");
    plugin.is_enabled = true;
    for other in RULES.iter().filter(|other| other.plugin == info.plugin && other.id != info.id) {
        plugin.rule_mut(other.id).expect("it is in the table").level = None;
    }
    let mut analysis = analyze(trace, &rules);
    let mut plugin = analysis.plugins.pop().expect("one takes part");
    assert_eq!((analysis.plugins.len(), plugin.rules.len()), (0, 1));
    plugin.rules.pop().expect("one takes part")
}

fn written(told: &RuleAnalysis) -> String {
    let mut text = String::new();
    for finding in &told.findings {
        let id = finding.span_id.map(|id| id.to_string()).unwrap_or_default();
        text.push_str(&format!("{} {}\n  {}\n", &id[14..], finding.name, finding.message));
    }
    match told.more_findings {
        0 => text,
        more => format!("{text}and {more} more\n"),
    }
}

fn here() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/analyze"))
}
