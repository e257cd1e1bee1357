//! Reads the files that a test names, relative to its document, and creates those that a command writes.

use std::{
    fs::File,
    io::{ErrorKind, Read, Write},
    path::{Path, PathBuf},
};

use lang::{FileRef, Files, Plan};
use model::{ErrorCode, Fault, Faulty, Place};
use thiserror::Error;

use crate::{exit::Exit, terminal::Terminal};

/// The upper bound for a file, in bytes: the same as for a response.
const FILE_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// An error: a file that a test names cannot be read.
#[derive(Debug, Error)]
#[error(
    "cannot read `{}`, named{} at {}:{}:{}: {why}",
    found.display(), as_written(path, found), place.file, place.line, place.column
)]
pub(crate) struct FileError {
    /// The path as written in the document.
    path: String,
    /// The resolved path.
    found: PathBuf,
    place: Place,
    why: String,
}

impl Faulty for FileError {
    fn fault(&self) -> Fault {
        Fault::Invalid
    }

    fn code(&self) -> ErrorCode {
        ErrorCode::FileUnreadable
    }
}

/// Returns the path as written, if it differs from the resolved path.
fn as_written(path: &str, found: &Path) -> String {
    if Path::new(path) == found { String::new() } else { format!(" as `{path}`") }
}

/// Reads all files that a plan names. A path is relative to the document that names it.
pub(crate) fn read(plan: &Plan) -> Result<Files, FileError> {
    let mut files = Files::default();
    for file in plan.files() {
        files.insert(file, content(file)?);
    }
    Ok(files)
}

/// Writes a file that does not exist yet; `advice` is what to do about one that does.
pub(crate) fn create(
    file: &Path,
    bytes: &[u8],
    advice: &str,
    terminal: &Terminal,
) -> Result<(), Exit> {
    File::create_new(file).and_then(|mut new| new.write_all(bytes)).map_err(|error| {
        let file = file.display();
        match error.kind() {
            ErrorKind::AlreadyExists => terminal
                .error(ErrorCode::FileExists, format_args!("`{file}` is there already; {advice}")),
            _ => terminal
                .error(ErrorCode::FileUnwritable, format_args!("cannot write `{file}`: {error}")),
        }
        Exit::Refused
    })
}

/// Returns the path of a file that a document names.
pub(crate) fn path(FileRef { path, place }: &FileRef) -> PathBuf {
    Path::new(&place.file).parent().unwrap_or(Path::new("")).join(path)
}

/// Reads a file that a document names.
pub(crate) fn content(file: &FileRef) -> Result<Vec<u8>, FileError> {
    let FileRef { path, place } = file;
    let found = self::path(file);
    let wrong = |why: String| FileError {
        path: path.clone(),
        found: found.clone(),
        place: place.clone(),
        why,
    };
    let opened = File::open(&found).map_err(|error| wrong(error.to_string()))?;
    let mut content = Vec::new();
    // Reads one byte more than allowed to detect a file that is too large, whatever size its metadata states.
    let mut bounded = opened.take(FILE_BYTES_MAX + 1);
    bounded.read_to_end(&mut content).map_err(|error| wrong(error.to_string()))?;
    if content.len() as u64 > FILE_BYTES_MAX {
        return Err(wrong(format!("it has more than {FILE_BYTES_MAX} bytes")));
    }
    Ok(content)
}
