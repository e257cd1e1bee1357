//! The demo shop that a server can start in its own process, so that the first run of a new user has a system under test.
//!
//! The shop itself is another crate, which a server may not name: the program passes it to [`start`](crate::start) as a
//! [`DemoShop`]. [`keeper`] opens and closes it, at most one in a process. Deliberately absent: the operations of the API, which are
//! in `api`, and the content of the shop.

pub(crate) mod keeper;

use std::{fmt, future::Future, net::SocketAddr, pin::Pin};

use model::{Fault, Faulty, Secret, World};
use thiserror::Error;

use crate::config::{Config, Mode, Network};

/// The address on which the shop listens.
const LOOPBACK: std::net::IpAddr = std::net::IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// The demo shop of the program. The server knows no more of it than this.
#[derive(Clone, Copy, Debug)]
pub struct DemoShop {
    /// Returns the faults that can be switched on.
    pub faults: fn() -> Vec<DemoFault>,
    /// Returns the first test of a shop at this address, as YAML.
    pub test: fn(SocketAddr) -> String,
    /// Opens a shop. It accepts requests when the future completes, on the runtime that polls it.
    pub open: fn(DemoSettings, World) -> ShopOpening,
}

/// A shop that is being opened.
pub type ShopOpening = Pin<Box<dyn Future<Output = Result<OpenShop, DemoError>> + Send>>;

/// A fault of the shop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DemoFault {
    /// Its name, such as `n-plus-one`.
    pub name: &'static str,
    /// What is wrong with the shop then.
    pub about: &'static str,
}

/// How to open a shop.
#[derive(Clone, Debug)]
pub struct DemoSettings {
    /// The listen address; port 0 selects a free port.
    pub address: SocketAddr,
    /// The names of the faults that are switched on.
    pub faults: Vec<String>,
    /// The OTLP endpoint for its spans, by gRPC.
    pub otlp: String,
    /// The token that it sends with its spans, if senders have to authenticate.
    pub token: Option<Secret>,
}

/// A shop that accepts requests.
pub struct OpenShop {
    /// The address of its gateway.
    pub address: SocketAddr,
    /// Closes it: it responds to active requests and sends its last spans. If this is dropped instead, it ends at once.
    pub close: Pin<Box<dyn Future<Output = ()> + Send>>,
}

impl fmt::Debug for OpenShop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenShop").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Why a shop was not opened.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{reason}")]
pub struct DemoError {
    /// What a caller can do.
    pub fault: Fault,
    /// What happened.
    pub reason: String,
}

impl Faulty for DemoError {
    fn fault(&self) -> Fault {
        self.fault
    }
}

/// Returns why the shop cannot work with this configuration; `None` if it can.
pub(crate) fn obstacle(config: &Config) -> Option<&'static str> {
    if !config.roles.ingest || !config.roles.worker {
        return Some(
            "the shop needs a process that receives spans and executes runs: `server.roles` has no `ingest`, or no `worker`",
        );
    }
    if config.tls.otlp.is_some() {
        return Some("the OTLP ports have TLS (`server.otlpTls`), and the shop sends without");
    }
    let is_denied = |network: &Network| network.contains(LOOPBACK);
    if config.triggers.networks.denied.iter().any(is_denied) {
        return Some("`server.triggers.networks.deny` has the address of the shop, 127.0.0.1");
    }
    None
}

/// Returns the shop if callers may start it, or why not, and what to do.
pub(crate) fn offered(
    shop: Option<DemoShop>,
    config: &Config,
    is_own: bool,
) -> Result<DemoShop, String> {
    let refused = match (config.web.demo, obstacle(config)) {
        (Some(false), _) => Some("`server.demo` is `false`"),
        (None, _) if config.access.mode == Mode::On => {
            Some("access is on: set `server.demo: true` in the configuration of the server")
        }
        (None, _) if !is_own => {
            Some("other machines reach this server: set `server.demo: true` in its configuration")
        }
        (_, obstacle) => obstacle,
    };
    match (refused, shop) {
        (Some(reason), _) => Err(format!("the demo shop is not offered here: {reason}")),
        (None, None) => Err("the demo shop is not offered here: this program has none".to_owned()),
        (None, Some(shop)) => Ok(shop),
    }
}

#[cfg(test)]
mod tests {
    use model::Fault;
    use source::Text;

    use super::{DemoError, DemoShop, offered};
    use crate::config::{self, Config, Environment};

    fn config(text: &str) -> Config {
        let text = Text::new("config.yaml", text);
        config::read(&text, &Environment::default()).config.expect("a configuration")
    }

    /// A shop that is never opened.
    fn shop() -> DemoShop {
        DemoShop {
            faults: Vec::new,
            test: |address| address.to_string(),
            open: |_, _| {
                let reason = "it is not opened".to_owned();
                Box::pin(async { Err(DemoError { fault: Fault::Internal, reason }) })
            },
        }
    }

    /// The configuration, whether only this machine reaches the server, and a part of the reason; empty if the shop is offered.
    const CASES: &[(&str, bool, &str)] = &[
        ("", true, ""),
        ("", false, "set `server.demo: true`"),
        ("server: {auth: {mode: on}}", false, "access is on: set `server.demo: true`"),
        ("server: {auth: {mode: on}, demo: true}", false, ""),
        ("server: {demo: true}", true, ""),
        ("server: {demo: false}", true, "`server.demo` is `false`"),
        ("server: {roles: [api]}\nnats: {endpoint: 'nats://a:1'}", true, "has no `ingest`"),
        (
            "server: {roles: [api, ingest], demo: true}\nnats: {endpoint: 'nats://a:1'}",
            true,
            "no `worker`",
        ),
        ("server: {otlpTls: {cert: a, key: b}, demo: true}", true, "have TLS"),
        ("server: {triggers: {networks: {deny: [loopback]}}}", true, "networks.deny"),
        (
            "server: {triggers: {networks: {deny: [127.0.0.0/8]}}, demo: true}",
            false,
            "networks.deny",
        ),
        ("server: {triggers: {networks: {allow: [public]}}}", true, ""),
    ];

    #[test]
    fn the_shop_is_offered_where_one_machine_reaches_the_server_or_by_configuration() {
        for (text, is_own, reason) in CASES {
            let found = offered(Some(shop()), &config(text), *is_own);
            match found {
                Ok(DemoShop { .. }) => assert_eq!(*reason, "", "{text}"),
                Err(why) => assert!(!reason.is_empty() && why.contains(reason), "{text}: {why}"),
            }
        }
        let why = offered(None, &config(""), true).err();
        assert!(why.is_some_and(|why| why.contains("this program has none")));
    }
}
