//! What is kept between runs, in the folder `.qualitytrace` of the working folder: what was learned, and what failed.
//!
//! Both files help and neither is needed: a broken one is told of and goes unread, and where none can be written that is
//! told too, and the verdicts stand. Each is written whole and moved into its place, so that nobody reads half of one. Who
//! adds to what is there holds the [`lock`] meanwhile: parts of a `--shard` side by side end together.

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

/// Where it is kept.
pub(crate) const FOLDER: &str = ".qualitytrace";
const LEARNED: &str = "learned.json";
const LAST: &str = "last.json";
const LOCK: &str = "lock";
/// How long another run may hold the lock. It holds it for milliseconds, unless it is stopped.
const LOCK_MAX: Duration = Duration::from_secs(5);
/// How often somebody looks whether the lock is free.
const LOCK_TICK: Duration = Duration::from_millis(10);
/// The form of the files.
const VERSION: u32 = 1;
/// Bytes of a file that is read.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Tests that are kept as failed.
const FAILED_MAX: usize = 10_000;

/// What is kept of services.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LearnedFile {
    #[serde(deserialize_with = "version")]
    version: u32,
    learned: LearnedProfile,
}

/// What did not pass when it was last run.
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
    /// From the working folder, where it lies below it.
    pub(super) file: PathBuf,
    pub(super) id: String,
}

impl FailedItem {
    pub(super) fn new(item: &Item) -> Self {
        // However it was named: from where we are, or from the root where it lies elsewhere.
        let file = item.file().canonicalize().unwrap_or_else(|_| item.file().to_owned());
        let here = Path::new(".").canonicalize().unwrap_or_default();
        let file = file.strip_prefix(&here).map(Path::to_owned).unwrap_or(file);
        Self { file, id: item.id().to_string() }
    }
}

/// Keeps other runs in this folder from adding to the files, until it is dropped. None where there can be no lock, or
/// where it is held for too long: what is kept helps, and no run waits for it.
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

/// What earlier runs have learned here; nothing where there is nothing, or nothing that can be read.
pub(crate) fn learned(terminal: &Terminal) -> LearnedProfile {
    let file: Option<LearnedFile> = read(LEARNED, terminal);
    file.map(|file| file.learned).unwrap_or_default()
}

/// Keeps what is learned by now.
pub(crate) fn keep_learned(learned: LearnedProfile, terminal: &Terminal) {
    write(LEARNED, &LearnedFile { version: VERSION, learned }, terminal);
}

/// What did not pass when it was last run; none where nothing is known.
pub(super) fn failed(terminal: &Terminal) -> Option<Vec<FailedItem>> {
    let file: Option<LastFile> = read(LAST, terminal);
    file.map(|file| file.failed)
}

/// Keeps what did not pass: those of before that were not run now, and those of now.
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
        // What is in here is for this machine: `qualitytrace learn` writes what is to be committed.
        fs::write(folder.join(".gitignore"), "*\n")?;
    }
    Ok(())
}

/// Refuses a form that is not ours: what its fields mean is not known here.
fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u32, D::Error> {
    match u32::deserialize(deserializer)? {
        VERSION => Ok(VERSION),
        other => Err(D::Error::custom(format!("its version is {other}, expected {VERSION}"))),
    }
}

/// Writes a file whole, or not at all.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    // Two processes at once write two files, and the later one stays.
    beside.push(format!(".{}.new", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, path));
    if written.is_err() {
        let _gone = fs::remove_file(&beside);
    }
    written
}
