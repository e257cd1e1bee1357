//! JSON schemas of what commands print with `--format json` and `--report`, made from the description of the API where the value is
//! the API's.

mod reports;
mod traces;

use std::{collections::BTreeSet, path::Path};

use clap::Arg;
use golden::Golden;
use report::Format;
use serde_json::{Map, Value, json};

const API: &str = include_str!("../../../../docs/api/openapi.json");

/// Commands that print values of the API, and the name of the schema there.
const OF_API: &[(&str, &str, Form)] = &[
    ("audit", "AuditEntry", Form::List),
    ("history", "DocumentVersion", Form::List),
    ("list", "ListedDocument", Form::List),
    ("runs list", "ListedRun", Form::List),
    ("runs view", "Run", Form::One),
    ("session list", "Session", Form::List),
    ("telemetry status", "ExporterStatus", Form::List),
    ("token list", "Token", Form::List),
];

#[derive(Clone, Copy)]
enum Form {
    List,
    One,
}

/// Returns the commands that print values of their own, with the schemas.
fn own() -> Vec<(&'static str, Value)> {
    let text = || json!({"type": "string"});
    let context = object(&json!({
        "name": text(), "server": text(), "project": text(), "isCurrent": {"type": "boolean"},
    }));
    let trend = object(&json!({"test": text(), "trend": {"$ref": "#/components/schemas/Trend"}}));
    let whoami = object(&json!({
        "name": text(), "role": {"enum": ["ingest", "viewer", "editor", "admin"]}, "server": text(),
        "projects": {"type": ["array", "null"], "items": text(), "description": "Null for all of them."},
    }));
    let exporter = object(&json!({"name": text(), "state": text()}));
    let mut status = object(&json!({
        "server": text(), "ready": {"type": "boolean"},
        "reason": {"type": ["string", "null"], "description": "Why it is not ready."},
    }));
    for (name, schema) in [
        ("version", text()),
        ("access", json!({"enum": ["on", "off"]})),
        ("exporters", json!({"type": "array", "items": exporter})),
    ] {
        status["properties"][name] = schema;
    }
    let version = version();
    let key = object(&json!({
        "key": text(), "value": {"type": ["string", "null"], "description": "Null for none."}, "from": text(),
    }));
    let mut finding = object(&json!({
        "check": text(), "state": {"enum": ["error", "warning", "ok"]}, "found": text(),
        "link": {"type": "string", "description": "The page of the documentation with more about it."},
    }));
    for (name, about) in [
        ("advice", "What to do; none where nothing is to be done."),
        ("code", "The name of the error that a command would end with."),
    ] {
        finding["properties"][name] = json!({"type": "string", "description": about});
    }
    vec![
        ("shape diff", traces::shape_diff()),
        ("mutate", traces::mutate()),
        ("doctor", json!({"type": "array", "items": finding})),
        ("project show", json!({"type": "array", "items": key})),
        ("context list", json!({"type": "array", "items": context})),
        ("status", status),
        ("trend", json!({"type": "array", "items": trend})),
        ("version", version),
        ("whoami", whoami),
    ]
}

/// Returns the schema of what `version` prints.
fn version() -> Value {
    let text = |about: &str| json!({"type": "string", "description": about});
    let built = |about: &str| json!({"type": ["string", "null"], "description": about});
    let number = |about: &str| json!({"type": "integer", "minimum": 1, "description": about});
    object(&json!({
        "version": text("The version of the program."),
        "commit": built("The commit that it was built from; null for a development build."),
        "date": built("The day of that commit; null for a development build."),
        "target": text("What it was built for, as Rust names it."),
        "system": text("The operating system."),
        "machine": text("The architecture."),
        "api": text("The version of the API, which is in its paths."),
        "reportSchema": number("The `schemaVersion` of JSON reports."),
        "documentFormat": number("The version of the format of documents."),
    }))
}

