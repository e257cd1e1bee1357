//! The time from the last span to the verdict, over many runs against the demo.

use std::{fs, path::Path, time::Duration};

use anyhow::{Context, Result, ensure};
use model::{Outcome, Verdict};
use tempfile::TempDir;
use tokio::{
    net::TcpStream,
    process::{Child, Command},
    task::JoinSet,
    time::{Instant, sleep},
};

use super::command::{CommandRun, last_span_to_verdict, listening, memory, run};
use crate::{
    parts::free_port,
    table::{Goal, Row, median},
};

/// The upper bounds of the verdict's time beyond the quiet period, in milliseconds: the median, and the 99th percentile.
pub(super) const MEDIAN_MS_MAX: f64 = 30.0;
const WORST_MS_MAX: f64 = 100.0;
/// How long the demo buffers spans before it exports them, in milliseconds.
const DEMO_DELAY_MS: f64 = 5.0;
/// Tests of the suite, and the concurrency.
pub(super) const SUITE: usize = 100;
pub(super) const JOBS: usize = 8;
/// The upper bounds for an idle receiver.
const IDLE_MB_MAX: f64 = 15.0;
const LISTEN_MS_MAX: f64 = 30.0;
const ROUNDS: usize = 9;

const ORDER: &str = r#"{"customer":"ada","lines":[{"sku":"tea","quantity":2}]}"#;

/// A shop, and the folder of its tests.
pub(super) struct ShopFixture<'a> {
    binary: &'a Path,
    _child: Child,
    pub(super) folder: TempDir,
    http: u16,
    otlp: String,
}

impl<'a> ShopFixture<'a> {
    pub(super) async fn open(binary: &'a Path) -> Result<Self> {
        let (http, otlp) = (free_port()?, free_port()?);
        let otlp = format!("127.0.0.1:{otlp}");
        let mut command = Command::new(binary);
        command.args(["demo", "--http", &format!("127.0.0.1:{http}"), "--otlp", &otlp]);
        let child = listening(command, http).await?;
        Ok(Self { binary, _child: child, folder: TempDir::new()?, http, otlp })
    }

    /// Writes a test that sends an order, under this name, with these specs.
    pub(super) fn test(&self, name: &str, specs: &str) -> Result<String> {
        let file = format!("{name}.yaml");
        let text = format!(
            "type: Test\nspec:\n  id: {name}\n  name: {name}\n  trigger:\n    type: http\n    httpRequest:\n      \
             method: POST\n      url: http://127.0.0.1:{}/orders\n      headers:\n        - key: content-type\n          \
             value: application/json\n      body: '{ORDER}'\n  specs:\n{specs}",
            self.http
        );
        fs::write(self.folder.path().join(&file), text)?;
        Ok(file)
    }

    pub(super) async fn run(&self, arguments: &[&str]) -> Result<CommandRun> {
        let arguments = [&["--otlp", &self.otlp], arguments].concat();
        let ran = run(self.binary, self.folder.path(), &arguments).await?;
        ensure!(ran.code == Some(0), "ended with {:?}: {}", ran.code, ran.err);
        Ok(ran)
    }
}

/// No span failed: absence decides.
pub(super) const ABSENCE: &str = "    - selector: span[status=\"error\"]\n      assertions:\n        - attr:tracetest.selected_spans.count = 0\n";
/// The order was shipped: presence decides.
const PRESENCE: &str = "    - selector: span[service=\"shipping\"]\n      assertions:\n        - attr:tracetest.selected_spans.count >= 1\n";

/// Measures five hundred runs of each kind, with a learned profile.
pub(super) async fn measure(binary: &Path, is_short: bool) -> Result<Vec<Row>> {
    let runs = if is_short { 50 } else { 500 };
    let shop = ShopFixture::open(binary).await?;
    let mut rows = Vec::new();
    for (name, specs) in [("absence", ABSENCE), ("presence", PRESENCE)] {
        let file = shop.test(name, specs)?;
        // The first runs have no learned profile of the shop.
        shop.run(&[&file, "--repeat", "10"]).await?;
        let ran = shop.run(&[&file, "--repeat", &runs.to_string(), "--jobs", "1"]).await?;
        ensure!(ran.outcomes.len() == runs, "{} of {runs} runs", ran.outcomes.len());
        rows.extend(figures(name, &ran, name == "absence")?);
        rows.push(row(&format!("{name}: the whole command, a run"), ms(ran.took) / runs as f64));
    }
    let file = shop.test("alone", ABSENCE)?;
    let mut alone = Vec::new();
    for _ in 0..ROUNDS {
        alone.push(ms(shop.run(&[&file]).await?.took));
    }
    rows.push(row("one test: the whole command", median(alone)));
    Ok(rows)
}

