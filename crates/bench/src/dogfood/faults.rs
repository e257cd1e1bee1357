//! Proof that the suite can fail: faults are planted into the subject one at a time, each with the test that has to find it.

use std::{collections::BTreeMap, path::Path};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::{
    DogfoodStand,
    offline::Traces,
    say,
    suite::{self, TestResult},
};
use crate::table::{Goal, Row};

/// A fault by its name in `server::plant`, the test that finds it, and the verdict with which it does. `always` means the claims
/// about every trace.
const FAULTS: &[(&str, &str, &str)] = &[
    ("second-trigger", "start-run-verdict", FAILED),
    ("missing-step", "start-run", FAILED),
    ("steps-out-of-order", "start-run", FAILED),
    ("n-plus-one", "list-runs", FAILED),
    ("secret-in-attribute", "always", FAILED),
    ("unknown-attribute", "always", FAILED),
    ("dropped-link", "start-run-link", FAILED),
    ("swallowed-error", "read-lost-set", FAILED),
    ("missing-exception", "always", FAILED),
    // The expected span never arrives: nothing is concluded from that, and the test does not pass.
    ("lost-context", "start-run", "inconclusive"),
    ("refused-is-served", "no-token", FAILED),
    ("rejected-is-asked", "reject-document", FAILED),
    ("key-ignored", "start-run-again", FAILED),
    ("hint-twice", "start-run-hint", FAILED),
    ("path-in-name", "start-run-unknown", FAILED),
    ("audit-forgotten", "reject-document", FAILED),
    ("slow-list", "list-runs", FAILED),
];

const FAILED: &str = "failed";
/// Tests with traces that `always` judges while a fault is planted.
const LOOKED_AT: &[&str] = &["list-runs", "read-lost-set"];
/// Concurrent stands; each waits more than it computes.
const AT_ONCE: usize = 3;

/// Plants every fault with a name that begins with `only`, and returns how many of them their tests found.
pub(super) async fn measure(binary: &Path, only: &str) -> Result<Vec<Row>> {
    let mut chosen = FAULTS.iter().filter(|(fault, ..)| fault.starts_with(only));
    let mut running = JoinSet::new();
    let (mut found, mut missed) = (0, Vec::new());
    loop {
        while running.len() < AT_ONCE
            && let Some((fault, finder, verdict)) = chosen.next()
        {
            let binary = binary.to_owned();
            running.spawn(async move {
                let found = verdicts(&binary, fault, finder).await;
                found.with_context(|| (*fault).to_owned()).map(|it| (fault, finder, verdict, it))
            });
        }
        let Some(ended) = running.join_next().await else { break };
        let (fault, finder, verdict, verdicts) = ended??;
        let came = verdicts.get(*finder).map(String::as_str);
        say(&format!("{fault}: `{finder}` is {}", came.unwrap_or("not run")));
        match came == Some(verdict) {
            true => found += 1,
            false => missed.push(format!("`{fault}` by `{finder}` ({verdict}): {verdicts:?}")),
        }
    }
    ensure!(missed.is_empty(), "not found: {}", missed.join(", "));
    Ok(vec![Row {
        name: "faults that were planted and found".to_owned(),
        value: f64::from(found),
        unit: "",
        goal: Some(Goal::AtLeast(12.0)),
    }])
}

/// Returns the verdicts of the tests that may find this fault.
async fn verdicts(binary: &Path, fault: &str, finder: &str) -> Result<BTreeMap<String, String>> {
    let stand = DogfoodStand::start(binary, Some(fault)).await?;
    let mut tests = suite::apply(&stand).await?;
    tests.retain(|test| test == finder || LOOKED_AT.contains(&test.as_str()));
    let ran = suite::run(&stand, &tests, fault).await?;
    let folder = TempDir::new()?;
    let traces = Traces::get(&stand, &ran, folder.path()).await?;
    let always = traces.always(binary).await?;
    let is_control = |ran: &TestResult| ran.test != finder && ran.verdict == "passed";
    ensure!(ran.iter().any(is_control), "nothing passes, so that nothing is found: {ran:#?}");
    let mut verdicts: BTreeMap<_, _> = ran.into_iter().map(|ran| (ran.test, ran.verdict)).collect();
    let always = if always.is_empty() { "passed" } else { FAILED };
    verdicts.insert("always".to_owned(), always.to_owned());
    stand.end().await?;
    Ok(verdicts)
}
