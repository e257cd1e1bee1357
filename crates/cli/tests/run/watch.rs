//! `--watch`: runs again when a file changes, on the same command.

use std::time::Duration;

use anyhow::{Context, Result};
use tokio::{
    io::{AsyncBufReadExt, BufReader, Lines},
    process::ChildStderr,
    time::timeout,
};

use crate::stand::{Answer, Answers, Stand, WAIT_MAX, finished, is_alive, plain, signal};

/// Waits until the run prints that it waits, and returns the lines before.
async fn round(lines: &mut Lines<BufReader<ChildStderr>>) -> Result<String> {
    let mut said = String::new();
    timeout(WAIT_MAX, async {
        loop {
            let line = lines.next_line().await?.context("it ended")?;
            if line.contains("waiting for a file to change") {
                return anyhow::Ok(());
            }
            said.push_str(&line);
            said.push('\n');
        }
    })
    .await
    .with_context(|| said.clone())??;
    Ok(said)
}

#[tokio::test]
async fn a_change_runs_the_tests_again() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("t/a.yaml", &plain("a", &format!("{}/first", answers.url)))?;
    let script = "echo $$ >> leader; echo ready; exec sleep 300";
    let run = ["run", "t", "--watch", "--ready", "log:ready", "--", "sh", "-c", script];
    let mut child = stand.start(&run)?;
    let mut lines = BufReader::new(child.stderr.take().context("a stream")?).lines();
    round(&mut lines).await?;
    stand.write("t/a.yaml", "type: Tset\n")?;
    let said = round(&mut lines).await?;
    assert!(said.contains("Tset"), "a mistake is told, and waited on: {said}");
    stand.write("t/notes.txt", "no document")?;
    stand.write("t/a.yaml", &plain("a", &format!("{}/second", answers.url)))?;
    round(&mut lines).await?;
    stand.write("t/b.yaml", &plain("b", &format!("{}/third", answers.url)))?;
    round(&mut lines).await?;
    // Without a further change no round begins: that nothing happens takes time.
    tokio::time::sleep(Duration::from_millis(300)).await;
    signal(&child, "-INT").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(130), "{finished:?}");
    let asked: Vec<_> = answers.asked().into_iter().collect();
    let expected = [("/first", 1), ("/second", 2), ("/third", 1)];
    assert_eq!(asked, expected.map(|(path, count)| (path.to_owned(), count)));
    let leader = stand.line_of("leader").await?;
    assert_eq!(leader.lines().count(), 1, "one command for all rounds");
    assert!(!is_alive(&leader));
    Ok(())
}
