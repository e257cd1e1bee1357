//! Host names of URLs that mean this machine.

use std::net::IpAddr;

/// Whether the host of a URL is a loopback name or address.
pub(crate) fn names_loopback(host: &str) -> bool {
    host == "localhost" || address(host).is_some_and(|address| address.is_loopback())
}

/// Whether a connection to this host of a URL would end on this machine, in any spelling that a resolver accepts.
/// A DNS name that resolves to this machine is not detected.
pub(crate) fn names_this_machine(host: &str) -> bool {
    let host = host.to_ascii_lowercase();
    let name = host.trim_end_matches('.');
    // Such as 127.1, which resolvers accept as an address and the standard library does not.
    let is_short =
        name.starts_with("127.") && name.bytes().all(|it| it == b'.' || it.is_ascii_digit());
    name == "localhost"
        || name.ends_with(".localhost")
        || is_short
        || matches!(name, "0" | "127")
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
        ] {
            assert!(names_this_machine(host), "{host}");
        }
        for host in ["collector", "10.0.0.1", "127.example.com", "[2001:db8::1]", ""] {
            assert!(!names_this_machine(host), "{host}");
        }
    }
}
