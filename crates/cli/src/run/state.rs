//! What is kept between runs, in the folder `.qualitytrace` of the working folder: what was learned, and what failed.
//!
//! Both files help and neither is needed: a broken one is told of and goes unread, and where none can be written that is
//! told too, and the verdicts stand. Each is written whole and moved into its place, so that nobody reads half of one.

use std::{
    fs,
    io::{self, ErrorKind, Read},
    path::{Path, PathBuf},
};

use model::Learned;
use serde::{Deserialize, Serialize, de::DeserializeOwned};

use crate::{chosen::Item, terminal::Terminal};

/// Where it is kept.
pub(crate) const FOLDER: &str = ".qualitytrace";
const LEARNED: &str = "learned.json";
const LAST: &str = "last.json";
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
    version: u32,
    learned: Learned,
}

/// What did not pass when it was last run.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LastFile {
    version: u32,
    failed: Vec<Failed>,
}

/// A test or suite that did not pass.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Failed {
    /// From the working folder, where it lies below it.
    pub(super) file: PathBuf,
    pub(super) id: String,
}

impl Failed {
    pub(super) fn new(item: &Item) -> Self {
        // However it was named: from where we are, or from the root where it lies elsewhere.
        let file = item.file().canonicalize().unwrap_or_else(|_| item.file().to_owned());
        let here = Path::new(".").canonicalize().unwrap_or_default();
        let file = file.strip_prefix(&here).map(Path::to_owned).unwrap_or(file);
        Self { file, id: item.id().to_string() }
    }
}

/// What earlier runs have learned here; nothing where there is nothing, or nothing that can be read.
pub(crate) fn learned(terminal: &Terminal) -> Learned {
    let file: Option<LearnedFile> = read(LEARNED, terminal);
    file.map(|file| file.learned).unwrap_or_default()
}

/// Keeps what is learned by now.
pub(crate) fn keep_learned(learned: Learned, terminal: &Terminal) {
    write(LEARNED, &LearnedFile { version: VERSION, learned }, terminal);
}

/// What did not pass when it was last run; none where nothing is known.
pub(super) fn failed(terminal: &Terminal) -> Option<Vec<Failed>> {
    let file: Option<LastFile> = read(LAST, terminal);
    file.map(|file| file.failed)
}

/// Keeps what did not pass: those of before that were not run now, and those of now.
pub(super) fn keep_failed(mut failed: Vec<Failed>, terminal: &Terminal) {
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
    let folder = Path::new(FOLDER);
    if !folder.exists() {
        fs::create_dir_all(folder)?;
        // What is in here is for this machine: `qualitytrace learn` writes what is to be committed.
        fs::write(folder.join(".gitignore"), "*\n")?;
    }
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    replace(&folder.join(name), &text)
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
