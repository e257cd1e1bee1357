//! Trust in a project file: it comes with a repository, which may be of a stranger.
//!
//! A value that executes a program or names a server is used once a person agreed to it, in this folder and in these words. What was
//! agreed to is in one file of the user's configuration folder.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, IsTerminal, Read},
    path::PathBuf,
};

use model::ErrorCode;
use server::config::Environment;

use super::{ProjectFile, ProjectValue};
use crate::{contexts, exit::Exit, terminal::Terminal};

/// The name of the file, in the user's configuration folder.
const TRUSTED: &str = "trusted.json";
/// The upper bound for an answer, in bytes.
const ANSWER_MAX: u64 = 64;

/// Lines of a project file that were agreed to, by its folder.
type Agreements = BTreeMap<String, Vec<String>>;

/// Refuses values that were not agreed to; asks on a terminal.
pub(super) fn check(
    file: &ProjectFile,
    used: &[&ProjectValue],
    is_trusted: bool,
    (environment, terminal): (&Environment, &Terminal),
) -> Result<(), Exit> {
    let needed: Vec<_> =
        used.iter().filter(|it| it.key.is_trusted_only).map(|it| line(it)).collect();
    if needed.is_empty() || is_trusted {
        return Ok(());
    }
    let folder = file.folder.display().to_string();
    let path = contexts::configuration_file(environment, TRUSTED);
    let agreed = path.as_ref().map(read).transpose();
    let mut agreed =
        agreed.map_err(|reason| refused(terminal, ErrorCode::FileUnreadable, &reason))?;
    let known = agreed.as_ref().and_then(|all| all.get(&folder));
    if known.is_some_and(|lines| needed.iter().all(|line| lines.contains(line))) {
        return Ok(());
    }
    terminal.line(&format!("`{}` comes with this repository, and has:", file.path.display()));
    needed.iter().for_each(|line| terminal.line(&format!("  {line}")));
    if !is_watched(environment) {
        return Err(refused(
            terminal,
            ErrorCode::TrustRequired,
            "nothing of it was used: `--trust` or QUALITYTRACE_TRUST=1 states that you trust it",
        ));
    }
    terminal.line("Trust it? [y/N]");
    let mut answer = String::new();
    let read = io::stdin().lock().take(ANSWER_MAX).read_line(&mut answer);
    if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
        let reason = "it is not trusted, and nothing of it was used";
        return Err(refused(terminal, ErrorCode::TrustRequired, reason));
    }
    if let (Some(path), Some(agreed)) = (&path, &mut agreed) {
        let lines = agreed.entry(folder).or_default();
        // What was agreed to for another command stays, but not another value of the same key.
        let key = |line: &str| line.split(" = ").next().map(str::to_owned);
        lines.retain(|line| needed.iter().all(|new| key(new) != key(line)));
        lines.extend(needed);
        let text = serde_json::to_vec_pretty(agreed).unwrap_or_default();
        let written = contexts::write(path, &text);
        written.map_err(|error| {
            let reason = format!("cannot write `{}`: {error}", path.display());
            refused(terminal, ErrorCode::FileUnwritable, &reason)
        })?;
    }
    Ok(())
}

/// Returns a value as one line: what a person agrees to.
fn line(value: &ProjectValue) -> String {
    let words: Vec<_> = value.texts.iter().map(|text| format!("{text:?}")).collect();
    format!("{} = {}", value.key.full_name(), words.join(" "))
}

fn read(path: &PathBuf) -> Result<Agreements, String> {
    let wrong = |error: String| format!("cannot read `{}`: {error}", path.display());
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| wrong(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Agreements::new()),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Whether a person can answer.
fn is_watched(environment: &Environment) -> bool {
    let is_ci = environment.get("CI").is_some_and(|value| !value.is_empty());
    !is_ci && io::stdin().is_terminal() && io::stderr().is_terminal()
}

fn refused(terminal: &Terminal, code: ErrorCode, reason: &str) -> Exit {
    terminal.error(code, reason);
    Exit::Refused
}
