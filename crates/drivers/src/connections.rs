//! The limits of a listener: the number of waiting connections, and of served ones, in total and per peer.
//!
//! A peer is an address; for IPv6, where each user gets a network, it is the network. Further connections wait, also per peer.
//! A connection of a peer that has too many waiting ones is closed. Behind a proxy all callers are one peer, so the limits are
//! not small.

use std::{
    io,
    net::{IpAddr, Ipv6Addr, SocketAddr},
};

use tokio::net::{TcpListener, TcpSocket};

use crate::shares::{Permit, Shares};

/// The prefix length of an IPv6 network.
const NETWORK_BITS: u32 = 64;
/// The number of waiting connections for each served one.
const WAITING_RATIO: usize = 2;
/// The backlog of the operating system for connections that are not accepted yet. If it is full, the peer retries after one
/// second, so a burst of one peer would delay every other peer by that second.
const BACKLOG: u32 = 4096;

/// The limits of a listener. A clone shares the same limits.
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
    // A restarted server need not wait for the old connections of its predecessor.
    #[cfg(not(windows))]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

impl ConnectionLimits {
    /// Creates limits that serve this many connections at a time.
    pub fn new(served_max: usize) -> Self {
        let waiting = Shares::new(served_max.saturating_mul(WAITING_RATIO));
        Self { served: Shares::new(served_max), waiting }
    }

    /// Counts a connection from this address. Returns none if the peer has too many, and the caller must close the connection.
    pub fn enter(&self, address: IpAddr) -> Option<WaitingConnection> {
        let peer = peer(address);
        let waiting = self.waiting.try_acquire(&peer)?;
        Some(WaitingConnection { peer, served: self.served.clone(), _waiting: waiting })
    }
}

impl WaitingConnection {
    /// Waits until the connection may be served; it counts as served until the permit is dropped.
    pub async fn served(self) -> Permit {
        self.served.acquire(&self.peer).await
    }
}

/// Returns the peer that an address counts for, wherever callers are counted: the address, or its IPv6 network.
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
