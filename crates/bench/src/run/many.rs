//! Many services, each with its own exporter, and many concurrent runs: every verdict has to be right.

use std::{env::current_exe, fs, path::Path};

use anyhow::Result;
use model::Verdict;
use tempfile::TempDir;
use tokio::process::Command;

use super::command::{listening, run};
use crate::{
    parts::free_port,
    table::{Goal, Row},
};

/// Measures three and ten services, a thousand runs each, eight at a time.
pub(super) async fn measure(binary: &Path, is_short: bool) -> Result<Vec<Row>> {
    let runs = if is_short { 100 } else { 1_000 };
    let mut rows = Vec::new();
    for services in [3, 10] {
        let wrong = one(binary, services, runs).await?;
        rows.push(Row {
            name: format!("{services} services, {runs} runs, 8 at a time: not right"),
            value: wrong as f64,
            unit: "runs",
            goal: Some(Goal::AtMost(0.0)),
        });
    }
    Ok(rows)
}

/// Returns how many runs did not pass a test that should pass.
async fn one(binary: &Path, services: usize, runs: usize) -> Result<usize> {
    let (http, otlp) = (free_port()?, free_port()?);
    let mut system = Command::new(current_exe()?);
    system.args(["run:system", "services", &services.to_string()]);
    let _system = listening(
        {
            system.args([http.to_string(), otlp.to_string()]);
            system
        },
        http,
    )
    .await?;
    let folder = TempDir::new()?;
    let test = format!(
        "type: Test\nspec:\n  id: chain\n  name: chain\n  trigger:\n    type: http\n    httpRequest:\n      \
         url: http://127.0.0.1:{http}/\n  specs:\n    - selector: span[name=\"serve\"]\n      assertions:\n        - \
         attr:tracetest.selected_spans.count = {services}\n    - selector: span[name=\"call\"]\n      assertions:\n        \
         - attr:tracetest.selected_spans.count = {}\n",
        services - 1
    );
    fs::write(folder.path().join("chain.yaml"), test)?;
    let runs_text = runs.to_string();
    let otlp = format!("127.0.0.1:{otlp}");
    let arguments = ["chain.yaml", "--otlp", &otlp, "--repeat", &runs_text, "--jobs", "8"];
    let ran = run(binary, folder.path(), &arguments).await?;
    let right = ran.outcomes.iter().filter(|outcome| outcome.verdict == Verdict::Passed).count();
    Ok(runs - right)
}
