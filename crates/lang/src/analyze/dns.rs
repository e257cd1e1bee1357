//! `prefer-dns` of the plugin `common`: a caller addresses a peer by a DNS name, which stays valid when the peer moves,
//! not by an IP address.
//!
//! The rule reads only attributes that name the peer that the caller intended. `network.peer.address` and similar
//! attributes name the peer that responded, and hold addresses by definition.

// The address types are plain values; the code that opens connections is elsewhere.
use core::net::{Ipv4Addr, Ipv6Addr};

use model::trace::Kind;

use super::{
    finding::{Findings, shown},
    world::{AnalysisContext, AnalyzedSpan, text},
};

const URLS: &[&str] = &["url.full", "http.url"];
const CONNECTION: &str = "db.connection_string";
/// Read on client spans only: a server that reports its own address calls no peer.
const HOSTS: &[&str] = &["server.address", "net.peer.name"];

pub(super) fn prefer_dns(world: &AnalysisContext<'_>, findings: &mut Findings) {
    for AnalyzedSpan { span, .. } in world.subjects() {
        let urls = URLS.iter().map(|key| (*key, text(*span, key).and_then(host_of_url)));
        let connection = text(*span, CONNECTION).and_then(address_within);
        let hosts = HOSTS.iter().filter(|_| span.kind() == Kind::Client);
        let hosts = hosts.map(|key| (*key, text(*span, key).map(without_port)));
        let mut all = urls
            .chain(hosts)
            .map(|(key, host)| (key, host.filter(|host| is_address(host))))
            .chain([(CONNECTION, connection)]);
        if let Some((key, address)) = all.find_map(|(key, address)| Some((key, address?))) {
            findings.add(*span, || {
                let address = shown(address);
                format!(
                    "calls {address} in `{key}`: use a DNS name, which stays when the peer moves"
                )
            });
        }
    }
}

/// Returns the host in `scheme://user@host:port/path`.
pub(super) fn host_of_url(url: &str) -> Option<&str> {
    let (_, rest) = url.split_once("//")?;
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    Some(without_port(host))
}

/// Returns the host in `host:port` or `[host]:port`.
pub(super) fn without_port(host: &str) -> &str {
    if let Some(rest) = host.strip_prefix('[') {
        return rest.split(']').next().unwrap_or(rest);
    }
    match host.split_once(':') {
        Some((name, port)) if !port.contains(':') => name,
        _ => host,
    }
}

pub(super) fn is_address(host: &str) -> bool {
    let without_zone = host.split('%').next().unwrap_or(host);
    host.parse::<Ipv4Addr>().is_ok() || without_zone.parse::<Ipv6Addr>().is_ok()
}

/// Returns an IP address in a text of any format, such as `Server=tcp:10.0.0.7,1433` or `host=[fd00::7]`.
fn address_within(text: &str) -> Option<&str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | ':' | '%');
    let pieces = text.split(|c: char| !is_part(c));
    pieces.into_iter().find_map(|piece| {
        let has_digit = piece.contains(|c: char| c.is_ascii_digit());
        if has_digit && piece.matches(':').count() > 1 && is_address(piece) {
            return Some(piece);
        }
        piece.split(':').find(|part| part.parse::<Ipv4Addr>().is_ok())
    })
}

#[cfg(test)]
mod tests {
    use super::{address_within, host_of_url, is_address};

    #[test]
    fn addresses_are_told_from_names() {
        let urls = [
            ("https://10.0.0.7/a", true),
            ("https://10.0.0.7:8443?x", true),
            ("http://user:word@10.0.0.7/", true),
            ("http://[2001:db8::1]:80/", true),
            ("http://[fe80::1%eth0]/", true),
            ("//10.0.0.7", true),
            ("https://shop.test/from/10.0.0.7", false),
            ("https://shop.test/?ip=10.0.0.7", false),
            ("https://10.0.0.7.nip.test/", false),
            ("https://shop.test:8080", false),
            ("https://dead.beef/", false),
            ("not a url", false),
        ];
        for (url, expected) in urls {
            assert_eq!(host_of_url(url).is_some_and(is_address), expected, "{url}");
        }
    }

    #[test]
    fn addresses_are_found_in_connection_strings() {
        let cases = [
            ("Server=tcp:10.0.0.7,1433;Database=shop", Some("10.0.0.7")),
            ("postgres://app@10.0.0.7:5432/shop", Some("10.0.0.7")),
            ("host=[fd00::7] port=5432", Some("fd00::7")),
            ("host=fd00::7 port=5432", Some("fd00::7")),
            ("Server=(localdb)\\v11.0;App=a::b", None),
            ("postgres://db.shop.test:5432/shop", None),
            ("version=1.2.3.4.5", None),
        ];
        for (text, expected) in cases {
            assert_eq!(address_within(text), expected, "{text}");
        }
    }
}
