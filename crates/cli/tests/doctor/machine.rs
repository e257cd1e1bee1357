//! Faults of this machine.

use std::{fs, time::Duration};

use anyhow::{Context, Result};
use tempfile::TempDir;
use tokio::{net::TcpListener, time::Instant};

use super::{begins, doctor};

/// How long the checks of a machine may take here; they take a few milliseconds where nothing else runs.
const LOOK_MAX: Duration = Duration::from_secs(1);

#[tokio::test(flavor = "multi_thread")]
async fn faults_of_a_machine_come_first() -> Result<()> {
    let folder = TempDir::new()?;
    fs::create_dir(folder.path().join(".git"))?;
    let plant = |name: &'static str, value: &'static str| [(name, value)];
    let faults = [
        (plant("HTTP_PROXY", "socks5://one:two@proxy:1"), "✘ proxy", "`HTTP_PROXY`", 1),
        (plant("https_proxy", "not a url"), "✘ proxy", "`HTTPS_PROXY`", 1),
        (plant("SSL_CERT_FILE", "/nowhere.pem"), "✘ trusted authorities", "/nowhere.pem", 1),
        (plant("OTEL_SDK_DISABLED", "true"), "! OTEL_ variables", "records nothing", 0),
        (plant("OTEL_TRACES_EXPORTER", "none"), "! OTEL_ variables", "not exported", 0),
        (plant("OTEL_TRACES_SAMPLER", "always_off"), "! OTEL_ variables", "no span", 0),
        (plant("OTEL_PROPAGATORS", "b3"), "! OTEL_ variables", "`traceparent`", 0),
    ];
    for (variables, sign, word, expected) in faults {
        let (code, printed) = doctor(folder.path(), &[], &variables).await?;
        // The ports of OTLP may be in use on this machine, which is worse than a warning.
        let line =
            printed.lines().find(|line| !line.contains("OTLP port") && !line.starts_with("  "));
        begins(line.unwrap_or_default(), sign, &[word]);
        if expected == 1 {
            assert_eq!(code, Some(1), "{printed}");
        }
        assert!(!printed.contains("one:two"), "a proxy's password: {printed}");
    }
    let headers = [("OTEL_EXPORTER_OTLP_HEADERS", "authorization=secret-word")];
    let (_, printed) = doctor(folder.path(), &[], &headers).await?;
    assert!(printed.contains("`OTEL_EXPORTER_OTLP_HEADERS`"), "{printed}");
    assert!(!printed.contains("secret-word"), "{printed}");

    fs::write(folder.path().join("qualitytrace.toml"), "[run]\njob = 1\n")?;
    let (code, printed) = doctor(folder.path(), &[], &[]).await?;
    assert_eq!(code, Some(1), "{printed}");
    assert!(printed.contains("✘ project file: `qualitytrace.toml` is invalid"), "{printed}");
    assert!(printed.contains("did you mean `jobs`?"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_port_that_is_taken_has_its_process() -> Result<()> {
    let folder = TempDir::new()?;
    // Another program may have it: then that one is named.
    let _taken = TcpListener::bind("127.0.0.1:4318").await.ok();
    let (code, printed) = doctor(folder.path(), &[], &[]).await?;
    assert_eq!(code, Some(1), "{printed}");
    let line = printed.lines().find(|line| line.contains("port 4318")).context("a line")?;
    assert!(line.starts_with("✘ ") && line.contains("taken by `"), "{printed}");
    assert!(printed.contains("[otlp-port-in-use]"), "{printed}");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_machine_is_looked_at_within_a_second() -> Result<()> {
    let folder = TempDir::new()?;
    // Of `--help` a build with optimization needs a tenth of that.
    for (arguments, max) in [(&[][..], LOOK_MAX), (&["--help"], LOOK_MAX / 4)] {
        let mut fastest = LOOK_MAX * 2;
        // Another test may take the processors meanwhile, but not each time.
        for _ in 0..5 {
            let began = Instant::now();
            doctor(folder.path(), arguments, &[]).await?;
            fastest = fastest.min(began.elapsed());
        }
        assert!(fastest < max, "{arguments:?}: {fastest:?}");
    }
    Ok(())
}
