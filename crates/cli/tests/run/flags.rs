//! Each flag that selects tests, or sets their concurrency, repetition and timeout.

use std::{
    collections::BTreeMap,
    fs::{self, File},
    path::Path,
    time::Duration,
};

use anyhow::{Context, Result, ensure};
use tokio::{
    process::Child,
    time::{Instant, sleep},
};

use crate::stand::{Answer, Answers, Stand, WAIT_MAX, finished, names, outcomes, plain, traced};

const JSON: [&str; 4] = ["--report", "json", "--otlp", "127.0.0.1:0"];

/// Returns `run`, these arguments, and those for a JSON report.
fn typed<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    [&["run"], arguments, &JSON].concat()
}

/// Returns a folder with `count` tests, which request `/1`, `/2` and so on.
fn stand_of(count: usize, answers: &Answers) -> Result<Stand> {
    let stand = Stand::new()?;
    for number in 1..=count {
        let test = plain(&format!("test {number}"), &format!("{}/{number}", answers.url));
        stand.write(&format!("tests/{number:02}.yaml"), &test)?;
    }
    Ok(stand)
}

#[tokio::test]
async fn so_many_run_at_a_time() -> Result<()> {
    for (jobs, expected) in [(&["--jobs", "3"][..], 3), (&["--jobs", "1"], 1), (&[], 4)] {
        let slow = |_: &str, _| Answer { after: Duration::from_millis(250), ..Answer::status(200) };
        let answers = Answers::start(slow).await?;
        let stand = stand_of(6, &answers)?;
        let finished = stand.run(&typed(&[&["tests"], jobs].concat())).await?;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        assert_eq!(outcomes(&finished)?.len(), 6);
        assert_eq!(answers.peak(), expected, "{jobs:?}");
    }
    Ok(())
}

#[tokio::test]
async fn each_is_repeated() -> Result<()> {
    let answers =
        Answers::start(|_, count| Answer::status(if count == 2 { 500 } else { 200 })).await?;
    let stand = stand_of(1, &answers)?;
    let finished = stand.run(&typed(&["tests", "--repeat", "3", "--jobs", "1"])).await?;
    assert_eq!(finished.code, Some(1), "one of three failed: {finished:?}");
    let verdicts: Vec<_> = outcomes(&finished)?
        .iter()
        .map(|it| {
            format!(
                "{} {}",
                it["test"].as_str().unwrap_or(""),
                it["verdict"].as_str().unwrap_or("")
            )
        })
        .collect();
    assert_eq!(verdicts, ["test 1 (1/3) passed", "test 1 (2/3) failed", "test 1 (3/3) passed"]);
    Ok(())
}

