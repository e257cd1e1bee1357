//! Every key, as data: the source of the schema, of the names of environment variables and of the documentation.
//!
//! Deliberately absent: reading. A test checks that the table and the reader match.

/// A key that a configuration may have.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Key {
    /// Its path; `*` is a placeholder for a user-defined name.
    pub path: &'static str,
    /// The type of its value.
    pub kind: Kind,
    /// The default, as text; [`REQUIRED`](Key::REQUIRED) if the key is mandatory, empty if there is no default.
    pub default: &'static str,
    /// Its purpose, in a sentence.
    pub meaning: &'static str,
}

/// The type of a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A text that is not shown.
    Secret,
    /// `true` or `false`.
    Boolean,
    /// An integer within bounds.
    Integer {
        /// The minimum.
        min: i64,
        /// The maximum.
        max: i64,
    },
    /// A number within bounds.
    Number {
        /// The minimum.
        min: f64,
        /// The maximum.
        max: f64,
    },
    /// A duration such as `10s`.
    Duration,
    /// A size such as `32MiB`.
    Size,
    /// One of these words.
    Words(&'static [&'static str]),
    /// A list of `Name: value` or a table; values are not shown.
    Headers,
    /// A list of texts; in a variable, separated by commas.
    List,
    /// A list of texts that are not shown.
    Secrets,
}

impl Key {
    /// The default of a mandatory key.
    pub const REQUIRED: &'static str = "required";

    /// Creates a row of a table of keys.
    pub const fn new(
        path: &'static str,
        kind: Kind,
        default: &'static str,
        meaning: &'static str,
    ) -> Self {
        Self { path, kind, default, meaning }
    }

    pub(super) fn is_secret(&self) -> bool {
        matches!(self.kind, Kind::Secret | Kind::Secrets | Kind::Headers)
    }
}

/// Tables that create an exporter by their presence: a variable never adds one.
pub(super) const MAKERS: &[&str] = &["telemetry.exporters.*", "metrics.open-telemetry", "tracer.*"];

const LEVELS: &[&str] = &["trace", "debug", "info", "warn", "error"];

const REQUIRED: &str = Key::REQUIRED;

const fn key(path: &'static str, kind: Kind, default: &'static str, meaning: &'static str) -> Key {
    Key::new(path, kind, default, meaning)
}

