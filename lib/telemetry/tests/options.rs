//! Tests every option of the four documents from which this crate was written, on the wire.
//!
//! A row names the document and the option, and contains the same configuration in YAML and in TOML. Both are executed:
//! read, started, fed with spans, logs and metrics, and checked by the data that arrived at a peer, or at a real
//! Collector. Every row ends with the invariant: accepted = delivered + queued + rejected + dropped. Deliberately
//! absent: `server.…` and `postgres` of the first two documents, which belong to the program that uses this crate, and
//! options beyond the documents.

#[path = "options/collector.rs"]
mod collector;
#[path = "options/enable.rs"]
mod enable;
#[path = "options/endpoint.rs"]
mod endpoint;
#[path = "options/exporters.rs"]
mod exporters;
#[path = "options/full.rs"]
mod full;
#[path = "options/headers.rs"]
mod headers;
#[path = "options/idle.rs"]
mod idle;
#[path = "options/level.rs"]
mod level;
#[path = "options/pace.rs"]
mod pace;
#[expect(dead_code, reason = "options need a peer that answers, not one that fails in every way")]
mod peer;
#[path = "options/real.rs"]
mod real;
#[path = "options/stage.rs"]
mod stage;
#[path = "options/transport.rs"]
mod transport;
#[path = "options/wire.rs"]
mod wire;

use std::{collections::BTreeSet, process::Command};

use collector::Collector;
use stage::{Row, run};

/// Every option that the documents name, by document.
const OPTIONS: &[(&str, &[&str])] = &[
    ("000", EXPORTERS),
    ("001", EXPORTERS),
    (
        "002",
        &[
            "metrics.open-telemetry.transport",
            "metrics.open-telemetry.endpoint",
            "metrics.open-telemetry.interval",
            "metrics.open-telemetry.headers",
        ],
    ),
    (
        "003",
        &[
            "tracer.<id>",
            "tracer.<id>.type",
            "tracer.<id>.transport",
            "tracer.<id>.endpoint",
            "tracer.<id>.headers",
            "tracer.<id>.level",
            "tracer.<id>.enable",
            "tracer.<id>.enable.log-exporter",
            "tracer.<id>.enable.span-exporter",
            "tracer.<id>.throttle",
            "tracer.<id>.lossy",
        ],
    ),
];

/// The first two documents are the same text for two products.
const EXPORTERS: &[&str] = &[
    "telemetry.exporters.<name>",
    "telemetry.exporters.<name>.serviceName",
    "telemetry.exporters.<name>.sampling",
    "telemetry.exporters.<name>.exporter.type",
    "telemetry.exporters.<name>.exporter.collector",
    "telemetry.exporters.<name>.exporter.collector.endpoint",
];

#[test]
fn type_and_transport() {
    run(transport::ROWS, None);
}

#[test]
fn endpoints_of_tracers() {
    run(endpoint::TRACERS, None);
}

#[test]
fn endpoints_of_others() {
    run(endpoint::OTHERS, None);
}

#[test]
fn headers_on_every_transport() {
    run(headers::ROWS, None);
}

#[test]
fn levels() {
    run(level::ROWS, None);
}

#[test]
fn levels_below_a_span_that_nobody_receives() {
    run(level::BELOW_NOBODY, None);
}

#[test]
fn enabled_and_not() {
    run(enable::ROWS, None);
}

#[test]
fn throttle_and_interval() {
    run(pace::ROWS, None);
}

#[test]
fn full_queues() {
    run(full::ROWS, None);
}

#[test]
fn exporters_and_several_at_once() {
    run(exporters::ROWS, None);
}

#[test]
fn an_idle_program_says_nothing_by_itself() {
    run(idle::ROWS, None);
}

#[test]
fn a_real_collector_takes_both_transports() {
    let collector = Collector::start();
    run(real::ROWS, Some(&collector));
    let sorted = |mut names: Vec<String>| {
        names.sort();
        names
    };
    let orders = |service: &str| format!("{service}: orders");
    collector.wait_for("everything in both formats", |written| {
        let count = |service| written.metrics.iter().filter(|it| **it == orders(service)).count();
        written.spans.len() == real::SPANS.len()
            && written.logs.len() == real::LOGS.len()
            && (count("program"), count("shop")) == (4, 2)
    });
    let written = collector.written();
    assert_eq!(sorted(written.spans), real::SPANS);
    assert_eq!(sorted(written.logs), real::LOGS);
}

#[test]
fn lines_on_stdout() {
    run(&[transport::STDOUT], None);
}

#[test]
fn what_goes_to_stdout_can_be_read_there() {
    // Runs this program again with only that test: its output is the output of a tracer.
    let program = std::env::current_exe().expect("this program");
    let output = Command::new(program)
        .args(["--exact", "lines_on_stdout", "--nocapture", "--test-threads=1"])
        .output()
        .expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("text");
    for expected in [" internal \"to stdout\" took=", " INFO \"said to stdout\""] {
        let count = text.lines().filter(|line| line.contains(expected)).count();
        assert_eq!(count, 2, "once for each format:\n{text}");
    }
}

#[test]
fn every_option_of_the_documents_has_a_row() {
    let rows: Vec<&Row> = [
        transport::ROWS,
        &[transport::STDOUT],
        endpoint::TRACERS,
        endpoint::OTHERS,
        headers::ROWS,
        level::ROWS,
        level::BELOW_NOBODY,
        enable::ROWS,
        pace::ROWS,
        full::ROWS,
        exporters::ROWS,
        idle::ROWS,
        real::ROWS,
    ]
    .into_iter()
    .flatten()
    .collect();
    let named: BTreeSet<String> = rows
        .iter()
        .flat_map(|row| {
            let (documents, option) = row.option.split_once(": ").expect("`document: option`");
            documents.split(", ").map(move |document| format!("{document}: {option}"))
        })
        .collect();
    let expected: BTreeSet<String> = OPTIONS
        .iter()
        .flat_map(|(document, options)| {
            options.iter().map(move |option| format!("{document}: {option}"))
        })
        .collect();
    assert_eq!(named, expected);
    let cases: BTreeSet<_> = rows.iter().map(|row| (row.option, row.case)).collect();
    assert_eq!(cases.len(), rows.len(), "no case stands twice");
}