/// Returns an object that has all of these properties, and no others.
fn object(properties: &Value) -> Value {
    let required: Vec<_> =
        properties.as_object().into_iter().flat_map(Map::keys).cloned().collect();
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// Returns a schema as a document of its own: with the schemas of the API that it refers to.
fn complete(title: &str, schema: &Value, api: &Value) -> String {
    let mut used = BTreeSet::new();
    names(schema, api, &mut used);
    let mut document =
        json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title});
    for (name, value) in schema.as_object().into_iter().flatten() {
        document[name] = value.clone();
    }
    let all = &api["components"]["schemas"];
    for name in used {
        document["$defs"][&name] = all[&name].clone();
    }
    format!("{document:#}\n").replace("#/components/schemas/", "#/$defs/")
}

/// Adds the names of all schemas that this one refers to, directly or not.
fn names(schema: &Value, api: &Value, used: &mut BTreeSet<String>) {
    match schema {
        Value::Array(items) => items.iter().for_each(|item| names(item, api, used)),
        Value::Object(fields) => {
            let reference = fields.get("$ref").and_then(Value::as_str);
            let name = reference.and_then(|it| it.strip_prefix("#/components/schemas/"));
            if let Some(name) = name
                && used.insert(name.to_owned())
            {
                names(&api["components"]["schemas"][name], api, used);
            }
            fields.values().for_each(|field| names(field, api, used));
        }
        _ => {}
    }
}

/// Returns the commands that have an argument that this is.
fn commands_with(is: fn(&Arg) -> bool) -> Vec<String> {
    let mut commands = vec![(String::new(), super::command(|_| false))];
    let mut found = Vec::new();
    while let Some((path, command)) = commands.pop() {
        for below in command.get_subcommands() {
            commands
                .push((format!("{path} {}", below.get_name()).trim().to_owned(), below.clone()));
        }
        if command.get_arguments().any(is) {
            found.push(path);
        }
    }
    found.sort_unstable();
    found
}

#[test]
fn every_json_output_has_a_schema() {
    let api: Value = serde_json::from_str(API).expect("JSON");
    let of_api = OF_API.iter().map(|(command, name, form)| {
        assert!(api["components"]["schemas"][name].is_object(), "the API has no `{name}`");
        let mut one = json!({"$ref": format!("#/components/schemas/{name}")});
        if *command == "runs view" {
            let event = json!({"$ref": "#/components/schemas/NumberedEvent"});
            one["properties"]["events"] =
                json!({"type": "array", "items": event, "description": "With `--events`."});
        }
        let schema = match form {
            Form::One => one,
            Form::List => json!({"type": "array", "items": one}),
        };
        (*command, schema)
    });
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/schemas");
    let mut golden = Golden::default();
    let all: Vec<_> = of_api.chain(own()).collect();
    for (command, schema) in &all {
        let file = folder.join(format!("{}.json", command.replace(' ', "-")));
        let title = format!("What `qualitytrace {command} --format json` prints");
        golden.compare(&file, &complete(&title, schema, &api));
    }
    let formats = Format::names().filter_map(Format::parse);
    let types = ["application/json", "application/x-ndjson"];
    let formats: Vec<_> = formats.filter(|it| types.contains(&it.media_type)).collect();
    let reports = [reports::json(), reports::ndjson(&api)];
    assert_eq!(formats.len(), reports.len(), "the formats of reports in JSON");
    for (format, schema) in formats.iter().zip(&reports) {
        let title = format!("A line of `--report {}`", format.name);
        let file = folder.join(format!("report-{}.json", format.name));
        golden.compare(&file, &complete(&title, schema, &api));
    }
    golden.finish(all.len() + reports.len());
    let mut listed: Vec<_> = all.iter().map(|(command, _)| (*command).to_owned()).collect();
    listed.sort_unstable();
    let prints = commands_with(|arg| arg.get_id() == "format");
    assert_eq!(listed, prints, "the commands with `--format`");
    let writes = commands_with(|arg| arg.get_long() == Some("report"));
    assert_eq!(writes, reports::COMMANDS, "the commands with `--report`");
}
