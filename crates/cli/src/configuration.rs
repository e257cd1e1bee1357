//! The server's configuration: finds the file and parses it.
//!
//! One file, never merged. Deliberately absent: the meaning of the keys, which the server defines.

use std::{
    fs,
    io::Read,
    path::{Path, PathBuf},
    time::SystemTime,
};

use model::ErrorCode;
use server::config::{self, Config, Environment};

use crate::{args, documents, exit::Exit, terminal::Terminal};

const NAMES: &[&str] = &[
    "quality-trace-config.yaml",
    "quality-trace-config.yml",
    "quality-trace-config.toml",
    "tracetest-config.yaml",
];

/// The upper bound for a file that is a value, in bytes.
const VALUE_BYTES_MAX: u64 = 64 * 1024;

/// A configuration and its file, to reload it when the file changes.
#[derive(Debug)]
pub(crate) struct LoadedConfig {
    pub(crate) config: Config,
    pub(crate) path: PathBuf,
    /// The modification time of the file before it was read.
    pub(crate) modified: Option<SystemTime>,
}

/// Finds and parses the configuration; prints diagnostics on the terminal.
pub(crate) fn read(
    args: &args::Configuration,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<LoadedConfig, Exit> {
    let path = match &args.config {
        Some(path) => path.clone(),
        None => find(&folders(environment)).map_err(|why| {
            terminal.error(ErrorCode::ConfigurationInvalid, why);
            Exit::Refused
        })?,
    };
    let modified = modified(&path);
    let config = read_at(&path, environment, terminal)?;
    Ok(LoadedConfig { config, path, modified })
}

/// Returns the modification time of a file.
pub(crate) fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|it| it.modified()).ok()
}

/// Parses the configuration in this file.
pub(crate) fn read_at(
    path: &Path,
    environment: &Environment,
    terminal: &Terminal,
) -> Result<Config, Exit> {
    let text = documents::read(path, terminal)?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let environment = environment.clone().with_files(&text, |path| value(&folder.join(path)));
    let read = config::read(&text, &environment);
    terminal.diagnostics_of(ErrorCode::ConfigurationInvalid, &read.diagnostics);
    for notice in &read.notices {
        terminal.line(&format!("note: {notice}"));
    }
    read.config.ok_or(Exit::Refused)
}

/// Reads a file whose content is a value, such as a password that a service manager passes.
fn value(path: &Path) -> Result<String, String> {
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    let mut content = String::new();
    let read = file.take(VALUE_BYTES_MAX + 1).read_to_string(&mut content);
    read.map_err(|error| error.to_string())?;
    match content.len() as u64 > VALUE_BYTES_MAX {
        true => Err(format!("it has more than {VALUE_BYTES_MAX} bytes")),
        false => Ok(content),
    }
}

/// Returns the working folder, then the user's and the system's configuration folder.
fn folders(environment: &Environment) -> Vec<PathBuf> {
    let user = environment.get("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = || environment.get("HOME").map(|home| Path::new(home).join(".config"));
    let user = user.or_else(home).map(|folder| folder.join("qualitytrace"));
    [PathBuf::from(".")]
        .into_iter()
        .chain(user)
        .chain([PathBuf::from("/etc/qualitytrace")])
        .collect()
}

/// Returns the configuration file of the first folder that has one.
fn find(folders: &[PathBuf]) -> Result<PathBuf, String> {
    for folder in folders {
        let paths = NAMES.iter().map(|name| folder.join(name));
        let found: Vec<_> =
            paths.filter(|path| fs::metadata(path).is_ok_and(|it| it.is_file())).collect();
        match found.as_slice() {
            [] => {}
            [one] => return Ok(one.clone()),
            [one, other, ..] => {
                return Err(format!(
                    "both `{}` and `{}` are there, and configurations are not merged: remove one, or choose with \
                     `--config`",
                    one.display(),
                    other.display()
                ));
            }
        }
    }
    let looked: Vec<_> = folders.iter().map(|folder| format!("`{}`", folder.display())).collect();
    Err(format!(
        "no configuration: name one with `--config`, or put `{}` into {}",
        NAMES[0],
        looked.join(" or ")
    ))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::find;

    #[test]
    fn the_first_folder_with_a_file_wins_and_two_in_one_are_a_mistake() {
        let folder = tempfile::TempDir::new().expect("a folder");
        let folders: Vec<_> = ["a", "b", "c"].map(|name| folder.path().join(name)).to_vec();
        for folder in &folders {
            fs::create_dir(folder).expect("made");
        }
        let words = find(&folders).expect_err("there is none");
        assert!(words.contains("no configuration") && words.contains("--config"), "{words}");
        let put = |at: usize, name: &str| fs::write(folders[at].join(name), "").expect("written");
        put(2, "quality-trace-config.toml");
        put(1, "tracetest-config.yaml");
        assert_eq!(find(&folders), Ok(folders[1].join("tracetest-config.yaml")));
        put(1, "quality-trace-config.yml");
        let words = find(&folders).expect_err("two of them");
        assert!(words.contains("are not merged"), "{words}");
    }
}
