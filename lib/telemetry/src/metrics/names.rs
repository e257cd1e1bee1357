//! Converts OpenTelemetry names to Prometheus names: allowed characters, the unit in full, and `_total` on counters.

/// The type of a family, by its instrument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FamilyKind {
    Counter,
    /// A sum that may decrease. Prometheus treats it as a gauge.
    UpDown,
    Gauge,
    Histogram,
}

impl FamilyKind {
    /// Returns the type name for `# TYPE`.
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::UpDown | Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

/// Returns the name of the family of an instrument with this name and unit.
pub(super) fn family(name: &str, unit: &str, kind: FamilyKind) -> String {
    let mut family = sanitized(name);
    if kind == FamilyKind::Counter
        && let Some(stem) = family.strip_suffix("_total")
    {
        family.truncate(stem.len());
    }
    let unit = match unit {
        "1" if kind == FamilyKind::Gauge => "ratio".to_owned(),
        unit => unit_in_full(unit),
    };
    if !unit.is_empty() && !family.ends_with(&format!("_{unit}")) && family != unit {
        family = format!("{family}_{unit}");
    }
    if kind == FamilyKind::Counter {
        family.push_str("_total");
    }
    family
}

/// Replaces every run of characters that are not ASCII letters or digits by one `_`, and puts a `_` before a leading
/// digit. A colon is legal in the name of a metric, but reserved for the recording rules of the Prometheus operator.
pub(super) fn sanitized(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            'a'..='z' | 'A'..='Z' => out.push(letter),
            '0'..='9' => {
                if out.is_empty() {
                    out.push('_');
                }
                out.push(letter);
            }
            _ if out.ends_with('_') => {}
            _ => out.push('_'),
        }
    }
    if out.is_empty() {
        out.push('_');
    }
    out
}

/// Returns the unit in full: `By/s` is `bytes_per_second`. Text in braces is an annotation and is removed.
fn unit_in_full(unit: &str) -> String {
    let (of, per) = unit.split_once('/').unwrap_or((unit, ""));
    let (of, per) = (without_remarks(of), without_remarks(per));
    match (word(of.trim()), each(per.trim())) {
        (of, per) if per.is_empty() => of,
        (of, per) if of.is_empty() => format!("per_{per}"),
        (of, per) => format!("{of}_per_{per}"),
    }
}

fn without_remarks(unit: &str) -> String {
    let mut depth = 0_usize;
    let mut out = String::new();
    for letter in unit.chars() {
        match letter {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            _ if depth == 0 => out.push(letter),
            _ => {}
        }
    }
    out
}

fn word(unit: &str) -> String {
    let word = match unit {
        "" | "1" => "",
        "d" => "days",
        "h" => "hours",
        "min" => "minutes",
        "s" => "seconds",
        "ms" => "milliseconds",
        "us" => "microseconds",
        "ns" => "nanoseconds",
        "By" => "bytes",
        "KiBy" => "kibibytes",
        "MiBy" => "mebibytes",
        "GiBy" => "gibibytes",
        "TiBy" => "tebibytes",
        "kBy" | "KBy" => "kilobytes",
        "MBy" => "megabytes",
        "GBy" => "gigabytes",
        "TBy" => "terabytes",
        "m" => "meters",
        "V" => "volts",
        "A" => "amperes",
        "J" => "joules",
        "W" => "watts",
        "g" => "grams",
        "Cel" => "celsius",
        "Hz" => "hertz",
        "%" => "percent",
        other => return sanitized(other).trim_matches('_').to_owned(),
    };
    word.to_owned()
}

/// Returns the singular name of a unit behind a `/`.
fn each(unit: &str) -> String {
    let word = match unit {
        "" | "1" => "",
        "s" => "second",
        "m" | "min" => "minute",
        "h" => "hour",
        "d" => "day",
        "w" => "week",
        "mo" => "month",
        "y" | "a" => "year",
        other => return word(other),
    };
    word.to_owned()
}

#[cfg(test)]
mod tests {
    use super::{
        FamilyKind::{Counter, Gauge, Histogram, UpDown},
        family, sanitized,
    };

    #[test]
    fn families_are_named_by_name_unit_and_kind() {
        for (name, unit, kind, expected) in [
            (
                "http.server.request.duration",
                "s",
                Histogram,
                "http_server_request_duration_seconds",
            ),
            ("http.server.active_requests", "{request}", UpDown, "http_server_active_requests"),
            (
                "otel.sdk.exporter.span.exported",
                "{span}",
                Counter,
                "otel_sdk_exporter_span_exported_total",
            ),
            ("bytes.read", "By", Counter, "bytes_read_bytes_total"),
            ("read_bytes", "By", Counter, "read_bytes_total"),
            ("bytes", "By", Gauge, "bytes"),
            ("read_bytes_total", "By", Counter, "read_bytes_total"),
            ("disk_total", "By", Gauge, "disk_total_bytes"),
            ("cpu.utilization", "1", Gauge, "cpu_utilization_ratio"),
            ("cpu.count", "1", UpDown, "cpu_count"),
            ("hits", "1", Counter, "hits_total"),
            ("throughput", "By/s", Gauge, "throughput_bytes_per_second"),
            ("rate", "{request}/s", Gauge, "rate_per_second"),
            ("rate", "{request}/{core}", Gauge, "rate"),
            ("speed", "m/m", Gauge, "speed_meters_per_minute"),
            ("load", "%", Gauge, "load_percent"),
            ("size", "By{compressed}", Gauge, "size_bytes"),
            ("odd", "µ-foo", Gauge, "odd_foo"),
            ("braces", "{a{b}c}", Gauge, "braces"),
            ("9lives..left", "", Gauge, "_9lives_left"),
        ] {
            assert_eq!(family(name, unit, kind), expected, "{name} {unit} {kind:?}");
        }
    }

    #[test]
    fn names_have_the_letters_that_they_may() {
        for (text, expected) in [
            ("a.b-c", "a_b_c"),
            ("__name__", "_name_"),
            ("", "_"),
            ("ü", "_"),
            ("1", "_1"),
            ("a:b", "a_b"),
        ] {
            assert_eq!(sanitized(text), expected);
        }
    }
}
