//! The figures of `docs/scale.md`: unit costs of one run of the bench, and what they come to at a given load.

use std::{fmt::Write as _, fs, path::Path, thread::available_parallelism};

use anyhow::{Context, Result};

use super::{
    shop::RUN_SPANS,
    units::{ForeignCost, OWN_SIZES, SIZES, UnitCosts},
};

/// The page, from the root of the repository.
pub(super) const FILE: &str = "docs/scale.md";
/// What the figures stand between.
const BEGIN: &str =
    "<!-- begin of the figures: cargo xtask bench replicas --only units --page -->\n";
const END: &str = "<!-- end of the figures -->\n";

/// The load that the page is about.
const SPANS_A_SECOND: f64 = 1e6;
const RUNS_A_SECOND: f64 = 10_000.0 / 60.0;
/// The spans of a run's trace, and those of an export of them, in the estimate.
const TRACE_SPANS: f64 = 100.0;
const EXPORT_SPANS: f64 = 10.0;

/// Replaces the figures in a page.
pub(super) fn write(page: &Path, costs: &UnitCosts) -> Result<()> {
    let text = fs::read_to_string(page).with_context(|| format!("reading {}", page.display()))?;
    let (before, rest) = text.split_once(BEGIN).context("the page has a begin of the figures")?;
    let (_, after) = rest.split_once(END).context("the page has an end of the figures")?;
    Ok(fs::write(page, format!("{before}{BEGIN}{}{END}{after}", figures(costs)))?)
}

/// Returns all figures as Markdown.
pub(super) fn figures(costs: &UnitCosts) -> String {
    let build = if cfg!(debug_assertions) { "an unoptimised build" } else { "the release build" };
    let processors = available_parallelism().map_or(0, usize::from);
    let mut text = format!(
        "All figures of this section are from one run of the bench, with {build}, on {processors} processors that the servers, Postgres, \
         NATS and the senders shared.\n"
    );
    text.push_str(&foreign(&costs.foreign));
    text.push_str(&own(costs));
    text.push_str(&multiplied(&costs.foreign));
    text.push_str(&runs(costs));
    text
}

/// The cost of a foreign request by its size.
fn foreign(costs: &[ForeignCost]) -> String {
    let mut text =
        "\n**A request of foreign spans**, µs of CPU of the server that receives it:\n\n"
            .to_owned();
    let mut head: Vec<String> = vec!["arrives by".to_owned()];
    head.extend(SIZES.map(|size| format!("{size} span{}", if size == 1 { "" } else { "s" })));
    head.extend(
        ["a request (a), µs", "a span (b), ns", "bytes of a span, of 100"].map(str::to_owned),
    );
    table(&mut text, &head);
    for ForeignCost { name, requests, bytes, line } in costs {
        let mut cells = vec![(*name).to_owned()];
        cells.extend(requests.iter().map(|cost| number(cost / 1e3)));
        cells.extend([line.request / 1e3, line.span, bytes[2] / SIZES[2] as f64].map(number));
        line_of(&mut text, &cells);
    }
    text
}

/// The cost of a request of a run's spans, and that of a run.
fn own(costs: &UnitCosts) -> String {
    let mut text =
        "\n**A request of spans of a run**, over NATS by gRPC, µs of CPU:\n\n".to_owned();
    let mut head: Vec<String> = vec!["paid by".to_owned()];
    head.extend(OWN_SIZES.map(|size| format!("{size} span{}", if size == 1 { "" } else { "s" })));
    head.extend(["a request (a), µs", "a span (b), ns"].map(str::to_owned));
    table(&mut text, &head);
    for cost in &costs.own {
        let mut cells = vec![cost.name.to_owned()];
        cells.extend(cost.requests.iter().map(|cost| number(cost / 1e3)));
        cells.extend([cost.line.request / 1e3, cost.line.span].map(number));
        line_of(&mut text, &cells);
    }
    let run = costs.run;
    let _written = write!(
        text,
        "\n**A run** of {RUN_SPANS} spans on average, of which absence decides half, took {} ms of CPU of the servers ({} of API and ingest, \
         {} of the worker), {} ms of Postgres and {} ms of NATS.\n",
        number(run.front + run.workers),
        number(run.front),
        number(run.workers),
        number(run.postgres),
        number(run.nats),
    );
    text
}

