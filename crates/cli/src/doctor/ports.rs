//! Which process listens on a port. It reads `/proc`, which only Linux has; elsewhere the process is not known.

use std::{fs, path::Path};

/// The state of a socket that listens, in `/proc/net/tcp`.
const LISTENS: &str = "0A";

/// Returns the process that listens on a port, by its name and id.
pub(super) fn listener(port: u16) -> Option<String> {
    let sockets = sockets(port);
    let folders = fs::read_dir("/proc").ok()?.flatten().map(|folder| folder.path());
    folders.filter(|folder| holds(folder, &sockets)).find_map(|folder| {
        let name = fs::read_to_string(folder.join("comm")).ok()?;
        let id = folder.file_name()?.to_string_lossy().into_owned();
        Some(format!("`{}` (process {id})", name.trim_end()))
    })
}

/// Returns the sockets that listen on a port, as links of a process name them.
fn sockets(port: u16) -> Vec<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|path| fs::read_to_string(path).ok());
    let lines = tables.iter().flatten().flat_map(|table| table.lines().skip(1));
    let of_port = lines.filter_map(|line| {
        let mut fields = line.split_whitespace().skip(1);
        let (local, state) = (fields.next()?, fields.nth(1)?);
        let is_it = u16::from_str_radix(local.rsplit(':').next()?, 16).ok()? == port;
        // The fields behind: two queues, a timer, a retry, the user, a timeout, the socket.
        let socket = fields.nth(5)?;
        (is_it && state == LISTENS).then(|| format!("socket:[{socket}]"))
    });
    of_port.collect()
}

fn holds(folder: &Path, sockets: &[String]) -> bool {
    let Ok(files) = fs::read_dir(folder.join("fd")) else { return false };
    let mut links = files.flatten().filter_map(|file| fs::read_link(file.path()).ok());
    links.any(|link| sockets.iter().any(|socket| link.as_os_str() == socket.as_str()))
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::listener;

    #[test]
    #[cfg(target_os = "linux")]
    fn a_listener_is_found_by_its_port() {
        let taken = TcpListener::bind("127.0.0.1:0").expect("bound");
        let port = taken.local_addr().expect("an address").port();
        let found = listener(port).expect("this process");
        // A process that another test starts has this socket too, for the moment before its program begins.
        assert!(found.starts_with('`') && found.contains("(process "), "{found}");
        assert_eq!(listener(1), None);
    }
}
