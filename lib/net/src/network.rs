//! Network rules: the addresses that a program may reach for others.
//!
//! A name is resolved first and its addresses are checked against the rules; the connection then goes to a checked address. It
//! therefore does not matter how an address is written, which name resolves to it, or to what the name resolves a moment later.
//! `deny` overrides `allow`, and the addresses at which clouds serve credentials override both.
//!
//! Deliberately absent: rules about names, whose owner is the owner of a DNS zone; and rules about ports, except for the one
//! [`ExtraTarget`] that a program may allow beside them.

use std::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr},
    str::FromStr,
    sync::{Arc, Mutex, PoisonError},
};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use thiserror::Error;

/// The network rules, and the setting by which an operator changes them.
#[derive(Clone, Debug)]
pub struct Networks {
    setting: &'static str,
    allow: Vec<Network>,
    deny: Vec<Network>,
    extra: ExtraTarget,
}

/// One address with its port that is allowed although no rule allows it, for as long as it is set. Clones share it.
///
/// It is for a listener that the program itself opens: all other ports of the address stay as the rules have them.
#[derive(Clone, Debug, Default)]
pub struct ExtraTarget(Arc<Mutex<Option<SocketAddr>>>);

/// A set of addresses, as an operator names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Network {
    /// Addresses of the internet.
    Public,
    /// Addresses that only a site routes: `10.0.0.0/8`, `172.16.0.0/12`, `192.168.0.0/16`, `100.64.0.0/10`, `fc00::/7`.
    Private,
    /// The loopback addresses of this machine: `127.0.0.0/8`, `::1`, and `0.0.0.0` and `::`, which lead there too.
    Loopback,
    /// All addresses with this prefix.
    Within(IpNet),
}

/// The error of a text that names no network.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "expected `public`, `private`, `loopback`, an address, or one with its length such as `10.1.0.0/16`"
)]
pub struct InvalidNetwork;

/// The rule that forbids an address.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NetworkRefusal {
    /// It is one of [`METADATA`].
    #[error("`{0}` is where a cloud tells its machines their credentials; no setting allows it")]
    Metadata(IpAddr),
    /// A `deny` rule lists it.
    #[error("`{address}` is in `{network}`, which `{setting}.deny` lists")]
    Denied {
        /// The setting of the rules.
        setting: &'static str,
        /// The address.
        address: IpAddr,
        /// The rule.
        network: Network,
    },
    /// No rule allows it.
    #[error(
        "`{address}` is {what}, and `{setting}.allow` does not list it: whoever operates the server can add {add}"
    )]
    NotAllowed {
        /// The setting of the rules.
        setting: &'static str,
        /// The address.
        address: IpAddr,
        /// The kind of the address.
        what: &'static str,
        /// The rule that would allow it.
        add: String,
    },
}

/// The addresses at which clouds serve a machine's identity and its credentials.
#[rustfmt::skip]
pub const METADATA: &[IpAddr] = &[
    IpAddr::V4(Ipv4Addr::new(169, 254, 169, 254)), // Amazon, Azure, Google, OpenStack, Oracle and most others
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 2)),   // Amazon: tasks of ECS
    IpAddr::V4(Ipv4Addr::new(169, 254, 170, 23)),  // Amazon: pods of EKS
    IpAddr::V4(Ipv4Addr::new(100, 100, 100, 200)), // Alibaba
    IpAddr::V4(Ipv4Addr::new(168, 63, 129, 16)),   // Azure: the machine's agent
    IpAddr::V4(Ipv4Addr::new(192, 0, 0, 192)),     // Oracle, older
    IpAddr::V4(Ipv4Addr::new(169, 254, 0, 23)),    // Tencent
    IpAddr::V4(Ipv4Addr::new(169, 254, 42, 42)),   // Scaleway
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254)), // Amazon
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x23)),  // Amazon: pods of EKS
    IpAddr::V6(Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254)),  // Google
    IpAddr::V6(Ipv6Addr::new(0xfd00, 0x42, 0, 0, 0, 0, 0, 0x42)),   // Scaleway
    IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe)), // OpenStack
];

const EVERYTHING: [Network; 2] = [
    Network::Within(IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::UNSPECIFIED, 0))),
    Network::Within(IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::UNSPECIFIED, 0))),
];

impl Networks {
    /// Creates rules from the operator's configuration. `deny` overrides `allow`. Messages name the `setting`.
    pub fn new(setting: &'static str, allow: Vec<Network>, deny: Vec<Network>) -> Self {
        Self { setting, allow, deny, extra: ExtraTarget::default() }
    }

