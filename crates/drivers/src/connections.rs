//! A listener: how many connections wait for it, and how many it serves, in all and of one peer.
//!
//! A peer is an address; of IPv6, which gives each of its users a network, the network. Further connections wait, also by peer; a
//! connection of a peer that has too many waiting ones is closed. Behind a proxy all callers are one peer, so that the limits are
//! not small.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use tokio::net::{TcpListener, TcpSocket};

use crate::shares::{Permit, Shares};

/// Bits of an IPv6 address that name a network.
const NETWORK_BITS: u32 = 64;
/// How many connections may wait for each one that is served.
const WAITING_RATIO: usize = 2;
/// Connections that the system keeps until they are accepted. Where there is no room for one, its peer tries again after a
/// second, so that a burst of one peer would cost every other that second.
const BACKLOG: u32 = 4096;

/// The limits of a listener. A clone is the same.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    served: Shares<IpAddr>,
    waiting: Shares<IpAddr>,
}

/// A connection that was accepted and is not served yet.
#[derive(Debug)]
pub struct WaitingConnection {
    peer: IpAddr,
    served: Shares<IpAddr>,
    _waiting: Permit,
}

/// Listens on this address.
pub fn listen(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // So that a server that starts anew need not wait for the connections of the one before it.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl ConnectionLimits {
    /// Serves this many at a time.
    pub fn new(served_max: usize) -> Self {
        let waiting = Shares::new(served_max.saturating_mul(WAITING_RATIO));
        Self { served: Shares::new(served_max), waiting }
    }

    /// Counts a connection from this address; none where the peer has too many, and it is to be closed.
    pub fn enter(&self, address: IpAddr) -> Option<WaitingConnection> {
        let peer = peer(address);
        let waiting = self.waiting.try_acquire(&peer)?;
        Some(WaitingConnection { peer, served: self.served.clone(), _waiting: waiting })
    }
}

impl WaitingConnection {
    /// Waits until it may be served; it counts as served until the permit is dropped.
    pub async fn served(self) -> Permit {
        self.served.acquire(&self.peer).await
    }
}

/// The peer that an address counts for, wherever callers are counted: itself, or its network of IPv6.
pub fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let network = address.to_bits() >> (128 - NETWORK_BITS) << (128 - NETWORK_BITS);
            Ipv6Addr::from_bits(network).into()
        }
        address @ IpAddr::V4(_) => address,
    }
}

#[cfg(test)]
mod tests {
    use std::{net::IpAddr, pin::pin, time::Duration};

    use tokio::time::timeout;

    use super::ConnectionLimits;

    #[tokio::test(start_paused = true)]
    async fn further_connections_of_a_peer_wait_and_others_are_served() {
        let limits = ConnectionLimits::new(4);
        let enter = |text: &str| limits.enter(text.parse::<IpAddr>().expect("an address"));
        let mut served = Vec::new();
        for address in ["10.0.0.1", "::ffff:10.0.0.1", "2001:db8::1", "2001:db8::2"] {
            served.push(enter(address).expect("it enters").served().await);
        }
        let waiting: Vec<_> = (0..4).map(|_| enter("10.0.0.1").expect("it waits")).collect();
        assert!(enter("10.0.0.1").is_none(), "half of those that may wait");
        let other = enter("10.0.0.2").expect("another peer enters");
        let mut other = pin!(other.served());
        assert!(timeout(Duration::from_secs(60), &mut other).await.is_err(), "all are served");
        served.remove(2);
        other.await;
        assert!(enter("2001:db8::3").is_some(), "a network is one peer");
        served.remove(0);
        for one in waiting.into_iter().take(1) {
            one.served().await;
        }
    }
}
