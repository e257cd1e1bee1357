//! The origin of a request: the peer of its connection, or the client that a trusted proxy names.
//!
//! A proxy is trusted if `server.trustedProxies` lists its address; headers of any other peer are ignored. Each proxy appends
//! the peer that it saw, so the chain is read from its end: the first address that is not a trusted proxy is the caller's.
//! The part before it may be forged. An element that cannot be parsed ends the chain at the proxy that sent it.
//!
//! A proxy that writes one of `X-Forwarded-For` and `Forwarded` (RFC 7239) may pass on the other one as a caller sent it. So if
//! both are present and name different callers, both are ignored. Deliberately absent: `X-Forwarded-Host` (see `server.publicUrl`).

use std::{net::IpAddr, sync::Arc};

use axum::http::{HeaderMap, HeaderName, header::FORWARDED};
use net::Network;

const FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
/// The maximum number of proxies in a chain that are read.
const HOPS_MAX: usize = 32;

/// The trusted proxies. Clones share the same list.
#[derive(Clone, Debug, Default)]
pub(crate) struct TrustedProxies(Arc<[Network]>);

/// The origin of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Origin {
    /// The caller's address.
    pub(crate) address: IpAddr,
    /// Whether a trusted proxy states that the caller used TLS.
    pub(crate) is_tls: bool,
}

/// An element of the chain: the peer that a proxy saw, and its scheme.
#[derive(Debug)]
struct Hop<'a> {
    /// `None` if it cannot be parsed.
    address: Option<IpAddr>,
    scheme: Option<&'a str>,
}

impl TrustedProxies {
    pub(crate) fn new(networks: &[Network]) -> Self {
        Self(networks.into())
    }

    /// Returns the origin of a request from this peer.
    pub(crate) fn origin(&self, peer: IpAddr, headers: &HeaderMap) -> Origin {
        let peer = peer.to_canonical();
        let direct = Origin { address: peer, is_tls: false };
        if !self.has(peer) {
            return direct;
        }
        let lines = |name| headers.get_all(name).iter().map(|it| it.to_str().unwrap_or("\""));
        let plain = lines(FORWARDED_FOR).collect::<Vec<_>>().join(",");
        let standard = lines(FORWARDED).collect::<Vec<_>>().join(",");
        let plain = (!plain.is_empty()).then(|| self.caller(peer, &plain_hops(&plain)));
        let standard = (!standard.is_empty()).then(|| self.caller(peer, &standard_hops(&standard)));
        let scheme = lines(FORWARDED_PROTO).next_back().map(|line| line.rsplit(',').next());
        let scheme = scheme.flatten().map(str::trim);
        let (address, schemes) = match (plain, standard) {
            (Some((plain, _)), Some((standard, _))) if plain != standard => (peer, [None, None]),
            (Some(_), Some((address, other))) => (address, [scheme, other]),
            (None, Some((address, other))) => (address, [scheme, other]),
            (Some((address, _)), None) => (address, [scheme, None]),
            (None, None) => (peer, [scheme, None]),
        };
        // If there are two schemes, both have to be `https`.
        let mut schemes = schemes.into_iter().flatten().peekable();
        let is_told = schemes.peek().is_some();
        let is_tls = is_told && schemes.all(|scheme| scheme.eq_ignore_ascii_case("https"));
        Origin { address, is_tls }
    }

    fn has(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the caller before the chain of trusted proxies, and its scheme.
    fn caller<'a>(&self, peer: IpAddr, hops: &[Hop<'a>]) -> (IpAddr, Option<&'a str>) {
        let (mut address, mut scheme) = (peer, None);
        for hop in hops.iter().rev().take(HOPS_MAX) {
            let Some(seen) = hop.address else { break };
            (address, scheme) = (seen, hop.scheme);
            if !self.has(seen) {
                break;
            }
        }
        (address, scheme)
    }
}

/// Parses the chain of `X-Forwarded-For`: addresses, separated by commas.
fn plain_hops(text: &str) -> Vec<Hop<'_>> {
    text.split(',').map(|part| Hop { address: node(part), scheme: None }).collect()
}