/// What foreign spans come to.
fn multiplied(costs: &[ForeignCost]) -> String {
    let mut text = "\n**1,000,000 foreign spans a second**, in processors of all servers with `ingest` together:\n\n".to_owned();
    let mut head = vec!["spans of an export".to_owned(), "requests/s".to_owned()];
    head.extend(costs.iter().map(|cost| cost.name.to_owned()));
    head.extend(["Gbit/s", "Gbit/s, gzip"].map(str::to_owned));
    table(&mut text, &head);
    for (at, size) in SIZES.into_iter().enumerate() {
        let requests = SPANS_A_SECOND / size as f64;
        let mut cells = vec![size.to_string(), number(requests)];
        cells.extend(costs.iter().map(|cost| number(requests * cost.line.at(size as f64) / 1e9)));
        let bits = |name: &str| {
            let found = costs.iter().find(|cost| cost.name == name);
            found.map_or(f64::NAN, |cost| requests * cost.bytes[at] * 8.0 / 1e9)
        };
        cells.extend([bits("gRPC"), bits("gRPC, gzip")].map(number));
        line_of(&mut text, &cells);
    }
    text
}

/// What runs come to.
fn runs(costs: &UnitCosts) -> String {
    let mut text = format!(
        "\n**10,000 runs a minute**, in processors: the runs of the bench, and the spans of traces of {TRACE_SPANS} spans in exports of \
         {EXPORT_SPANS}:\n\n"
    );
    let head = ["part", "runs", "their spans", "together"].map(str::to_owned);
    table(&mut text, &head);
    let run = costs.run;
    let parts = [
        ("servers that receive", run.front, Some(0)),
        ("servers that judge", run.workers, Some(1)),
        ("Postgres", run.postgres, None),
        ("NATS", run.nats, Some(2)),
    ];
    for (name, run_ms, own) in parts {
        let runs = RUNS_A_SECOND * run_ms / 1e3;
        let requests = RUNS_A_SECOND * TRACE_SPANS / EXPORT_SPANS;
        let spans = own.and_then(|at: usize| costs.own.get(at));
        let spans = spans.map_or(0.0, |cost| requests * cost.line.at(EXPORT_SPANS) / 1e9);
        line_of(&mut text, &[name.to_owned(), number(runs), number(spans), number(runs + spans)]);
    }
    text
}

fn table(text: &mut String, head: &[String]) {
    line_of(text, head);
    line_of(text, &vec!["---".to_owned(); head.len()]);
}

fn line_of(text: &mut String, cells: &[String]) {
    let _written = writeln!(text, "| {} |", cells.join(" | "));
}

/// Returns a figure with three digits that count, and commas between thousands.
fn number(figure: f64) -> String {
    if figure.abs() < 999.5 {
        let decimals = match figure.abs() {
            size if size >= 99.95 => 0,
            size if size >= 9.995 => 1,
            _ => 2,
        };
        return format!("{figure:.decimals$}");
    }
    let digits = format!("{:.0}", figure.abs());
    let mut text = if figure < 0.0 { "−".to_owned() } else { String::new() };
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::number;

    #[test]
    fn figures_have_three_digits_and_commas() {
        let cases = [
            (0.126, "0.13"),
            (1.23456, "1.23"),
            (31.4159, "31.4"),
            (314.159, "314"),
            (1234.5, "1,234"),
            (1e6, "1,000,000"),
        ];
        for (figure, text) in cases {
            assert_eq!(number(figure), text);
        }
    }
}
