//! Checks of the suite's traces after the runs: claims that always hold, golden shapes, and whether the suite would notice a
//! wrong trace.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{Context, Result, bail, ensure};
use model::Trace;
use serde_json::Value;

use super::{DogfoodStand, folder, suite::TestResult};
use crate::parts::{CommandResult, qualitytrace};

/// The lower bound of the share of mutants that the suite must notice, in percent.
pub(super) const LEAST: u8 = 90;
/// The variables of the tests; for offline judging their values do not matter.
const NAMES: &[&str] = &["SUBJECT", "RELAY", "PAST", "TOKEN", "VIEWER"];
/// The trace id of a trigger that is never fired.
const NOBODY: &str = "NOBODY=0af7651916cd43dd8448eb211c80319c";

/// The traces of a suite run, in a folder, as `run --traces` writes them.
pub(super) struct Traces {
    /// By test.
    files: Vec<(String, PathBuf)>,
    folder: PathBuf,
}

impl Traces {
    /// Reads the traces that `run --traces` has written.
    pub(super) fn read(folder: &Path) -> Result<Self> {
        let mut files = Vec::new();
        for entry in fs::read_dir(folder).with_context(|| folder.display().to_string())? {
            let file = entry?.path();
            let stem = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let (test, _) = stem.rsplit_once('-').context("a trace is named for its test")?;
            files.push((test.to_owned(), file));
        }
        files.sort();
        Ok(Self { files, folder: folder.to_owned() })
    }

    /// Returns the traces, by test.
    pub(super) fn all(&self) -> Result<Vec<(&str, Trace)>> {
        let mut all = Vec::new();
        for (test, file) in &self.files {
            let read = otlp::read(&fs::read(file)?)?;
            all.extend(read.into_iter().map(|trace| (test.as_str(), trace)));
        }
        Ok(all)
    }

    /// Fetches the traces from the observer.
    pub(super) async fn get(
        stand: &DogfoodStand,
        ran: &[TestResult],
        folder: &Path,
    ) -> Result<Self> {
        fs::create_dir_all(folder)?;
        let mut files = Vec::new();
        for ran in ran {
            let id = ran.outcome["traceId"].as_str().context("a run has a trace")?;
            let path = format!("/api/v1/runs/{}/trace", ran.run);
            let read = stand.observer.request(reqwest::Method::GET, &path).send().await?;
            let file = folder.join(format!("{}-{id}.pb", ran.test));
            fs::write(&file, read.error_for_status()?.bytes().await?)?;
            files.push((ran.test.clone(), file));
        }
        Ok(Self { files, folder: folder.to_owned() })
    }

    /// Judges every trace by the claims that always hold, and returns the failures.
    pub(super) async fn always(&self, binary: &Path) -> Result<Vec<String>> {
        let claims = folder().join("always");
        let mut wrong = Vec::new();
        for (test, file) in &self.files {
            let arguments = ["check", text(&claims)?, "--set", NOBODY, "--trace", text(file)?];
            let judged = qualitytrace(binary, &arguments).await?;
            wrong.extend(unlike(test, &judged)?);
        }
        Ok(wrong)
    }

    /// Compares the golden shapes with the traces of their tests, and returns their number and the differences.
    pub(super) async fn shapes(&self, binary: &Path) -> Result<(usize, Vec<String>)> {
        let (mut count, mut wrong) = (0, Vec::new());
        for entry in fs::read_dir(folder().join("golden"))? {
            let shape = entry?.path();
            let test = shape.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
            let Some((_, file)) = self.files.iter().find(|(ran, _)| ran == test) else {
                wrong.push(format!("`{}` is the shape of no test", shape.display()));
                continue;
            };
            let compared =
                qualitytrace(binary, &["shape", "diff", text(&shape)?, text(file)?]).await?;
            count += 1;
            wrong.extend(unlike(test, &compared)?);
        }
        Ok((count, wrong))
    }

    /// Mutates all traces, and returns the share of mutants that the suite notices, in percent. The others have to be in the list
    /// of survivors, with a reason.
    pub(super) async fn mutants(&self, binary: &Path) -> Result<f64> {
        let (tests, always) = (folder().join("tests"), folder().join("always"));
        let survivors = folder().join("survivors.yaml");
        let least = LEAST.to_string();
        let set: Vec<_> = NAMES.iter().map(|name| format!("{name}=http://nobody.test")).collect();
        let mut arguments = vec!["mutate", text(&tests)?, text(&always)?, "--format", "json"];
        arguments.extend(["--trace", text(&self.folder)?, "--min-score", &least]);
        arguments.extend(["--survivors", text(&survivors)?, "--set", NOBODY]);
        arguments.extend(set.iter().flat_map(|set| ["--set", set]));
        let mutated = qualitytrace(binary, &arguments).await?;
        ensure!(mutated.code == Some(0), "mutants live: {}\n{}", mutated.err, mutated.out);
        let told: Value = serde_json::from_str(&mutated.out)?;
        let number = |key: &str| told[key].as_f64().with_context(|| format!("`{key}` is told"));
        Ok(number("killed")? / number("total")? * 100.0)
    }
}

/// Returns the output of a command that should have found nothing and found something. An inconclusive command is an error.
fn unlike(test: &str, finished: &CommandResult) -> Result<Option<String>> {
    let CommandResult { code, out, err } = finished;
    match code {
        Some(0) => Ok(None),
        Some(1) => Ok(Some(format!("{test}:\n{out}{err}"))),
        _ => bail!("{test}: it cannot be told: {code:?}\n{out}{err}"),
    }
}

fn text(path: &Path) -> Result<&str> {
    path.to_str().context("a path that is text")
}
