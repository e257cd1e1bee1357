//! The table of all plugins and rules, and their configuration by the user.
//!
//! Rules that Tracetest does not have are warnings by default, so the score of a configuration that was written for
//! Tracetest stays the same. Deliberately absent: parsing a document.

use model::Level;

use super::{
    cardinality, dns, finding::Findings, naming, repetition, security, standards, structure,
    world::AnalysisContext,
};

/// A group of rules with its own score.
#[derive(Clone, Copy, Debug)]
pub struct PluginInfo {
    /// Its name in documents.
    pub id: &'static str,
    /// The subject of its rules, in one line.
    pub about: &'static str,
}

/// A rule with its default settings.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// The plugin that it belongs to.
    pub plugin: &'static str,
    /// Its name in documents, different from that of every other rule.
    pub id: &'static str,
    /// The default weight of the rule in the score of its plugin.
    pub weight: u32,
    /// The default level.
    pub level: Level,
    /// The requirement, in one line.
    pub about: &'static str,
    pub(super) check: Check,
    pub(crate) reads: Reads,
}

/// The input of a rule. It determines which later data can retract a finding of the rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Ids alone, each by itself: no later data can retract a finding.
    Ids,
    /// The content of each span by itself: content that the producer of the span dropped can retract a finding.
    EachSpan,
    /// Relations between spans: further spans can retract a finding as well.
    Relations,
}

/// Adds a finding for every violation of the rule.
pub(super) type Check = fn(&AnalysisContext<'_>, &mut Findings);

/// All plugins, in the order of the report.
pub const PLUGINS: &[PluginInfo] = &[
    PluginInfo { id: "standards", about: "names and attributes follow the semantic conventions" },
    PluginInfo { id: "common", about: "habits that keep a system operable" },
    PluginInfo { id: "security", about: "connections are safe, and telemetry contains no secrets" },
    PluginInfo { id: "structure", about: "the spans of all services make one tree" },
    PluginInfo { id: "repetition", about: "no item is requested one by one" },
];

/// All rules, grouped by plugin, in the order of the report.
#[rustfmt::skip]
pub const RULES: &[RuleInfo] = &[
    counted("standards", "span-naming", 25, "a span is named as the conventions say", naming::span_naming),
    counted("standards", "required-attributes", 25, "a span has the attributes that the conventions require", standards::required_attributes),
    counted("standards", "attribute-naming", 25, "the name of an attribute has a namespace and only small letters, digits and `_`", standards::attribute_naming),
    counted("standards", "no-empty-attributes", 25, "an attribute has a value", standards::no_empty_attributes),
    rule("standards", "low-cardinality-names", 25, "the name of a span holds no id, address or query", cardinality::low_cardinality_names),
    counted("common", "prefer-dns", 100, "a peer is called by its name, not by its IP address", dns::prefer_dns),
    counted("security", "secure-https-protocol", 30, "HTTP goes over TLS", security::secure_https_protocol),
    counted("security", "no-api-key-leak", 70, "no span holds an `authorization` or `x-api-key` header", security::no_api_key_leak),
    rule("security", "no-secrets", 100, "no attribute holds a password, token, key or card number", security::no_secrets),
    rule("structure", "no-orphans", 40, "the parent of each span is in the trace", structure::no_orphans).reading(Reads::Relations),
    rule("structure", "unique-span-ids", 20, "no two different spans have one id", structure::unique_span_ids).reading(Reads::Ids),
    rule("structure", "clock-skew", 20, "a span lies within its parent, as far as clocks can tell", structure::clock_skew).reading(Reads::Relations),
    rule("structure", "server-side", 20, "a call to a service that is in the trace has its server's span", structure::server_side).reading(Reads::Relations),
    rule("repetition", "repeated-statements", 50, "one request runs no statement again and again", repetition::repeated_statements).reading(Reads::Relations),
    rule("repetition", "repeated-calls", 50, "one request makes no outgoing call again and again", repetition::repeated_calls).reading(Reads::Relations),
];

const fn counted(
    plugin: &'static str,
    id: &'static str,
    weight: u32,
    about: &'static str,
    check: Check,
) -> RuleInfo {
    RuleInfo { plugin, id, weight, level: Level::Error, about, check, reads: Reads::EachSpan }
}

const fn rule(
    plugin: &'static str,
    id: &'static str,
    weight: u32,
    about: &'static str,
    check: Check,
) -> RuleInfo {
    RuleInfo { plugin, id, weight, level: Level::Warning, about, check, reads: Reads::EachSpan }
}

impl RuleInfo {
    /// Sets the input of a rule that reads something else than each span by itself.
    const fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }
}

