//! Prometheus' text: golden files, and property tests with any instruments.

use std::{collections::BTreeMap, path::Path};

use golden::Golden;
use opentelemetry::{InstrumentationScope, KeyValue, Value, metrics::MeterProvider};
use opentelemetry_sdk::metrics::{Aggregation, Instrument, SdkMeterProvider, Stream};
use proptest::{collection::vec, prelude::*};

use super::{
    TestMeter,
    exposition::{ParsedFamily, parse},
};
use crate::metrics::Reader;

type Case = (&'static str, fn(&TestMeter));

#[test]
fn texts_are_the_golden_ones() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/prometheus");
    let cases: [Case; 6] = [
        ("nothing", |_| {}),
        ("kinds", kinds),
        ("scopes", scopes),
        ("clashes", clashes),
        ("escapes", escapes),
        ("numbers", numbers),
    ];
    let mut golden = Golden::default();
    for (name, record) in cases {
        let metered = TestMeter::new([
            KeyValue::new("service.name", "shop"),
            KeyValue::new("process.pid", 12),
            KeyValue::new("a.list", Value::Array(vec![1, 2].into())),
        ]);
        record(&metered);
        let text = metered.reader.prometheus();
        parse(&text).expect(name);
        assert_eq!(metered.reader.prometheus(), text, "a scrape takes nothing away");
        golden.compare(&folder.join(format!("{name}.txt")), &text);
    }
    let text = exponential();
    parse(&text).expect("exponential");
    golden.compare(&folder.join("exponential.txt"), &text);
    golden.finish(7);
}

fn kinds(metered: &TestMeter) {
    let meter = metered.meter();
    let requests = meter
        .u64_counter("http.requests")
        .with_unit("{request}")
        .with_description("How many came.");
    let requests = requests.build();
    requests.add(3, &[KeyValue::new("http.response.status_code", 200), KeyValue::new("ok", true)]);
    requests.add(1, &[KeyValue::new("http.response.status_code", 500), KeyValue::new("ok", false)]);
    meter.f64_counter("read").with_unit("By").build().add(2.5, &[]);
    meter.i64_up_down_counter("queue.size").with_unit("1").build().add(-4, &[]);
    meter.f64_gauge("cpu.utilization").with_unit("1").build().record(0.25, &[]);
    let wait =
        meter.f64_histogram("wait").with_unit("s").with_boundaries(vec![0.1, 1.0, 10.0]).build();
    for (value, queue) in [(0.05, "a"), (0.1, "a"), (5.0, "a"), (50.0, "a"), (1.0, "b")] {
        wait.record(value, &[KeyValue::new("queue", queue)]);
    }
    meter.u64_histogram("size").with_unit("By").with_boundaries(vec![]).build().record(7, &[]);
    meter.u64_observable_gauge("seen").with_callback(|observer| observer.observe(9, &[])).build();
}

fn scopes(metered: &TestMeter) {
    let scope = |version: &'static str| {
        InstrumentationScope::builder("db").with_version(version).with_schema_url("https://s/1")
    };
    for scope in [
        InstrumentationScope::builder("app"),
        scope("1"),
        scope("2").with_attributes([KeyValue::new("pool.name", "main")]),
    ] {
        let meter = metered.provider.meter_with_scope(scope.build());
        meter.u64_counter("calls").with_description("How many.").build().add(1, &[]);
    }
}

fn clashes(metered: &TestMeter) {
    let meter = metered.meter();
    meter.u64_counter("jobs").build().add(1, &[]);
    meter.u64_gauge("jobs.total").build().record(2, &[]);
    meter.u64_histogram("jobs_total").with_boundaries(vec![]).build().record(3, &[]);
    meter.u64_counter("disk.read").build().add(4, &[]);
    meter.u64_counter("disk_read").build().add(5, &[]);
    let labels =
        [KeyValue::new("a.b", "one"), KeyValue::new("a_b", "two"), KeyValue::new("le", "three")];
    meter.u64_histogram("le").with_boundaries(vec![1.0]).build().record(1, &labels);
}

fn escapes(metered: &TestMeter) {
    let meter = metered.meter();
    let gauge = meter.u64_gauge("g").with_description("a \"quoted\" \\ and\nmore").build();
    gauge.record(
        1,
        &[KeyValue::new("path", "C:\\dir\"x\"\nend"), KeyValue::new("ключ", "значение")],
    );
    gauge.record(
        2,
        &[KeyValue::new("0", ""), KeyValue::new("__name__", "x"), KeyValue::new("", "{a=\"b\"}")],
    );
}

