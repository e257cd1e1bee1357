//! The cost of a trace as columns: CPU time relative to reading the trace, memory, and bytes a span.
//!
//! Each size is measured in its own process. The spans are one chain, as deep as there are spans.

use std::{fs, hint::black_box};

use anyhow::{Context, Result, ensure};
use tokio::process::Command;

use crate::{
    decode::{cpu_ns, request},
    layout::resident,
    table::{Goal, Row},
};

/// The numbers of spans.
const SIZES: [u64; 3] = [10_000, 100_000, 1_000_000];
/// Spans of one export.
const BATCH: u64 = 100;
/// The upper bound of the bytes of a span.
const BYTES_MAX: f64 = 45.0;

/// Measures all sizes.
pub async fn measure() -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for spans in SIZES {
        let [read_ns, columns_ns, bytes, peak] = alone(spans).await?;
        let mut row = |name: &str, value: f64, unit, goal| {
            rows.push(Row { name: format!("{spans} spans: {name}"), value, unit, goal });
        };
        row("read from OTLP, CPU", read_ns, "ns/span", None);
        row("columns, CPU", columns_ns, "ns/span", None);
        row("columns over reading, CPU", columns_ns / read_ns, "ratio", None);
        row("columns, peak beside the trace", peak, "bytes/span", None);
        row("columns", bytes, "bytes/span", Some(Goal::AtMost(BYTES_MAX)));
    }
    Ok(rows)
}

/// Reads a trace with this number of spans and makes its columns. Returns, for each span, the CPU time of both in nanoseconds, the
/// bytes of the columns, and the bytes by which the process grew at most while it made them.
pub fn make(spans: &str) -> Result<String> {
    let spans: u64 = spans.parse()?;
    let mut message = Vec::new();
    for start in (0..spans).step_by(BATCH as usize) {
        // Messages with repeated fields only are joined by joining their bytes.
        message.extend(request(start, (start + BATCH).min(spans)));
    }
    let began = cpu_ns()?;
    let traces = otlp::read(&message)?;
    let read_ns = cpu_ns()? - began;
    let trace = traces.first().context("a trace")?;
    ensure!(trace.len() as u64 == spans, "every span is in the trace");
    // From here on, the peak is that of the columns.
    fs::write("/proc/self/clear_refs", "5")?;
    let (began, resident_before) = (cpu_ns()?, resident()?);
    let columns = otlp::columns(trace)?;
    let columns_ns = cpu_ns()? - began;
    let peak = peak()? - resident_before;
    let bytes = black_box(columns).len();
    let figures = [read_ns, columns_ns, bytes as f64, peak].map(|all| all / spans as f64);
    Ok(figures.map(|figure| figure.to_string()).join(" "))
}

async fn alone(spans: u64) -> Result<[f64; 4]> {
    let mut command = Command::new(std::env::current_exe()?);
    let output = command.args(["columns:make", &spans.to_string()]).output().await?;
    ensure!(output.status.success(), "`columns:make {spans}` failed");
    let figures = String::from_utf8(output.stdout)?;
    let figures = figures.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>()?;
    <[f64; 4]>::try_from(figures).ok().context("four figures")
}

/// Returns the largest resident size since it was reset.
fn peak() -> Result<f64> {
    let status = fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).context("a peak")?;
    let kibibytes: f64 = line.split_whitespace().nth(1).context("a number")?.parse()?;
    Ok(kibibytes * 1024.0)
}
