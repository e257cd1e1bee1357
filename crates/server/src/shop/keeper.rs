//! The one demo shop of a process: opened and closed by callers, and closed for good when the server shuts down.
//!
//! A shop that is opened again with other faults keeps its address, so that a test of it stays right. While it is open, its address
//! is the one target that triggers reach in addition to their network rules; and if senders of spans have to authenticate, it has a
//! token of its own. Deliberately absent: a shop for each project. All callers of a server share one.

use std::{
    net::{IpAddr, SocketAddr},
    sync::{Arc, OnceLock},
};

use model::{Fault, Project, World};
use net::ExtraTarget;
use tokio::{runtime, sync::Mutex};

use super::{DemoError, DemoFault, DemoSettings, DemoShop, LOOPBACK, OpenShop};
use crate::access::Access;

/// Opens and closes the shop. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct ShopKeeper(Arc<KeeperState>);

#[derive(Debug)]
struct KeeperState {
    /// The shop, or why it is not offered.
    shop: Result<DemoShop, String>,
    /// Where its spans go, once the server listens.
    otlp: OnceLock<SocketAddr>,
    /// What triggers may reach in addition.
    target: ExtraTarget,
    /// Gives the shop a token, if senders of spans have to authenticate.
    senders: Option<Arc<Access>>,
    world: World,
    /// The runtime on which the shop runs: telemetry is suppressed on the control runtime.
    work: runtime::Handle,
    state: Mutex<ShopState>,
}

/// The state of the shop. The lock is held while it opens and closes, so that there is never a second one.
#[derive(Debug, Default)]
struct ShopState {
    open: Option<(OpenShop, Vec<String>)>,
    /// The address that it had before.
    last: Option<SocketAddr>,
    /// Whether the server shuts down.
    is_shut: bool,
}

/// What callers see of an open shop.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ShopWindow {
    /// The address of its gateway.
    pub(crate) address: SocketAddr,
    /// The names of the faults that are switched on.
    pub(crate) faults: Vec<String>,
}

impl ShopKeeper {
    /// `senders` is none if senders of spans need no token. `work` is the runtime for the shop.
    pub(crate) fn new(
        shop: Result<DemoShop, String>,
        senders: Option<Arc<Access>>,
        world: World,
        work: runtime::Handle,
    ) -> Self {
        Self(Arc::new(KeeperState {
            shop,
            otlp: OnceLock::new(),
            target: ExtraTarget::default(),
            senders,
            world,
            work,
            state: Mutex::default(),
        }))
    }

    /// Sets the address on which the server receives OTLP by gRPC.
    pub(crate) fn send_to(&self, otlp: SocketAddr) {
        // It is set once.
        let _known = self.0.otlp.set(otlp);
    }

    /// Returns the target that is allowed as long as the shop is open.
    pub(crate) fn target(&self) -> ExtraTarget {
        self.0.target.clone()
    }

    /// Returns the shop, or why it is not offered.
    pub(crate) fn offered(&self) -> Result<DemoShop, DemoError> {
        let missing = |reason: &String| DemoError { fault: Fault::Missing, reason: reason.clone() };
        self.0.shop.as_ref().copied().map_err(missing)
    }

    /// Returns the open shop, if it is open.
    pub(crate) async fn window(&self) -> Option<ShopWindow> {
        let state = self.0.state.lock().await;
        let (shop, faults) = state.open.as_ref()?;
        Some(ShopWindow { address: shop.address, faults: faults.clone() })
    }

    /// Opens the shop with these faults for a project. One that is open with other faults is closed before.
    pub(crate) async fn open(
        &self,
        faults: &[String],
        project: &Project,
    ) -> Result<ShopWindow, DemoError> {
        let shop = self.offered()?;
        let faults = chosen((shop.faults)(), faults)?;
        if let Some(senders) = &self.0.senders {
            let reason = "the shop sends spans for as many projects as it can already";
            let full = || DemoError { fault: Fault::Conflict, reason: reason.to_owned() };
            senders.shop.admit(project, self.0.world).then_some(()).ok_or_else(full)?;
        }
        // A caller that goes away leaves no shop half open.
        let keeper = self.clone();
        let opened = self.0.work.spawn(async move { keeper.change(shop, faults).await }).await;
        opened.unwrap_or_else(|error| Err(internal(&error)))
    }

