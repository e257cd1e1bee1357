//! Host names of URLs that mean this machine.

use std::net::{IpAddr, Ipv4Addr};

/// Whether the host of a URL is a loopback name or address.
pub(crate) fn names_loopback(host: &str) -> bool {
    host == "localhost" || address(host).is_some_and(|address| address.is_loopback())
}

/// Whether a connection to this host of a URL would end on this machine, in any spelling that a resolver accepts. `own` is the
/// machine's host name. Another DNS name that resolves to this machine is not detected.
pub(crate) fn names_this_machine(host: &str, own: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let name = host.trim_end_matches('.');
    // Such as 127.1, which resolvers accept as an address and the standard library does not.
    let is_short =
        name.starts_with("127.") && name.bytes().all(|it| it == b'.' || it.is_ascii_digit());
    name == "localhost"
        || name.ends_with(".localhost")
        || is_short
        || matches!(name, "0" | "127")
        || name == own.to_ascii_lowercase()
        // Such as 2130706433, the number of an address.
        || name.parse().is_ok_and(|number| Ipv4Addr::from_bits(number).is_loopback())
        || address(name).is_some_and(|it| it.is_loopback() || it.is_unspecified())
}

/// Parses the host of a URL as an address. An IPv6 address is in brackets there, and may contain an IPv4
/// address.
fn address(host: &str) -> Option<IpAddr> {
    host.trim_matches(['[', ']']).parse().ok().map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use super::names_this_machine;

    #[test]
    fn this_machine_has_many_names() {
        for host in [
            "localhost",
            "LocalHost.",
            "127.0.0.1",
            "127.1",
            "[::1]",
            "[::ffff:127.0.0.1]",
            "0.0.0.0",
            "0",
            "2130706433",
            "build-7",
            "Build-7",
        ] {
            assert!(names_this_machine(host, "build-7"), "{host}");
        }
        for host in ["collector", "10.0.0.1", "127.example.com", "[2001:db8::1]", "", "167772161"] {
            assert!(!names_this_machine(host, "build-7"), "{host}");
        }
    }
}
