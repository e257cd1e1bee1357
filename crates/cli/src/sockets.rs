//! Which process listens on which port. It reads `/proc`, which only Linux has; elsewhere nothing is known.

use std::{
    collections::BTreeSet,
    fs,
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// A socket that listens.
struct ListeningSocket {
    address: SocketAddr,
    /// As links of its process name it.
    link: String,
}

/// Returns the process that listens on a port, by its name and id.
pub(crate) fn listener(port: u16) -> Option<String> {
    let sockets: Vec<_> = listening().filter(|socket| socket.address.port() == port).collect();
    let folders = fs::read_dir("/proc").ok()?.flatten().map(|folder| folder.path());
    folders.filter(|folder| sockets_of(folder, &sockets).next().is_some()).find_map(|folder| {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let id = folder.file_name()?.to_string_lossy().into_owned();
        Some(format!("`{}` (process {id})", name.trim_end()))
    })
}

/// Returns the addresses of this machine on which these processes accept connections, one for each port. A process is named by its
/// folder in `/proc`.
pub(crate) fn local_addresses(processes: &[PathBuf]) -> BTreeSet<SocketAddr> {
    let sockets: Vec<_> = listening().collect();
    let of_all = processes.iter().flat_map(|folder| sockets_of(folder, &sockets));
    let mut found: BTreeSet<SocketAddr> = BTreeSet::new();
    for address in of_all.filter_map(|socket| local(socket.address)) {
        // A server often listens on the same port of both versions of IP; the older one comes first in the order.
        if found.iter().all(|known| known.port() != address.port()) || address.is_ipv4() {
            found.retain(|known| known.port() != address.port());
            found.insert(address);
        }
    }
    found
}

/// Returns where this machine reaches an address on which a process listens; none for other interfaces.
fn local(address: SocketAddr) -> Option<SocketAddr> {
    let ip = address.ip().to_canonical();
    // A socket on all addresses of IPv6 takes IPv4 too, unless it is configured not to.
    let ip = if ip.is_unspecified() { IpAddr::V4(Ipv4Addr::LOCALHOST) } else { ip };
    ip.is_loopback().then(|| SocketAddr::new(ip, address.port()))
}

fn listening() -> impl Iterator<Item = ListeningSocket> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).ok());
    let tables = tables.into_iter().flatten();
    tables.flat_map(|table| table.lines().skip(1).filter_map(socket).collect::<Vec<_>>())
}

/// Reads a line of a table; none for a socket that does not listen.
fn socket(line: &str) -> Option<ListeningSocket> {
    let mut fields = line.split_whitespace().skip(1);
    let (local, state) = (fields.next()?, fields.nth(1)?);
    // The fields behind: two queues, a timer, a retry, the user, a timeout, the socket.
    let socket = fields.nth(5)?;
    let (ip, port) = local.rsplit_once(':')?;
    let address = SocketAddr::new(ip_of(ip)?, u16::from_str_radix(port, 16).ok()?);
    (state == LISTENS).then(|| ListeningSocket { address, link: format!("socket:[{socket}]") })
}

/// Reads an address: words of four bytes, each in the byte order of the machine.
fn ip_of(digits: &str) -> Option<IpAddr> {
    let (words, []) = digits.as_bytes().as_chunks::<8>() else { return None };
    let words = words.iter();
    let word = |word: &[u8; 8]| u32::from_str_radix(std::str::from_utf8(word).ok()?, 16).ok();
    let bytes: Option<Vec<_>> = words.map(|it| Some(word(it)?.to_ne_bytes())).collect();
    let bytes = bytes?.concat();
    let v4 = <[u8; 4]>::try_from(bytes.as_slice()).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes.as_slice()).map(IpAddr::from)).ok()
}

fn sockets_of<'s>(
    folder: &Path,
    sockets: &'s [ListeningSocket],
) -> impl Iterator<Item = &'s ListeningSocket> {
    let files = fs::read_dir(folder.join("fd")).into_iter().flatten().flatten();
    let links: Vec<_> = files.filter_map(|file| fs::read_link(file.path()).ok()).collect();
    sockets.iter().filter(move |it| links.iter().any(|link| link.as_os_str() == it.link.as_str()))
}

#[cfg(test)]
mod tests {
    use std::{
        net::{SocketAddr, TcpListener},
        path::PathBuf,
    };

    use super::{ip_of, listener, local_addresses};

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_is_found_by_its_port() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
        let address = taken.local_addr().expect("an address");
        let found = listener(address.port()).expect("this process");
        // A process that another test starts has this socket too, for the moment before its program begins.
        assert!(found.starts_with('`') && found.contains("(process "), "{found}");
        assert_eq!(listener(1), None);
        let own = [PathBuf::from("/proc/self")];
        assert!(local_addresses(&own).contains(&address), "{:?}", local_addresses(&own));
        let all = TcpListener::bind("0.0.0.0:0").expect("bound");
        let port = all.local_addr().expect("an address").port();
        let here = SocketAddr::from(([127, 0, 0, 1], port));
        assert!(local_addresses(&own).contains(&here), "{:?}", local_addresses(&own));
    }

    #[test]
    fn addresses_are_read_as_the_kernel_writes_them() {
        let cases = [
            ("0100007F", Some("127.0.0.1")),
            ("00000000000000000000000001000000", Some("::1")),
            ("0000000000000000FFFF00000100007F", Some("::ffff:127.0.0.1")),
            ("010203", None),
            ("0100007F01", None),
            ("not hexa", None),
        ];
        for (digits, expected) in cases {
            let found = ip_of(digits).map(|ip| ip.to_string());
            if cfg!(target_endian = "little") {
                assert_eq!(found.as_deref(), expected, "{digits}");
            }
        }
    }
}
