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

/// What commands print with `--format json` and `--report` is as `docs/reference/schemas` states.
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
    let (code, lines) =
        run(&["run", "test.yaml", "--server", &server.api, "--report", "ndjson"], token).await?;
    assert_eq!(code, Some(3), "the target is not there");
    assert_eq!(run(&["login"], token).await?.0, Some(0));
    let (_, id) = run(&["runs", "list", "--limit", "1", "--format", "name"], token).await?;
    let mut printed = recorded_reports()?;
    printed.push(("report-ndjson".to_owned(), lines));
    let id = id.trim();
    let commands =
        COMMANDS.lines().map(|line| line.replace("{run}", id).replace("{tests}", INPUTS));
    for line in commands {
        let (schema, typed) = line.split_once(": ").context("a schema and a command")?;
        let words: Vec<_> = typed.split(' ').collect();
        let (code, text) = run(&words, token).await?;
        let expected = if schema == "shape-diff" { 1 } else { 0 };
        assert_eq!(code, Some(expected), "{typed}: {text}");
        printed.push((schema.to_owned(), text));
    }
    validate(&printed, folder.path())?;
    assert_eq!(server.terminate().await?, Some(0));
    database.remove().await
}

/// Returns the reports of all kinds of outcomes, each behind the name of its schema.
fn recorded_reports() -> Result<Vec<(String, String)>> {
    let recorded = Path::new(env!("CARGO_MANIFEST_DIR")).join("../report/tests/golden");
    let mut found = Vec::new();
    for format in ["json", "ndjson"] {
        for file in golden::files(&recorded, &[format]) {
            found.push((format!("report-{format}"), fs::read_to_string(file)?));
        }
    }
    assert!(found.len() > 40, "{}", found.len());
    Ok(found)
}

/// Validates texts, each behind the name of its schema; every schema has one.
fn validate(printed: &[(String, String)], folder: &Path) -> Result<()> {
    let schemas = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut validate = Command::new(
        program("QUALITYTRACE_TEST_SCHEMATHESIS")?.with_file_name("../venv/bin/python"),
    );
    validate.args(["-c", VALIDATE]);
    let mut checked = BTreeSet::new();
    for (number, (name, text)) in printed.iter().enumerate() {
        let (schema, file) = (schemas.join(format!("{name}.json")), format!("{name}.{number}"));
        fs::write(folder.join(&file), text)?;
        validate.arg(&schema).arg(folder.join(file));
        checked.insert(schema);
    }
    let all: BTreeSet<_> =
        fs::read_dir(&schemas)?.map(|it| Ok(it?.path())).collect::<Result<_>>()?;
    assert_eq!(checked, all, "each schema is checked");
    let found = validate.output()?;
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    Ok(())
}

const INPUTS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests");

/// Schemas, each with a command that prints such a value.
const COMMANDS: &str = "\
audit: audit --format json
context-list: context list --format json
doctor: doctor --format json
history: history tests away --format json
list: list tests --format json
project-show: project show --format json
runs-list: runs list --format json
session-list: session list --format json
status: status --format json
telemetry-status: telemetry status --format json
token-list: token list --format json
trend: trend --format json
version: version --format json
whoami: whoami --format json
runs-view: runs view {run} --format json
runs-view: runs view {run} --events --format json
shape-diff: shape diff {tests}/offline/inputs/changed.shape {tests}/../../../docs/language/example/checkout.json --format json
mutate: mutate {tests}/offline/inputs/tests/orders.yaml --trace {tests}/new/proposals/checkout.json --format json
report-json: lint --trace {tests}/new/proposals/checkout.json --gate none --report json
report-ndjson: lint --trace {tests}/new/proposals/checkout.json --gate none --report ndjson
report-json: check {tests}/offline/inputs/tests/orders.yaml --trace {tests}/new/proposals/checkout.json --report json
report-ndjson: check {tests}/offline/inputs/tests/orders.yaml --trace {tests}/new/proposals/checkout.json --report ndjson
report-json: runs report {run} --report json
report-ndjson: runs report {run} --report ndjson";

const TEST: &str = "type: Test
spec:
  id: away
  name: A target that is away
  trigger: {type: http, httpRequest: {url: 'http://127.0.0.1:1/'}}
  specs: [{selector: 'span[name=\"Qualitytrace trigger\"]', assertions: ['attr:tracetest.selected_spans.count = 1']}]
";

/// Validates pairs of a schema and a file; an empty list shows nothing of its items. A report has a value on each line.
const VALIDATE: &str = "
import json, sys, jsonschema_rs
empty = []
for schema, file in zip(sys.argv[1::2], sys.argv[2::2]):
    name, text = file.rsplit('/')[-1].rsplit('.')[0], open(file).read()
    values = [json.loads(it) for it in text.splitlines()] if name.startswith('report-') else [json.loads(text)]
    jsonschema_rs.meta.validate(json.load(open(schema)))
    validator = jsonschema_rs.Draft202012Validator(json.load(open(schema)))
    for value in values: validator.validate(value)
    if values == [[]]: empty.append(name)
assert set(empty) <= {'session-list', 'telemetry-status'}, empty
";
