//! `doctor`: looks for what keeps tests from working: on this machine, between it and a system under test, or a server.
//!
//! It stores nothing, and prints no secret. Deliberately absent: why the trace of a certain test is incomplete; `run` reports that.

mod bundle;
mod check;
mod here;
mod request;
mod server;

use model::ErrorCode;
use serde::Serialize;

use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing,
    terminal::Terminal,
};

#[cfg(test)]
pub(crate) use check::{CHECKS, CheckGroup};
pub(crate) use here::Surroundings;

use check::DoctorCheck;

/// What one look found.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    /// What was looked at.
    check: DoctorCheck,
    state: FindingState,
    /// What was seen.
    found: String,
    /// What to do; none where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The name of the error that a command would end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<ErrorCode>,
    /// The page with more about it.
    link: String,
}

/// How bad it is; the worst is the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
enum FindingState {
    Error,
    Warning,
    Ok,
}

impl Finding {
    fn ok(check: DoctorCheck, found: impl Into<String>) -> Self {
        let (state, found) = (FindingState::Ok, found.into());
        Self { check, state, found, advice: None, code: None, link: check.link() }
    }

    fn warning(check: DoctorCheck, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { state: FindingState::Warning, advice, ..Self::ok(check, found) }
    }

    fn error(check: DoctorCheck, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: FindingState::Error, ..Self::warning(check, found, advice) }
    }

    /// Returns an error with a name, and the advice of its page.
    fn named(check: DoctorCheck, code: ErrorCode, found: impl Into<String>) -> Self {
        let found = Self::error(check, found, code.page().advice);
        Self { code: Some(code), ..found }
    }

    fn line(&self) -> String {
        let sign = match self.state {
            FindingState::Error => "✘",
            FindingState::Warning => "!",
            FindingState::Ok => "✔",
        };
        let code = self.code.map_or(String::new(), |code| format!(" [{code}]"));
        let mut line = format!("{sign} {}: {}", self.check.name(), self.found);
        if let Some(advice) = &self.advice {
            line.push_str(&format!("\n  {advice}{code}\n  {}", self.link));
        }
        line
    }
}

/// Looks at this machine, at a system or at a server, whichever is named, and prints what is wrong first.
pub(crate) async fn doctor(
    args: &args::DoctorArgs,
    surroundings: Surroundings<'_>,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    terminal.keep_secret(&bundle::secrets(args, &surroundings.environment));
    let is_of_server = args.connection.address.is_given();
    let mut findings = match (&args.url, args.system.command.as_slice()) {
        _ if is_of_server => server::look(&args.connection, &surroundings).await,
        (None, []) => here::look(&surroundings),
        _ => request::look(args, &surroundings).await?,
    };
    findings.sort_by_key(|finding| finding.state);
    if let Some(path) = &args.bundle {
        let written = bundle::write(path, &findings, (args, &surroundings));
        let words = written.map_err(|error| {
            let message = format_args!("`{}` cannot be written: {error}", path.display());
            terminal.error(ErrorCode::FileUnwritable, message);
            Exit::Refused
        })?;
        terminal.line(&format!("wrote `{}`: {words}; read it before you send it", path.display()));
    }
    print(&findings, args.output.format, terminal);
    let is_sound = findings.iter().all(|finding| finding.state != FindingState::Error);
    Ok(if is_sound { Exit::Passed } else { Exit::Failed })
}

fn print(findings: &[Finding], format: OutputFormat, terminal: &Terminal) {
    match format {
        OutputFormat::Table => findings.iter().for_each(|it| {
            it.line().lines().for_each(|line| terminal.result(line));
        }),
        OutputFormat::Name => {
            let wrong = findings.iter().filter(|it| it.state != FindingState::Ok);
            wrong.for_each(|it| terminal.result(it.check.name()));
        }
        format => {
            let value = serde_json::to_value(findings).unwrap_or_default();
            listing::value(&value, format, terminal);
        }
    }
}
