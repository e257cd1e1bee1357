//! `doctor --bundle`: what a bug report needs, in one file without secrets.
//!
//! It is JSON, so that people can read all of it before they send it. What is not known to be harmless is left out: of variables only
//! the names, except for a short list of those that hold a word or a number; of the project file the keys, and the values that are
//! numbers and times; no body and no header of a response. Deliberately absent: logs, traces and test documents.

use std::{collections::BTreeMap, path::Path};

use lang::{Secrets, Vars};
use serde::Serialize;
use server::config::Environment;

use super::{Finding, Surroundings};
use crate::{args::DoctorArgs, contexts, project::ProjectFile};

/// Variables with these beginnings are listed.
const LISTED: [&str; 2] = ["OTEL_", "QUALITYTRACE_"];
/// Of these the value is listed too, if it is a word or a number.
const SHOWN: &[&str] = &[
    "OTEL_BLRP_SCHEDULE_DELAY",
    "OTEL_BSP_EXPORT_TIMEOUT",
    "OTEL_BSP_MAX_EXPORT_BATCH_SIZE",
    "OTEL_BSP_MAX_QUEUE_SIZE",
    "OTEL_BSP_SCHEDULE_DELAY",
    "OTEL_EXPORTER_OTLP_COMPRESSION",
    "OTEL_EXPORTER_OTLP_PROTOCOL",
    "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
    "OTEL_LOGS_EXPORTER",
    "OTEL_METRICS_EXPORTER",
    "OTEL_METRIC_EXPORT_INTERVAL",
    "OTEL_PROPAGATORS",
    "OTEL_SDK_DISABLED",
    "OTEL_TRACES_EXPORTER",
    "OTEL_TRACES_SAMPLER",
    "QUALITYTRACE_PROTOCOL",
    "QUALITYTRACE_READY_TIMEOUT",
    "QUALITYTRACE_TIMEOUT",
];
/// No word or number of these variables is longer.
const VALUE_CHARS_MAX: usize = 40;
/// Variables with such a word in their name hold secrets.
const SECRET_WORDS: &[&str] = &[
    "AUTH",
    "AUTHORIZATION",
    "COOKIE",
    "CREDENTIALS",
    "DSN",
    "HEADERS",
    "KEY",
    "PASS",
    "PASSWD",
    "PASSWORD",
    "SECRET",
    "TOKEN",
];
/// What a command wrote follows these words in a finding.
const OUTPUT: &str = "; it wrote: ";

/// The content of the file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct BugReport<'a> {
    version: &'a str,
    system: &'a str,
    machine: &'a str,
    findings: Vec<Finding>,
    /// The value, or none where it is left out.
    variables: BTreeMap<&'a str, Option<&'a str>>,
    /// As above. None if there is no file, or an invalid one.
    project_file: Option<BTreeMap<String, Option<String>>>,
}

/// Returns what is never printed: tokens, passwords, and the values of variables with a name that promises a secret.
pub(super) fn secrets(args: &DoctorArgs, environment: &Environment) -> Secrets {
    let is_secret = |name: &str| SECRET_WORDS.iter().any(|word| name.to_uppercase().contains(word));
    let named = environment.iter().filter(|(name, _)| is_secret(name)).map(|(_, value)| value);
    let mut texts: Vec<String> = named.map(str::to_owned).collect();
    texts.extend(environment.iter().filter_map(|(_, value)| password_of(value)));
    if let Some(url) = &args.url {
        texts.extend(url.0.password().map(str::to_owned));
        texts.extend(url.0.query().map(str::to_owned));
        texts.extend(url.0.query_pairs().map(|(_, value)| value.into_owned()));
    }
    texts.extend(args.connection.address.token.iter().map(|token| token.expose().to_owned()));
    of(texts)
}

/// Returns the password in an address, such as that of a proxy.
fn password_of(value: &str) -> Option<String> {
    let user = value.split_once("://")?.1.rsplit_once('@')?.0;
    Some(user.split_once(':')?.1.to_owned())
}

fn of(texts: Vec<String>) -> Secrets {
    let numbered = texts.into_iter().enumerate().map(|(at, text)| (at.to_string(), text));
    let variables: BTreeMap<_, _> = numbered.collect();
    let secrets = variables.keys().cloned().collect();
    Secrets::of(&Vars { variables, secrets, ..Vars::default() })
}

/// Writes the file; returns what it contains, in words.
pub(super) fn write(
    path: &Path,
    findings: &[Finding],
    (args, surroundings): (&DoctorArgs, &Surroundings<'_>),
) -> std::io::Result<String> {
    let Surroundings { environment, folder, terminal, .. } = surroundings;
    let mut secrets = secrets(args, environment);
    // A command may have a password as an argument.
    let words = args.system.command.iter().skip(1);
    secrets.extend(&of(words.map(|word| word.to_string_lossy().into_owned()).collect()));
    let file = ProjectFile::find(folder, None, terminal).ok().flatten();
    let report = BugReport {
        version: env!("CARGO_PKG_VERSION"),
        system: std::env::consts::OS,
        machine: std::env::consts::ARCH,
        findings: findings.iter().map(|finding| redacted(finding, &secrets)).collect(),
        variables: variables(environment),
        project_file: file.as_ref().map(ProjectFile::without_secrets),
    };
    let shown = report.variables.values().flatten().count();
    let words = format!(
        "{} findings, the names of {} variables and the values of {shown} of them, {} keys of the project file",
        report.findings.len(),
        report.variables.len(),
        report.project_file.as_ref().map_or(0, BTreeMap::len),
    );
    let mut text = serde_json::to_string_pretty(&report)?;
    text.push('\n');
    contexts::write(path, text.as_bytes())?;
    Ok(words)
}

fn redacted(finding: &Finding, secrets: &Secrets) -> Finding {
    let found = finding.found.split(OUTPUT).next().unwrap_or_default();
    Finding { found: secrets.hide(found).into_owned(), ..finding.clone() }
}

fn variables(environment: &Environment) -> BTreeMap<&str, Option<&str>> {
    let is_listed = |name: &str| LISTED.iter().any(|beginning| name.starts_with(beginning));
    let is_harmless = |value: &&str| {
        let is_word = |c: char| c.is_ascii_alphanumeric() || "_-,./".contains(c);
        value.len() <= VALUE_CHARS_MAX && value.chars().all(is_word)
    };
    let listed = environment.iter().filter(|(name, _)| is_listed(name));
    let shown = listed.map(|(name, value)| {
        (name, Some(value).filter(|_| SHOWN.contains(&name)).filter(is_harmless))
    });
    shown.collect()
}
