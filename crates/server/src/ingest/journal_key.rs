//! The keys that encrypt spans on disk: those of `secrets.keys`, or a key file that is created beside the spans.
//!
//! The key file protects spans if only a file of the journal leaks, such as from a partial backup; it does not protect them from
//! a reader of the folder. Spans that it encrypted can still be decrypted once the configuration has keys.

use std::{
    fs,
    io::{self, Write as _},
    path::Path,
};

use bus::SealKeys;
use model::World;

use super::error::IngestError;

/// The name of the key file.
const FILE: &str = "spans.key";

/// Returns the keys for the journal in this folder. Reads files, so it blocks.
pub(crate) fn keys(
    directory: &Path,
    mut keys: Vec<[u8; 32]>,
    world: World,
) -> Result<SealKeys, IngestError> {
    let path = directory.join(FILE);
    let unusable = |reason: io::Error| IngestError::JournalKey { path: path.clone(), reason };
    if keys.is_empty() && !path.exists() {
        make(directory, &path, world).map_err(unusable)?;
    }
    if path.exists() {
        keys.push(read(&path).map_err(unusable)?);
    }
    let first = keys.remove(0);
    Ok(SealKeys::new(first, keys, world.random()))
}

fn read(path: &Path) -> io::Result<[u8; 32]> {
    let bytes = fs::read(path)?;
    let length = bytes.len();
    bytes.try_into().map_err(|_| io::Error::other(format!("it has {length} bytes and not 32; restore it, or delete it together with the spans beside it, which only it decrypts")))
}

/// Creates the key file, readable for this user only. It is complete before it gets its name, and another server that starts at
/// the same time may have created it first.
fn make(directory: &Path, path: &Path, world: World) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    let number = u64::from_be_bytes(world.random());
    let draft = directory.join(format!("{FILE}.{number:016x}"));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&draft)?;
    let written = file
        .write_all(&world.random::<32>())
        .and_then(|()| file.sync_all())
        .and_then(|()| fs::hard_link(&draft, path));
    fs::remove_file(&draft)?;
    match written {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        written => written,
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use model::{Timestamp, World};

    use super::{FILE, keys};

    const WORLD: World = World::new(|| Timestamp::from_nanos(0), || [5; 32]);

    #[test]
    fn a_key_is_made_where_there_is_none_and_stays() {
        let directory = tempfile::tempdir().expect("a directory");
        let folder = directory.path().join("spans");
        let made = || keys(&folder, Vec::new(), WORLD).map(|keys| format!("{keys:?}"));
        assert_eq!(made().expect("made"), "SealKeys(1)");
        let key = fs::read(folder.join(FILE)).expect("it is there");
        assert_eq!(key.len(), 32);
        assert_eq!(made().expect("read"), "SealKeys(1)");
        assert_eq!(fs::read(folder.join(FILE)).expect("it is there"), key);
        assert_eq!(fs::read_dir(&folder).expect("a folder").count(), 1, "no draft is left");
        let configured = keys(&folder, vec![[1; 32]], WORLD).map(|keys| format!("{keys:?}"));
        assert_eq!(configured.expect("both"), "SealKeys(2)", "what it sealed still opens");
        #[cfg(unix)]
        {
            let mode = fs::metadata(folder.join(FILE)).expect("it is there").permissions();
            assert_eq!(std::os::unix::fs::PermissionsExt::mode(&mode) & 0o777, 0o600);
        }
        fs::write(folder.join(FILE), "short").expect("writable");
        let refused = made().expect_err("it is no key").to_string();
        assert!(refused.contains("spans.key") && refused.contains("5 bytes"), "{refused}");
    }

    #[test]
    fn with_keys_none_is_made() {
        let directory = tempfile::tempdir().expect("a directory");
        keys(directory.path(), vec![[1; 32]], WORLD).expect("configured");
        assert!(!directory.path().join(FILE).exists());
    }
}
