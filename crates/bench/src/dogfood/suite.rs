//! The tests of `tests/dogfood`, run by the observer.

use std::{collections::BTreeMap, time::Duration};

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{DogfoodStand, files};
use crate::parts::Api;

/// Concurrent tests.
const AT_ONCE: usize = 4;
/// The timeout of one test, its waiting time included.
const RUN_MAX: Duration = Duration::from_secs(90);

/// The result of one test.
#[derive(Clone, Debug)]
pub(super) struct TestResult {
    /// Its id.
    pub(super) test: String,
    /// `passed`, `failed` or `inconclusive`.
    pub(super) verdict: String,
    /// The id of the run on the observer.
    pub(super) run: String,
    /// Its complete outcome.
    pub(super) outcome: Value,
}

/// Applies all tests on the observer, and returns their ids.
pub(super) async fn apply(stand: &DogfoodStand) -> Result<Vec<String>> {
    let mut tests = Vec::new();
    for (name, text) in files("tests")? {
        let applied = stand.observer.apply(&text).await.with_context(|| name.clone())?;
        let documents = applied["documents"].as_array().into_iter().flatten();
        tests.extend(documents.filter_map(|one| one["id"].as_str().map(str::to_owned)));
    }
    Ok(tests)
}

/// Runs these tests, a few at a time, and returns the result of each, in their order.
pub(super) async fn run(
    stand: &DogfoodStand,
    tests: &[String],
    revision: &str,
) -> Result<Vec<TestResult>> {
    let mut waiting = tests.iter().cloned().enumerate();
    let mut running = JoinSet::new();
    let mut ran = BTreeMap::new();
    loop {
        while running.len() < AT_ONCE
            && let Some((at, test)) = waiting.next()
        {
            let (api, revision) = (stand.observer.clone(), revision.to_owned());
            running.spawn(async move { one(&api, test, &revision).await.map(|ran| (at, ran)) });
        }
        let Some(ended) = running.join_next().await else { break };
        let (at, one) = ended??;
        ran.insert(at, one);
    }
    Ok(ran.into_values().collect())
}

async fn one(api: &Api, test: String, revision: &str) -> Result<TestResult> {
    let body = json!({"variableSets": ["subject"], "revision": revision});
    let run = api.start(&test, &body).await?;
    let ended = api.ended(&run, RUN_MAX).await?;
    let Some(verdict) = ended["verdict"].as_str() else {
        bail!("the run of `{test}` has no verdict after {} s", RUN_MAX.as_secs());
    };
    Ok(TestResult { test, verdict: verdict.to_owned(), run, outcome: ended["outcome"].clone() })
}

/// Renders the failures of a run.
pub(super) fn complaint(ran: &TestResult) -> String {
    let claims = ran.outcome["judgement"]["claims"].as_array().into_iter().flatten();
    let broken = claims.filter(|claim| claim["verdict"] != "passed").map(|claim| {
        let found = claim["spans"].as_array().into_iter().flatten().map(|span| &span["found"]);
        let found: Vec<_> = found.filter_map(Value::as_str).collect();
        format!("  {}\n    {}\n", claim["claim"].as_str().unwrap_or_default(), found.join("\n    "))
    });
    format!(
        "{}: {} {}\n{}",
        ran.test,
        ran.verdict,
        ran.outcome["reasons"],
        broken.collect::<String>()
    )
}