    /// Rules for the internet, and no address of this site.
    pub fn public(setting: &'static str) -> Self {
        Self::new(setting, vec![Network::Public], Vec::new())
    }

    /// Rules for all addresses except those with credentials.
    pub fn all(setting: &'static str) -> Self {
        Self::new(setting, EVERYTHING.to_vec(), Vec::new())
    }

    /// The same rules with these addresses denied.
    pub fn without(self, deny: Vec<Network>) -> Self {
        Self { deny, ..self }
    }

    /// The same rules with one more target. What is denied stays denied.
    pub fn with_extra(self, extra: ExtraTarget) -> Self {
        Self { extra, ..self }
    }

    /// Checks whether a port of an address may be reached, or returns the rule that forbids it.
    pub fn check_target(&self, target: SocketAddr) -> Result<(), NetworkRefusal> {
        match self.check(target.ip()) {
            Err(NetworkRefusal::NotAllowed { .. }) if self.extra.is(target) => Ok(()),
            checked => checked,
        }
    }

    /// Checks whether an address may be reached, or returns the rule that forbids it.
    pub fn check(&self, address: IpAddr) -> Result<(), NetworkRefusal> {
        let setting = self.setting;
        let forms = forms(address);
        let forms = || forms.iter().flatten().copied();
        if forms().any(|form| METADATA.contains(&form)) {
            return Err(NetworkRefusal::Metadata(address));
        }
        if let Some(network) = self.deny.iter().find(|it| forms().any(|form| it.holds(form))) {
            return Err(NetworkRefusal::Denied { setting, address, network: *network });
        }
        // The position of an address within a site's own prefix is unknown: only a rule that names the prefix allows it.
        let is_own_prefix = is_local_nat64(address);
        let allows = |it: &Network| match it {
            Network::Within(_) => forms().any(|form| it.holds(form)),
            _ => !is_own_prefix && forms().any(|form| it.holds(form)),
        };
        if self.allow.iter().any(allows) {
            return Ok(());
        }
        let innermost = forms().last().unwrap_or(address);
        let within = format!("`{}`", IpNet::from(address.to_canonical()));
        let (what, add) = match kind(innermost) {
            Some(Network::Public) => ("public", format!("`public`, or {within}")),
            Some(Network::Private) => ("private", format!("`private`, or {within}")),
            Some(Network::Loopback) => ("this machine itself", format!("`loopback`, or {within}")),
            Some(Network::Within(_)) | None => ("of a special kind", within),
        };
        Err(NetworkRefusal::NotAllowed { setting, address, what, add })
    }
}

impl ExtraTarget {
    /// Allows this target and no other one; none allows nothing more.
    pub fn set(&self, target: Option<SocketAddr>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    fn is(&self, target: SocketAddr) -> bool {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) == Some(target)
    }
}

impl Network {
    /// Whether an address is in this network. An IPv4-mapped IPv6 address counts as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.holds(address.to_canonical())
    }

    fn holds(&self, address: IpAddr) -> bool {
        match self {
            Self::Within(network) => network.contains(&address),
            kind_asked => kind(address) == Some(*kind_asked),
        }
    }
}

/// Whether an address has the prefix for local use of NAT64 (RFC 8215).
fn is_local_nat64(address: IpAddr) -> bool {
    matches!(address, IpAddr::V6(address) if address.segments()[..3] == [0x64, 0xff9b, 1])
}

/// Returns all forms of an address: itself, and the IPv4 address that a gateway reaches through it.
fn forms(address: IpAddr) -> [Option<IpAddr>; 2] {
    // The operating system treats an IPv4-mapped IPv6 address as IPv4.
    match address.to_canonical() {
        IpAddr::V4(address) => [Some(address.into()), None],
        IpAddr::V6(address) => [Some(address.into()), carried(address).map(IpAddr::V4)],
    }
}

/// Returns the IPv4 address that a gateway extracts from an IPv6 one: NAT64, 6to4, Teredo, and the old form of embedding.
fn carried(address: Ipv6Addr) -> Option<Ipv4Addr> {
    let of = |high: u16, low: u16| Ipv4Addr::from((u32::from(high) << 16) | u32::from(low));
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => None,
        [0, 0, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => Some(of(high, low)),
        // A site's own prefix for NAT64; the site chooses the position of the address in it, most often the last one.
        [0x64, 0xff9b, 1, _, _, _, high, low] => Some(of(high, low)),
        [0x2002, high, low, ..] => Some(of(high, low)),
        [0x2001, 0, _, _, _, _, high, low] => Some(of(!high, !low)),
        _ => None,
    }
}

