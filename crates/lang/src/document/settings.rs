//! Documents that configure how runs settle and are analyzed and judged: settle profiles, analyzers, quality gates.

use std::time::Duration;

use model::{Level, Place, TestId};
use source::{Diagnostics, Item, Scalar, Span, did_you_mean};

use super::{WAIT_MAX, place_of, read_name, take_read_only};
use crate::analyze::{PLUGINS, PluginRules, RULES, Rules};

/// The id of the analyzer and of the quality gate that apply to runs; also the default id of both documents.
pub const CURRENT: &str = "current";

/// The time that runs wait for a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleProfile {
    /// The id under which it is stored.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// Whether it applies to tests that name no profile.
    pub is_default: bool,
    /// The value for `settle.timeout` of the tests; Tracetest has it under `periodic`.
    pub timeout: Option<Duration>,
}

/// The rules by which a trace is analyzed, and the minimum of its score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Analyzer {
    /// The id under which it is stored.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// Whether traces are analyzed.
    pub is_enabled: bool,
    /// The enabled rules and their weights.
    pub rules: Rules,
    /// The span of its id, or of its start if it has no id.
    pub(super) head: Span,
}

/// The requirements that a run has to pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QualityGate {
    /// The id under which it is stored.
    pub id: Option<String>,
    /// The display name.
    pub name: Option<String>,
    /// The gates that all have to pass.
    pub required_gates: Vec<RequiredGate>,
    /// The span of its id, or of its start if it has no id.
    pub(super) head: Span,
}

/// A required gate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequiredGate {
    /// The gate.
    pub gate: Gate,
    /// The location in the document.
    pub place: Place,
}

/// A kind of requirement for runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// `analyzer-score`: the score reaches its minimum.
    AnalyzerScore,
    /// `analyzer-rules`: no rule of level error is broken.
    AnalyzerRules,
    /// `test-specs`: specs and claims hold.
    TestSpecs,
}

/// The descriptive keys that an export adds to a plugin or rule.
const READ_ONLY: &[&str] = &["name", "description", "errorDescription", "tips"];

impl SettleProfile {
    /// Returns the key by which tests name it: its id, else one derived from its name; `None` if no id can be derived.
    pub fn key(&self) -> Option<String> {
        match (&self.id, &self.name) {
            (Some(id), _) => Some(id.clone()),
            (None, Some(name)) => TestId::from_name(name).ok().map(|id| id.to_string()),
            (None, None) => Some(CURRENT.to_owned()),
        }
    }

    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        let is_default = fields.boolean("default").unwrap_or(false);
        fields.choice("strategy", &[("periodic", ()), ("no-polling", ())]);
        let own = fields.take("timeout");
        let periodic = fields.table("periodic");
        take_read_only(&mut fields, &["createdAt"]);
        fields.finish();
        let is_own = own.is_some();
        let own = own.and_then(|wait| read_timeout(&wait, found));
        let timeout = own.or(periodic.and_then(|mut periodic| {
            let timeout = periodic.take("timeout");
            if let Some(timeout) = timeout.as_ref().filter(|_| is_own) {
                let message = "`timeout` is given twice: under `spec` and under `periodic`";
                found.push(found.error(timeout.head(), message).help("remove one of the two"));
            }
            let timeout = timeout.and_then(|wait| read_timeout(&wait, found));
            for key in ["retryDelay", "selectorMatchRetries"] {
                if let Some(item) = periodic.take(key) {
                    item.text();
                    let note = found.note(item.head(), format!("`{key}` is ignored"));
                    found.push(note.help("nothing is polled here: spans are judged as they come"));
                }
            }
            periodic.finish();
            timeout
        }));
        Some(Self { id: id.map(written), name: name.map(written), is_default, timeout })
    }
}

/// Parses the timeout of a profile, limited to the maximum of a test.
fn read_timeout(item: &Item<'_>, found: &Diagnostics) -> Option<Duration> {
    let timeout = item.duration()?;
    if timeout > WAIT_MAX {
        let warning = found.warning(item.head(), "nothing waits for longer than 1h");
        found.push(warning.help("1h is taken for it"));
    }
    Some(timeout.min(WAIT_MAX))
}

