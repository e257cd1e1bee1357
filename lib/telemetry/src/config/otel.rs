//! OpenTelemetry's own variables, applied where the file has no value.
//!
//! They are often set for an entire machine, so an invalid value is a warning and not an error, as OpenTelemetry
//! requires.

use std::{cell::RefCell, collections::BTreeSet, path::PathBuf, time::Duration};

use source::{Diagnostics, Span};

use super::{ENVIRONMENT, Environment, duration::SPAN, headers::percent_decoded};
use crate::plan::{Compression, Signal, Transport};

/// The variables, and the warnings about them.
pub(super) struct Otel<'a> {
    environment: &'a Environment,
    found: &'a Diagnostics,
    /// The variables that were warned about: once each, regardless of how many exporters read them.
    warned: RefCell<BTreeSet<String>>,
}

impl<'a> Otel<'a> {
    pub(super) fn new(environment: &'a Environment, found: &'a Diagnostics) -> Self {
        Self { environment, found, warned: RefCell::default() }
    }

    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.environment.get(name).map(str::trim).filter(|value| !value.is_empty())
    }

    /// Returns the first of these variables that is set.
    pub(super) fn first<'n>(&self, names: &'n [String]) -> Option<(&'n str, &'a str)> {
        names.iter().find_map(|name| Some((name.as_str(), self.get(name)?)))
    }

    /// Returns the first of these variables that is set, if its value is valid.
    fn parsed<T>(
        &self,
        names: &[String],
        expected: &str,
        parse: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (name, value) = self.first(names)?;
        let parsed = parse(value);
        if parsed.is_none() {
            self.warn(name, expected);
        }
        parsed
    }

    /// Reports that a variable is ignored, with a text that fits behind "must be".
    pub(super) fn warn(&self, name: &str, expected: &str) {
        if self.warned.borrow_mut().insert(name.to_owned()) {
            let message = format!("`{name}` is ignored: it must be {expected}");
            self.found.push(self.found.warning(place_of(self.found, name), message));
        }
    }

    /// Returns whether `OTEL_SDK_DISABLED` turns all telemetry off.
    pub(super) fn is_disabled(&self) -> bool {
        let word = |value: &str| match value.to_ascii_lowercase().as_str() {
            "true" => Some(true),
            "false" => Some(false),
            _ => None,
        };
        let name = ["OTEL_SDK_DISABLED".to_owned()];
        self.parsed(&name, "`true` or `false`", word).unwrap_or(false)
    }

    /// `service.name` and the other attributes of `OTEL_RESOURCE_ATTRIBUTES`.
    pub(super) fn resource(&self) -> (Option<String>, Vec<(String, String)>) {
        let name = ["OTEL_RESOURCE_ATTRIBUTES".to_owned()];
        let attributes = self.parsed(&name, "`key=value,key=value`", |value| {
            let pairs = value.split(',').filter(|pair| !pair.trim().is_empty());
            let attribute = |pair: &str| {
                let (key, value) = pair.split_once('=')?;
                let key = percent_decoded(key.trim());
                (!key.is_empty()).then(|| (key, percent_decoded(value.trim())))
            };
            pairs.map(attribute).collect::<Option<Vec<_>>>()
        });
        let mut service_name = None;
        let mut rest: Vec<(String, String)> = Vec::new();
        for (key, value) in attributes.unwrap_or_default() {
            if key == "service.name" {
                service_name = Some(value).filter(|value| !value.is_empty());
            } else if let Some(earlier) = rest.iter_mut().find(|(earlier, _)| *earlier == key) {
                earlier.1 = value;
            } else {
                rest.push((key, value));
            }
        }
        (service_name, rest)
    }

    /// Returns the share of traces in percent, if the chosen sampler has one.
    pub(super) fn sampling(&self) -> Option<f64> {
        match self.get("OTEL_TRACES_SAMPLER")? {
            "always_on" | "parentbased_always_on" => Some(100.0),
            "always_off" | "parentbased_always_off" => Some(0.0),
            "traceidratio" | "parentbased_traceidratio" => {
                let name = ["OTEL_TRACES_SAMPLER_ARG".to_owned()];
                let ratio = |value: &str| {
                    value.parse::<f64>().ok().filter(|ratio| (0.0..=1.0).contains(ratio))
                };
                self.parsed(&name, "a number from 0 to 1", ratio).map(|ratio| ratio * 100.0)
            }
            _ => {
                self.warn("OTEL_TRACES_SAMPLER", "`always_on`, `always_off` or `traceidratio`, or one of them with `parentbased_` in front");
                None
            }
        }
    }

    /// Returns the push interval of metrics.
    pub(super) fn metrics_interval(&self) -> Option<Duration> {
        let name = ["OTEL_METRIC_EXPORT_INTERVAL".to_owned()];
        self.parsed(&name, MILLISECONDS, milliseconds)
    }

    pub(super) fn transport(&self, carried: &[Signal]) -> Option<Transport> {
        self.parsed(&names(carried, "PROTOCOL"), "`grpc` or `http/protobuf`", |word| match word {
            "grpc" => Some(Transport::Grpc),
            "http/protobuf" => Some(Transport::Http),
            _ => None,
        })
    }

    pub(super) fn timeout(&self, carried: &[Signal]) -> Option<Duration> {
        self.parsed(&names(carried, "TIMEOUT"), MILLISECONDS, milliseconds)
    }

    pub(super) fn compression(&self, carried: &[Signal]) -> Option<Compression> {
        self.parsed(&names(carried, "COMPRESSION"), "`gzip` or `none`", |word| match word {
            "gzip" => Some(Compression::Gzip),
            "none" => Some(Compression::None),
            _ => None,
        })
    }

    /// Returns the file of `CERTIFICATE`, `CLIENT_CERTIFICATE` or `CLIENT_KEY`.
    pub(super) fn file(&self, carried: &[Signal], what: &str) -> Option<PathBuf> {
        self.first(&names(carried, what)).map(|(_, path)| PathBuf::from(path))
    }
}

const MILLISECONDS: &str = "a number of milliseconds, from 1 to those of a day";

fn milliseconds(value: &str) -> Option<Duration> {
    let duration = Duration::from_millis(value.parse().ok()?);
    SPAN.contains(&duration).then_some(duration)
}

/// Returns the variables with this setting for an exporter. The variable of one signal only applies to exporters that
/// carry no other signal, because an exporter has one connection for all signals.
pub(super) fn names(carried: &[Signal], what: &str) -> Vec<String> {
    let general = format!("OTEL_EXPORTER_OTLP_{what}");
    match carried {
        [signal] => vec![of_signal(*signal, what), general],
        _ => vec![general],
    }
}

/// Returns the variable with this setting for one signal.
pub(super) fn of_signal(signal: Signal, what: &str) -> String {
    let signal = match signal {
        Signal::Spans => "TRACES",
        Signal::Logs => "LOGS",
        Signal::Metrics => "METRICS",
    };
    format!("OTEL_EXPORTER_OTLP_{signal}_{what}")
}

/// Returns the location of a variable's value, if the environment is a part of the text.
fn place_of(found: &Diagnostics, name: &str) -> Option<Span> {
    let part = found.text().part_named(ENVIRONMENT)?;
    let start = format!("{name}=");
    let mut at = part.start;
    for line in found.text().slice(part).split_inclusive('\n') {
        if line.starts_with(&start) {
            let end = at + line.trim_end_matches('\n').len();
            return Some(Span { start: at + start.len(), end });
        }
        at += line.len();
    }
    None
}
