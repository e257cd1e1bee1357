//! The OpenAPI document equals `docs/api/openapi.json`, and describes the output of the model.

use std::path::Path;

use anyhow::{Context, Result, bail, ensure};
use golden::Golden;
use serde_json::Value;

#[test]
fn the_document_is_as_it_was_promised() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/api/openapi.json");
    let mut golden = Golden::default();
    golden.compare(&file, server::openapi());
    golden.finish(1);
}

#[test]
fn outcomes_and_events_are_what_the_document_says() -> Result<()> {
    let document: Value = serde_json::from_str(server::openapi())?;
    for (file, name) in [
        ("outcome-v1.json", "Outcome"),
        ("events-v1.json", "Event"),
        ("answers-v1.json", "Answer"),
        ("requests-v1.json", "RecordedRequest"),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../model/tests/golden").join(file);
        let written: Value = serde_json::from_str(&std::fs::read_to_string(path)?)?;
        let schema = &document["components"]["schemas"][name];
        for one in written.as_array().unwrap_or(&vec![written.clone()]) {
            fits(&document, schema, one).with_context(|| format!("{file}: {one:#}"))?;
        }
    }
    Ok(())
}

#[test]
fn every_code_of_a_problem_is_in_the_page() -> Result<()> {
    let document: Value = serde_json::from_str(server::openapi())?;
    let codes = document["components"]["schemas"]["ProblemCode"]["enum"].as_array();
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/server.md");
    let page = std::fs::read_to_string(path)?;
    let rows = page.lines().skip_while(|line| *line != "## Errors").skip(1);
    let rows = rows.take_while(|line| !line.starts_with("## "));
    let rows = rows.filter_map(|row| row.strip_prefix("| `")?.split_once('`'));
    let rows: Vec<_> = rows.map(|(code, _)| Value::from(code)).collect();
    assert_eq!(rows, *codes.context("codes")?);
    Ok(())
}

/// Whether a value matches a schema exactly.
fn fits(document: &Value, schema: &Value, value: &Value) -> Result<()> {
    if let Some(reference) = schema["$ref"].as_str() {
        let pointer = reference.trim_start_matches('#');
        return fits(document, document.pointer(pointer).context("it is there")?, value);
    }
    if let Some(choices) = schema["oneOf"].as_array() {
        let fitting = choices.iter().filter(|choice| fits(document, choice, value).is_ok()).count();
        ensure!(fitting == 1, "{fitting} of {choices:#?} fit {value:#}");
        return Ok(());
    }
    let names = match &schema["type"] {
        Value::Array(names) => names.clone(),
        name => vec![name.clone()],
    };
    let kind = match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    };
    ensure!(names.contains(&Value::from(kind)), "{value} is not one of {names:?}");
    if let Some(words) = schema["enum"].as_array() {
        ensure!(words.contains(value), "{value} is not one of {words:?}");
    }
    for item in value.as_array().into_iter().flatten() {
        fits(document, &schema["items"], item)?;
    }
    let Some(fields) = value.as_object() else { return Ok(()) };
    for name in schema["required"].as_array().into_iter().flatten() {
        ensure!(fields.contains_key(name.as_str().unwrap_or_default()), "{name} is missing");
    }
    for (name, field) in fields {
        let Some(schema) = schema["properties"].get(name) else { bail!("`{name}` is not said") };
        fits(document, schema, field).with_context(|| name.clone())?;
    }
    Ok(())
}
