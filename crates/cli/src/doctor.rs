//! `doctor`: looks for what keeps tests from working, on this machine or between it and a server.
//!
//! It changes nothing, and prints no secret. Deliberately absent: why a certain trace is incomplete; `run` reports that for each test.

mod here;
mod ports;
mod server;

use model::ErrorCode;
use serde::Serialize;

use crate::{
    args::{self, OutputFormat},
    exit::Exit,
    listing,
    terminal::Terminal,
};

pub(crate) use here::Surroundings;

/// What one look found.
#[derive(Debug, Serialize)]
struct Finding {
    /// What was looked at.
    check: &'static str,
    state: FindingState,
    /// What was seen.
    found: String,
    /// What to do; none where nothing is to be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    advice: Option<String>,
    /// The name of the error that a command would end with.
    #[serde(skip_serializing_if = "Option::is_none")]
    code: Option<&'static str>,
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
    fn ok(check: &'static str, found: impl Into<String>) -> Self {
        Self { check, state: FindingState::Ok, found: found.into(), advice: None, code: None }
    }

    fn warning(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        let advice = Some(advice.into());
        Self { check, state: FindingState::Warning, found: found.into(), advice, code: None }
    }

    fn error(check: &'static str, found: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { state: FindingState::Error, ..Self::warning(check, found, advice) }
    }

    /// Returns an error with a name, and the advice of its page.
    fn named(check: &'static str, code: ErrorCode, found: impl Into<String>) -> Self {
        let found = Self::error(check, found, code.page().advice);
        Self { code: Some(code.as_str()), ..found }
    }

    fn line(&self) -> String {
        let sign = match self.state {
            FindingState::Error => "✘",
            FindingState::Warning => "!",
            FindingState::Ok => "✔",
        };
        let advice = self.advice.as_ref().map_or(String::new(), |advice| format!("\n  {advice}"));
        let code = self.code.map_or(String::new(), |code| format!(" [{code}]"));
        format!("{sign} {}: {}{advice}{code}", self.check, self.found)
    }
}

/// Looks at this machine, or at a server where one is named, and prints what is wrong first.
pub(crate) async fn doctor(
    args: &args::DoctorArgs,
    surroundings: Surroundings<'_>,
    terminal: &Terminal,
) -> Result<Exit, Exit> {
    let mut findings = match args.connection.address.is_given() {
        true => server::look(&args.connection, &surroundings).await,
        false => here::look(&surroundings),
    };
    findings.sort_by_key(|finding| finding.state);
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
            wrong.for_each(|it| terminal.result(it.check));
        }
        format => {
            let value = serde_json::to_value(findings).unwrap_or_default();
            listing::value(&value, format, terminal);
        }
    }
}
