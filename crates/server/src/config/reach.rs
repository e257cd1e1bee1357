//! `server.triggers`: what the tests of others may reach from here.

use std::{fmt, net::IpAddr, str::FromStr};

use source::{Fields, Item};

/// What the tests of others may reach.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Triggers {
    /// Programs that an `exec` trigger may start, by their path; none by default.
    pub exec_allowed: Vec<String>,
    /// Networks that may be reached although they are not public.
    pub networks_allowed: Vec<Network>,
    /// Networks that may not be reached, whatever else is said.
    pub networks_denied: Vec<Network>,
}

/// A network: all addresses that begin with the same bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    /// The address, its other bits zero.
    pub address: IpAddr,
    /// How many bits count.
    pub bits: u8,
}

impl Network {
    /// Whether an address is in it. An IPv4 address in an IPv6 one counts as what it is.
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(own), IpAddr::V4(other)) => {
                let mask = u32::MAX.checked_shl(32 - u32::from(self.bits)).unwrap_or(0);
                own.to_bits() == other.to_bits() & mask
            }
            (IpAddr::V6(own), IpAddr::V6(other)) => {
                let mask = u128::MAX.checked_shl(128 - u32::from(self.bits)).unwrap_or(0);
                own.to_bits() == other.to_bits() & mask
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }
}

/// `10.0.0.0/8`, or an address alone.
impl FromStr for Network {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits.parse::<u8>().map_err(|_| ())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| ())?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let network = Self { address, bits: bits.unwrap_or(most) };
        // Bits that do not count are a slip: 10.1.2.3/8 was meant otherwise.
        (network.bits <= most && network.contains(address)).then_some(network).ok_or(())
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

pub(super) fn read(mut fields: Fields<'_>) -> Triggers {
    let mut exec = fields.section("exec");
    let programs = exec.list("allow").unwrap_or_default();
    exec.finish();
    let mut section = fields.section("networks");
    let mut list = |key: &str| networks(&section.list(key).unwrap_or_default());
    let (networks_allowed, networks_denied) = (list("allow"), list("deny"));
    section.finish();
    fields.finish();
    Triggers { exec_allowed: strings(&programs), networks_allowed, networks_denied }
}

pub(super) fn strings(items: &[Item<'_>]) -> Vec<String> {
    items.iter().filter_map(|item| item.string().map(str::to_owned)).collect()
}

fn networks(items: &[Item<'_>]) -> Vec<Network> {
    let network = |item: &Item<'_>| {
        let network = item.string()?.parse().ok();
        if network.is_none() {
            item.misfit("a network such as `10.0.0.0/8`, or an address");
        }
        network
    };
    items.iter().filter_map(network).collect()
}

#[cfg(test)]
mod tests {
    use super::Network;

    #[test]
    fn a_network_holds_what_begins_alike() {
        for (network, address, holds) in [
            ("10.0.0.0/8", "10.255.0.1", true),
            ("10.0.0.0/8", "11.0.0.1", false),
            ("10.0.0.0/8", "::ffff:10.1.2.3", true),
            ("0.0.0.0/0", "8.8.8.8", true),
            ("0.0.0.0/0", "2001:db8::1", false),
            ("192.0.2.7", "192.0.2.7", true),
            ("192.0.2.7", "192.0.2.8", false),
            ("fd00::/8", "fdff::1", true),
            ("::/0", "2001:db8::1", true),
        ] {
            let parsed: Network = network.parse().expect(network);
            assert_eq!(
                parsed.contains(address.parse().expect(address)),
                holds,
                "{network} {address}"
            );
        }
        for text in ["10.1.2.3/8", "10.0.0.0/33", "::/129", "example.com", "10.0.0.0/", ""] {
            assert_eq!(text.parse::<Network>(), Err(()), "{text}");
        }
    }
}
