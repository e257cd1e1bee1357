//! Reports without a verdict: a pipeline that reads only reports must not see less than the exit code shows.

use std::time::Duration;

use anyhow::Result;

use crate::stand::{Answer, Answers, Stand, finished, outcomes, plain, signal};

/// A report of an earlier run.
const OLD: &str = "<testsuites tests=\"1\" failures=\"0\" errors=\"0\"/>";

#[tokio::test]
async fn a_test_that_is_refused_is_an_error_in_every_report() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("t/a.yaml", &plain("right", &answers.url))?;
    stand.write("t/b.yaml", &plain("refused", &format!("{}/${{var:NOPE}}", answers.url)))?;
    let run = ["run", "t", "--otlp", "127.0.0.1:0", "--report", "junit=out.xml"];
    let json = stand.run(&[&run[..], &["--report", "json"]].concat()).await?;
    assert_eq!(json.code, Some(2), "{json:?}");
    let mut verdicts: Vec<_> = outcomes(&json)?
        .iter()
        .map(|it| format!("{} {} {}", it["test"], it["verdict"], it["reasons"]))
        .collect();
    verdicts.sort();
    assert_eq!(verdicts.len(), 2, "{verdicts:?}");
    assert!(
        verdicts[0].starts_with(r#""refused" "inconclusive""#) && verdicts[0].contains("NOPE"),
        "{verdicts:?}"
    );
    let xml = stand.read("out.xml")?;
    assert!(xml.contains(r#"tests="2" failures="0" errors="1""#) && xml.contains("NOPE"), "{xml}");
    let people = stand.run(&[&run[..], &["--report", "plain"]].concat()).await?;
    assert_eq!(people.out.matches("refused").count(), 0, "told as an error: {people:?}");
    assert!(people.out.contains("1 passed") && people.out.contains("1 inconclusive"), "{people:?}");
    Ok(())
}

#[tokio::test]
async fn a_file_of_an_earlier_run_does_not_stay() -> Result<()> {
    let stand = Stand::new()?;
    stand.write("refused.yaml", &plain("refused", "http://127.0.0.1:1/${var:NOPE}"))?;
    stand.write("wrong.yaml", "type: Tset\n")?;
    for (what, counts) in
        [("refused.yaml", r#"tests="1" failures="0" errors="1""#), ("wrong.yaml", r#"tests="0""#)]
    {
        stand.write("out.xml", OLD)?;
        let run = ["run", what, "--otlp", "127.0.0.1:0", "--report", "junit=out.xml"];
        let finished = stand.run(&run).await?;
        assert_eq!((finished.code, finished.out.as_str()), (Some(2), ""), "{finished:?}");
        let xml = stand.read("out.xml")?;
        assert!(xml != OLD && xml.contains(counts), "{what}: {xml}");
    }
    Ok(())
}

#[tokio::test]
async fn ctrl_c_before_the_first_verdict_leaves_no_file_of_an_earlier_run() -> Result<()> {
    let slow = |_: &str, _| Answer { after: Duration::from_secs(60), ..Answer::status(200) };
    let answers = Answers::start(slow).await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
    stand.write("out.xml", OLD)?;
    let run = ["run", "a.yaml", "--otlp", "127.0.0.1:0", "--report", "junit=out.xml"];
    let child = stand.start(&run)?;
    answers.wait_for("/slow").await?;
    signal(&child, "-INT").await?;
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(130), "{finished:?}");
    assert!(stand.read("out.xml")?.contains(r#"tests="0""#));
    Ok(())
}
