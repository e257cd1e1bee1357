//! Trust in a repository: its project file and its documents may be a stranger's.
//!
//! What executes a program, reads a file elsewhere or sends values to another machine is used once a person agreed to it, for this
//! folder and in these words. What was agreed to is in one file of the user's configuration folder.

mod effects;
mod repository;

use std::{
    collections::BTreeMap,
    fs,
    io::{self, BufRead, IsTerminal, Read},
    path::{Path, PathBuf},
};

use model::ErrorCode;
use server::config::Environment;

use crate::{contexts, exit::Exit, terminal::Terminal};

pub(crate) use effects::{check, check_store};

/// The name of the file, in the user's configuration folder.
const TRUSTED: &str = "trusted.json";
/// The upper bound for an answer, in bytes.
const ANSWER_MAX: u64 = 64;
/// The upper bound for the lines of one folder; the oldest are forgotten first.
const LINES_MAX: usize = 1_000;

/// Lines that were agreed to, by the folder that they were of.
type Agreements = BTreeMap<String, Vec<String>>;

/// How a command learns whether a person trusts what it is about to use.
#[derive(Clone, Debug)]
pub(crate) struct Consent {
    /// Whether `--trust` states it.
    is_given: bool,
    /// The file with what was agreed to; none without a configuration folder.
    agreements: Option<PathBuf>,
    /// Whether a person can answer.
    is_watched: bool,
}

impl Consent {
    pub(crate) fn new(is_given: bool, environment: &Environment) -> Self {
        let is_ci = environment.get("CI").is_some_and(|value| !value.is_empty());
        Self {
            is_given,
            agreements: contexts::configuration_file(environment, TRUSTED),
            is_watched: !is_ci && io::stdin().is_terminal() && io::stderr().is_terminal(),
        }
    }

    /// Refuses what was not agreed to for this folder; asks on a terminal. `heading` introduces the lines.
    pub(crate) fn require(
        &self,
        (folder, heading): (&Path, &str),
        needed: Vec<String>,
        terminal: &Terminal,
    ) -> Result<(), Exit> {
        if needed.is_empty() || self.is_given {
            return Ok(());
        }
        let folder = folder.display().to_string();
        let agreed = self.agreements.as_ref().map(read).transpose();
        let mut agreed =
            agreed.map_err(|reason| refused(terminal, ErrorCode::FileUnreadable, &reason))?;
        let known = agreed.as_ref().and_then(|all| all.get(&folder));
        if known.is_some_and(|lines| needed.iter().all(|line| lines.contains(line))) {
            return Ok(());
        }
        terminal.line(heading);
        needed.iter().for_each(|line| terminal.line(&format!("  {line}")));
        if !self.is_watched {
            let reason = "nothing was executed, read or sent: `--trust` or QUALITYTRACE_TRUST=1 states that you trust it";
            return Err(refused(terminal, ErrorCode::TrustRequired, reason));
        }
        terminal.line("Trust it? [y/N]");
        let mut answer = String::new();
        let read = io::stdin().lock().take(ANSWER_MAX).read_line(&mut answer);
        if read.is_err() || !matches!(answer.trim(), "y" | "Y" | "yes") {
            let reason = "it is not trusted, and nothing was executed, read or sent";
            return Err(refused(terminal, ErrorCode::TrustRequired, reason));
        }
        let (Some(path), Some(agreed)) = (&self.agreements, &mut agreed) else { return Ok(()) };
        let lines = agreed.entry(folder).or_default();
        lines.retain(|line| !needed.contains(line));
        lines.extend(needed);
        lines.drain(..lines.len().saturating_sub(LINES_MAX));
        let text = serde_json::to_vec_pretty(agreed).unwrap_or_default();
        contexts::write(path, &text).map_err(|error| {
            let reason = format!("cannot write `{}`: {error}", path.display());
            refused(terminal, ErrorCode::FileUnwritable, &reason)
        })
    }
}

fn read(path: &PathBuf) -> Result<Agreements, String> {
    let wrong = |error: String| format!("cannot read `{}`: {error}", path.display());
    match fs::read(path) {
        Ok(text) => serde_json::from_slice(&text).map_err(|error| wrong(error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Agreements::new()),
        Err(error) => Err(wrong(error.to_string())),
    }
}

fn refused(terminal: &Terminal, code: ErrorCode, reason: &str) -> Exit {
    terminal.error(code, reason);
    Exit::Refused
}
