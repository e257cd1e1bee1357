//! The environment variables of the processes that we started, where they differ from the values that we set.
//!
//! A script, a container or a package runner often starts the service with its own variables. Deliberately absent: how a
//! process is inspected, which depends on the operating system and is up to the caller that started it.

use model::{Cause, Diagnosis};

use super::{
    Case, diagnosis,
    words::{listed, quoted},
};
use crate::MARKER;

const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
const FILES: [&str; 2] = ["OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"];
const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// A process of the command that we started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    name: String,
    /// The variables that may keep its spans from us and that differ from the values that we set.
    odd: Vec<(&'static str, String)>,
    /// Whether our variables did not reach the process.
    is_unreached: bool,
}

impl Process {
    /// Creates a process with this name, the variables that were set for it and the variables that it has. It stores only
    /// variables that may keep its spans from us: the others may be secrets.
    pub fn new<'a>(
        name: impl Into<String>,
        set: &[(String, String)],
        has: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let telling = ENDPOINTS.into_iter().chain(FILES).chain([SAMPLER, EXPORTER, DISABLED]);
        let telling: Vec<&'static str> = telling.collect();
        let mut process = Self { name: name.into(), odd: Vec::new(), is_unreached: true };
        for (key, value) in has {
            let is_set = || set.iter().any(|(ours, text)| ours == key && text == value);
            match telling.iter().find(|name| **name == key) {
                Some(name) if !value.is_empty() && !is_set() => {
                    process.odd.push((name, without_user(value)));
                }
                _ if key == RESOURCE && value.contains(MARKER) => process.is_unreached = false,
                _ => {}
            }
        }
        // Sorts them into the order of the report, whatever their order in the process.
        process.odd.sort_by_key(|(key, _)| telling.iter().position(|name| name == key));
        process
    }

    fn get(&self, keys: &[&str]) -> Option<(&'static str, &str)> {
        let (key, value) = self.odd.iter().find(|(key, _)| keys.contains(key))?;
        Some((key, value))
    }
}

/// Returns an address without the user name and password that it may contain.
fn without_user(value: &str) -> String {
    match value.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)))
    {
        Some((scheme, (_, address))) => format!("{scheme}://{address}"),
        None => value.to_owned(),
    }
}

/// Returns the causes that the variables of the processes show, the most certain first.
pub(super) fn causes(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for process in case.processes {
        for told in [switched_off(process), not_sampled(process), elsewhere(process), file(process)]
            .into_iter()
            .flatten()
        {
            // Several workers of one program are reported once.
            if !found.contains(&told) {
                found.push(told);
            }
        }
    }
    found
}

/// Reports processes that our variables did not reach.
pub(super) fn unreached(case: &Case<'_>) -> Option<Diagnosis> {
    let names = || case.processes.iter().filter(|it| it.is_unreached).map(|it| it.name.as_str());
    names().next()?;
    Some(diagnosis(
        Cause::VariablesIgnored,
        format!(
            "{} runs without the variables that were set for the command (`OTEL_EXPORTER_OTLP_ENDPOINT` and others)",
            listed(names())
        ),
        [],
        "let what starts it pass them on: a container, `sudo`, `env -i` and service managers drop them",
    ))
}

fn switched_off(process: &Process) -> Option<Diagnosis> {
    let (key, value) = process
        .get(&[DISABLED])
        .filter(|(_, value)| value.eq_ignore_ascii_case("true"))
        .or_else(|| process.get(&[EXPORTER]).filter(|(_, value)| !value.contains("otlp")))?;
    Some(diagnosis(
        Cause::SwitchedOff,
        format!("{} runs with `{key}={value}`: it sends no spans by OTLP", quoted(&process.name)),
        [],
        format!("remove `{key}` where {} is started", quoted(&process.name)),
    ))
}

fn not_sampled(process: &Process) -> Option<Diagnosis> {
    let (key, value) = process.get(&[SAMPLER])?;
    // A parent-based sampler samples our spans: our context has the sampled flag set.
    if value.starts_with("parentbased_") || value == "always_on" {
        return None;
    }
    Some(diagnosis(
        Cause::NotSampled,
        format!("{} runs with `{key}={value}`: it does not keep our spans", quoted(&process.name)),
        [],
        format!(
            "remove `{key}` where {} is started, or let it be `parentbased_{value}`, which keeps what its caller keeps",
            quoted(&process.name)
        ),
    ))
}

fn elsewhere(process: &Process) -> Option<Diagnosis> {
    let (key, value) = process.get(&ENDPOINTS)?;
    Some(diagnosis(
        Cause::SentElsewhere,
        format!("{} runs with `{key}={value}`, which is not this run's", quoted(&process.name)),
        [],
        format!("remove `{key}` where {} is started", quoted(&process.name)),
    ))
}

fn file(process: &Process) -> Option<Diagnosis> {
    let (key, value) = process.get(&FILES)?;
    Some(diagnosis(
        Cause::VariablesIgnored,
        format!(
            "{} is configured by a file, `{key}={value}`: an SDK that reads one ignores the other variables",
            quoted(&process.name)
        ),
        [],
        "write `${OTEL_EXPORTER_OTLP_ENDPOINT}` as the endpoint in the file, or remove the variable for tests",
    ))
}
