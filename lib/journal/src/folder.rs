//! The folder of one journal, its lock, and the lookup of folders that dead journals left.

use std::{
    ffi::OsStr,
    fs::{self, DirBuilder, File, Metadata, OpenOptions, TryLockError},
    io,
    os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::{options::Durability, shared::lock};

/// The maximum number of journals that can share a directory.
const INSTANCES_MAX: u32 = 4096;

/// Segment ids are below this value.
const IDS_MAX: u64 = 1 << 63;

const SEGMENT: &str = "segment";
const LOCK: &str = "lock";

/// Other users must not read records.
const FOLDER_MODE: u32 = 0o700;
const FILE_MODE: u32 = 0o600;

/// Why a journal cannot use a directory.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// A path in the directory cannot be created, listed or opened.
    #[error(
        "`{}` cannot be used by a journal: {source}; name a directory that this process may create and write to",
        path.display()
    )]
    Unusable {
        /// The path that could not be used.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// All folders that the directory may contain are locked.
    #[error("`{}` is in use by {INSTANCES_MAX} journals already; name another directory", directory.display())]
    Crowded {
        /// The directory.
        directory: PathBuf,
    },
}

impl OpenError {
    pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        |source| Self::Unusable { path, source }
    }
}

/// A folder that this journal owns until the value is dropped or the lock is released.
#[derive(Debug)]
pub(crate) struct Folder {
    directory: PathBuf,
    path: PathBuf,
    durability: Durability,
    lock: Mutex<Option<Lock>>,
}

/// The locked file, and its identity (device and inode).
#[derive(Debug)]
struct Lock {
    _file: File,
    identity: (u64, u64),
}

/// The current owner of the folder at our path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    Us,
    /// The folder does not exist.
    Nobody,
    /// Our folder was deleted, and another journal created a new one at the same path.
    Another,
}

impl Folder {
    /// Locks the folder with the lowest number that no other journal holds.
    pub(crate) fn take(directory: &Path, durability: Durability) -> Result<Self, OpenError> {
        create_dir(directory, durability).map_err(OpenError::at(directory))?;
        for instance in 0..INSTANCES_MAX {
            let path = directory.join(instance.to_string());
            match claim(&path, durability) {
                Ok(Some(lock)) => {
                    let (directory, lock) = (directory.to_owned(), Mutex::new(Some(lock)));
                    return Ok(Self { directory, path, durability, lock });
                }
                Ok(None) => {}
                // The folder belongs to another user.
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied && path.is_dir() => {}
                Err(error) => return Err(OpenError::at(&path)(error)),
            }
        }
        Err(OpenError::Crowded { directory: directory.to_owned() })
    }

    /// The path of the folder.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// The folders of other journals, dead or alive, in order.
    pub(crate) fn others(&self) -> Result<Vec<PathBuf>, OpenError> {
        let mut found = numbered(&self.directory).map_err(OpenError::at(&self.directory))?;
        found.retain(|path| *path != self.path);
        Ok(found)
    }

    /// Locks another folder, if its journal is dead.
    pub(crate) fn orphan(&self, path: PathBuf) -> Option<Self> {
        Self::dead(self.directory.clone(), path, self.durability)
    }

    /// Locks and returns all folders of dead journals in a directory.
    pub(crate) fn all_dead(directory: &Path) -> io::Result<Vec<Self>> {
        let folders = numbered(directory)?.into_iter();
        let dead = |path| Self::dead(directory.to_owned(), path, Durability::Process);
        Ok(folders.filter_map(dead).collect())
    }

    /// Locks a folder of a dead journal. A folder that we may not lock counts as owned by another journal.
    fn dead(directory: PathBuf, path: PathBuf, durability: Durability) -> Option<Self> {
        let lock = try_lock(&path).ok()??;
        Some(Self { directory, path, durability, lock: Mutex::new(Some(lock)) })
    }

