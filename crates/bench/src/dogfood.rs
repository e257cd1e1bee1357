//! `cargo xtask dogfood`: Qualitytrace tests Qualitytrace.
//!
//! The server's own telemetry is an interface, and `tests/dogfood` checks it: tests in the product's own language, run by one
//! server against another. Deliberately absent: checks of the API that need no trace; those are in the scenarios.

mod exported;
mod faults;
mod jaeger;
mod offline;
mod stability;
mod stand;
mod suite;

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use model::{Outcome, Verdict};
use report::{FOR_ANNOTATIONS, FOR_SUMMARY, ReportInput};
use serde_json::Value;
use source::Colour;
use tempfile::TempDir;

use crate::{
    parts::Server,
    table::{Goal, Row},
};
use offline::Traces;
use stand::DogfoodStand;

/// The binary with planted faults, beside the one without.
const PLANTED: &str = "qualitytrace-planted";

/// The parsed arguments.
#[derive(Debug, Default)]
struct DogfoodArgs {
    /// Plant the faults with this name prefix.
    faults: Option<String>,
    /// The dump of the observer's database with the history of earlier runs.
    history: Option<PathBuf>,
    /// The folder for all artifacts of a run: reports, traces, trend, exported metrics and logs, logs of the servers.
    keep: Option<PathBuf>,
    /// The revision under test, such as a commit.
    revision: Option<String>,
    /// The file to which a summary is appended: GitHub's step summary, which also needs annotations in the log.
    summary: Option<PathBuf>,
}

/// Runs the suite once, or plants faults that it has to find.
pub async fn run(rest: &[String]) -> Result<Vec<Row>> {
    let binary = Server::binary_beside_this()?;
    let asked = options(rest)?;
    match &asked.faults {
        Some(only) => faults::measure(&binary.with_file_name(PLANTED), only).await,
        None => once(&binary, &asked).await,
    }
}

/// Repeats the suite on a busy machine.
pub async fn prove() -> Result<Vec<Row>> {
    stability::measure(&Server::binary_beside_this()?).await
}

fn options(rest: &[String]) -> Result<DogfoodArgs> {
    let mut asked = DogfoodArgs::default();
    let mut rest = rest.iter();
    while let Some(flag) = rest.next() {
        let value = rest.next().with_context(|| format!("`{flag}` wants a value"))?;
        match flag.as_str() {
            "--faults" => asked.faults = Some(value.clone()),
            "--history" => asked.history = Some(value.into()),
            "--keep" => asked.keep = Some(value.into()),
            "--revision" => asked.revision = Some(value.clone()),
            "--summary" => asked.summary = Some(value.into()),
            _ => bail!(
                "`{flag}` is not known: there are --faults, --history, --keep, --revision, --summary"
            ),
        }
    }
    Ok(asked)
}

/// Runs the suite once, and checks its traces and the telemetry that the subject exported.
async fn once(binary: &Path, asked: &DogfoodArgs) -> Result<Vec<Row>> {
    let temporary = TempDir::new()?;
    let out = asked.keep.as_deref().unwrap_or(temporary.path());
    fs::create_dir_all(out)?;
    // The script finds it from any working directory.
    let out = out.canonicalize()?;
    let database = stand::past(binary, asked.history.as_deref()).await?;
    let revision = asked.revision.as_deref().unwrap_or("unknown");
    let is_passed = stand::suite(binary, &database, &out, revision).await?;
    if let Some(history) = &asked.history {
        database.dump(history).await?;
    }
    database.remove().await?;
    say(&fs::read_to_string(out.join("trend.txt"))?);

    let outcomes = outcomes(&out.join("report.json"))?;
    if let Some(summary) = &asked.summary {
        summarise(summary, &outcomes)?;
    }
    let passed = outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Passed).count();
    let traces = Traces::read(&out.join("traces"))?;
    let mut wrong = traces.always(binary).await?;
    let (shapes, unlike) = traces.shapes(binary).await?;
    wrong.extend(unlike);
    wrong.extend(exported::check(&out.join("telemetry.jsonl"), &traces)?);
    wrong.extend(jaeger::check(&traces).await?);
    wrong.iter().for_each(|wrong| say(wrong));
    let complaints = wrong.len();
    ensure!(
        is_passed && wrong.is_empty(),
        "{passed} of {} tests passed; {complaints} complaints",
        outcomes.len()
    );
    let killed = traces.mutants(binary).await?;
    let row = |name: &str, value, unit, least| {
        let goal = Some(Goal::AtLeast(least));
        Row { name: name.to_owned(), value, unit, goal }
    };
    Ok(vec![
        row("tests passed", passed as f64, "", 25.0),
        row("traces of the shape that is kept", shapes as f64, "", 10.0),
        row("mutants noticed", killed, "%", f64::from(offline::LEAST)),
    ])
}

/// Returns the outcomes of a JSON report.
fn outcomes(file: &Path) -> Result<Vec<Outcome>> {
    let text = fs::read_to_string(file).with_context(|| file.display().to_string())?;
    let read = |line| {
        let mut line: Value = serde_json::from_str(line)?;
        Ok(serde_json::from_value(line["outcome"].take())?)
    };
    text.lines().map(read).collect()
}

#[expect(clippy::print_stderr, reason = "progress of a long command")]
fn say(text: &str) {
    eprintln!("{text}");
}

/// Appends a table of the suite to a file, and prints the annotations that GitHub shows beside the lines of the tests.
fn summarise(file: &Path, outcomes: &[Outcome]) -> Result<()> {
    let mut file = fs::OpenOptions::new().append(true).create(true).open(file)?;
    let input = ReportInput { outcomes, waterfalls: &[], colour: Colour::Never };
    file.write_all(report::render(FOR_SUMMARY, &input).as_bytes())?;
    say(&report::render(FOR_ANNOTATIONS, &input));
    Ok(())
}

/// Returns the folder of the suite.
fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../tests/dogfood")
}

/// Returns the YAML files of a folder of the suite by name, sorted.
fn files(below: &str) -> Result<Vec<(String, String)>> {
    let folder = folder().join(below);
    let entries = fs::read_dir(&folder).with_context(|| folder.display().to_string())?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "yaml"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((name, fs::read_to_string(&path)?))
    };
    paths.into_iter().map(read).collect()
}
