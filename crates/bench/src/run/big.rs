//! A big trace in small requests: judged completely and correctly, in how much time and memory.

use std::{env::current_exe, fs, path::Path};

use anyhow::{Result, ensure};
use model::{Step, Verdict};
use tempfile::TempDir;
use tokio::process::Command;

use super::{
    command::{listening, run},
    latency::row,
};
use crate::{
    parts::free_port,
    table::{Goal, Row},
};

/// The upper bounds for a trace of a hundred thousand spans: from its last request to its verdict, and of memory.
const VERDICT_MS_MAX: f64 = 1_000.0;
const MEMORY_MB_MAX: f64 = 400.0;

/// Measures a hundred thousand spans, and a million.
pub(super) async fn measure(binary: &Path, is_short: bool) -> Result<Vec<Row>> {
    let mut rows = one(binary, 100_000, true).await?;
    if !is_short {
        rows.extend(one(binary, 1_000_000, false).await?);
    }
    Ok(rows)
}

async fn one(binary: &Path, spans: usize, has_goal: bool) -> Result<Vec<Row>> {
    let (http, otlp) = (free_port()?, free_port()?);
    let mut system = Command::new(current_exe()?);
    system.args(["run:system", "big", &spans.to_string(), &http.to_string(), &otlp.to_string()]);
    let _system = listening(system, http).await?;
    let folder = TempDir::new()?;
    // The test counts all spans including the last one, and none may be missing or doubled.
    let test = format!(
        "type: Test\nspec:\n  id: big\n  name: big\n  trigger:\n    type: http\n    timeout: 120s\n    httpRequest:\n      \
         url: http://127.0.0.1:{http}/\n  settle:\n    timeout: 120s\n    flush: 50ms\n  specs:\n    - selector: \
         span[service=\"big\"]\n      assertions:\n        - attr:tracetest.selected_spans.count = {spans}\n        - \
         attr:tenant = \"a\"\n    - selector: span[status=\"error\"]\n      assertions:\n        - \
         attr:tracetest.selected_spans.count = 0\n"
    );
    fs::write(folder.path().join("big.yaml"), test)?;
    let ran =
        run(binary, folder.path(), &["big.yaml", "--otlp", &format!("127.0.0.1:{otlp}")]).await?;
    let outcome = &ran.outcomes[0];
    ensure!(outcome.verdict == Verdict::Passed, "{outcome:?} {}", ran.err);
    // The system responds when its last request is acknowledged.
    let step = |wanted| outcome.steps.iter().rfind(|step| step.step == wanted);
    let (Some(trigger), Some(judge)) = (step(Step::Trigger), step(Step::Judge)) else {
        anyhow::bail!("a run has these steps")
    };
    let took = judge.ended.since(trigger.ended).as_secs_f64() * 1e3;
    let goal = |most| has_goal.then_some(Goal::AtMost(most));
    let memory = ran.peak_bytes as f64 / 1e6;
    Ok(vec![
        Row {
            goal: goal(VERDICT_MS_MAX),
            ..row(&format!("{spans} spans: last request to verdict"), took)
        },
        row(
            &format!("{spans} spans: sending them"),
            trigger.ended.since(trigger.began).as_secs_f64() * 1e3,
        ),
        Row {
            name: format!("{spans} spans: peak memory"),
            value: memory,
            unit: "MB",
            goal: goal(MEMORY_MB_MAX),
        },
    ])
}
