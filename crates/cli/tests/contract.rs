//! Checks the API against its own OpenAPI document: third-party tools read the document and call the API.

use std::{
    collections::BTreeSet,
    fs,
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

/// What commands print with `--format json` is as `docs/reference/schemas` states.
#[tokio::test(flavor = "multi_thread")]
async fn json_of_commands_is_as_its_schema() -> Result<()> {
    let database = Database::create("contract_cli").await?;
    let configuration = format!("{}\nserver: {{auth: {{mode: on}}}}\n", database.section()?);
    let server = Server::start_with(Path::new(BINARY), &configuration, "127.0.0.1:0").await?;
    let folder = TempDir::new()?;
    let run = async |arguments: &[&str], token: &str| -> Result<(Option<i32>, String)> {
        let mut command = tokio::process::Command::new(BINARY);
        command.args(arguments).current_dir(folder.path()).env("XDG_CONFIG_HOME", folder.path());
        command.env("QUALITYTRACE_SERVER", &server.api).env("QUALITYTRACE_TOKEN", token);
        let output = command.kill_on_drop(true).output().await?;
        Ok((output.status.code(), String::from_utf8(output.stdout)?))
    };
    let config = server.config.to_str().context("a path that is text")?;
    let (_, token) = run(&["token", "create", "--config", config], "").await?;
    let token = token.trim();
    fs::write(folder.path().join("test.yaml"), TEST)?;
    assert_eq!(run(&["apply", "test.yaml"], token).await?.0, Some(0));
    let (code, _) = run(&["run", "test.yaml", "--server", &server.api], token).await?;
    assert_eq!(code, Some(3), "the target is not there");
    assert_eq!(run(&["login"], token).await?.0, Some(0));
    let (_, id) = run(&["runs", "list", "--limit", "1", "--format", "name"], token).await?;
    let commands = [
        "audit",
        "context list",
        "doctor",
        "history tests away",
        "list tests",
        "project show",
        "runs list",
        "session list",
        "status",
        "telemetry status",
        "token list",
        "trend",
        "version",
        "whoami",
        &format!("runs view {}", id.trim()),
    ];
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut validate = Command::new(
        program("QUALITYTRACE_TEST_SCHEMATHESIS")?.with_file_name("../venv/bin/python"),
    );
    validate.args(["-c", VALIDATE]);
    let mut checked = BTreeSet::new();
    for command in commands {
        let words: Vec<_> = command.split(' ').chain(["--format", "json"]).collect();
        let (code, printed) = run(&words, token).await?;
        assert_eq!(code, Some(0), "{command}: {printed}");
        let known = |words: &str| schemas.join(format!("{}.json", words.replace(' ', "-")));
        let two = words.get(..2).unwrap_or_default().join(" ");
        let schema = [known(&two), known(words[0])].into_iter().find(|file| file.is_file());
        let schema = schema.with_context(|| format!("a schema of `{command}`"))?;
        let file = folder.path().join(schema.file_name().context("a name")?);
        fs::write(&file, printed)?;
        validate.arg(&schema).arg(&file);
        checked.insert(schema);
    }
    let all: BTreeSet<_> =
        fs::read_dir(&schemas)?.map(|it| Ok(it?.path())).collect::<Result<_>>()?;
    assert_eq!(checked, all, "each schema is checked");
    let found = validate.output()?;
    let told = String::from_utf8_lossy(&found.stderr).into_owned();
    assert!(found.status.success(), "{told}");
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

const TEST: &str = "type: Test
spec:
  id: away
  name: A target that is away
  trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}
  specs: [{selector: 'span[name=\"Qualitytrace trigger\"]', assertions: ['attr:tracetest.selected_spans.count = 1']}]
";

/// Validates pairs of a schema and a file; an empty list shows nothing of its items.
const VALIDATE: &str = "
import json, sys, jsonschema_rs
empty = []
for schema, file in zip(sys.argv[1::2], sys.argv[2::2]):
    value = json.load(open(file))
    jsonschema_rs.Draft202012Validator(json.load(open(schema))).validate(value)
    if value == []: empty.append(file.rsplit('/')[-1])
assert set(empty) <= {'session-list.json', 'telemetry-status.json'}, empty
";
