//! The command under test: starts with its environment, becomes ready, and is stopped with all its children.

use std::{net::TcpStream, time::Duration};

use anyhow::{Context, Result};
use bench::parts::free_port;
use tokio::time::Instant;

use crate::stand::{Answer, Answers, BINARY, Stand, is_alive, outcomes, plain, products};

/// Returns a folder with a test that passes whatever the command does.
async fn easy() -> Result<(Answers, Stand)> {
    let answers = Answers::start(|_, _| Answer::status(200)).await?;
    let stand = Stand::new()?;
    stand.write("a.yaml", &plain("a", &answers.url))?;
    Ok((answers, stand))
}

#[tokio::test]
async fn the_demo_is_started_tested_and_gone() -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let stand = Stand::new()?;
    stand.write("a.yaml", &products("products", &address))?;
    let run = ["run", "a.yaml", "--report", "json", "--", BINARY, "demo", "--http", &address];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(TcpStream::connect(&address).is_err(), "the demo is gone");
    assert!(!finished.err.contains("the last lines"), "output is for failures: {}", finished.err);
    Ok(())
}

#[tokio::test]
async fn traces_are_kept_and_can_be_checked() -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let stand = Stand::new()?;
    stand.write("a.yaml", &products("products", &address))?;
    let demo = ["--", BINARY, "demo", "--http", &address];
    let run = ["run", "a.yaml", "--traces", "kept/here", "--report", "json"];
    let finished = stand.run(&[&run[..], &demo].concat()).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let trace = outcomes(&finished)?[0]["traceId"].as_str().context("a trace id")?.to_owned();
    let file = format!("kept/here/products-{trace}.pb");
    let checked = stand.run(&["check", "a.yaml", "--trace", &file]).await?;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    Ok(())
}

#[tokio::test]
async fn the_whole_group_is_stopped() -> Result<()> {
    let (_answers, stand) = easy().await?;
    // A child, a grandchild, and a process that ignores SIGTERM.
    let script = "sh -c 'sleep 300 & echo $! > grandchild; wait' & echo $! > child
        sh -c 'trap \"\" TERM; echo $$ > deaf; while :; do sleep 0.1; done' &
        echo $$ > leader
        while ! test -s grandchild || ! test -s deaf; do sleep 0.01; done
        echo ready; wait";
    let began = Instant::now();
    let run = ["run", "a.yaml", "--ready", "log:^ready$", "--", "sh", "-c", script];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(began.elapsed() >= Duration::from_secs(5), "the deaf one had its time");
    for name in ["leader", "child", "grandchild", "deaf"] {
        let pid = stand.line_of(name).await?;
        assert!(!is_alive(&pid), "{name} {pid} is left");
    }
    Ok(())
}

#[tokio::test]
async fn sdks_are_told_where_to_export_to() -> Result<()> {
    let (_answers, stand) = easy().await?;
    let script = "env > env.txt; echo ready; exec sleep 300";
    let run = ["run", "a.yaml", "--ready", "log:ready", "--protocol", "grpc"];
    let finished = stand.run(&[&run[..], &["--", "sh", "-c", script]].concat()).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let environment = stand.read("env.txt")?;
    let value = |name: &str| {
        let line = environment.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix('='));
        line.with_context(|| format!("{name} is not in\n{environment}"))
    };
    let endpoint = value("OTEL_EXPORTER_OTLP_ENDPOINT")?;
    let told = endpoint.strip_prefix("http://").context("an URL")?;
    assert!(finished.err.contains(told), "{told} is not in {}", finished.err);
    for (name, expected) in [
        ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
        ("OTEL_TRACES_EXPORTER", "otlp"),
        ("OTEL_TRACES_SAMPLER", "parentbased_always_on"),
        ("OTEL_BSP_SCHEDULE_DELAY", "5"),
        ("OTEL_BLRP_SCHEDULE_DELAY", "5"),
        ("OTEL_METRIC_EXPORT_INTERVAL", "1000"),
        ("OTEL_PROPAGATORS", "tracecontext,baggage"),
    ] {
        assert_eq!(value(name)?, expected, "{name}");
    }
    assert!(value("OTEL_RESOURCE_ATTRIBUTES")?.contains("qualitytrace.started="));
    assert!(value("PATH").is_ok(), "the rest is ours");
    Ok(())
}

