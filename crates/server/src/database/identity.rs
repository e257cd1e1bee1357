//! The identity by which a server is recognized after a restart: its span journal, on its machine.
//!
//! The journal's folder is locked, so a server that holds the lock is the successor of the previous one, and has the spans that
//! it received. A copy of the folder is no successor, so the file, the machine and its boot are part of the identity: after a
//! reboot the old row has expired anyway. If one of them cannot be read, a server gets a new identity at each start.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use model::World;
use ring::digest;

/// The file name in the journal's folder.
const FILE: &str = "server";
/// The number of hexadecimal digits in the file.
const DIGITS: usize = 32;
/// The file with the id of the machine's current boot. Containers of one machine share it.
const BOOT: &str = "/proc/sys/kernel/random/boot_id";
/// The file with the name of the machine, or of the container.
const HOST: &str = "/proc/sys/kernel/hostname";
/// The maximum length of a host name.
const HOST_MAX: usize = 253;

/// The identity of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    /// The id, which is the same after a restart.
    pub(crate) id: [u8; 16],
    /// The host name of its machine.
    pub(crate) host: String,
}

/// Returns the identity of the server that holds this folder. Reads files, so it blocks.
pub(crate) fn identity(folder: Option<&Path>, world: World) -> Identity {
    let host = host();
    let known = folder.and_then(|folder| number(folder, world)).zip(read(BOOT));
    let id = match known {
        Some((number, boot)) => hashed(&[&number, &boot, &host]),
        None => world.random(),
    };
    Identity { id, host }
}

/// Returns the host name of this machine.
pub(crate) fn host() -> String {
    let host = read(HOST).filter(|host| !host.is_empty()).unwrap_or_else(|| "server".to_owned());
    host.chars().take(HOST_MAX).collect()
}

fn read(path: &str) -> Option<String> {
    fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}

/// Returns the number in the folder, and creates it if there is none; `None` if the folder cannot store one.
fn number(folder: &Path, world: World) -> Option<String> {
    let path = folder.join(FILE);
    let number = kept_number(&path, || world.random());
    number
        .inspect_err(|error| {
            tracing::warn!(path = %path.display(), %error, "the server cannot be known again after a restart");
        })
        .ok()
}

/// Returns the number in this file, with the number of the file itself: a copy of the file has another one. If it is missing or
/// damaged, creates another one from `made` and stores it.
pub(crate) fn kept_number(path: &Path, made: impl Fn() -> [u8; 16]) -> io::Result<String> {
    let is_number =
        |text: &String| text.len() == DIGITS && text.bytes().all(|digit| digit.is_ascii_hexdigit());
    if let Some(number) = fs::read_to_string(path).ok().filter(is_number) {
        return Ok(format!("{number} {}", file_number(path)?));
    }
    let number = hex(&made());
    let mut file = fs::File::create(path)?;
    file.write_all(number.as_bytes())?;
    file.sync_all()?;
    Ok(format!("{number} {}", file_number(path)?))
}

/// Returns the number of a file on its machine, which a copy of the file does not have.
#[cfg(unix)]
fn file_number(path: &Path) -> io::Result<String> {
    use std::os::unix::fs::MetadataExt as _;
    let file = fs::metadata(path)?;
    Ok(format!("{}:{}", file.dev(), file.ino()))
}

/// Files have no number here: a copy of the file is taken for the file.
#[cfg(not(unix))]
fn file_number(_path: &Path) -> io::Result<String> {
    Ok(String::new())
}

/// Returns 16 bytes of the SHA-256 of these texts in this order.
pub(crate) fn hashed(parts: &[&str]) -> [u8; 16] {
    let hash = digest::digest(&digest::SHA256, parts.join("\n").as_bytes());
    hash.as_ref().first_chunk().copied().unwrap_or_default()
}

/// Encodes bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicU8, Ordering},
    };

    use model::{Timestamp, World};

    use super::{FILE, identity};

    static DRAWS: AtomicU8 = AtomicU8::new(0);

    fn world() -> World {
        World::new(|| Timestamp::from_nanos(0), || [DRAWS.fetch_add(1, Ordering::Relaxed); 32])
    }

    #[test]
    fn whoever_has_the_folder_is_the_same_server() {
        let (one, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let first = identity(Some(one.path()), world());
        assert_eq!(identity(Some(one.path()), world()), first, "it comes back");
        assert_ne!(identity(Some(other.path()), world()).id, first.id);
        fs::copy(one.path().join(FILE), other.path().join(FILE)).expect("a copy");
        assert_ne!(identity(Some(other.path()), world()).id, first.id, "a copy is another server");
        // The file holds no number: another one is created.
        fs::write(one.path().join(FILE), "torn").expect("written");
        let mended = identity(Some(one.path()), world());
        assert_ne!(mended.id, first.id);
        assert_eq!(identity(Some(one.path()), world()), mended);
        assert_ne!(identity(None, world()).id, identity(None, world()).id, "and none is nobody's");
    }
}
