//! Processes that we started.

use std::time::Duration;

/// The settings of processes that we started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StartedProcesses {
    /// The value of the resource attribute [`MARKER`] that we configured them to send.
    pub marker: String,
    /// The batch delay that we configured.
    pub batch_delay: Duration,
}

/// The resource attribute that identifies a process that we started.
pub const MARKER: &str = "qualitytrace.started";

pub(crate) const ENDPOINTS: [&str; 2] =
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT"];
pub(crate) const FILES: [&str; 2] = ["OTEL_CONFIG_FILE", "OTEL_EXPERIMENTAL_CONFIG_FILE"];
pub(crate) const RESOURCE: &str = "OTEL_RESOURCE_ATTRIBUTES";
pub(crate) const SAMPLER: &str = "OTEL_TRACES_SAMPLER";
pub(crate) const EXPORTER: &str = "OTEL_TRACES_EXPORTER";
pub(crate) const DISABLED: &str = "OTEL_SDK_DISABLED";

/// A process of the command that we started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Process {
    pub(crate) name: String,
    /// The variables that may keep its spans from us and that differ from the values that we set.
    pub(crate) odd: Vec<(&'static str, String)>,
    /// Whether our variables did not reach the process.
    pub(crate) is_unreached: bool,
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

    /// Returns the first of these variables that differs.
    pub(crate) fn get(&self, keys: &[&str]) -> Option<(&'static str, &str)> {
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
