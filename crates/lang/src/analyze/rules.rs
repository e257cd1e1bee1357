//! The table of all plugins and rules, and how a user wants them.
//!
//! Rules that the predecessor does not have are warnings unless the user says otherwise, so the score of a
//! configuration that was written for it stays what it was. Deliberately absent: reading a document.

use model::Level;

use super::{
    cardinality, dns, finding::Findings, naming, repetition, security, standards, structure,
    world::AnalysisContext,
};

/// A group of rules with a score of its own.
#[derive(Clone, Copy, Debug)]
pub struct PluginInfo {
    /// Its name in documents.
    pub id: &'static str,
    /// What its rules are about, in one line.
    pub about: &'static str,
}

/// A rule, and what it is where nobody says otherwise.
#[derive(Clone, Copy, Debug)]
pub struct RuleInfo {
    /// The plugin that it belongs to.
    pub plugin: &'static str,
    /// Its name in documents, different from that of every other rule.
    pub id: &'static str,
    /// Its share in the score of its plugin.
    pub weight: u32,
    /// How much it matters.
    pub level: Level,
    /// What it asks for, in one line.
    pub about: &'static str,
    pub(super) check: Check,
    pub(crate) reads: Reads,
}

/// What a rule looks at, and so what can take a finding of it back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reads {
    /// Ids alone, each by itself: nothing can.
    Ids,
    /// The content of each span by itself: what its producer dropped.
    EachSpan,
    /// Spans beside each other: further spans too.
    Relations,
}

/// Adds a finding for everything that breaks the rule.
pub(super) type Check = fn(&AnalysisContext<'_>, &mut Findings);

/// All plugins, in the order in which they are told.
pub const PLUGINS: &[PluginInfo] = &[
    PluginInfo { id: "standards", about: "names and attributes follow the semantic conventions" },
    PluginInfo { id: "common", about: "habits that keep a system operable" },
    PluginInfo { id: "security", about: "connections are safe, and telemetry contains no secrets" },
    PluginInfo { id: "structure", about: "the spans of all services make one tree" },
    PluginInfo { id: "repetition", about: "no item is requested one by one" },
];

/// All rules, those of a plugin together, in the order in which they are told.
#[rustfmt::skip]
pub const RULES: &[RuleInfo] = &[
    counted("standards", "span-naming", 25, "a span is named as the conventions say", naming::span_naming),
    counted("standards", "required-attributes", 25, "a span has the attributes that the conventions require", standards::required_attributes),
    counted("standards", "attribute-naming", 25, "the name of an attribute has a namespace and only small letters, digits and `_`", standards::attribute_naming),
    counted("standards", "no-empty-attributes", 25, "an attribute has a value", standards::no_empty_attributes),
    told("standards", "low-cardinality-names", 25, "the name of a span holds no id, address or query", cardinality::low_cardinality_names),
    counted("common", "prefer-dns", 100, "a peer is called by its name, not by its IP address", dns::prefer_dns),
    counted("security", "secure-https-protocol", 30, "HTTP goes over TLS", security::secure_https_protocol),
    counted("security", "no-api-key-leak", 70, "no span holds an `authorization` or `x-api-key` header", security::no_api_key_leak),
    told("security", "no-secrets", 100, "no attribute holds a password, token, key or card number", security::no_secrets),
    told("structure", "no-orphans", 40, "the parent of each span is in the trace", structure::no_orphans).reading(Reads::Relations),
    told("structure", "unique-span-ids", 20, "no two different spans have one id", structure::unique_span_ids).reading(Reads::Ids),
    told("structure", "clock-skew", 20, "a span lies within its parent, as far as clocks can tell", structure::clock_skew).reading(Reads::Relations),
    told("structure", "server-side", 20, "a call to a service that is in the trace has its server's span", structure::server_side).reading(Reads::Relations),
    told("repetition", "repeated-statements", 50, "one request runs no statement again and again", repetition::repeated_statements).reading(Reads::Relations),
    told("repetition", "repeated-calls", 50, "one request makes no outgoing call again and again", repetition::repeated_calls).reading(Reads::Relations),
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

const fn told(
    plugin: &'static str,
    id: &'static str,
    weight: u32,
    about: &'static str,
    check: Check,
) -> RuleInfo {
    RuleInfo { plugin, id, weight, level: Level::Warning, about, check, reads: Reads::EachSpan }
}

impl RuleInfo {
    /// The same for a rule that looks at something else than each span by itself.
    const fn reading(mut self, reads: Reads) -> Self {
        self.reads = reads;
        self
    }
}

/// How a user wants all plugins and rules to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    /// What the score has to reach, 0 to 100.
    pub minimum_score: u32,
    plugins: Vec<PluginRules>,
}

/// How a user wants one plugin to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PluginRules {
    id: &'static str,
    /// Whether it takes part.
    pub is_enabled: bool,
    rules: Vec<RuleSetting>,
}

/// How a user wants one rule to be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleSetting {
    id: &'static str,
    /// How much it matters; none: it takes no part.
    pub level: Option<Level>,
    /// Its share in the score of its plugin.
    pub weight: u32,
}

impl Default for Rules {
    /// Every plugin takes part, with its rules as [`RULES`] has them.
    fn default() -> Self {
        let mut rules = Self::without_plugins();
        for plugin in &mut rules.plugins {
            plugin.is_enabled = true;
        }
        rules
    }
}

impl Rules {
    /// No plugin takes part yet, and their rules are as [`RULES`] has them: where a document begins that lists its
    /// plugins, since those that it leaves out shall not count.
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

    /// Whether any rule takes part that is more than told.
    pub(crate) fn count(&self) -> bool {
        let enabled = self.plugins.iter().filter(|plugin| plugin.is_enabled);
        enabled.flat_map(|plugin| &plugin.rules).any(|rule| rule.level == Some(Level::Error))
    }

    /// The plugin of this name, to change how it is.
    pub fn plugin_mut(&mut self, id: &str) -> Option<&mut PluginRules> {
        self.plugins.iter_mut().find(|plugin| plugin.id == id)
    }
}

impl PluginRules {
    /// Its name.
    pub fn id(&self) -> &'static str {
        self.id
    }

    /// All its rules, in the order of [`RULES`].
    pub fn rules(&self) -> &[RuleSetting] {
        &self.rules
    }

    /// Its rule of this name, to change how it is.
    pub fn rule_mut(&mut self, id: &str) -> Option<&mut RuleSetting> {
        self.rules.iter_mut().find(|rule| rule.id == id)
    }
}

impl RuleSetting {
    /// Its name.
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
