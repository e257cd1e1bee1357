//! How many connections one peer may have, so that it does not take the places of others.
//!
//! A peer is an address; of IPv6, which gives each of its users a network, the network. Behind a proxy all are one peer, so that
//! the bound is not small.

use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Bits of an IPv6 address that name a network.
const NETWORK_BITS: u32 = 64;

/// The connections of all peers. A clone is the same.
#[derive(Clone, Debug)]
pub struct Crowd {
    of_peer_max: usize,
    peers: Arc<Mutex<HashMap<IpAddr, usize>>>,
}

/// One connection of a peer, until it is dropped.
#[derive(Debug)]
pub struct Guest {
    crowd: Crowd,
    peer: IpAddr,
}

impl Crowd {
    /// Of each peer so many.
    pub fn new(of_peer_max: usize) -> Self {
        Self { of_peer_max, peers: Arc::default() }
    }

    /// Counts a connection of this peer; none where it has too many.
    pub fn enter(&self, address: IpAddr) -> Option<Guest> {
        let peer = peer(address);
        let mut peers = self.peers();
        let count = peers.entry(peer).or_default();
        if *count >= self.of_peer_max {
            return None;
        }
        *count += 1;
        drop(peers);
        Some(Guest { crowd: self.clone(), peer })
    }

    fn peers(&self) -> MutexGuard<'_, HashMap<IpAddr, usize>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        let mut peers = self.crowd.peers();
        if let Some(count) = peers.get_mut(&self.peer) {
            *count -= 1;
            if *count == 0 {
                peers.remove(&self.peer);
            }
        }
    }
}

/// Who an address is counted as.
fn peer(address: IpAddr) -> IpAddr {
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
    use std::net::IpAddr;

    use super::Crowd;

    #[test]
    fn a_peer_has_so_many_and_others_have_theirs() {
        let crowd = Crowd::new(2);
        let address = |text: &str| text.parse::<IpAddr>().expect("an address");
        let enter = |text: &str| crowd.enter(address(text));
        let held = [enter("10.0.0.1"), enter("::ffff:10.0.0.1"), enter("2001:db8::1")];
        assert!(held.iter().all(Option::is_some));
        assert!(enter("10.0.0.1").is_none());
        assert!(enter("10.0.0.2").is_some());
        let second = enter("2001:db8::2");
        assert!(second.is_some());
        assert!(enter("2001:db8::3").is_none(), "a network is one peer");
        drop((held, second));
        assert!(enter("10.0.0.1").is_some());
        assert!(crowd.peers().is_empty(), "who left is forgotten");
    }
}