#[tokio::test]
async fn what_passes_at_a_retry_is_flaky() -> Result<()> {
    for (retries, code, asked, earlier) in
        [("2", 0, 3, r#"["failed","failed"]"#), ("1", 1, 2, r#"["failed"]"#), ("0", 1, 1, "null")]
    {
        let answers =
            Answers::start(|_, count| Answer::status(if count < 3 { 500 } else { 200 })).await?;
        let stand = stand_of(1, &answers)?;
        let finished = stand.run(&typed(&["tests", "--retries", retries])).await?;
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(answers.asked(), BTreeMap::from([("/1".to_owned(), asked)]));
        let outcomes = outcomes(&finished)?;
        assert_eq!(outcomes.len(), 1, "one outcome for all tries");
        assert_eq!(outcomes[0]["earlier"].to_string(), earlier);
        let tries = finished.err.matches("trying again").count();
        assert_eq!(tries, asked - 1, "{}", finished.err);
    }
    Ok(())
}

#[tokio::test]
async fn after_a_failure_nothing_is_started_if_asked() -> Result<()> {
    let answers =
        Answers::start(|path, _| Answer::status(if path == "/2" { 500 } else { 200 })).await?;
    let stand = stand_of(4, &answers)?;
    let finished = stand.run(&typed(&["tests", "--fail-fast", "--jobs", "1"])).await?;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    assert_eq!(names(&finished)?, ["test 1", "test 2"]);
    assert!(finished.err.contains("not run: 2 tests"), "{}", finished.err);
    Ok(())
}

#[tokio::test]
async fn shards_are_a_partition() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = stand_of(7, &answers)?;
    let mut all = Vec::new();
    for part in ["1/3", "2/3", "3/3"] {
        let finished = stand.run(&typed(&["tests", "--shard", part])).await?;
        assert_eq!(finished.code, Some(0), "{finished:?}");
        let names = names(&finished)?;
        assert!((2..=3).contains(&names.len()), "{part}: {names:?}");
        all.extend(names);
    }
    all.sort();
    let expected: Vec<_> = (1..=7).map(|number| format!("test {number}")).collect();
    assert_eq!(all, expected, "each once");
    let empty = stand.run(&typed(&["tests/01.yaml", "--shard", "2/2"])).await?;
    assert_eq!(empty.code, Some(0), "a part may be empty: {empty:?}");
    assert!(empty.err.contains("nothing to run"), "{}", empty.err);
    Ok(())
}

#[tokio::test]
async fn what_failed_is_run_again() -> Result<()> {
    let answers = Answers::start(|path, count| {
        let is_bad = (path == "/2" && count < 3) || (path == "/3" && count < 2);
        Answer::status(if is_bad { 500 } else { 200 })
    })
    .await?;
    let stand = stand_of(3, &answers)?;
    let again = typed(&["./tests", "--last-failed"]);
    let all = ["test 1", "test 2", "test 3"];
    for (arguments, code, expected) in [
        (&again, 1, &all[..]),
        (&again, 1, &all[1..]),
        // One of the failed tests is run here and passes; the others stay stored as failed.
        (&typed(&["tests/01.yaml"]), 0, &all[..1]),
        (&again, 0, &all[1..2]),
        (&again, 0, &all[..]),
    ] {
        let finished = stand.run(arguments).await?;
        assert_eq!(finished.code, Some(code), "{finished:?}");
        assert_eq!(names(&finished)?, expected, "{}", finished.err);
    }
    let other = r#"{"version": 2, "failed": [{"file": "tests/01.yaml", "id": "test-1"}]}"#;
    for (text, why) in [("{broken", "last.json` is not used"), (other, "version is 2, expected 1")]
    {
        stand.write(".qualitytrace/last.json", text)?;
        let finished = stand.run(&again).await?;
        assert_eq!(names(&finished)?, all);
        assert!(finished.err.contains(why), "{}", finished.err);
    }
    Ok(())
}

/// Waits until a process has opened a file with a path that ends like this.
async fn wait_for_open(child: &Child, path: &str) -> Result<()> {
    let open = Path::new("/proc").join(child.id().context("it runs")?.to_string()).join("fd");
    let is_open = || -> Result<bool> {
        let files = fs::read_dir(&open)?.filter_map(|file| fs::read_link(file.ok()?.path()).ok());
        Ok(files.into_iter().any(|file| file.ends_with(path)))
    };
    let began = Instant::now();
    while !is_open()? {
        ensure!(began.elapsed() < WAIT_MAX, "nobody opens `{path}`");
        sleep(Duration::from_millis(5)).await;
    }
    Ok(())
}

#[tokio::test]
async fn what_another_run_keeps_meanwhile_is_not_lost() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(500)).await?;
    let stand = stand_of(2, &answers)?;
    let other = r#"{"version": 1, "failed": [{"file": "tests/02.yaml", "id": "test-2"}]}"#;
    stand.write(".qualitytrace/lock", "")?;
    let lock = File::open(stand.folder.path().join(".qualitytrace/lock"))?;
    lock.lock()?;
    let child = stand.start(&typed(&["tests/01.yaml"]))?;
    answers.wait_for("/1").await?;
    wait_for_open(&child, ".qualitytrace/lock").await?;
    stand.write(".qualitytrace/last.json", other)?;
    drop(lock);
    let finished = finished(child).await?;
    assert_eq!(finished.code, Some(1), "{finished:?}");
    let last = stand.read(".qualitytrace/last.json")?;
    assert!(last.contains("tests/01.yaml") && last.contains("tests/02.yaml"), "{last}");
    Ok(())
}

#[tokio::test]
async fn tests_are_chosen_by_id_name_and_tag() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = stand_of(3, &answers)?;
    let tagged = plain("tagged", &format!("{}/t", answers.url))
        .replace("spec:\n", "spec:\n  tags: [smoke]\n");
    stand.write("tests/tagged.yaml", &tagged)?;
    for (arguments, expected) in [
        (&["tests", "--tag", "smoke"][..], &["tagged"][..]),
        (&["tests", "--test", "test-2"], &["test 2"]),
        (&["tests", "--test", "test 3,tagged"], &["tagged", "test 3"]),
    ] {
        let finished = stand.run(&typed(arguments)).await?;
        assert_eq!(names(&finished)?, expected, "{finished:?}");
    }
    for (arguments, words) in [
        (&["--tag", "nobody"][..], "none has the tag `nobody`; there are `smoke`"),
        (&["--tag", "smok"], "none has the tag `smok`; did you mean `smoke`?"),
        (&["--test", "test-4"], "none has the id or name `test-4`; did you mean `test-"),
        (&["--test", "test-2", "--tag", "smoke"], "is all that `--test` and `--tag` ask for"),
    ] {
        let none = stand.run(&typed(&[&["tests"], arguments].concat())).await?;
        assert_eq!(none.code, Some(2), "{none:?}");
        assert!(none.err.contains(words), "`{words}` is not in {}", none.err);
    }
    Ok(())
}