/// Every key of `telemetry`, `metrics` and `tracer`.
#[rustfmt::skip]
pub const KEYS: &[Key] = &[
    key("telemetry.exporters.*.serviceName", Kind::Text, "the program's", "`service.name` of the resource."),
    key("telemetry.exporters.*.metricsReaderInterval", Kind::Duration, "10s", "How often this exporter pushes metrics."),
    key("telemetry.exporters.*.exporter.type", Kind::Words(&["collector"]), REQUIRED, "What it sends to."),
    key("telemetry.exporters.*.sampling", Kind::Number { min: 0.0, max: 100.0 }, "100", "The share of traces in percent."),
    key("telemetry.exporters.*.level", Kind::Words(LEVELS), "every span, and logs from info on", "The least severe level that is received; spans that failed, and those around them, are in any case."),
    key("telemetry.exporters.*.throttle", Kind::Duration, "1s", "How long a batch that is not full waits."),
    key("telemetry.exporters.*.lossy", Kind::Boolean, "false", "Whether a full queue drops and counts, or holds the producer, and with it everyone."),
    key("telemetry.exporters.*.buffer.memory", Kind::Size, "32MiB", "Bytes kept in memory."),
    key("telemetry.exporters.*.buffer.disk", Kind::Size, "1GiB", "Bytes kept on disk."),
    key("telemetry.exporters.*.buffer.directory", Kind::Text, "the program's", "Where; without one, in memory alone."),
    key("telemetry.exporters.*.buffer.durability", Kind::Words(&["memory", "process", "write-through", "host"]), "process with a directory, else memory", "What survives: nothing, a killed process but for milliseconds, a killed process, a killed machine."),
    key("telemetry.exporters.*.buffer.on-full", Kind::Text, "block", "How long a full queue holds the producer: `block`, or `block-timeout(5s)`."),
    key("telemetry.exporters.*.exporter.collector.transport", Kind::Words(&["grpc", "http"]), "grpc", "How the endpoint is spoken to."),
    key("telemetry.exporters.*.exporter.collector.endpoint", Kind::Text, "http://localhost:4317, or :4318 for http", "`host:port` and `http://…` are plaintext, `https://…` is TLS."),
    key("telemetry.exporters.*.exporter.collector.endpoints.traces", Kind::Text, "by endpoint", "Where spans go, if they go elsewhere."),
    key("telemetry.exporters.*.exporter.collector.endpoints.logs", Kind::Text, "by endpoint", "Where logs go, if they go elsewhere."),
    key("telemetry.exporters.*.exporter.collector.endpoints.metrics", Kind::Text, "by endpoint", "Where metrics go, if they go elsewhere."),
    key("telemetry.exporters.*.exporter.collector.headers", Kind::Headers, "", "Sent with every request: a list of `Name: value`, or a table. Values are secrets."),
    key("telemetry.exporters.*.exporter.collector.tls.caFile", Kind::Text, "the system's", "Certificates that are trusted instead of the system's, PEM."),
    key("telemetry.exporters.*.exporter.collector.tls.certFile", Kind::Text, "", "The certificate by which the peer knows this program, PEM."),
    key("telemetry.exporters.*.exporter.collector.tls.keyFile", Kind::Text, "", "The key of that certificate, PEM."),
    key("telemetry.exporters.*.exporter.collector.timeout", Kind::Duration, "10s", "How long one request may take."),
    key("telemetry.exporters.*.exporter.collector.compression", Kind::Words(&["gzip", "none"]), "gzip", "Whether requests are compressed."),
    key("telemetry.exporters.*.exporter.collector.retry.initial", Kind::Duration, "100ms", "The wait before the second attempt; doubled from there."),
    key("telemetry.exporters.*.exporter.collector.retry.max", Kind::Duration, "2s", "The longest wait between attempts."),
    key("metrics.prometheus.enable", Kind::Boolean, "true", "Whether Prometheus may fetch the metrics."),
    key("metrics.open-telemetry.transport", Kind::Words(&["grpc", "http", "disable"]), "grpc", "How the endpoint is spoken to."),
    key("metrics.open-telemetry.endpoint", Kind::Text, "http://localhost:4317, or :4318 for http", "`host:port` and `http://…` are plaintext, `https://…` is TLS."),
    key("metrics.open-telemetry.interval", Kind::Duration, "1m", "How often metrics are collected and pushed."),
    key("metrics.open-telemetry.headers", Kind::Headers, "", "Sent with every request: a list of `Name: value`, or a table. Values are secrets."),
    key("metrics.open-telemetry.tls.caFile", Kind::Text, "the system's", "Certificates that are trusted instead of the system's, PEM."),
    key("metrics.open-telemetry.tls.certFile", Kind::Text, "", "The certificate by which the peer knows this program, PEM."),
    key("metrics.open-telemetry.tls.keyFile", Kind::Text, "", "The key of that certificate, PEM."),
    key("metrics.open-telemetry.timeout", Kind::Duration, "10s", "How long one request may take."),
    key("metrics.open-telemetry.compression", Kind::Words(&["gzip", "none"]), "gzip", "Whether requests are compressed."),
    key("metrics.open-telemetry.retry.initial", Kind::Duration, "100ms", "The wait before the second attempt; doubled from there."),
    key("metrics.open-telemetry.retry.max", Kind::Duration, "2s", "The longest wait between attempts."),
    key("tracer.*.type", Kind::Words(&["open-telemetry", "stdout", "log"]), REQUIRED, "Where it goes: a collector, standard output, a file."),
    key("tracer.*.path", Kind::Text, "", "The file of a `log`."),
    key("tracer.*.enable", Kind::Boolean, "true", "Whether it is used: a boolean, or a table of the two below."),
    key("tracer.*.enable.log-exporter", Kind::Boolean, "false", "Whether it carries logs."),
    key("tracer.*.enable.span-exporter", Kind::Boolean, "true", "Whether it carries spans."),
    key("tracer.*.sampling", Kind::Number { min: 0.0, max: 100.0 }, "100", "The share of traces in percent."),
    key("tracer.*.level", Kind::Words(LEVELS), "every span, and logs from info on", "The least severe level that is received; spans that failed, and those around them, are in any case."),
    key("tracer.*.throttle", Kind::Duration, "1s", "How long a batch that is not full waits."),
    key("tracer.*.lossy", Kind::Boolean, "false", "Whether a full queue drops and counts, or holds the producer, and with it everyone."),
    key("tracer.*.buffer.memory", Kind::Size, "32MiB", "Bytes kept in memory, of spans and of logs each."),
    key("tracer.*.buffer.disk", Kind::Size, "1GiB", "Bytes kept on disk, of spans and of logs each."),
    key("tracer.*.buffer.directory", Kind::Text, "the program's", "Where; without one, in memory alone."),
    key("tracer.*.buffer.durability", Kind::Words(&["memory", "process", "write-through", "host"]), "process with a directory, else memory", "What survives: nothing, a killed process but for milliseconds, a killed process, a killed machine."),
    key("tracer.*.buffer.on-full", Kind::Text, "block", "How long a full queue holds the producer: `block`, or `block-timeout(5s)`."),
    key("tracer.*.transport", Kind::Words(&["grpc", "http"]), "grpc", "How the endpoint is spoken to."),
    key("tracer.*.endpoint", Kind::Text, "http://localhost:4317, or :4318 for http", "`host:port` and `http://…` are plaintext, `https://…` is TLS."),
    key("tracer.*.endpoints.traces", Kind::Text, "by endpoint", "Where spans go, if they go elsewhere."),
    key("tracer.*.endpoints.logs", Kind::Text, "by endpoint", "Where logs go, if they go elsewhere."),
    key("tracer.*.endpoints.metrics", Kind::Text, "by endpoint", "Where metrics go, if they go elsewhere."),
    key("tracer.*.headers", Kind::Headers, "", "Sent with every request: a list of `Name: value`, or a table. Values are secrets."),
    key("tracer.*.tls.caFile", Kind::Text, "the system's", "Certificates that are trusted instead of the system's, PEM."),
    key("tracer.*.tls.certFile", Kind::Text, "", "The certificate by which the peer knows this program, PEM."),
    key("tracer.*.tls.keyFile", Kind::Text, "", "The key of that certificate, PEM."),
    key("tracer.*.timeout", Kind::Duration, "10s", "How long one request may take."),
    key("tracer.*.compression", Kind::Words(&["gzip", "none"]), "gzip", "Whether requests are compressed."),
    key("tracer.*.retry.initial", Kind::Duration, "100ms", "The wait before the second attempt; doubled from there."),
    key("tracer.*.retry.max", Kind::Duration, "2s", "The longest wait between attempts."),
];

