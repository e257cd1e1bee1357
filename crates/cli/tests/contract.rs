//! Checks the API against its own OpenAPI document: third-party tools read the document and call the API.

use std::{
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result};
use bench::parts::{Database, Server};
use tempfile::TempDir;

const BINARY: &str = env!("CARGO_BIN_EXE_qualitytrace");

/// The number of examples for each operation and phase: the short form, which takes seconds.
const EXAMPLES_MAX: &str = "2";

#[tokio::test(flavor = "multi_thread")]
async fn schemathesis_finds_nothing() -> Result<()> {
    let database = Database::create("contract").await?;
    let key = format!("secrets: {{keys: ['one:{}']}}\n", "07".repeat(32));
    let configuration = format!("{}\n{key}", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let mut schemathesis = tokio::process::Command::new(program("QUALITYTRACE_TEST_SCHEMATHESIS")?);
    schemathesis.args(["run", &format!("{}/api/v1/openapi.json", server.api)]);
    // The same examples every time: random ones are for the long form.
    schemathesis.args(["--checks", "all", "--seed", "1", "--max-examples", EXAMPLES_MAX]);
    let found = schemathesis.kill_on_drop(true).output().await?;
    let told = String::from_utf8_lossy(&found.stdout);
    assert!(found.status.success(), "{told}{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

#[test]
fn a_generated_typescript_client_compiles() -> Result<()> {
    let folder = TempDir::new()?;
    let document = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/openapi.json");
    let mut compile = Command::new(program("QUALITYTRACE_TEST_TYPESCRIPT")?);
    let compiled = compile.arg(document.canonicalize()?).arg(folder.path()).output()?;
    let told = String::from_utf8_lossy(&compiled.stdout);
    assert!(compiled.status.success(), "{told}{}", String::from_utf8_lossy(&compiled.stderr));
    Ok(())
}

/// A program that `cargo xtask services up contract` installs.
#[expect(clippy::disallowed_methods, reason = "a test is a main of its own")]
fn program(variable: &str) -> Result<PathBuf> {
    let path = std::env::var_os(variable).with_context(|| {
        format!("`{variable}` is not set: run through `cargo xtask ci`, or `eval \"$(cargo xtask services env)\"` after `cargo xtask services up`")
    })?;
    Ok(path.into())
}
