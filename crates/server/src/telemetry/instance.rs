//! `service.instance.id`: the attribute by which telemetry distinguishes servers.
//!
//! The id is stored in the data directory, so that a restarted server continues its time series. No two processes have the same
//! id: each locks its own file, and of servers that share a directory the second one uses the second file. The host name and the
//! file itself are part of the id, so that a copy of the directory has its own id.

use std::{
    fs::{self, File, OpenOptions},
    io,
    path::Path,
};

use crate::database::identity::{hashed, hex, host, kept_number};

/// The folder in the data directory.
const FOLDER: &str = "instances";
/// The maximum number of servers that share a data directory and keep their ids.
const SHARED_MAX: u32 = 64;

/// The id of a server, reserved until this is dropped.
#[derive(Debug)]
pub(crate) struct Instance {
    /// A UUID.
    pub(crate) id: String,
    /// The locked file; `None` if the data directory cannot store the id, which is then only valid for this process.
    _file: Option<File>,
}

impl Instance {
    /// Returns the id of the server with this data directory. Reads files, so it blocks.
    pub(crate) fn of(directory: &Path, random: fn() -> u64) -> Self {
        let made = || (u128::from(random()) << 64 | u128::from(random())).to_be_bytes();
        let folder = directory.join(FOLDER);
        let (number, file) = match claimed(&folder, made) {
            Ok((number, file)) => (number, Some(file)),
            Err(error) => {
                tracing::warn!(folder = %folder.display(), %error, "`service.instance.id` is another one after a restart");
                (hex(&made()), None)
            }
        };
        Self { id: uuid(hashed(&[&number, &host()])), _file: file }
    }
}

/// Returns the number of the first file that no other process has locked, and creates it if there is none.
fn claimed(folder: &Path, made: impl Fn() -> [u8; 16]) -> io::Result<(String, File)> {
    fs::create_dir_all(folder)?;
    for place in 0..SHARED_MAX {
        let path = folder.join(place.to_string());
        let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
        match file.try_lock() {
            Ok(()) => return Ok((kept_number(&path, made)?, file)),
            Err(fs::TryLockError::WouldBlock) => {}
            Err(fs::TryLockError::Error(error)) => return Err(error),
        }
    }
    Err(io::Error::other(format!("{SHARED_MAX} servers share it")))
}

/// Formats the bytes as a custom UUID (RFC 9562, version 8).
fn uuid(mut bytes: [u8; 16]) -> String {
    bytes[6] = bytes[6] & 0x0f | 0x80;
    bytes[8] = bytes[8] & 0x3f | 0x80;
    let digits = hex(&bytes);
    let (a, b, c, d, e) =
        (&digits[..8], &digits[8..12], &digits[12..16], &digits[16..20], &digits[20..]);
    format!("{a}-{b}-{c}-{d}-{e}")
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicU64, Ordering},
    };

    use super::Instance;

    static DRAWS: AtomicU64 = AtomicU64::new(0);

    fn random() -> u64 {
        DRAWS.fetch_add(1, Ordering::Relaxed)
    }

    #[test]
    fn a_server_that_starts_again_has_its_id_and_one_beside_it_another() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = || Instance::of(directory.path(), random);
        let (one, other) = (of(), of());
        assert_ne!(one.id, other.id, "both live");
        let ids = [one.id.clone(), other.id.clone()];
        drop(one);
        let again = of();
        assert_eq!(again.id, ids[0], "it starts again");
        drop((again, other));
        let (one, other) = (of(), of());
        assert_eq!([one.id, other.id], ids);
    }

    #[test]
    fn a_copy_of_the_directory_has_an_id_of_its_own() {
        let (one, other) = (tempfile::tempdir().expect("one"), tempfile::tempdir().expect("two"));
        let first = Instance::of(one.path(), random);
        fs::create_dir(other.path().join("instances")).expect("a folder");
        let file = |directory: &tempfile::TempDir| directory.path().join("instances/0");
        fs::copy(file(&one), file(&other)).expect("a copy");
        assert_ne!(Instance::of(other.path(), random).id, first.id);
    }

    #[test]
    fn a_torn_file_and_a_folder_that_keeps_nothing_end_nothing() {
        let directory = tempfile::tempdir().expect("a directory");
        let of = || Instance::of(directory.path(), random).id;
        let first = of();
        fs::write(directory.path().join("instances/0"), "torn").expect("written");
        let mended = of();
        assert_ne!(mended, first);
        assert_eq!(of(), mended);
        fs::remove_dir_all(directory.path().join("instances")).expect("removed");
        fs::write(directory.path().join("instances"), "no folder").expect("written");
        assert_ne!(of(), of(), "each process has one of its own");
    }

    #[test]
    fn an_id_is_a_uuid() {
        assert_eq!(super::uuid([0xff; 16]), "ffffffff-ffff-8fff-bfff-ffffffffffff");
    }
}