impl Analyzer {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        let is_enabled = fields.boolean("enabled").unwrap_or(true);
        let minimum_score = fields.integer("minimumScore", 0..=100).unwrap_or(0);
        let plugins = fields.list("plugins");
        take_read_only(&mut fields, &["createdAt"]);
        fields.finish();
        // A document that lists plugins enables only these.
        let mut rules = match plugins {
            None => Rules::default(),
            Some(_) => Rules::without_plugins(),
        };
        rules.minimum_score = minimum_score;
        for plugin in plugins.iter().flatten() {
            read_plugin(plugin, &mut rules, found);
        }
        if is_enabled && !rules.count() {
            let message = "no rule counts: every trace has the score 100 and passes every gate";
            let warning = found.warning(item.head(), message);
            found.push(
                warning.help(
                    "list a plugin with a rule of `errorLevel: error`, or leave `plugins` out",
                ),
            );
        }
        let head = id.map_or(item.head(), |id| id.span);
        let (id, name) = (id.map(written), name.map(written));
        Some(Self { id, name, is_enabled, rules, head })
    }
}

fn read_plugin(item: &Item<'_>, rules: &mut Rules, found: &Diagnostics) -> Option<()> {
    let mut fields = item.fields()?;
    let id = fields.require("id").and_then(|id| id.text());
    let is_enabled = fields.boolean("enabled").unwrap_or(true);
    let listed = fields.list("rules").unwrap_or_default();
    take_read_only(&mut fields, READ_ONLY);
    fields.finish();
    let names = PLUGINS.iter().map(|plugin| plugin.id);
    let id = id.filter(|id| is_known(id, "there is no plugin", names, found))?;
    let plugin = rules.plugin_mut(&id.text)?;
    plugin.is_enabled = is_enabled;
    for rule in &listed {
        read_rule(rule, plugin, found);
    }
    Some(())
}

fn read_rule(item: &Item<'_>, plugin: &mut PluginRules, found: &Diagnostics) -> Option<()> {
    let mut fields = item.fields()?;
    let id = fields.require("id").and_then(|id| id.text());
    let weight = fields.integer("weight", 0..=100);
    let level = fields.choice(
        "errorLevel",
        &[("error", Some(Level::Error)), ("warning", Some(Level::Warning)), ("disabled", None)],
    );
    take_read_only(&mut fields, READ_ONLY);
    fields.finish();
    let of_plugin = plugin.id();
    let known = RULES.iter().filter(|rule| rule.plugin == of_plugin).map(|rule| rule.id);
    let id = id.filter(|id| is_known(id, "this plugin has no rule", known, found))?;
    let rule = plugin.rule_mut(&id.text)?;
    rule.weight = weight.unwrap_or(rule.weight);
    rule.level = level.unwrap_or(rule.level);
    Some(())
}

fn is_known<'a>(
    id: &Scalar,
    unknown: &str,
    mut known: impl Iterator<Item = &'a str> + Clone,
    found: &Diagnostics,
) -> bool {
    let names = known.clone();
    let is_known = known.any(|name| name == id.text);
    if !is_known {
        let mistake = found.error(id.span, format!("{unknown} `{}`", id.text));
        found.push(match did_you_mean(&id.text, names.clone()) {
            Some(name) => mistake.suggest(Some(name)),
            None => {
                let names: Vec<_> = names.map(|name| format!("`{name}`")).collect();
                mistake.help(format!("there are {}", names.join(", ")))
            }
        });
    }
    is_known
}

impl QualityGate {
    pub(super) fn read(item: &Item<'_>, found: &Diagnostics) -> Option<Self> {
        let mut fields = item.fields()?;
        let (id, name) = read_name(&mut fields);
        let gates = fields.take("requiredGates");
        take_read_only(&mut fields, &["createdAt"]);
        fields.finish();
        let listed = gates.as_ref().and_then(Item::list).unwrap_or_default();
        let required_gates: Vec<_> =
            listed.iter().filter_map(|gate| read_gate(gate, found)).collect();
        let has_specs = required_gates.iter().any(|required| required.gate == Gate::TestSpecs);
        let is_read = required_gates.len() == listed.len();
        if let Some(gates) = gates.filter(|_| is_read && !has_specs) {
            let message = "specs and claims count whether or not `test-specs` is required";
            let warning = found.warning(gates.head(), message);
            found.push(warning.help("add `test-specs`; to judge less, write less into the tests"));
        }
        let head = id.map_or(item.head(), |id| id.span);
        Some(Self { id: id.map(written), name: name.map(written), required_gates, head })
    }
}

fn read_gate(item: &Item<'_>, found: &Diagnostics) -> Option<RequiredGate> {
    let gate = item.choice(&[
        ("analyzer-score", Gate::AnalyzerScore),
        ("analyzer-rules", Gate::AnalyzerRules),
        ("test-specs", Gate::TestSpecs),
    ])?;
    Some(RequiredGate { gate, place: place_of(item.text()?, found.text()) })
}

fn written(scalar: &Scalar) -> String {
    scalar.text.clone()
}
