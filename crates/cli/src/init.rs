//! `init`: writes a first test, for the shop that `demo` starts, and a project file.

use std::{
    ffi::OsStr,
    fs::{self, File},
    io::{self, Write},
    net::SocketAddr,
    path::Path,
};

use model::{ErrorCode, Fault, Faulty};
use thiserror::Error;

use crate::{args::InitArgs, exit::Exit, project, run::FOLDER, terminal::Terminal};

/// The file of the first test, in [`FOLDER`].
const FILE: &str = "checkout.yaml";
/// The text of the test, except for the address of the shop.
const TEST: &str = include_str!("init/checkout.yaml");
/// The text of the project file.
const PROJECT_TEXT: &str = "\
# Defaults for flags, for all who work here. A flag and a variable come first: `qualitytrace project show` prints what holds.
tests = [\"qualitytrace\"]
";
/// The address of the shop in [`TEST`].
const SHOP: &str = "127.0.0.1:11634";

/// The reason why no file was written.
#[derive(Debug, Error)]
pub(crate) enum InitError {
    #[error("`{0}` is there already and stays as it is: `qualitytrace run` runs it")]
    There(String),
    #[error(
        "`{FOLDER}` is a file here and no folder, perhaps this program: work in another folder"
    )]
    NoFolder,
    #[error("cannot write `{path}`: {error}")]
    Write { path: String, error: io::Error },
}

impl Faulty for InitError {
    fn fault(&self) -> Fault {
        match self {
            Self::There(_) | Self::NoFolder => Fault::Conflict,
            Self::Write { .. } => Fault::Denied,
        }
    }

    fn code(&self) -> ErrorCode {
        match self {
            Self::There(_) | Self::NoFolder => ErrorCode::FileExists,
            Self::Write { .. } => ErrorCode::FileUnwritable,
        }
    }
}

/// Writes the test, and prints the next commands.
pub(crate) fn init(args: &InitArgs, terminal: &Terminal) -> Result<Exit, Exit> {
    let path = write(Path::new(FOLDER), OsStr::new(FILE), &first_test(args.http))
        .map_err(|error| terminal.refuse(&error))?;
    let project = match write(Path::new(""), OsStr::new(project::FILE), PROJECT_TEXT) {
        Ok(file) => format!("wrote {file}: defaults for flags\n"),
        // One that is there is as its authors want it.
        Err(InitError::There(_)) => String::new(),
        Err(error) => return Err(terminal.refuse(&error)),
    };
    terminal.report(&format!(
        "wrote {path}: a first test, for the shop that `qualitytrace demo` opens
{project}
  qualitytrace run                           runs the tests in {FOLDER}/
  qualitytrace demo --fault n-plus-one       opens a shop that it finds wanting
"
    ));
    Ok(Exit::Passed)
}

/// Returns the first test, for a shop at this address.
pub(crate) fn first_test(shop: SocketAddr) -> String {
    TEST.replace(SHOP, &shop.to_string())
}

/// Writes a new file, and never overwrites an existing one.
pub(crate) fn write(folder: &Path, file: &OsStr, text: &str) -> Result<String, InitError> {
    let path = folder.join(file);
    let shown = path.display().to_string();
    let made = if folder.as_os_str().is_empty() { Ok(()) } else { fs::create_dir_all(folder) };
    made.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => InitError::NoFolder,
        _ => InitError::Write { path: shown.clone(), error },
    })?;
    let written = File::create_new(&path).and_then(|mut file| file.write_all(text.as_bytes()));
    match written {
        Ok(()) => Ok(shown),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Err(InitError::There(shown)),
        Err(error) => Err(InitError::Write { path: shown, error }),
    }
}

#[cfg(test)]
mod tests {
    use super::{SHOP, TEST};

    #[test]
    fn the_first_test_compiles_and_names_the_demo() {
        assert_eq!(::demo::HTTP.to_string(), SHOP);
        assert!(TEST.contains(SHOP));
        let text = source::Text::new("checkout.yaml", TEST);
        let (documents, mistakes) = lang::read(&text);
        assert_eq!(source::draw(&mistakes, source::Colour::Never), "");
        assert_eq!(documents.len(), 1);
    }
}