    async fn change(&self, shop: DemoShop, faults: Vec<String>) -> Result<ShopWindow, DemoError> {
        let mut state = self.0.state.lock().await;
        if state.is_shut {
            let reason = "the server shuts down".to_owned();
            return Err(DemoError { fault: Fault::Upstream, reason });
        }
        if let Some((open, known)) = &state.open
            && *known == faults
        {
            return Ok(ShopWindow { address: open.address, faults });
        }
        self.end(&mut state).await;
        let last = state.last;
        let opened = match last {
            None => self.start(shop, &faults, SocketAddr::new(LOOPBACK, 0)).await?,
            Some(last) => match self.start(shop, &faults, last).await {
                // Another program has taken the port meanwhile.
                Err(_) => self.start(shop, &faults, SocketAddr::new(LOOPBACK, 0)).await?,
                Ok(opened) => opened,
            },
        };
        let address = opened.address;
        self.0.target.set(Some(address));
        state.last = Some(address);
        state.open = Some((opened, faults.clone()));
        tracing::info!(%address, ?faults, "the demo shop is open");
        Ok(ShopWindow { address, faults })
    }

    async fn start(
        &self,
        shop: DemoShop,
        faults: &[String],
        address: SocketAddr,
    ) -> Result<OpenShop, DemoError> {
        let otlp = self.0.otlp.get().copied().unwrap_or(SocketAddr::new(LOOPBACK, 0));
        let settings = DemoSettings {
            address,
            faults: faults.to_vec(),
            otlp: format!("http://{}", reachable(otlp)),
            token: self.0.senders.as_ref().and_then(|senders| senders.shop.token()),
        };
        (shop.open)(settings, self.0.world).await
    }

    /// Closes the shop, if it is open.
    pub(crate) async fn close(&self) -> Result<(), DemoError> {
        self.offered()?;
        let keeper = self.clone();
        let close = async move { keeper.end(&mut *keeper.0.state.lock().await).await };
        self.0.work.spawn(close).await.map_err(|error| internal(&error))
    }

    /// Closes the shop for good. The receiver of its spans MUST still be there.
    pub(crate) async fn shut(self) {
        let work = self.0.work.clone();
        let shut = work.spawn(async move {
            let mut state = self.0.state.lock().await;
            state.is_shut = true;
            self.end(&mut state).await;
        });
        if let Err(error) = shut.await {
            tracing::warn!(%error, "the demo shop could not be closed");
        }
    }

    async fn end(&self, state: &mut ShopState) {
        if let Some((shop, _)) = state.open.take() {
            // From now on another program may open the port.
            self.0.target.set(None);
            shop.close.await;
            tracing::info!(address = %shop.address, "the demo shop is closed");
        }
    }
}

fn internal(error: &tokio::task::JoinError) -> DemoError {
    DemoError { fault: Fault::Internal, reason: error.to_string() }
}

/// Returns the named faults, each once and in the order of all; refuses an unknown one.
fn chosen(all: Vec<DemoFault>, named: &[String]) -> Result<Vec<String>, DemoError> {
    if let Some(unknown) = named.iter().find(|name| all.iter().all(|it| it.name != **name)) {
        let names = all.iter().map(|it| format!("`{}`", it.name)).collect::<Vec<_>>().join(", ");
        let unknown: String = unknown.chars().take(100).collect();
        let reason = format!("`{unknown}` is no fault of the demo shop: expected some of {names}");
        return Err(DemoError { fault: Fault::Invalid, reason });
    }
    let is_named = |it: &DemoFault| named.iter().any(|name| name == it.name);
    Ok(all.into_iter().filter(is_named).map(|it| it.name.to_owned()).collect())
}

/// Returns the address by which this process reaches its own listener.
fn reachable(listen: SocketAddr) -> SocketAddr {
    let ip = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => LOOPBACK,
        IpAddr::V6(ip) if ip.is_unspecified() => std::net::Ipv6Addr::LOCALHOST.into(),
        ip => ip,
    };
    SocketAddr::new(ip, listen.port())
}

#[cfg(test)]
mod tests {
    use std::{net::SocketAddr, sync::Mutex};

    use model::{Fault, Project, Timestamp, World};
    use net::Networks;
    use tokio::{net::TcpListener, runtime};

