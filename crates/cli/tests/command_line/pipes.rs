//! Pipes and terminals: a closed pipe is no error, and `NO_COLOR` is heeded.

use std::{path::Path, process::Stdio};

use anyhow::{Context, Result, ensure};
use regex::Regex;
use tempfile::TempDir;
use tokio::{io::AsyncWriteExt, process::Command, time::timeout};

use super::{
    BINARY,
    servers::rows,
    stage::{Caller, ENDED_MAX, Ended, Stage, command},
};

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_is_no_error() -> Result<()> {
    let stage = Stage::set("command_line_pipes").await?;
    for row in rows()? {
        row.prepare(&stage).await?;
        let caller = stage.caller("admin");
        let typed = stage.filled(row.typed, caller.server).await?;
        let mut child = command(&typed, stage.folder.path(), caller).spawn()?;
        drop(child.stdout.take());
        let ended: Ended = timeout(ENDED_MAX, child.wait_with_output()).await??.into();
        assert_eq!(ended.code, row.exit("exit", 0)?, "{typed}: {}", ended.err);
        ensure!(!ended.err.contains("panicked"), "{typed}: {}", ended.err);
        ensure!(!ended.err.contains("error"), "{typed}: {}", ended.err);
    }
    stage.end().await
}

/// Commands that need no server, each with its exit code.
const OFFLINE: [(&str, i32); 15] = [
    ("--help", 0),
    ("-h", 0),
    ("run --help", 0),
    ("--version", 0),
    ("version", 0),
    ("completion bash", 0),
    ("man", 0),
    ("schema tests", 0),
    ("project show", 0),
    ("check tests/orders.yaml --trace checkout.json", 0),
    ("lint --trace checkout.json --gate none --report json", 0),
    ("explain 'span[]' --trace checkout.json", 0),
    ("shape record checkout.json", 0),
    ("shape diff changed.shape checkout.json --format json", 1),
    ("mutate tests/orders.yaml --trace checkout.json --max-mutants 3", 0),
];

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_pipe_is_no_error_without_a_server() -> Result<()> {
    let inputs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/offline/inputs");
    let trace = inputs.join("../../../../../docs/language/example/checkout.json");
    for (typed, code) in OFFLINE {
        let typed = typed.replace("checkout.json", &trace.display().to_string());
        let caller = Caller { server: "http://127.0.0.1:1", token: None };
        let mut command = command(&typed, &inputs, caller);
        let mut child = command.env_remove("XDG_CONFIG_HOME").spawn()?;
        drop(child.stdout.take());
        let ended: Ended = timeout(ENDED_MAX, child.wait_with_output()).await??.into();
        assert_eq!((ended.code, ended.err.as_str()), (code, ""), "{typed}");
    }
    Ok(())
}

/// A pipe is no person: nothing is prompted for.
#[tokio::test(flavor = "multi_thread")]
async fn without_a_terminal_nothing_is_prompted_for() -> Result<()> {
    let folder = TempDir::new()?;
    let caller = Caller { server: "http://127.0.0.1:1", token: None };
    let output = timeout(ENDED_MAX, command("login", folder.path(), caller).output());
    let ended: Ended = output.await??.into();
    let expected =
        "error: no token: give it by `--token`, QUALITYTRACE_TOKEN or stdin [token-missing]\n";
    assert_eq!((ended.code, ended.err.as_str()), (2, expected));
    let mut login = command("login", folder.path(), caller);
    let mut child = login.stdin(Stdio::piped()).spawn()?;
    child.stdin.take().context("a stdin")?.write_all(b"qtt_piped\n").await?;
    let ended: Ended = timeout(ENDED_MAX, child.wait_with_output()).await??.into();
    ensure!(ended.code == 3 && ended.err.starts_with("error: the server"), "{}", ended.err);
    Ok(())
}

/// Executes a command on a terminal, and returns what the terminal got.
async fn on_terminal(stage: &Stage, typed: &str, variables: &str) -> Result<String> {
    let caller = stage.caller("admin");
    let (folder, token) = (stage.folder.path().display(), caller.token.context("a token")?);
    // Without programs, so that `open` starts no browser.
    let line = format!(
        "exec /usr/bin/env -i PATH=/nowhere XDG_CONFIG_HOME={folder}/home QUALITYTRACE_SERVER={} QUALITYTRACE_TOKEN={token} \
         TERM=xterm {variables} {BINARY} {typed}",
        caller.server
    );
    let mut script = Command::new("script");
    script.args(["--quiet", "--command", &line, "/dev/null"]).current_dir(stage.folder.path());
    let output = script.stdin(Stdio::null()).kill_on_drop(true).output();
    Ok(String::from_utf8_lossy(&timeout(ENDED_MAX, output).await??.stdout).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn no_color_keeps_terminals_without_colour() -> Result<()> {
    let stage = Stage::set("command_line_colour").await?;
    let colour = Regex::new("\u{1b}\\[[0-9;]*m")?;
    let mut coloured = 0;
    for row in rows()? {
        let typed = row.typed.replace(" {token}", " {no-run}").replace(" {session}", " {no-run}");
        let typed = stage.filled(&typed, stage.caller("admin").server).await?;
        let plain = on_terminal(&stage, &typed, "NO_COLOR=1").await?;
        ensure!(!plain.is_empty(), "{typed} prints nothing");
        ensure!(!colour.is_match(&plain), "{typed}: {plain:?}");
        coloured += usize::from(colour.is_match(&on_terminal(&stage, &typed, "").await?));
    }
    ensure!(coloured > 3, "without it, terminals get colour: {coloured}");
    stage.end().await
}
