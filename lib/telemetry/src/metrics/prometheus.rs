//! Prometheus' text exposition format 0.0.4.
//!
//! Families and their series are sorted and unique, as the format requires: two instruments that map to one name are
//! one family, and of two series with the same labels the first is kept. Deliberately absent: exemplars and native
//! histograms, which this format does not support (an exponential histogram is rendered with the bounds of its
//! buckets), and timestamps, because the scrape has one.

use std::{
    collections::{BTreeMap, btree_map::Entry},
    fmt::Write as _,
};

use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_sdk::{
    Resource,
    metrics::data::{
        AggregatedMetrics, ExponentialHistogramDataPoint, HistogramDataPoint, Metric, MetricData,
        ResourceMetrics,
    },
};

use super::names::{self, FamilyKind};

/// Renders a collection.
pub(super) fn text(collected: &ResourceMetrics) -> String {
    let mut families = Families::default();
    families.target(collected.resource());
    for scoped in collected.scope_metrics() {
        let scope = Labels::of_scope(scoped.scope());
        for metric in scoped.metrics() {
            match metric.data() {
                AggregatedMetrics::F64(data) => families.add(&scope, metric, data, float),
                AggregatedMetrics::U64(data) => {
                    families.add(&scope, metric, data, |value| value.to_string());
                }
                AggregatedMetrics::I64(data) => {
                    families.add(&scope, metric, data, |value| value.to_string());
                }
            }
        }
    }
    families.text()
}

#[derive(Default)]
struct Families(BTreeMap<String, Family>);

struct Family {
    kind: FamilyKind,
    help: String,
    /// The lines of each series, keyed by its labels.
    series: BTreeMap<String, String>,
}

impl Families {
    /// Adds `target_info`: the resource of all metrics.
    fn target(&mut self, resource: &Resource) {
        let mut labels = Labels::default();
        for (key, value) in resource {
            labels.add(key.as_str(), &value.as_str());
        }
        if resource.is_empty() {
            return;
        }
        let family = self.family("target_info".to_owned(), FamilyKind::Gauge, "Target metadata").1;
        family.series.insert(labels.text(), format!("target_info{} 1\n", braced(&labels.text())));
    }

    fn add<T: Copy>(
        &mut self,
        scope: &Labels,
        metric: &Metric,
        data: &MetricData<T>,
        show: impl Fn(T) -> String,
    ) {
        let kind = match data {
            MetricData::Gauge(_) => FamilyKind::Gauge,
            MetricData::Sum(sum) if sum.is_monotonic() => FamilyKind::Counter,
            MetricData::Sum(_) => FamilyKind::UpDown,
            MetricData::Histogram(_) | MetricData::ExponentialHistogram(_) => FamilyKind::Histogram,
        };
        let name = names::family(metric.name(), metric.unit(), kind);
        let (name, family) = self.family(name, kind, metric.description());
        match data {
            MetricData::Gauge(gauge) => {
                for point in gauge.data_points() {
                    family.number(&name, &scope.with(point.attributes()), &show(point.value()));
                }
            }
            MetricData::Sum(sum) => {
                for point in sum.data_points() {
                    family.number(&name, &scope.with(point.attributes()), &show(point.value()));
                }
            }
            MetricData::Histogram(histogram) => {
                for point in histogram.data_points() {
                    let (sum, count) = (show(point.sum()), point.count());
                    let found = Buckets { cumulative: explicit(point), sum, count };
                    family.histogram(&name, &scope.with(point.attributes()), &found);
                }
            }
            MetricData::ExponentialHistogram(histogram) => {
                for point in histogram.data_points() {
                    let (sum, count) = (show(point.sum()), point.count() as u64);
                    let found = Buckets { cumulative: exponential(point), sum, count };
                    family.histogram(&name, &scope.with(point.attributes()), &found);
                }
            }
        }
    }

    /// Returns the family of this name. A name has one type, so a second instrument with another type gets the type as
    /// a suffix of its name.
    fn family(&mut self, mut name: String, kind: FamilyKind, help: &str) -> (String, &mut Family) {
        while self.0.get(&name).is_some_and(|family| family.kind.word() != kind.word()) {
            name = format!("{name}_{}", kind.word());
        }
        let new = || Family { kind, help: String::new(), series: BTreeMap::new() };
        let family = self.0.entry(name.clone()).or_insert_with(new);
        if family.help.is_empty() {
            help.clone_into(&mut family.help);
        }
        (name, family)
    }

    fn text(&self) -> String {
        let mut out = String::new();
        for (name, family) in &self.0 {
            if family.series.is_empty() {
                continue;
            }
            if !family.help.is_empty() {
                let help = family.help.replace('\\', r"\\").replace('\n', r"\n");
                put(&mut out, format_args!("# HELP {name} {help}\n"));
            }
            put(&mut out, format_args!("# TYPE {name} {}\n", family.kind.word()));
            out.extend(family.series.values().map(String::as_str));
        }
        out
    }
}

/// The contents of a histogram: the cumulative count of each bound, the sum and the count.
struct Buckets {
    cumulative: Vec<(f64, u64)>,
    sum: String,
    count: u64,
}

impl Family {
    fn number(&mut self, name: &str, labels: &Labels, value: &str) {
        let labels = labels.text();
        let line = format!("{name}{} {value}\n", braced(&labels));
        self.series.entry(labels).or_insert(line);
    }