/// A user's configuration of all plugins and rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// The minimum score, 0 to 100.
    pub minimum_score: u32,
    plugins: Vec<PluginRules>,
}

/// A user's configuration of one plugin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRules {
    id: &'static str,
    /// Whether the plugin is enabled.
    pub is_enabled: bool,
    rules: Vec<RuleSetting>,
}

/// A user's configuration of one rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetting {
    id: &'static str,
    /// The level; `None` disables the rule.
    pub level: Option<Level>,
    /// The weight of the rule in the score of its plugin.
    pub weight: u32,
}

impl Default for Rules {
    /// Enables every plugin, with its rules as in [`RULES`].
    fn default() -> Self {
        let mut rules = Self::without_plugins();
        for plugin in &mut rules.plugins {
            plugin.is_enabled = true;
        }
        rules
    }
}

impl Rules {
    /// Creates a configuration with all plugins disabled and their rules as in [`RULES`]. A document that lists its
    /// plugins starts from it, since the plugins that it does not list must not count.
    pub fn without_plugins() -> Self {
        let rules = |plugin: &PluginInfo| {
            let own = RULES.iter().filter(|info| info.plugin == plugin.id);
            own.map(|info| RuleSetting {
                id: info.id,
                level: Some(info.level),
                weight: info.weight,
            })
            .collect()
        };
        let plugins = PLUGINS.iter().map(|plugin| PluginRules {
            id: plugin.id,
            is_enabled: false,
            rules: rules(plugin),
        });
        Self { minimum_score: 0, plugins: plugins.collect() }
    }

    /// All plugins, in the order of [`PLUGINS`].
    pub fn plugins(&self) -> &[PluginRules] {
        &self.plugins
    }

    /// Whether an enabled plugin has a rule that counts (level error) and does not only report.
    pub(crate) fn count(&self) -> bool {
        let enabled = self.plugins.iter().filter(|plugin| plugin.is_enabled);
        enabled.flat_map(|plugin| &plugin.rules).any(|rule| rule.level == Some(Level::Error))
    }

    /// Returns the plugin with this id, for changes.
    pub fn plugin_mut(&mut self, id: &str) -> Option<&mut PluginRules> {
        self.plugins.iter_mut().find(|plugin| plugin.id == id)
    }
}

impl PluginRules {
    /// Returns the id of the plugin.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// All its rules, in the order of [`RULES`].
    pub fn rules(&self) -> &[RuleSetting] {
        &self.rules
    }

    /// Returns the rule with this id, for changes.
    pub fn rule_mut(&mut self, id: &str) -> Option<&mut RuleSetting> {
        self.rules.iter_mut().find(|rule| rule.id == id)
    }
}

impl RuleSetting {
    /// Returns the id of the rule.
    pub fn id(&self) -> &'static str {
        self.id
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::{PLUGINS, RULES, Rules};

    #[test]
    fn the_tables_fit_together() {
        let ids: BTreeSet<_> = RULES.iter().map(|info| info.id).collect();
        assert_eq!(ids.len(), RULES.len(), "an id twice");
        assert!(RULES.iter().all(|info| PLUGINS.iter().any(|plugin| plugin.id == info.plugin)));
        let settings: usize = Rules::default().plugins().iter().map(|it| it.rules().len()).sum();
        assert_eq!(settings, RULES.len());
    }
}
