//! What the variables of the processes that we started say, where they are not as we set them.
//!
//! A script, a container or a package runner often starts the service with variables of its own. Deliberately absent:
//! how a process is looked at, which differs from system to system and is the business of whoever started it.

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
    /// Those of its variables that may keep its spans from us, where they are not as we set them.
    odd: Vec<(&'static str, String)>,
    /// Whether our variables did not reach it.
    is_unreached: bool,
}

impl Process {
    /// A process with this name, which has these variables although these were set. Only what may keep its spans from
    /// us is kept of them: the others may be secrets.
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
        // In the order in which they are told, whatever the order in the process.
        process.odd.sort_by_key(|(key, _)| telling.iter().position(|name| name == key));
        process
    }

    fn get(&self, keys: &[&str]) -> Option<(&'static str, &str)> {
        let (key, value) = self.odd.iter().find(|(key, _)| keys.contains(key))?;
        Some((key, value))
    }
}

/// An address without the name and password that may stand in it.
fn without_user(value: &str) -> String {
    match value.split_once("://").and_then(|(scheme, rest)| Some((scheme, rest.rsplit_once('@')?)))
    {
        Some((scheme, (_, address))) => format!("{scheme}://{address}"),
        None => value.to_owned(),
    }
}

/// What the processes say of themselves, the surest first.
pub(super) fn causes(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found = Vec::new();
    for process in case.processes {
        for told in [switched_off(process), not_sampled(process), elsewhere(process), file(process)]
            .into_iter()
            .flatten()
        {
            // Several workers of one program say it once.
            if !found.contains(&told) {
                found.push(told);
            }
        }
    }
    found
}

/// Processes that our variables did not reach.
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
    // A sampler that asks the parent keeps our spans: our context says that they are sampled.
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
