//! `fmt`: writes the embedded selectors, assertions and claims in canonical form.

use std::{fs, io::Write, path::Path};

use model::ErrorCode;

use crate::{args, documents, exit::Exit, terminal::Terminal};

/// Formats the files, or lists those that would change.
pub(crate) fn fmt(args: &args::Fmt, terminal: &Terminal) -> Result<Exit, Exit> {
    let mut exits = Vec::new();
    for file in documents::files(&args.paths, terminal)? {
        let (Ok(exit) | Err(exit)) = one(&file, args.check, terminal);
        exits.push(exit);
    }
    Ok(Exit::over(exits))
}

fn one(file: &Path, is_check: bool, terminal: &Terminal) -> Result<Exit, Exit> {
    let text = documents::read(file, terminal)?;
    let formatted = match lang::format(&text) {
        Ok(formatted) => formatted,
        Err(diagnostics) => {
            terminal.diagnostics(&diagnostics);
            return Err(Exit::Refused);
        }
    };
    terminal.diagnostics(&formatted.notes);
    if formatted.text == text.content() {
        return Ok(Exit::Passed);
    }
    terminal.result(&file.display().to_string());
    if is_check {
        return Ok(Exit::Failed);
    }
    replace(file, &formatted.text).map_err(|error| {
        terminal.error(
            ErrorCode::FileUnwritable,
            format_args!("cannot write `{}`: {error}", file.display()),
        );
        Exit::Refused
    })?;
    Ok(Exit::Passed)
}

/// Writes a temporary file and renames it, so that a reader never sees a partial file.
fn replace(file: &Path, text: &str) -> std::io::Result<()> {
    // A symbolic link keeps its target.
    let file = fs::canonicalize(file)?;
    let mut beside = file.clone().into_os_string();
    beside.push(".qualitytrace-fmt");
    // `create_new` never writes through an existing file, for example one that another process created.
    let mut new = fs::OpenOptions::new().write(true).create_new(true).open(&beside)?;
    new.write_all(text.as_bytes())?;
    fs::set_permissions(&beside, fs::metadata(&file)?.permissions())?;
    fs::rename(&beside, &file)
}