/// Returns the variable that overrides a key: prefix and path in capitals, with `_` for every other character.
pub fn environment_name(prefix: &str, path: &str) -> String {
    let capital = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{prefix}_{path}").chars().map(capital).collect()
}

/// Returns the pairs of keys that share a variable name, for any name in place of `*`. There should be none.
pub fn shared_names(keys: &[&[Key]]) -> Vec<(&'static str, &'static str)> {
    let mut names: Vec<(String, &'static str)> = keys
        .iter()
        .flat_map(|keys| keys.iter())
        .map(|key| (environment_name("", &key.path.replace('*', "0")), key.path))
        .collect();
    names.sort();
    names
        .windows(2)
        .filter(|pair| pair[0].0 == pair[1].0)
        .map(|pair| (pair[0].1, pair[1].1))
        .collect()
}

/// An index of keys by path.
pub(super) struct KeyIndex<'a>(Vec<(Vec<&'static str>, &'a Key)>);

impl<'a> KeyIndex<'a> {
    pub(super) fn new(keys: &[&'a [Key]]) -> Self {
        let keys = keys.iter().flat_map(|keys| keys.iter());
        Self(keys.map(|key| (key.path.split('.').collect(), key)).collect())
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&[&'static str], &'a Key)> {
        self.0.iter().map(|(pattern, key)| (pattern.as_slice(), *key))
    }

    /// The last path segments of the keys of secrets.
    pub(super) fn secrets(&self) -> impl Iterator<Item = &'static str> {
        let secrets = self.0.iter().filter(|(_, key)| key.is_secret());
        secrets.filter_map(|(pattern, _)| pattern.last().copied())
    }

    /// Returns the key with this path.
    pub(super) fn key(&self, path: &[&str]) -> Option<&'a Key> {
        let fits = |pattern: &[&str]| pattern.len() == path.len() && leads(path, pattern);
        self.0.iter().find(|(pattern, _)| fits(pattern)).map(|(_, key)| *key)
    }

    /// Returns whether this is the path of a table that contains keys.
    pub(super) fn has_table(&self, path: &[&str]) -> bool {
        self.0.iter().any(|(pattern, _)| path.len() < pattern.len() && leads(path, pattern))
    }

    /// Returns whether the keys of this table are user-defined.
    pub(super) fn has_chosen_names(&self, path: &[&str]) -> bool {
        self.0
            .iter()
            .any(|(pattern, _)| leads(path, pattern) && pattern.get(path.len()) == Some(&"*"))
    }
}

/// Returns whether a path is a prefix of a pattern.
pub(super) fn leads(path: &[&str], pattern: &[&str]) -> bool {
    path.len() <= pattern.len()
        && path.iter().zip(pattern).all(|(name, pattern)| *pattern == "*" || name == pattern)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_keys_share_a_variable() {
        assert_eq!(shared_names(&[KEYS]), []);
        const OTHERS: &[Key] = &[
            Key::new("tracer.*.enable-log.exporter", Kind::Text, "", ""),
            Key::new("tracer.*.enable.log", Kind::Text, "", ""),
        ];
        let shared = ("tracer.*.enable-log.exporter", "tracer.*.enable.log-exporter");
        assert_eq!(shared_names(&[KEYS, OTHERS]), [shared]);
    }

    #[test]
    fn a_variable_is_named_for_its_key() {
        let name = environment_name("APP", "tracer.my-own.enable.log-exporter");
        assert_eq!(name, "APP_TRACER_MY_OWN_ENABLE_LOG_EXPORTER");
        assert_eq!(environment_name("APP", "server.httpPort"), "APP_SERVER_HTTPPORT");
    }
}