/// Returns the kind of an address; none for link-local, multicast, reserved, documentation and gateway addresses.
fn kind(address: IpAddr) -> Option<Network> {
    match address {
        IpAddr::V4(address) => kind_v4(address),
        IpAddr::V6(address) => kind_v6(address),
    }
}

fn kind_v4(address: Ipv4Addr) -> Option<Network> {
    match address.octets() {
        [127, ..] | [0, 0, 0, 0] => Some(Network::Loopback),
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] | [100, 64..=127, ..] => {
            Some(Network::Private)
        }
        [0, ..]
        | [169, 254, ..]
        | [192, 0, 0, _]
        | [192, 0, 2, _]
        | [192, 88, 99, _]
        | [198, 18..=19, ..]
        | [198, 51, 100, _]
        | [203, 0, 113, _]
        | [224..=255, ..] => None,
        _ => Some(Network::Public),
    }
}

fn kind_v6(address: Ipv6Addr) -> Option<Network> {
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0 | 1] => Some(Network::Loopback),
        [0xfc00..=0xfdff, ..] => Some(Network::Private),
        // Teredo and its neighbours, documentation, 6to4.
        [0x2001, 0..=0x1ff | 0xdb8, ..] | [0x2002, ..] | [0x3fff, 0..=0xfff, ..] => None,
        [0x2000..=0x3fff, ..] => Some(Network::Public),
        _ => None,
    }
}

impl FromStr for Network {
    type Err = InvalidNetwork;

    fn from_str(text: &str) -> Result<Self, InvalidNetwork> {
        Ok(match text {
            "public" => Self::Public,
            "private" => Self::Private,
            "loopback" => Self::Loopback,
            _ => {
                let address = text.parse::<IpAddr>().map(IpNet::from);
                let network = address.or_else(|_| text.parse()).map_err(|_| InvalidNetwork)?;
                // Host bits are an error: `10.1.2.3/8` was probably meant differently.
                if network.trunc() != network {
                    return Err(InvalidNetwork);
                }
                Self::Within(canonical(network))
            }
        })
    }
}