    fn histogram(&mut self, name: &str, labels: &Labels, found: &Buckets) {
        let labels = labels.text();
        let Entry::Vacant(vacant) = self.series.entry(labels.clone()) else { return };
        let mut lines = String::new();
        let comma = if labels.is_empty() { "" } else { "," };
        let last = (f64::INFINITY, found.count);
        // An infinite bound would duplicate the last one.
        let finite = found.cumulative.iter().filter(|(bound, _)| bound.is_finite());
        for (bound, count) in finite.chain([&last]) {
            let bound = float(*bound);
            put(
                &mut lines,
                format_args!("{name}_bucket{{{labels}{comma}le=\"{bound}\"}} {count}\n"),
            );
        }
        let (labels, Buckets { sum, count, .. }) = (braced(&labels), found);
        put(&mut lines, format_args!("{name}_sum{labels} {sum}\n{name}_count{labels} {count}\n"));
        vacant.insert(lines);
    }
}

fn explicit<T>(point: &HistogramDataPoint<T>) -> Vec<(f64, u64)> {
    // There is one count more than bounds: that of the values above all bounds, which the count of the point covers.
    accumulated(point.bounds().zip(point.bucket_counts()))
}

/// Returns the buckets of an exponential histogram in ascending order: the negative ones mirrored, zero, the positive
/// ones.
fn exponential<T>(point: &ExponentialHistogramDataPoint<T>) -> Vec<(f64, u64)> {
    // Bucket `index` contains the values above `2^(index * 2^-scale)` and up to the bound of the next.
    let width = (-f64::from(point.scale())).exp2();
    let bound = |index: i64| (index as f64 * width).exp2();
    let (positive, negative) = (point.positive_bucket(), point.negative_bucket());
    let first = i64::from(negative.offset());
    let mut below: Vec<_> =
        (first..).zip(negative.counts()).map(|(index, count)| (-bound(index), count)).collect();
    below.reverse();
    let first = i64::from(positive.offset());
    let above = (first..).zip(positive.counts()).map(|(index, count)| (bound(index + 1), count));
    let zero = (point.zero_threshold(), point.zero_count());
    accumulated(below.into_iter().chain([zero]).chain(above))
}

fn accumulated(buckets: impl Iterator<Item = (f64, u64)>) -> Vec<(f64, u64)> {
    let mut so_far = 0;
    buckets
        .map(|(bound, count)| {
            so_far += count;
            (bound, so_far)
        })
        .collect()
}

/// Labels by name. Keys that map to the same name share it, with their values joined by `;`.
#[derive(Clone, Default)]
struct Labels(BTreeMap<String, String>);

impl Labels {
    fn of_scope(scope: &InstrumentationScope) -> Self {
        let mut labels = Self::default();
        for (key, value) in [
            ("otel_scope_name", Some(scope.name())),
            ("otel_scope_version", scope.version()),
            ("otel_scope_schema_url", scope.schema_url()),
        ] {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                labels.add(key, value);
            }
        }
        for pair in scope.attributes() {
            labels.add(&format!("otel_scope_{}", pair.key), &pair.value.as_str());
        }
        labels
    }

    fn with<'a>(&self, attributes: impl Iterator<Item = &'a KeyValue>) -> Self {
        let mut labels = self.clone();
        for pair in attributes {
            labels.add(pair.key.as_str(), &pair.value.as_str());
        }
        labels
    }

    fn add(&mut self, key: &str, value: &str) {
        let name = match names::sanitized(key) {
            // The bound of a bucket uses this name; the prefix follows the convention of Prometheus.
            taken if taken == "le" => "exported_le".to_owned(),
            name => name,
        };
        match self.0.entry(name) {
            Entry::Vacant(vacant) => {
                vacant.insert(value.to_owned());
            }
            Entry::Occupied(mut held) => {
                held.get_mut().push(';');
                held.get_mut().push_str(value);
            }
        }
    }

    /// Renders the labels as they are between the braces.
    fn text(&self) -> String {
        let escaped =
            |value: &str| value.replace('\\', r"\\").replace('"', r#"\""#).replace('\n', r"\n");
        let all = self.0.iter().map(|(name, value)| format!("{name}=\"{}\"", escaped(value)));
        all.collect::<Vec<_>>().join(",")
    }
}

fn braced(labels: &str) -> String {
    if labels.is_empty() { String::new() } else { format!("{{{labels}}}") }
}

fn put(out: &mut String, text: std::fmt::Arguments<'_>) {
    out.write_fmt(text).expect("a string takes all that is written");
}

/// Formats a number in its shortest lossless form.
fn float(value: f64) -> String {
    if value.is_nan() {
        "NaN".to_owned()
    } else if value.is_infinite() {
        if value > 0.0 { "+Inf" } else { "-Inf" }.to_owned()
    } else if value == 0.0 || (1e-5..1e15).contains(&value.abs()) {
        value.to_string()
    } else {
        format!("{value:e}")
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_written_as_prometheus_reads_them() {
        let numbers = [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 0.1, -1e15, 9.9e14, 9e-6, 0.0];
        let expected = ["+Inf", "-Inf", "NaN", "0.1", "-1e15", "990000000000000", "9e-6", "0"];
        assert_eq!(numbers.map(super::float), expected);
    }
}
