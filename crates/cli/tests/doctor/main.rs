//! `doctor`, as a person uses it: a fault is planted in a real set-up, and the first line names it.

mod collector;
mod machine;
mod request;
mod sdks;
mod secrets;
mod server;
#[path = "../diagnosis/system.rs"]
mod system;

use std::{path::Path, process::Stdio};

use anyhow::{Result, anyhow};
use tokio::process::Command;

use system::Fault;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// Returns the command `doctor` in a folder, without what this shell has set.
fn doctor_in(folder: &Path, arguments: &[&str], variables: &[(&str, &str)]) -> Command {
    let mut command = Command::new(BINARY);
    command.arg("doctor").args(arguments).current_dir(folder).stdin(Stdio::null());
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "CI"] {
        command.env_remove(name).env_remove(name.to_lowercase());
    }
    command.env_remove("SSL_CERT_DIR").kill_on_drop(true);
    command.env("XDG_CONFIG_HOME", folder.join("home")).envs(variables.iter().copied());
    command
}

/// Runs `doctor` in a folder; returns its exit code and what it printed.
async fn doctor(
    folder: &Path,
    arguments: &[&str],
    variables: &[(&str, &str)],
) -> Result<(Option<i32>, String)> {
    let output = doctor_in(folder, arguments, variables).output().await?;
    let printed = [output.stdout, output.stderr].concat();
    Ok((output.status.code(), String::from_utf8(printed)?))
}

/// The first line has all of these words.
fn begins(printed: &str, sign: &str, words: &[&str]) {
    let first = printed.lines().next().unwrap_or_default();
    assert!(first.starts_with(sign), "{printed}");
    for word in words {
        assert!(first.contains(word), "{word}: {printed}");
    }
}

/// Nothing is wrong.
fn is_sound(code: Option<i32>, printed: &str) {
    assert_eq!(code, Some(0), "{printed}");
    let is_fine = |line: &str| line.starts_with("✔ ");
    assert!(printed.lines().all(is_fine) && !printed.is_empty(), "{printed}");
}

#[expect(clippy::disallowed_methods, reason = "this is how a test tells its child that it is one")]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// No test: the program that `doctor` starts as the system under test.
#[test]
fn system_under_test() -> Result<()> {
    let (Some(fault), Some(port)) = (variable("SHOP_FAULT"), variable("SHOP_PORT")) else {
        return Ok(());
    };
    let fault = Fault::parse(&fault).ok_or_else(|| anyhow!("no fault is called `{fault}`"))?;
    let otlp = variable("OTEL_EXPORTER_OTLP_ENDPOINT").unwrap_or_default();
    system::serve(fault, port.parse()?, &otlp)
}