    use super::{super::DemoFault, DemoShop, OpenShop, ShopKeeper, reachable};

    /// Which shops were opened and closed, by port.
    static LOG: Mutex<Vec<String>> = Mutex::new(Vec::new());

    /// A shop that only listens.
    fn shop() -> DemoShop {
        DemoShop {
            faults: || {
                vec![
                    DemoFault { name: "slow", about: "it is slow" },
                    DemoFault { name: "late", about: "it is late" },
                ]
            },
            test: |address| format!("the test of {address}"),
            open: |settings, _| {
                Box::pin(async move {
                    let refused = |error: std::io::Error| super::DemoError {
                        fault: Fault::Conflict,
                        reason: error.to_string(),
                    };
                    let listener = TcpListener::bind(settings.address).await.map_err(refused)?;
                    let address = listener.local_addr().map_err(refused)?;
                    let log = |what: &str| {
                        let line = format!("{what} {} {:?}", address.port(), settings.faults);
                        LOG.lock().expect("no panic").push(line);
                    };
                    log("open");
                    let faults = settings.faults.clone();
                    let close = Box::pin(async move {
                        drop(listener);
                        let line = format!("close {} {faults:?}", address.port());
                        LOG.lock().expect("no panic").push(line);
                    });
                    Ok(OpenShop { address, close })
                })
            },
        }
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn there_is_one_shop_at_one_address_until_the_server_shuts_down() {
        let world = World::new(|| Timestamp::from_nanos(0), || [7; 32]);
        let keeper = ShopKeeper::new(Ok(shop()), None, world, runtime::Handle::current());
        keeper.send_to("0.0.0.0:4317".parse().expect("an address"));
        let rules = Networks::public("networks").with_extra(keeper.target());
        let project = Project::default();
        let names = |names: &[&str]| names.iter().map(|it| (*it).to_owned()).collect::<Vec<_>>();
        assert_eq!(keeper.window().await, None);
        let first = keeper.open(&[], &project).await.expect("it opens");
        assert_eq!(rules.check_target(first.address), Ok(()), "triggers reach it");
        assert_eq!(keeper.open(&[], &project).await, Ok(first.clone()), "it is open");
        let named = names(&["late", "slow", "late"]);
        let broken = keeper.open(&named, &project).await.expect("it opens again");
        assert_eq!(broken.address, first.address);
        assert_eq!(broken.faults, ["slow", "late"]);
        let unknown = keeper.open(&names(&["n+1"]), &project).await.expect_err("refused");
        assert!(unknown.reason.contains("`n+1` is no fault"), "{unknown}");
        assert_eq!(keeper.window().await, Some(broken.clone()), "nothing has changed");
        keeper.close().await.expect("it closes");
        keeper.close().await.expect("it is closed");
        assert!(rules.check_target(first.address).is_err(), "it is closed");
        let taken = TcpListener::bind(first.address).await.expect("the port is free");
        let other = keeper.open(&[], &project).await.expect("at another port");
        assert_ne!(other.address, first.address);
        drop(taken);
        let port = |at: SocketAddr| at.port();
        keeper.clone().shut().await;
        assert_eq!(keeper.window().await, None);
        let late = keeper.open(&[], &project).await.expect_err("too late");
        assert_eq!(late.fault, Fault::Upstream);
        let (at, then) = (port(first.address), port(other.address));
        let expected = [
            format!("open {at} []"),
            format!("close {at} []"),
            format!("open {at} [\"slow\", \"late\"]"),
            format!("close {at} [\"slow\", \"late\"]"),
            format!("open {then} []"),
            format!("close {then} []"),
        ];
        assert_eq!(*LOG.lock().expect("no panic"), expected);
    }

    #[test]
    fn a_listener_of_all_addresses_is_reached_by_loopback() {
        let cases = [
            ("0.0.0.0:1", "127.0.0.1:1"),
            ("[::]:2", "[::1]:2"),
            ("127.0.0.1:3", "127.0.0.1:3"),
            ("10.1.2.3:4", "10.1.2.3:4"),
        ];
        for (listen, expected) in cases {
            let listen = listen.parse().expect("an address");
            assert_eq!(reachable(listen).to_string(), expected);
        }
    }
}
