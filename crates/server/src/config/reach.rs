//! `server.triggers` and `server.stores`: the targets that tests of other people, and the trace stores of their projects, may reach; and
//! `server.trustedProxies`: the trusted proxies.

pub use net::Network;
use net::Networks;
use source::{Fields, Item};

/// The settings of the network rules.
const OF_TRIGGERS: &str = "server.triggers.networks";
const OF_STORES: &str = "server.stores.networks";

/// The targets that tests of other people may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Triggers {
    /// The programs that an `exec` trigger may start, by their path; none by default.
    pub exec_allowed: Vec<String>,
    /// The environment variables that a test may set for such a program; none by default.
    pub exec_env: Vec<String>,
    /// The networks that triggers may reach.
    pub networks: NetworkRules,
}

/// The networks that something may reach.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkRules {
    /// The setting, for messages.
    setting: &'static str,
    /// The only networks that may be reached. If empty: the public networks, or all networks if only programs on this machine
    /// can send requests.
    pub allowed: Vec<Network>,
    /// The networks that may not be reached; these override all other rules.
    pub denied: Vec<Network>,
}

impl NetworkRules {
    /// Returns the rules for addresses. Without rules, a server of one person reaches everything: `is_own` means that only this
    /// machine can reach it and that authentication is off. Behind a proxy on the same machine there may be many callers.
    pub(crate) fn networks(&self, is_own: bool) -> Networks {
        let base = match self.allowed.is_empty() {
            false => Networks::new(self.setting, self.allowed.clone(), Vec::new()),
            true if is_own => Networks::all(self.setting),
            true => Networks::public(self.setting),
        };
        base.without(self.denied.clone())
    }

    fn read(setting: &'static str, mut section: Fields<'_>) -> Self {
        let mut list = |key: &str| networks(&section.list(key).unwrap_or_default());
        let (allowed, denied) = (list("allow"), list("deny"));
        section.finish();
        Self { setting, allowed, denied }
    }
}

/// Reads `server.stores`: the networks that runs may reach to query trace stores.
pub(super) fn stores(mut fields: Fields<'_>) -> NetworkRules {
    let rules = NetworkRules::read(OF_STORES, fields.section("networks"));
    fields.finish();
    rules
}

pub(super) fn read(mut fields: Fields<'_>) -> Triggers {
    let mut exec = fields.section("exec");
    let mut list = |key: &str| strings(&exec.list(key).unwrap_or_default());
    let (exec_allowed, exec_env) = (list("allow"), list("env"));
    exec.finish();
    let networks = NetworkRules::read(OF_TRIGGERS, fields.section("networks"));
    fields.finish();
    Triggers { exec_allowed, exec_env, networks }
}

/// Parses the addresses of proxies. Refuses names and `0.0.0.0/0`: a trusted proxy chooses the addresses of all callers.
pub(super) fn proxies(items: &[Item<'_>]) -> Vec<Network> {
    let proxy = |item: &Item<'_>| {
        let network = item.string()?.parse().ok();
        let network = network.filter(
            |network| matches!(network, Network::Within(within) if within.prefix_len() > 0),
        );
        if network.is_none() {
            item.misfit("the address of a proxy, or a network of them such as `10.0.0.0/8`");
        }
        network
    };
    items.iter().filter_map(proxy).collect()
}

pub(super) fn strings(items: &[Item<'_>]) -> Vec<String> {
    items.iter().filter_map(|item| item.string().map(str::to_owned)).collect()
}

fn networks(items: &[Item<'_>]) -> Vec<Network> {
    let network = |item: &Item<'_>| {
        let network = item.string()?.parse().ok();
        if network.is_none() {
            item.misfit(
                "`public`, `private`, `loopback`, an address, or a network such as `10.0.0.0/8`",
            );
        }
        network
    };
    items.iter().filter_map(network).collect()
}