/// Converts a rule to canonical form: addresses are canonical when they are checked, so another form would never match.
fn canonical(network: IpNet) -> IpNet {
    let of = |network: &Ipv6Net| {
        let address = network.addr().to_ipv4_mapped()?;
        let length = network.prefix_len().checked_sub(96)?;
        Ipv4Net::new(address, length).ok().map(IpNet::V4)
    };
    match &network {
        IpNet::V4(_) => network,
        IpNet::V6(six) => of(six).unwrap_or(network),
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Public => f.write_str("public"),
            Self::Private => f.write_str("private"),
            Self::Loopback => f.write_str("loopback"),
            Self::Within(network) => write!(f, "{network}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{ExtraTarget, Network, NetworkRefusal, Networks};

    #[test]
    fn an_extra_target_is_one_port_and_never_a_denied_one() {
        let extra = ExtraTarget::default();
        let target = |text: &str| text.parse().expect("an address with a port");
        let (shop, other) = (target("127.0.0.1:4000"), target("127.0.0.1:4001"));
        let open = Networks::public("networks").with_extra(extra.clone());
        assert!(open.check_target(shop).is_err(), "it is not set yet");
        extra.set(Some(shop));
        assert_eq!(open.check_target(shop), Ok(()));
        for refused in
            [other, target("127.0.0.2:4000"), target("[::1]:4000"), target("10.0.0.1:4000")]
        {
            assert!(open.check_target(refused).is_err(), "{refused}");
        }
        assert!(open.check(shop.ip()).is_err(), "the address itself is as before");
        let denied = open.clone().without(vec![Network::Loopback]);
        assert!(matches!(denied.check_target(shop), Err(NetworkRefusal::Denied { .. })));
        let metadata = target("169.254.169.254:80");
        extra.set(Some(metadata));
        assert!(matches!(open.check_target(metadata), Err(NetworkRefusal::Metadata(_))));
        extra.set(None);
        assert!(open.check_target(shop).is_err(), "it is closed");
    }

    fn networks(allow: &str, deny: &str) -> Networks {
        let read = |text: &str| {
            let words = text.split_whitespace();
            words.map(|it| it.parse().unwrap_or_else(|why| panic!("{it}: {why}"))).collect()
        };
        Networks::new("networks", read(allow), read(deny))
    }

    const EVERYTHING: &str = "0.0.0.0/0 ::/0 public private loopback";

    const METADATA: &str = "169.254.169.254 ::ffff:169.254.169.254 ::a9fe:a9fe 64:ff9b::a9fe:a9fe 2002:a9fe:a9fe::1 \
        169.254.170.2 169.254.170.23 100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd00:ec2::23 fd20:ce::254 \
        fe80::a9fe:a9fe 2001:0:1:2:3:4:5601:5601";

    /// Allowed networks, denied networks, addresses that are then reached, addresses that are not, and a part of the error.
    #[rustfmt::skip]
    const CASES: &[(&str, &str, &str, &str, &str)] = &[
        ("public", "", "1.1.1.1 2606:4700::1111 64:ff9b::101:101 2002:101:101::1 ::ffff:8.8.8.8", METADATA, "credentials"),
        (EVERYTHING, "", "1.1.1.1 10.0.0.1 127.0.0.1 ::1 fd00::1 169.254.1.1 224.0.0.1", METADATA, "credentials"),
        ("public", "", "172.15.0.1 172.32.0.1 100.63.0.1 100.128.0.1 11.0.0.1 192.167.0.1",
         "10.0.0.1 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 fd12::1 fc00::1 ::ffff:10.0.0.1 ::10.0.0.1 \
          64:ff9b::a00:1 64:ff9b:1::a00:1 2002:a00:1::1 2001:0:1:2:3:4:f5ff:fffe", "`private`, or "),
        ("public", "", "126.0.0.1 128.0.0.1",
         "127.0.0.1 127.255.255.255 0.0.0.0 ::1 :: ::ffff:127.0.0.1 ::ffff:0.0.0.0 ::7f00:1 64:ff9b::7f00:1", "`loopback`, or "),
        ("public", "", "223.0.0.1 2001:4860::1",
         "0.0.0.1 169.254.1.1 224.0.0.1 240.0.0.1 255.255.255.255 192.0.2.1 198.18.0.1 198.51.100.1 203.0.113.1 \
          fe80::1 fec0::1 ff02::1 2001:db8::1 2001:10::1 3fff::1 100::1 5f00::1", "of a special kind"),
        ("10.1.0.0/16", "", "10.1.2.3 ::ffff:10.1.2.3 64:ff9b::a01:203", "10.2.0.1 1.1.1.1 127.0.0.1", "does not list it"),
        ("10.1.2.3", "", "10.1.2.3", "10.1.2.4", "does not list it"),
        ("::ffff:10.1.0.0/112", "", "10.1.2.3", "10.2.2.3", "does not list it"),
        ("private", "10.1.0.0/16", "10.2.0.1 192.168.0.1", "10.1.0.1 ::ffff:10.1.0.1 2002:a01:1::1", "in `10.1.0.0/16`, which"),
        ("public", "2606:4700::/32 ::ffff:1.1.1.1", "8.8.8.8", "2606:4700::1 1.1.1.1", "networks.deny"),
        ("public", "public", "", "1.1.1.1", "in `public`, which"),
        ("", "", "", "1.1.1.1 10.0.0.1 ::1", "does not list it"),
        ("169.254.0.0/16", "", "169.254.1.1", "169.254.169.254", "no setting"),
    ];

    #[test]
    fn what_is_reached_and_what_is_not() {
        for (allow, deny, reached, refused, reason) in CASES {
            let networks = networks(allow, deny);
            let check = |text: &str| networks.check(text.parse().expect("an address"));
            for address in reached.split_whitespace() {
                assert_eq!(check(address), Ok(()), "{address} by {allow}, not {deny}");
            }
            for address in refused.split_whitespace() {
                let why = check(address).expect_err(address).to_string();
                assert!(why.contains(reason), "{address} by {allow}, not {deny}: {why}");
            }
        }
    }

    #[test]
    fn a_network_is_written_in_one_of_these_forms() {
        for text in ["public", "private", "loopback", "10.0.0.0/8", "fd00::/8", "10.1.2.3/32"] {
            let network = text.parse::<Network>().expect(text);
            assert_eq!(network.to_string(), text);
        }
        for text in [
            "",
            "Public",
            "10.1.2.3/8",
            "10.0.0.0/33",
            "10.0.0",
            "example.com",
            "10.0.0.0/8 ",
            "012.1.1.1",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }
}
