//! The time to open a report's page: ten thousand spans in a real browser.
//!
//! The page itself records when its layout was complete, counted from the request; Chromium runs headless and returns the
//! resulting document.

use std::{fs, path::Path};

use anyhow::{Context, Result, ensure};
use lang::{Evidence, Seed, Vars};
use model::{Outcome, Settlement, Step, StepTime, Timestamp};
use report::{FOR_BROWSER, ReportInput, Waterfall};
use source::{Colour, Text};
use tokio::process::Command;

use crate::{
    lang::{TEST, traffic},
    table::{Goal, Row, median},
};

/// Spans of the rendered trace.
pub const SPANS: usize = 10_000;
/// The upper bound of the time until the page is rendered, in milliseconds.
pub const OPEN_MS_MAX: f64 = 1_000.0;
const ROUNDS: usize = 7;

/// The result of a page in the browser.
#[derive(Clone, Copy, Debug)]
pub struct PageLoad {
    /// The time from the request until the layout was complete.
    pub drawn_ms: f64,
    /// The rendered rows of waterfalls: those in view.
    pub rows: usize,
}

/// Opens the page several times; with an argument, writes a screenshot to that file.
pub async fn measure(rest: &[String]) -> Result<Vec<Row>> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("report.html");
    let page = page(SPANS)?;
    fs::write(&file, &page)?;
    let mut drawn = Vec::new();
    let mut rows = 0;
    for _ in 0..ROUNDS {
        let opened = open(&file).await?;
        drawn.push(opened.drawn_ms);
        rows = opened.rows;
    }
    if let [picture] = rest {
        let picture = format!("--screenshot={picture}");
        chromium(&file, &["--window-size=1280,1400", &picture]).await?;
    }
    let row = |name: &str, value, unit, goal| Row { name: name.to_owned(), value, unit, goal };
    Ok(vec![
        row("spans of the trace", SPANS as f64, "spans", None),
        row("size of the page", page.len() as f64 / 1e6, "MB", None),
        row("rows drawn", rows as f64, "rows", None),
        row("opened", median(drawn), "ms", Some(Goal::AtMost(OPEN_MS_MAX))),
    ])
}

/// Renders the page of a test that fails on a trace of this many spans.
pub fn page(spans: usize) -> Result<String> {
    let trace = traffic::trace(spans)?;
    let (planned, _) = lang::plans(&Text::new("checkout.yaml", TEST));
    let plan = &planned.first().context("the test compiles")?.plan;
    let seed = Seed { now: Timestamp::from_nanos(0), random: [1; 32] };
    let resolved = lang::resolve(plan, &Vars::default(), &seed)?;
    let settlement = Settlement { spans: trace.len() as u64, ..Settlement::default() };
    let evidence = Evidence {
        trace: Some(&trace),
        trigger: None,
        answer: None,
        settlement: Some(&settlement),
    };
    let judgement = lang::judge(&resolved, &evidence);
    let moment = Timestamp::from_nanos(0);
    let outcome = Outcome {
        run_id: None,
        test: plan.name.clone(),
        verdict: judgement.verdict,
        provisional: false,
        superseded: None,
        reasons: Vec::new(),
        diagnoses: Vec::new(),
        trace_id: Some(trace.id()),
        request: None,
        answer: None,
        settlement: Some(settlement),
        overtaken: None,
        earlier: Vec::new(),
        judgement,
        analysis: None,
        steps: vec![StepTime { step: Step::Judge, began: moment, ended: moment }],
    };
    let waterfall = Waterfall::of(&trace, &outcome, &|text| text.into());
    let (outcomes, waterfalls) = (&[outcome], &[Some(waterfall)]);
    Ok(report::render(FOR_BROWSER, &ReportInput { outcomes, waterfalls, colour: Colour::Never }))
}

/// Opens a page, and parses the resulting document.
pub async fn open(file: &Path) -> Result<PageLoad> {
    let made = chromium(file, &["--dump-dom"]).await?;
    let drawn = made.split_once("data-drawn-ms=\"").and_then(|(_, rest)| rest.split_once('"'));
    let (drawn, _) = drawn.with_context(|| format!("the page was not drawn: {made:.300}"))?;
    Ok(PageLoad { drawn_ms: drawn.parse()?, rows: made.matches("class=\"row").count() })
}

/// Opens a page in a window of this size, lets its scripts run, and returns the document.
pub async fn document(file: &Path, (width, height): (u32, u32)) -> Result<String> {
    let size = format!("--window-size={width},{height}");
    chromium(file, &[&size, "--virtual-time-budget=5000", "--dump-dom"]).await
}

async fn chromium(file: &Path, arguments: &[&str]) -> Result<String> {
    let profile = tempfile::tempdir()?;
    let output = Command::new("chromium")
        // Root has no sandbox, and CI often runs as root; the page is our own.
        .args(["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .args(arguments)
        .arg(format!("file://{}", file.display()))
        .kill_on_drop(true)
        .output()
        .await
        .context("`chromium` cannot be started; `cargo xtask bench page` installs it")?;
    ensure!(output.status.success(), "chromium: {}", String::from_utf8_lossy(&output.stderr));
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}