/// Parses the chain of `Forwarded`: elements, separated by commas, of pairs, separated by semicolons; values may be quoted.
fn standard_hops(text: &str) -> Vec<Hop<'_>> {
    // An unclosed quote could hide what the next proxy appended. With a backslash, it is ambiguous which quotes are closed.
    let is_sound = text.matches('"').count().is_multiple_of(2) && !text.contains('\\');
    if !is_sound {
        return vec![Hop { address: None, scheme: None }];
    }
    let hop = |element| {
        let mut hop = Hop { address: None, scheme: None };
        let mut nodes = 0;
        for pair in outside_quotes(element, ';') {
            let Some((name, value)) = pair.split_once('=') else { continue };
            let value = value.trim();
            let value =
                value.strip_prefix('"').and_then(|it| it.strip_suffix('"')).unwrap_or(value);
            match name.trim().to_ascii_lowercase().as_str() {
                "for" => {
                    nodes += 1;
                    hop.address = node(value).filter(|_| nodes == 1);
                }
                "proto" => hop.scheme = Some(value),
                _ => {}
            }
        }
        hop
    };
    outside_quotes(text, ',').into_iter().map(hop).collect()
}

/// Returns the parts of a text between separators that are not in quotes.
fn outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut is_quoted = false;
    let split = |it: char| {
        is_quoted ^= it == '"';
        it == separator && !is_quoted
    };
    text.split(split).collect()
}

