//! Ctrl-C while a server does not respond: every command ends at once.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;
use tokio::{
    net::TcpListener,
    process::Command as Kill,
    time::{Instant, timeout},
};

use super::{
    servers::rows,
    stage::{Caller, ENDED_MAX, Ended, command},
};

/// How long a command may take to end after Ctrl-C, on a busy machine.
const INTERRUPTED_MAX: Duration = Duration::from_secs(5);

const TEST: &str = "type: Test
spec: {id: test, name: test, trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}}
";

#[tokio::test(flavor = "multi_thread")]
async fn ctrl_c_ends_every_command_that_waits_for_a_server() -> Result<()> {
    // It accepts connections, and nothing more.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", silent.local_addr()?);
    let id = "01a1f36f-d453-7b1c-81ba-9fa9ae4e1b76";
    let folder = TempDir::new()?;
    std::fs::write(folder.path().join("test.yaml"), TEST)?;
    let golden_shape = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/offline/inputs/checkout.shape");
    std::fs::copy(golden_shape, folder.path().join("good.shape"))?;
    for row in rows()? {
        let mut typed = row.typed.replace("{server}", &url);
        for place in ["{run}", "{token}", "{session}"] {
            typed = typed.replace(place, id);
        }
        let caller = Caller { server: &url, token: Some("qtt_token") };
        let mut child = command(&typed, folder.path(), caller).spawn()?;
        if row.exit("silent", 130)? == 0 {
            let ended: Ended = timeout(ENDED_MAX, child.wait_with_output()).await??.into();
            assert_eq!(ended.code, 0, "{typed}: {}", ended.err);
            continue;
        }
        let (connection, _) =
            timeout(ENDED_MAX, silent.accept()).await.context(typed.clone())??;
        ensure!(child.try_wait()?.is_none(), "{typed} does not wait");
        let process = child.id().context("it runs")?.to_string();
        let began = Instant::now();
        ensure!(Kill::new("kill").args(["-INT", &process]).status().await?.success(), "no signal");
        let ended = timeout(ENDED_MAX, child.wait_with_output()).await;
        let ended: Ended = ended.with_context(|| format!("{typed} goes on"))??.into();
        drop(connection);
        ensure!(began.elapsed() < INTERRUPTED_MAX, "{typed}: {:?}", began.elapsed());
        assert_eq!(ended.code, 130, "{typed}: {}", ended.err);
        ensure!(ended.out.is_empty(), "{typed} prints {:?}", String::from_utf8_lossy(&ended.out));
        ensure!(!ended.err.contains("panicked"), "{typed}: {}", ended.err);
    }
    Ok(())
}
