//! The environment variables of the processes that we started, where they differ from the values that we set.
//!
//! A script, a container or a package runner often starts the service with its own variables. Deliberately absent: how a
//! process is inspected, which depends on the operating system and is up to the caller that started it.

use model::{Cause, Diagnosis};

use super::{
    case::{Case, diagnosis},
    words::{listed, quoted},
};
use crate::started::{DISABLED, ENDPOINTS, EXPORTER, FILES, Process, SAMPLER};

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