fn figures(name: &str, ran: &CommandRun, waits: bool) -> Result<Vec<Row>> {
    let all_passed = ran.outcomes.iter().all(|outcome| outcome.verdict == Verdict::Passed);
    ensure!(all_passed, "{name}: every run passes");
    let times = ran.outcomes.iter().map(last_span_to_verdict).collect::<Result<Vec<_>>>()?;
    // A test that presence decides does not wait.
    let beyond = times.iter().map(|(took, quiet)| if waits { took - quiet } else { *took });
    let mut beyond: Vec<f64> = beyond.collect();
    beyond.sort_by(f64::total_cmp);
    let worst = beyond[beyond.len() * 99 / 100];
    let quiet: Vec<f64> = times.iter().map(|(_, quiet)| *quiet).collect();
    let overtaken = ran.outcomes.iter().filter(|outcome| outcome.overtaken.is_some()).count();
    let goal = |most| Some(Goal::AtMost(most));
    let words = if waits { "last span to verdict beyond H" } else { "last span to verdict" };
    let mut rows = vec![
        Row { name: format!("{name}: runs"), value: times.len() as f64, unit: "runs", goal: None },
        row(&format!("{name}: H, median"), median(quiet)),
    ];
    if waits {
        let took = times.iter().map(|(took, _)| *took).collect();
        rows.push(row(&format!("{name}: last span to verdict, median"), median(took)));
    }
    rows.extend([
        Row {
            goal: goal(MEDIAN_MS_MAX),
            ..row(&format!("{name}: {words}, median"), median(beyond))
        },
        Row { goal: goal(WORST_MS_MAX), ..row(&format!("{name}: {words}, 99th of 100"), worst) },
        Row {
            name: format!("{name}: overtaken"),
            value: overtaken as f64,
            unit: "runs",
            goal: None,
        },
    ]);
    Ok(rows)
}

/// Measures a hundred tests, eight at a time, and the bare requests for comparison.
pub(super) async fn suite(binary: &Path) -> Result<Vec<Row>> {
    let shop = ShopFixture::open(binary).await?;
    let tests = shop.folder.path().join("tests");
    fs::create_dir(&tests)?;
    for number in 0..SUITE {
        let file = shop.test(&format!("test-{number}"), ABSENCE)?;
        fs::rename(shop.folder.path().join(&file), tests.join(&file))?;
    }
    let jobs = JOBS.to_string();
    shop.run(&["tests", "--jobs", &jobs]).await?;
    let (mut bare, mut ours, mut over) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..5 {
        let asked = requests(shop.http).await?;
        let ran = shop.run(&["tests", "--jobs", &jobs]).await?;
        ensure!(ran.outcomes.len() == SUITE, "{} of {SUITE} tests", ran.outcomes.len());
        let quiet = ran.outcomes.iter().map(quiet_ms).collect::<Result<Vec<_>>>()?;
        let allowed = ms(asked) + 13.0 * (DEMO_DELAY_MS + median(quiet) + MEDIAN_MS_MAX);
        bare.push(ms(asked));
        over.push(ms(ran.took) / allowed);
        ours.push(ms(ran.took));
    }
    let goal = Some(Goal::AtMost(1.0));
    let name = "suite: of the bare requests + 13 x (D + H + 30 ms)".to_owned();
    Ok(vec![
        row("suite: 100 bare requests, 8 at a time", median(bare)),
        row("suite: 100 tests, 8 at a time, the whole command", median(ours)),
        Row { name, value: median(over), unit: "ratio", goal },
    ])
}

fn quiet_ms(outcome: &Outcome) -> Result<f64> {
    last_span_to_verdict(outcome).map(|(_, quiet)| quiet)
}

/// Sends only the requests of the suite.
async fn requests(port: u16) -> Result<Duration> {
    let began = Instant::now();
    let mut asking = JoinSet::new();
    for worker in 0..JOBS {
        let share = (SUITE + JOBS - 1 - worker) / JOBS;
        asking.spawn(async move {
            for _ in 0..share {
                super::system::post(port, "/orders", "application/json", ORDER.as_bytes()).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(ended) = asking.join_next().await {
        ended??;
    }
    Ok(began.elapsed())
}

/// Measures a receiver that waits for its first span: how soon it listens, and its memory.
pub(super) async fn idle(binary: &Path) -> Result<Vec<Row>> {
    let folder = TempDir::new()?;
    let silent = super::system::Silent::listen().await?;
    let test = format!(
        "type: Test\nspec:\n  id: idle\n  name: idle\n  trigger:\n    type: http\n    httpRequest:\n      url: {}\n",
        silent.url
    );
    fs::write(folder.path().join("idle.yaml"), test)?;
    let (mut listens, mut takes) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let port = free_port()?;
        let began = Instant::now();
        let mut command = Command::new(binary);
        command.args(["run", "idle.yaml", "--otlp", &format!("127.0.0.1:{port}")]);
        command.current_dir(folder.path());
        let mut child = Box::pin(listening(command, port)).await?;
        while TcpStream::connect(("127.0.0.1", port)).await.is_err() {}
        listens.push(ms(began.elapsed()));
        sleep(Duration::from_millis(200)).await;
        let status = format!("/proc/{}/status", child.id().context("it runs")?);
        takes.push(memory(&status, "VmRSS:") as f64 / 1e6);
        child.kill().await?;
    }
    Ok(vec![
        Row {
            goal: Some(Goal::AtMost(LISTEN_MS_MAX)),
            ..row("start to listening", median(listens))
        },
        Row {
            name: "memory of an idle receiver".to_owned(),
            value: median(takes),
            unit: "MB",
            goal: Some(Goal::AtMost(IDLE_MB_MAX)),
        },
    ])
}

pub(super) fn ms(duration: Duration) -> f64 {
    duration.as_secs_f64() * 1e3
}

pub(super) fn row(name: &str, value: f64) -> Row {
    Row { name: name.to_owned(), value, unit: "ms", goal: None }
}
