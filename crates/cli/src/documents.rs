//! Reads documents: from paths to parsed documents.
//!
//! A folder includes all files below it that end in `.yaml` or `.yml`, sorted by path. Hidden folders are skipped, and
//! links to folders are not followed. The file that `learn` writes is no document.

use std::{
    fs::{self, File},
    io::Read,
    path::{Path, PathBuf},
};

use lang::{Document, Plan};
use model::ErrorCode;
use source::{Diagnostic, Text};

use crate::{exit::Exit, terminal::Terminal};

/// The file of the learned profile, in the working folder. It is YAML and no document.
pub(crate) const LEARNED_FILE: &str = "qualitytrace-learned.yaml";
/// The upper bound for a file, in bytes.
const FILE_BYTES_MAX: usize = source::TEXT_BYTES_MAX;
/// The upper bound for the files of one command.
const FILES_MAX: usize = 100_000;

/// Returns all files of the paths, each once.
pub(crate) fn files(paths: &[PathBuf], terminal: &Terminal) -> Result<Vec<PathBuf>, Exit> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let before = files.len();
            collect(path, &mut files).map_err(|why| {
                terminal.error(
                    ErrorCode::FileUnreadable,
                    format_args!("cannot read the folder `{}`: {why}", path.display()),
                );
                Exit::Refused
            })?;
            files[before..].sort();
        } else {
            files.push(path.clone());
        }
    }
    let mut seen = std::collections::HashSet::new();
    files.retain(|file| seen.insert(file.clone()));
    Ok(files)
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let entries = fs::read_dir(folder).map_err(|error| error.to_string())?;
    for entry in entries {
        let entry = entry.map_err(|error| error.to_string())?;
        let kind = entry.file_type().map_err(|error| error.to_string())?;
        let is_hidden = entry.file_name().to_string_lossy().starts_with('.');
        let path = entry.path();
        if kind.is_dir() && !is_hidden {
            collect(&path, files)?;
        } else if is_yaml(&path) && fs::metadata(&path).is_ok_and(|it| it.is_file()) {
            if files.len() == FILES_MAX {
                return Err(format!("there are more than {FILES_MAX} files"));
            }
            files.push(path);
        }
    }
    Ok(())
}

/// Whether a file in a folder is a document file.
pub(crate) fn is_yaml(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml")
        && path.file_name().is_none_or(|name| name != LEARNED_FILE)
}

/// Reads a file; prints an error on the terminal if it cannot be read.
pub(crate) fn read(path: &Path, terminal: &Terminal) -> Result<Text, Exit> {
    let name = path.display().to_string();
    match content(path) {
        Ok(content) => Ok(Text::new(name, content)),
        Err(why) => {
            terminal.error(ErrorCode::FileUnreadable, format_args!("cannot read `{name}`: {why}"));
            Err(Exit::Refused)
        }
    }
}

fn content(path: &Path) -> Result<String, String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut content = String::new();
    // Reads one byte more than allowed to detect a file that is too large, whatever size its metadata states.
    let mut bounded = file.take(FILE_BYTES_MAX as u64 + 1);
    bounded.read_to_string(&mut content).map_err(|error| error.to_string())?;
    if content.len() > FILE_BYTES_MAX {
        return Err(format!("it has more than {FILE_BYTES_MAX} bytes"));
    }
    Ok(content)
}

/// Compiles the plans of all tests in a text; renders diagnostics on the terminal.
pub(crate) fn compile(text: &Text, terminal: &Terminal) -> Result<Vec<Plan>, Exit> {
    let (planned, diagnostics) = lang::plans(text);
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Exit::Refused);
    }
    Ok(planned.into_iter().map(|planned| planned.plan).collect())
}

/// Parses the documents of a file; renders diagnostics on the terminal.
pub(crate) fn documents(path: &Path, terminal: &Terminal) -> Result<Vec<Document>, Exit> {
    let text = read(path, terminal)?;
    let (documents, diagnostics) = lang::read(&text);
    terminal.diagnostics(&diagnostics);
    if diagnostics.iter().any(Diagnostic::is_error) {
        return Err(Exit::Refused);
    }
    Ok(documents)
}