#[tokio::test]
async fn each_way_to_be_ready() -> Result<()> {
    let (answers, stand) = easy().await?;
    // A service that is not ready for its first two requests.
    let warming =
        Answers::start(|_, count| Answer::status(if count < 3 { 503 } else { 200 })).await?;
    let address = answers.url.strip_prefix("http://").context("an URL")?;
    let (url, tcp) = (format!("{}/health", warming.url), format!("tcp:{address}"));
    for ready in [["--ready", "log:port [0-9]+ open"], ["--ready", &url], ["--ready", &tcp]] {
        let script = "echo port 80 open; exec sleep 300";
        let run = [&["run", "a.yaml"], &ready[..], &["--", "sh", "-c", script]].concat();
        let finished = stand.run(&run).await?;
        assert_eq!(finished.code, Some(0), "{ready:?}: {finished:?}");
    }
    assert_eq!(warming.asked().get("/health"), Some(&3));
    Ok(())
}

#[tokio::test]
async fn what_was_answered_instead_of_being_ready_is_told() -> Result<()> {
    let (_answers, stand) = easy().await?;
    let other = Answers::start(|_, _| Answer::status(404)).await?;
    let ready = ["--ready", &other.url, "--ready-timeout", "1s", "--report", "json"];
    let run = [&["run", "a.yaml"], &ready[..], &["--", "sleep", "300"]].concat();
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.out.contains("but with 404"), "{finished:?}");
    Ok(())
}

#[tokio::test]
async fn what_listens_already_is_not_taken_for_the_command() -> Result<()> {
    let (answers, stand) = easy().await?;
    let run = ["run", "a.yaml", "--", "sh", "-c", "echo > started; exec sleep 300"];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(2), "{finished:?}");
    assert!(finished.err.contains("is taken before `sh -c"), "{}", finished.err);
    assert!(stand.read("started").is_err(), "and it is not started");
    assert!(answers.asked().is_empty(), "nor is anything fired");
    Ok(())
}

#[tokio::test]
async fn what_is_never_ready_leaves_every_test_open() -> Result<()> {
    let (answers, stand) = easy().await?;
    stand.write("b.yaml", &plain("b", &answers.url))?;
    let script = "echo $$ > pid; echo warming up; exec sleep 300";
    let ready = ["--ready", "log:open", "--ready-timeout", "300ms", "--report", "json"];
    let run = [&["run", "a.yaml", "b.yaml"], &ready[..], &["--", "sh", "-c", script]].concat();
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(3), "{finished:?}");
    for outcome in outcomes(&finished)? {
        let reason = outcome["reasons"][0].to_string();
        assert!(reason.contains("not ready within 0.3 s"), "{reason}");
        assert!(reason.contains("no line of its output matched `open`"), "{reason}");
        assert!(reason.contains("warming up"), "{reason}");
        assert!(reason.contains("--ready-timeout"), "{reason}");
    }
    assert!(finished.err.contains("| warming up"), "{}", finished.err);
    let told = ": starting, until a line of its output matches `open`";
    assert!(finished.err.contains(told), "{}", finished.err);
    assert!(answers.asked().is_empty(), "nothing was fired");
    assert!(!is_alive(&stand.line_of("pid").await?));
    Ok(())
}

#[tokio::test]
async fn for_each_test_a_command_of_its_own() -> Result<()> {
    let address = format!("127.0.0.1:{}", free_port()?);
    let stand = Stand::new()?;
    stand.write("t/a.yaml", &products("one", &address))?;
    stand.write("t/b.yaml", &products("two", &address))?;
    let script = format!("echo started >> starts; exec '{BINARY}' demo --http {address}");
    let run = ["run", "t", "--drain", "--report", "json", "--", "sh", "-c", &script];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert_eq!(stand.read("starts")?.lines().count(), 2);
    for outcome in outcomes(&finished)? {
        assert_eq!(outcome["settlement"]["drained"], true, "{outcome}");
    }
    assert!(TcpStream::connect(&address).is_err(), "the demo is gone");
    Ok(())
}