    /// The ids of all files that are named like segments, in order. Every id is low enough that the next id cannot
    /// overflow.
    pub(crate) fn ids(&self) -> Result<Vec<u64>, OpenError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(OpenError::at(&self.path))? {
            let path = entry.map_err(OpenError::at(&self.path))?.path();
            let stem = path.file_stem().and_then(OsStr::to_str).unwrap_or_default();
            if let Ok(id) = u64::from_str_radix(stem, 16)
                && id < IDS_MAX
                && path == self.segment(id)
            {
                ids.push(id);
            }
        }
        ids.sort_unstable();
        Ok(ids)
    }

    /// The path of a segment.
    pub(crate) fn segment(&self, id: u64) -> PathBuf {
        self.path.join(format!("{id:016x}.{SEGMENT}"))
    }

    /// Returns the owner of the folder at our path. If the lock file is missing and no other journal has locked the
    /// folder, locks it again.
    pub(crate) fn owner(&self) -> io::Result<Owner> {
        let mut held = lock(&self.lock);
        let Some(Lock { identity, .. }) = *held else { return Ok(Owner::Another) };
        match fs::metadata(self.path.join(LOCK)) {
            Ok(found) if identity_of(&found) == identity => Ok(Owner::Us),
            Ok(_) => Ok(Owner::Another),
            Err(error) if error.kind() == io::ErrorKind::NotFound => match try_lock(&self.path) {
                Ok(Some(lock)) => {
                    *held = Some(lock);
                    Ok(Owner::Us)
                }
                Ok(None) => Ok(Owner::Another),
                Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Owner::Nobody),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Creates an empty file for a segment. Creates a vanished folder again, because the records in memory need one.
    pub(crate) fn create(&self, id: u64) -> io::Result<File> {
        match self.owner()? {
            Owner::Us => {}
            Owner::Nobody => {
                create_dir(&self.directory, self.durability)?;
                let lock_again = claim(&self.path, self.durability)?;
                *lock(&self.lock) = Some(lock_again.ok_or_else(|| self.taken_away())?);
            }
            Owner::Another => return Err(self.taken_away()),
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true).mode(FILE_MODE).open(self.segment(id))
    }

    /// Opens the file of a segment.
    pub(crate) fn open(&self, id: u64, options: &OpenOptions) -> io::Result<File> {
        match self.owner()? {
            Owner::Us => options.open(self.segment(id)),
            Owner::Nobody | Owner::Another => Err(self.taken_away()),
        }
    }

    /// Truncates the file of a segment to this length.
    pub(crate) fn cut(&self, id: u64, length: u64) -> io::Result<()> {
        if self.owner()? != Owner::Us {
            return Ok(());
        }
        OpenOptions::new().write(true).open(self.segment(id))?.set_len(length)
    }

    /// Deletes a segment. A file that is already missing is not an error.
    pub(crate) fn remove(&self, id: u64) -> io::Result<()> {
        if self.owner()? != Owner::Us {
            return Ok(());
        }
        let path = self.segment(id);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                let words = format!(
                    "`{}` cannot be deleted: {error}; until it is, its bytes count as used",
                    path.display()
                );
                Err(io::Error::new(error.kind(), words))
            }
            _ => Ok(()),
        }
    }

    /// Syncs the folder, so that the names of new files are durable.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Releases the lock, so that other journals can take the folder.
    pub(crate) fn release(&self) {
        lock(&self.lock).take();
    }

    fn taken_away(&self) -> io::Error {
        let words = format!(
            "the folder `{}` was taken away, and is another journal's by now; close this one and open another",
            self.path.display()
        );
        io::Error::new(io::ErrorKind::NotFound, words)
    }
}

/// Creates a folder that other users cannot read, and locks it unless another journal holds the lock.
fn claim(path: &Path, durability: Durability) -> io::Result<Option<Lock>> {
    create_dir(path, durability)?;
    let mut permissions = fs::metadata(path)?.permissions();
    if permissions.mode() & 0o777 != FOLDER_MODE {
        permissions.set_mode(FOLDER_MODE);
        fs::set_permissions(path, permissions)?;
    }
    try_lock(path)
}

/// Creates a folder and its missing parents, and syncs the parents under [`Durability::Host`].
fn create_dir(path: &Path, durability: Durability) -> io::Result<()> {
    let missing: Vec<&Path> = path.ancestors().take_while(|folder| !folder.exists()).collect();
    DirBuilder::new().recursive(true).mode(FOLDER_MODE).create(path)?;
    if durability == Durability::Host {
        for parent in missing.into_iter().filter_map(Path::parent) {
            let is_here = parent.as_os_str().is_empty();
            File::open(if is_here { Path::new(".") } else { parent })?.sync_all()?;
        }
    }
    Ok(())
}

/// The folders of journals in a directory, in order.
fn numbered(directory: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if let Ok(instance) = name.parse::<u32>()
            && instance < INSTANCES_MAX
            && name == instance.to_string()
            && path.is_dir()
        {
            found.push((instance, path));
        }
    }
    found.sort();
    Ok(found.into_iter().map(|(_, path)| path).collect())
}

/// Locks the lock file, unless another journal holds the lock or the file was replaced meanwhile.
fn try_lock(folder: &Path) -> io::Result<Option<Lock>> {
    let path = folder.join(LOCK);
    let mut options = OpenOptions::new();
    let file = options.write(true).create(true).truncate(false).mode(FILE_MODE).open(&path)?;
    match file.try_lock() {
        Ok(()) => {
            let identity = identity_of(&file.metadata()?);
            let is_there = fs::metadata(&path).is_ok_and(|found| identity_of(&found) == identity);
            Ok(is_there.then_some(Lock { _file: file, identity }))
        }
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}

fn identity_of(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}