fn numbers(metered: &TestMeter) {
    let gauge = metered.meter().f64_gauge("g").build();
    // The SDK does not accept infinity or NaN.
    for value in [0.0, -0.0, 1.0, 0.1, -2.5, 1e15, 1e300, 5e-324, 1e-5, f64::MAX] {
        gauge.record(value, &[KeyValue::new("value", format!("{value:?}"))]);
    }
    metered.meter().u64_gauge("u").build().record(u64::MAX, &[]);
    metered.meter().i64_gauge("i").build().record(i64::MIN, &[]);
    let bounds = vec![1e-9, 0.5, 1e21];
    metered.meter().f64_histogram("h").with_boundaries(bounds).build().record(1e22, &[]);
}

/// A view creates exponential histograms; their buckets are rendered with bounds.
fn exponential() -> String {
    let reader = Reader::new();
    let view = |_: &Instrument| {
        let buckets = Aggregation::Base2ExponentialHistogram {
            max_size: 8,
            max_scale: 1,
            record_min_max: false,
        };
        Stream::builder().with_aggregation(buckets).build().ok()
    };
    let provider = SdkMeterProvider::builder().with_reader(reader.clone()).with_view(view).build();
    let histogram = provider.meter("app").f64_histogram("wait").build();
    for value in [0.0, 1.0, 1.5, 3.9, 4.0, -1.0, -3.0] {
        histogram.record(value, &[]);
    }
    let text = reader.prometheus();
    // Removes the lines that depend on the build, not on the case.
    text.lines()
        .filter(|line| !line.contains("target_info"))
        .flat_map(|line| [line, "\n"])
        .collect()
}

/// A measurement: kind, name, unit, attributes, value.
type Measurement = (u8, String, String, Vec<(String, String)>, u32);

fn recorded() -> impl Strategy<Value = Measurement> {
    let unit = prop::sample::select(vec!["", "1", "s", "By", "{x}", "By/s", "%", "odd-unit"]);
    (
        0..4_u8,
        "[abx][a-b_.]{0,3}",
        unit.prop_map(str::to_owned),
        vec((".{0,4}", ".{0,6}"), 0..3),
        0..9_u32,
    )
}

fn record(metered: &TestMeter, (kind, name, unit, attributes, value): Measurement) {
    let meter = metered.meter();
    let attributes: Vec<_> =
        attributes.into_iter().map(|(key, value)| KeyValue::new(key, value)).collect();
    let value = f64::from(value);
    match kind {
        0 => meter.f64_counter(name).with_unit(unit).build().add(value, &attributes),
        1 => meter.f64_up_down_counter(name).with_unit(unit).build().add(-value, &attributes),
        2 => meter.f64_gauge(name).with_unit(unit).build().record(value, &attributes),
        _ => meter.f64_histogram(name).with_unit(unit).build().record(value, &attributes),
    }
}

proptest! {
    #[test]
    fn any_text_keeps_the_rules(all in vec(recorded(), 0..12)) {
        let metered = TestMeter::new([]);
        for one in all.clone() {
            record(&metered, one);
        }
        let text = metered.reader.prometheus();
        let families = parse(&text).map_err(|rule| TestCaseError::fail(format!("{rule}\n{text}")))?;
        let expected = if all.is_empty() { 0 } else { 1 };
        prop_assert!(families.len() >= expected, "{}", text);
    }

    #[test]
    fn a_value_is_read_back_with_its_labels(
        labels in prop::collection::btree_map("[a-z]{1,5}", any::<String>(), 0..5),
        value in any::<f64>(),
    ) {
        let metered = TestMeter::new([]);
        let attributes: Vec<_> =
            labels.iter().map(|(key, value)| KeyValue::new(key.clone(), value.clone())).collect();
        metered.meter().f64_gauge("g").build().record(value, &attributes);
        let families = parse(&metered.reader.prometheus()).map_err(TestCaseError::fail)?;
        let ParsedFamily { samples, .. } = &families[0];
        prop_assert_eq!(samples[0].value, value);
        let mut expected: BTreeMap<_, _> = labels;
        if let Some(value) = expected.remove("le") {
            expected.insert("exported_le".to_owned(), value);
        }
        expected.insert("otel_scope_name".to_owned(), "app".to_owned());
        prop_assert_eq!(&samples[0].labels, &expected);
    }
}