#[tokio::test]
async fn nothing_is_waited_for_longer_than_the_timeout() -> Result<()> {
    let answers = Answers::start(|path, _| {
        let after = if path == "/slow" { Duration::from_secs(40) } else { Duration::ZERO };
        Answer { after, ..Answer::status(200) }
    })
    .await?;
    let stand = Stand::new()?;
    stand.write("slow.yaml", &plain("slow", &format!("{}/slow", answers.url)))?;
    stand.write("silent.yaml", &traced("silent", &format!("{}/silent", answers.url), ""))?;
    let began = Instant::now();
    let arguments = ["slow.yaml", "silent.yaml", "--timeout", "400ms"];
    let finished = stand.run(&typed(&arguments)).await?;
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert_eq!(finished.code, Some(3), "{finished:?}");
    let outcomes = outcomes(&finished)?;
    assert_eq!(outcomes.len(), 2);
    for outcome in &outcomes {
        let reasons = outcome["reasons"].to_string();
        assert!(reasons.contains("own time was up (`--timeout`)"), "{outcome}");
        assert!(!reasons.contains("settle.timeout") && !reasons.contains("trigger's"), "{outcome}");
    }
    Ok(())
}

#[tokio::test]
async fn variables_come_from_flags_files_and_the_environment() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", &format!("{}/${{var:ONE}}/${{var:TWO}}", answers.url)))?;
    let set = "type: VariableSet\nspec:\n  name: v\n  values: [{key: ONE, value: file}, {key: TWO, value: file}]\n";
    stand.write("vars.yaml", set)?;
    for arguments in [
        &["a.yaml", "--vars", "vars.yaml", "--set", "ONE=flag"][..],
        &["a.yaml", "--set", "ONE=set", "--var", "TWO=var"],
    ] {
        let finished = stand.run(&typed(arguments)).await?;
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    let missing = stand.run(&typed(&["a.yaml", "--set", "ONE=1"])).await?;
    assert_eq!(missing.code, Some(2), "{missing:?}");
    assert!(missing.err.contains("`TWO`"), "{}", missing.err);
    let asked: Vec<_> = answers.asked().into_keys().collect();
    assert_eq!(asked, ["/flag/file", "/set/var"]);
    Ok(())
}

#[tokio::test]
async fn without_paths_the_folder_is_meant_and_quiet_is_quiet() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("qualitytrace/a.yaml", &plain("a", &answers.url))?;
    let finished = stand.run(&typed(&["--quiet"])).await?;
    assert_eq!((finished.code, finished.err.as_str()), (Some(0), ""), "{finished:?}");
    assert_eq!(names(&finished)?, ["a"]);
    let told = stand.run(&typed(&["--verbose"])).await?;
    assert!(
        told.err.contains("a: fired, trace ") && told.err.contains("a: answered 200"),
        "{}",
        told.err
    );
    Ok(())
}

#[tokio::test]
async fn files_of_reports_are_in_the_order_of_the_documents() -> Result<()> {
    let answers = Answers::start(|path, _| {
        let after = if path == "/1" { Duration::from_millis(400) } else { Duration::ZERO };
        Answer { after, ..Answer::status(200) }
    })
    .await?;
    let stand = stand_of(3, &answers)?;
    let finished = stand.run(&typed(&["tests", "--report", "tap=out.tap"])).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let last = outcomes(&finished)?.last().map(|it| it["test"].to_string());
    assert_eq!(last.as_deref(), Some("\"test 1\""), "as they end on stdout");
    let tap = stand.read("out.tap")?;
    let order: Vec<_> = (1..=3).map(|number| tap.find(&format!("test {number}"))).collect();
    assert!(order.is_sorted() && order[0].is_some(), "{tap}");
    Ok(())
}

#[tokio::test]
async fn variables_of_pipelines_are_understood() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = stand_of(2, &answers)?;
    for (name, value, code) in [
        ("QUIET", "1", 0),
        ("QUIET", "yes", 0),
        ("QUIET", "maybe", 2),
        ("FAIL_FAST", "", 0),
        ("TAG", "", 0),
        ("REPEAT", "", 0),
        ("REPEAT", "0", 2),
    ] {
        let variable = [(&format!("QUALITYTRACE_{name}")[..], value)];
        let finished = finished(stand.start_with(&typed(&["tests"]), &variable)?).await?;
        assert_eq!(finished.code, Some(code), "{name}={value}: {finished:?}");
        assert_eq!(finished.err.is_empty(), name == "QUIET" && code == 0, "{finished:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_person_is_told_where_all_reports_go_to_files() -> Result<()> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = stand_of(1, &answers)?;
    let run = ["run", "tests", "--otlp", "127.0.0.1:0", "--report", "html=out.html"];
    let finished = stand.run(&run).await?;
    assert!(finished.out.contains("passed: test 1"), "{finished:?}");
    assert!(stand.read("out.html")?.contains("test 1"));
    Ok(())
}
