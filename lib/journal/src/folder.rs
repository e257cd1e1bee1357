//! The folder of one journal, its lock, and how it takes over what a dead one left in another.

use std::{
    fs::{self, DirBuilder, File, OpenOptions, TryLockError},
    io,
    os::unix::fs::DirBuilderExt,
    path::{Path, PathBuf},
    sync::Mutex,
};

use crate::shared::lock;

/// How many journals may share a directory.
const INSTANCES_MAX: u32 = 4096;

const SEGMENT: &str = "segment";

/// Why a directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Something in it cannot be created, listed or opened.
    #[error(
        "`{}` cannot be used by a journal: {source}; name a directory that this process may create and write to",
        path.display()
    )]
    Unusable {
        /// What could not be used.
        path: PathBuf,
        /// What the operating system said.
        source: io::Error,
    },
    /// All the folders that it may have are locked.
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

/// A folder that is ours until this is dropped or released.
#[derive(Debug)]
pub(crate) struct Folder {
    directory: PathBuf,
    path: PathBuf,
    lock: Mutex<Option<File>>,
}

impl Folder {
    /// The lowest folder that nobody else has.
    pub(crate) fn take(directory: &Path) -> Result<Self, OpenError> {
        create_dir(directory).map_err(OpenError::at(directory))?;
        for instance in 0..INSTANCES_MAX {
            let path = directory.join(instance.to_string());
            create_dir(&path).map_err(OpenError::at(&path))?;
            if let Some(lock) = try_lock(&path).map_err(OpenError::at(&path))? {
                let directory = directory.to_owned();
                return Ok(Self { directory, path, lock: Mutex::new(Some(lock)) });
            }
        }
        Err(OpenError::Crowded { directory: directory.to_owned() })
    }

    /// The folders of other journals, dead or alive, in their order.
    pub(crate) fn others(&self) -> Result<Vec<PathBuf>, OpenError> {
        let mut found = Vec::new();
        for entry in fs::read_dir(&self.directory).map_err(OpenError::at(&self.directory))? {
            let path = entry.map_err(OpenError::at(&self.directory))?.path();
            let instance = path.file_name().and_then(|name| name.to_str()?.parse::<u32>().ok());
            if let Some(instance) = instance
                && path != self.path
                && path.is_dir()
            {
                found.push((instance, path));
            }
        }
        found.sort();
        Ok(found.into_iter().map(|(_, path)| path).collect())
    }

    /// Another folder, if its journal is dead. One that we may not lock is somebody else's in every sense.
    pub(crate) fn orphan(&self, path: PathBuf) -> Option<Self> {
        let lock = try_lock(&path).ok()??;
        Some(Self { directory: self.directory.clone(), path, lock: Mutex::new(Some(lock)) })
    }

    /// The ids of all files that are named as segments, in order.
    pub(crate) fn ids(&self) -> Result<Vec<u64>, OpenError> {
        let mut ids = Vec::new();
        for entry in fs::read_dir(&self.path).map_err(OpenError::at(&self.path))? {
            let path = entry.map_err(OpenError::at(&self.path))?.path();
            let stem = path.file_stem().and_then(|stem| stem.to_str());
            if let Some(stem) = stem
                && path.extension().is_some_and(|extension| extension == SEGMENT)
                && stem.len() == 16
                && let Ok(id) = u64::from_str_radix(stem, 16)
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

    /// An empty file for a segment. A folder that has vanished is made again: the records in memory need one.
    pub(crate) fn create(&self, id: u64) -> io::Result<File> {
        let create = || {
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).open(self.segment(id))
        };
        match create() {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                create_dir(&self.directory)?;
                create_dir(&self.path)?;
                match try_lock(&self.path)? {
                    Some(file) => *lock(&self.lock) = Some(file),
                    None => return Err(error),
                }
                create()
            }
            result => result,
        }
    }

    /// Deletes a segment; one that is gone is as good.
    pub(crate) fn remove(&self, id: u64) -> io::Result<()> {
        match fs::remove_file(self.segment(id)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Makes the names of new files last.
    pub(crate) fn sync(&self) -> io::Result<()> {
        File::open(&self.path)?.sync_all()
    }

    /// Others may take it from now on.
    pub(crate) fn release(&self) {
        lock(&self.lock).take();
    }
}

fn create_dir(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The locked file, unless somebody else has it.
fn try_lock(folder: &Path) -> io::Result<Option<File>> {
    let file =
        OpenOptions::new().write(true).create(true).truncate(false).open(folder.join("lock"))?;
    match file.try_lock() {
        Ok(()) => Ok(Some(file)),
        Err(TryLockError::WouldBlock) => Ok(None),
        Err(TryLockError::Error(error)) => Err(error),
    }
}
