//! The learned profile: stored between runs, written to be committed, and always optional.

use anyhow::{Context, Result};
use bench::parts::free_port;
use serde_json::Value;
use tokio::{
    io::AsyncReadExt,
    process::{Child, Command},
};

use crate::stand::{BINARY, Stand, products};

/// A demo that exports to this port, until it is dropped.
async fn demo(address: &str, otlp: u16) -> Result<Child> {
    let mut demo = Command::new(BINARY)
        .args(["demo", "--http", address, "--otlp", &format!("http://127.0.0.1:{otlp}")])
        .stdout(std::process::Stdio::piped())
        .kill_on_drop(true)
        .spawn()?;
    let mut first = [0; 1];
    let stdout = demo.stdout.as_mut().context("a stream")?;
    stdout.read_exact(&mut first).await.context("the demo did not open")?;
    Ok(demo)
}

#[tokio::test]
async fn what_is_learned_is_kept_and_can_be_committed() -> Result<()> {
    let (address, otlp) = (format!("127.0.0.1:{}", free_port()?), free_port()?);
    let _demo = demo(&address, otlp).await?;
    let stand = Stand::new()?;
    let whole = products("products", &address).replace("count >= 1", "count = 1");
    stand.write(
        "t/a.yaml",
        &whole.replace("settle: {timeout: 20s}", "settle: {timeout: 20s, flush: 300ms}"),
    )?;
    let nothing = stand.run(&["learn"]).await?;
    assert_eq!(nothing.code, Some(2), "{nothing:?}");
    let otlp = format!("127.0.0.1:{otlp}");
    let run = ["run", "t", "--otlp", &otlp, "--repeat", "3", "--report", "json"];
    let finished = stand.run(&run).await?;
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let kept: Value = serde_json::from_str(&stand.read(".qualitytrace/learned.json")?)?;
    assert_eq!(kept["version"], 1);
    let delays = kept["learned"]["services"]["stock"]["delaysNs"].as_array().map(Vec::len);
    assert_eq!(delays, Some(3), "{kept}");
    assert_eq!(stand.read(".qualitytrace/.gitignore")?, "*\n");

    let learned = stand.run(&["learn"]).await?;
    assert_eq!(learned.code, Some(0), "{learned:?}");
    let written = stand.read("qualitytrace-learned.yaml")?;
    assert!(written.contains("  \"stock\":\n    delay: "), "{written}");
    stand.run(&["learn"]).await?;
    assert_eq!(stand.read("qualitytrace-learned.yaml")?, written, "the same again");

    // A clean machine has only the committed file; a folder of tests may contain it.
    stand.write(".qualitytrace/learned.json", "{broken")?;
    let again = stand.run(&["run", ".", "--otlp", &otlp, "--report", "json"]).await?;
    assert_eq!(again.code, Some(0), "{again:?}");
    assert!(again.err.contains("learned.json` is not used"), "{}", again.err);
    let mended: Value = serde_json::from_str(&stand.read(".qualitytrace/learned.json")?)?;
    assert_eq!(
        mended["learned"]["services"]["stock"]["delaysNs"].as_array().map(Vec::len),
        Some(1)
    );
    stand.write("qualitytrace-learned.yaml", "services:\n  stock: {delay: never}\n")?;
    let broken = stand.run(&["run", "t", "--otlp", &otlp, "--report", "json"]).await?;
    assert_eq!(broken.code, Some(0), "it helps and is not needed: {broken:?}");
    assert!(broken.err.contains("`qualitytrace-learned.yaml` is not used"), "{}", broken.err);
    Ok(())
}