/// Parses an address, with or without a port: `192.0.2.1:80`, `2001:db8::1`, `[2001:db8::1]:80`.
fn node(text: &str) -> Option<IpAddr> {
    let text = text.trim();
    let address = match text.strip_prefix('[') {
        Some(rest) => {
            let (address, port) = rest.split_once(']')?;
            let is_port = port.is_empty() || port.strip_prefix(':')?.parse::<u16>().is_ok();
            address.parse().ok().filter(|address: &IpAddr| is_port && address.is_ipv6())?
        }
        None => match text.split_once(':') {
            Some((address, port)) if !port.contains(':') => {
                port.parse::<u16>().ok()?;
                IpAddr::V4(address.parse().ok()?)
            }
            _ => text.parse().ok()?,
        },
    };
    Some(address.to_canonical())
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use axum::http::{HeaderMap, HeaderName, HeaderValue};

    use super::TrustedProxies;

    /// Headers of a request, and the expected origin: the address, with a `+` for TLS.
    const FROM_A_PROXY: &[(&str, &str)] = &[
        ("", "10.0.0.1"),
        ("x-forwarded-for: 203.0.113.7", "203.0.113.7"),
        // Only the elements that trusted proxies appended count.
        ("x-forwarded-for: 198.51.100.1, 203.0.113.7", "203.0.113.7"),
        ("x-forwarded-for: 198.51.100.1|x-forwarded-for: 203.0.113.7", "203.0.113.7"),
        // A chain of two proxies, and of three.
        ("x-forwarded-for: 198.51.100.1, 203.0.113.7, 10.0.0.2", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7, fd00::9, 10.0.0.2", "203.0.113.7"),
        ("x-forwarded-for: 10.0.0.3, 10.0.0.2", "10.0.0.3"),
        // An element that cannot be parsed ends the chain at its sender.
        ("x-forwarded-for: garbage", "10.0.0.1"),
        ("x-forwarded-for: 203.0.113.7, ", "10.0.0.1"),
        ("x-forwarded-for: 203.0.113.7, unknown, 10.0.0.2", "10.0.0.2"),
        ("x-forwarded-for: 203.0.113.7, 1.2.3.4.5", "10.0.0.1"),
        ("x-forwarded-for: \u{ff}", "10.0.0.1"),
        // IPv6, IPv4-mapped IPv6, ports.
        ("x-forwarded-for: 2001:db8::7", "2001:db8::7"),
        ("x-forwarded-for: [2001:db8::7]:4711", "2001:db8::7"),
        ("x-forwarded-for: [2001:db8::7]x", "10.0.0.1"),
        ("x-forwarded-for: ::ffff:203.0.113.7", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7, ::ffff:10.0.0.2", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7:4711", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7:port", "10.0.0.1"),
        // The header of RFC 7239.
        ("forwarded: for=203.0.113.7", "203.0.113.7"),
        ("forwarded: For=\"[2001:db8::7]:4711\";proto=https;by=10.0.0.1", "2001:db8::7 +"),
        (
            "forwarded: for=198.51.100.1, for=203.0.113.7;proto=http, for=10.0.0.2;proto=https",
            "203.0.113.7",
        ),
        ("forwarded: for=unknown", "10.0.0.1"),
        ("forwarded: for=_hidden, for=10.0.0.2", "10.0.0.2"),
        ("forwarded: for=203.0.113.7;for=198.51.100.1", "10.0.0.1"),
        // A quote that a caller left open hides nothing.
        ("forwarded: for=\"198.51.100.1|forwarded: for=203.0.113.7", "10.0.0.1"),
        ("forwarded: for=\"1, for=203.0.113.7\", for=\"203.0.113.8\"", "203.0.113.8"),
        ("forwarded: for=\"203.0.113.7\\\"", "10.0.0.1"),
        // Both headers: they agree, or both are ignored.
        ("forwarded: for=203.0.113.7|x-forwarded-for: 203.0.113.7", "203.0.113.7"),
        ("forwarded: for=198.51.100.1;proto=https|x-forwarded-for: 203.0.113.7", "10.0.0.1"),
        // The scheme.
        ("x-forwarded-for: 203.0.113.7|x-forwarded-proto: https", "203.0.113.7 +"),
        ("x-forwarded-for: 203.0.113.7|x-forwarded-proto: http", "203.0.113.7"),
        ("x-forwarded-for: 203.0.113.7|x-forwarded-proto: https, http", "203.0.113.7"),
        ("x-forwarded-proto: HTTPS", "10.0.0.1 +"),
        ("forwarded: for=203.0.113.7;proto=http|x-forwarded-proto: https", "203.0.113.7"),
    ];

    fn headers(text: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for line in text.split('|').filter(|line| !line.is_empty()) {
            let (name, value) = line.split_once(": ").expect("a header");
            // One character is one byte, so that a value need not be valid text.
            let bytes: Vec<u8> = value.chars().map(|it| it as u8).collect();
            let value = HeaderValue::from_bytes(&bytes).expect("a value");
            headers.append(HeaderName::try_from(name).expect("a name"), value);
        }
        headers
    }

    fn shown(proxies: &TrustedProxies, peer: &str, given: &str) -> String {
        let peer: IpAddr = peer.parse().expect("an address");
        let origin = proxies.origin(peer, &headers(given));
        format!("{}{}", origin.address, if origin.is_tls { " +" } else { "" })
    }

    #[test]
    fn a_trusted_proxy_names_the_caller() {
        let networks = ["10.0.0.0/8", "fd00::/8"].map(|it| it.parse().expect("a network"));
        let proxies = TrustedProxies::new(&networks);
        for (given, expected) in FROM_A_PROXY {
            assert_eq!(shown(&proxies, "10.0.0.1", given), *expected, "{given}");
            assert_eq!(shown(&proxies, "::ffff:10.0.0.1", given), *expected, "mapped: {given}");
        }
        assert_eq!(shown(&proxies, "fd00::1", "x-forwarded-for: 203.0.113.7"), "203.0.113.7");
        let long = format!("x-forwarded-for: 203.0.113.7{}", ", 10.0.0.2".repeat(100));
        assert_eq!(shown(&proxies, "10.0.0.1", &long), "10.0.0.2", "a chain has an end");
    }

    #[test]
    fn headers_of_anybody_else_change_nothing() {
        let networks = ["10.0.0.0/8".parse().expect("a network")];
        for proxies in [TrustedProxies::new(&networks), TrustedProxies::default()] {
            for (given, _) in FROM_A_PROXY {
                for peer in ["192.0.2.9", "2001:db8::9", "fd00::1"] {
                    assert_eq!(shown(&proxies, peer, given), peer, "{given}");
                }
                assert_eq!(shown(&proxies, "::ffff:192.0.2.9", given), "192.0.2.9", "{given}");
            }
        }
    }
}
