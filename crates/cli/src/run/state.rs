//! The state between runs, in the folder `.qualitytrace` of the working folder: the learned profile, and the failed tests.
//!
//! Both files are optional: a corrupt file is reported and ignored, and a failed write is reported too, and does not change
//! the verdicts. Each file is written to a temporary file and renamed, so that a reader never sees a partial file. A process
//! holds the [`lock`] while it updates a file: concurrent parts of a `--shard` end at the same time.

use std::{
    fs::{self, File, TryLockError},
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
    time::Duration,
};

use model::LearnedProfile;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{DeserializeOwned, Error},
};
use tokio::time::{Instant, sleep};

use crate::{discovery::Item, terminal::Terminal};

/// The folder of the state.
pub(crate) const FOLDER: &str = ".qualitytrace";
const LEARNED: &str = "learned.json";
const LAST: &str = "last.json";
const LOCK: &str = "lock";
/// The timeout for the lock. A run holds it for milliseconds, unless it is suspended.
const LOCK_MAX: Duration = Duration::from_secs(5);
/// The polling interval for the lock.
const LOCK_TICK: Duration = Duration::from_millis(10);
/// The schema version of the files.
const VERSION: u32 = 1;
/// The upper bound for a file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// The upper bound for stored failed tests.
const FAILED_MAX: usize = 10_000;

/// The stored learned profile.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedFile {
    #[serde(deserialize_with = "version")]
    version: u32,
    learned: LearnedProfile,
}

/// The items that did not pass in their last run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastFile {
    #[serde(deserialize_with = "version")]
    version: u32,
    failed: Vec<FailedItem>,
}

/// A test or suite that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FailedItem {
    /// The path relative to the working folder, if the file is below it.
    pub(super) file: PathBuf,
    pub(super) id: String,
}

impl FailedItem {
    pub(super) fn new(item: &Item) -> Self {
        // Normalizes the path: relative to the working folder, or absolute if the file is elsewhere.
        let file = item.file().canonicalize().unwrap_or_else(|_| item.file().to_owned());
        let here = Path::new(".").canonicalize().unwrap_or_default();
        let file = file.strip_prefix(&here).map(Path::to_owned).unwrap_or(file);
        Self { file, id: item.id().to_string() }
    }
}

/// Locks the files against updates of other runs in this folder, until it is dropped. None if locking fails or takes too
/// long: the state is optional, and no run waits long for it.
pub(crate) async fn lock() -> Option<File> {
    make_folder().ok()?;
    let file = File::create(Path::new(FOLDER).join(LOCK)).ok()?;
    let began = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if began.elapsed() < LOCK_MAX => sleep(LOCK_TICK).await,
            Err(TryLockError::WouldBlock | TryLockError::Error(_)) => return None,
        }
    }
}

/// Returns the learned profile of earlier runs; empty if there is none, or none that can be read.
pub(crate) fn learned(terminal: &Terminal) -> LearnedProfile {
    let file: Option<LearnedFile> = read(LEARNED, terminal);
    file.map(|file| file.learned).unwrap_or_default()
}

/// Stores the learned profile.
pub(crate) fn keep_learned(learned: LearnedProfile, terminal: &Terminal) {
    write(LEARNED, &LearnedFile { version: VERSION, learned }, terminal);
}

/// Returns the items that did not pass in their last run; none without a state file.
pub(super) fn failed(terminal: &Terminal) -> Option<Vec<FailedItem>> {
    let file: Option<LastFile> = read(LAST, terminal);
    file.map(|file| file.failed)
}

/// Stores the items that did not pass: earlier ones that were not run now, and those of this run.
pub(super) fn keep_failed(mut failed: Vec<FailedItem>, terminal: &Terminal) {
    failed.sort();
    failed.dedup();
    failed.truncate(FAILED_MAX);
    write(LAST, &LastFile { version: VERSION, failed }, terminal);
}

fn read<T: DeserializeOwned>(name: &str, terminal: &Terminal) -> Option<T> {
    let path = Path::new(FOLDER).join(name);
    let mut text = String::new();
    let read =
        fs::File::open(&path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_string(&mut text));
    let why = match read {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        Err(error) => error.to_string(),
        Ok(_) => match serde_json::from_str(&text) {
            Ok(value) => return Some(value),
            Err(error) => error.to_string(),
        },
    };
    terminal.line(&format!("`{}` is not used, since it cannot be read: {why}", path.display()));
    None
}

fn write(name: &str, value: &impl Serialize, terminal: &Terminal) {
    if let Err(error) = try_write(name, value) {
        terminal.line(&format!("`{FOLDER}/{name}` cannot be written: {error}"));
    }
}

fn try_write(name: &str, value: &impl Serialize) -> io::Result<()> {
    make_folder()?;
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    replace(&Path::new(FOLDER).join(name), &text)
}

fn make_folder() -> io::Result<()> {
    let folder = Path::new(FOLDER);
    if !folder.exists() {
        fs::create_dir_all(folder)?;
        // This folder is for this machine: `qualitytrace learn` writes the file to commit.
        fs::write(folder.join(".gitignore"), "*\n")?;
    }
    Ok(())
}

/// Rejects another schema version: the meaning of its fields is unknown.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("its version is {other}, expected {VERSION}"))),
    }
}

/// Writes a file atomically.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    // Two concurrent processes write two temporary files, and the later rename wins.
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written
}
