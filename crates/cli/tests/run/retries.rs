//! `--retries` if a later attempt gets no verdict: the outcome of the last run stays.

use std::{fs, time::Duration};

use anyhow::{Result, ensure};
use tokio::time::{Instant, sleep};

use crate::stand::{Answer, Answers, Stand, WAIT_MAX, finished, outcomes, plain, signal};

#[tokio::test]
async fn a_command_that_ends_before_a_further_try_erases_no_failure() -> Result<()> {
    let stand = Stand::new()?;
    let dies = stand.folder.path().join("dies");
    let answers = Answers::start(move |_, _| {
        fs::write(&dies, "").expect("a file");
        Answer { after: Duration::from_secs(1), ..Answer::status(500) }
    })
    .await?;
    stand.write("a.yaml", &plain("a", &format!("{}/a", answers.url)))?;
    let script = "echo ready; while [ ! -e dies ]; do sleep 0.02; done; exit 9";
    let run = ["run", "a.yaml", "--retries", "1", "--report", "json", "--ready", "log:ready"];
    let finished = stand.run(&[&run[..], &["--", "sh", "-c", script]].concat()).await?;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let outcomes = outcomes(&finished)?;
    assert_eq!(outcomes.len(), 1, "{outcomes:?}");
    assert_eq!(outcomes[0]["verdict"], "failed");
    let reasons = outcomes[0]["reasons"].to_string();
    assert!(reasons.contains("was not tried again") && reasons.contains("status: 9"), "{reasons}");
    Ok(())
}

#[tokio::test]
async fn ctrl_c_during_a_further_try_erases_no_failure() -> Result<()> {
    let answers = Answers::start(|_, count| {
        let after = if count == 1 { Duration::ZERO } else { Duration::from_secs(60) };
        Answer { after, ..Answer::status(500) }
    })
    .await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", &format!("{}/a", answers.url)))?;
    let run = ["run", "a.yaml", "--otlp", "127.0.0.1:0", "--retries", "1", "--report", "json"];
    let child = stand.start(&run)?;
    let began = Instant::now();
    while answers.asked().get("/a") != Some(&2) {
        ensure!(began.elapsed() < WAIT_MAX, "nobody asks again");
        sleep(Duration::from_millis(5)).await;
    }
    signal(&child, "-INT").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let outcomes = outcomes(&finished)?;
    assert_eq!(outcomes.len(), 1, "{finished:?}");
    assert_eq!(outcomes[0]["verdict"], "failed");
    assert!(stand.read(".qualitytrace/last.json")?.contains("\"a.yaml\""));
    Ok(())
}
