//! The page of the API, from its description in OpenAPI.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{
    MADE, schema,
    table::{code, sentence, table},
};
use crate::args::OPERATIONS;

const API: &str = include_str!("../../../../docs/api/openapi.json");
/// The methods of a path that can have an operation.
const METHODS: [&str; 5] = ["get", "put", "post", "patch", "delete"];

/// Returns the page.
pub(super) fn page() -> String {
    let api: Value = serde_json::from_str(API).unwrap_or_default();
    let about = api["info"]["description"].as_str().unwrap_or_default();
    let mut text = format!(
        "# API

{MADE}
{about} `docs/api/openapi.json` is the description from which this page is made; a server answers with it at
`/api/v1/openapi.json`. [The server](../server.md) has what all operations share: [access](../server.md#access), [errors](../server.md#errors),
[limits](../server.md#limits).

"
    );
    let mut groups: Vec<(&str, Vec<String>)> = Vec::new();
    for (path, operations) in api["paths"].as_object().into_iter().flatten() {
        for method in METHODS {
            let operation = &operations[method];
            if !operation.is_object() {
                continue;
            }
            let tag = operation["tags"][0].as_str().unwrap_or("others");
            let words = one(method, path, operation);
            match groups.iter_mut().find(|(name, _)| *name == tag) {
                Some((_, all)) => all.push(words),
                None => groups.push((tag, vec![words])),
            }
        }
    }
    for (name, operations) in groups {
        let _written = write!(text, "## {name}\n\n{}", operations.concat());
    }
    text.push_str("## Values\n\n");
    for (name, value) in api["components"]["schemas"].as_object().into_iter().flatten() {
        let _written = write!(text, "### {name}\n\n{}", of_schema(value));
    }
    text.trim_end().to_owned() + "\n"
}

fn one(method: &str, path: &str, operation: &Value) -> String {
    let words = |name: &str| operation[name].as_str().map(sentence).unwrap_or_default();
    let mut text = format!("### {} {path}\n\n{}\n\n", method.to_uppercase(), words("summary"));
    if operation["description"].is_string() {
        let _written = write!(text, "{}\n\n", words("description"));
    }
    let parameters: Vec<_> = operation["parameters"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|parameter| {
            let name = parameter["name"].as_str().unwrap_or_default();
            let place = parameter["in"].as_str().unwrap_or_default();
            let about = parameter["description"].as_str().map(sentence).unwrap_or_default();
            [code(name), place.to_owned(), schema::kind(&parameter["schema"]), about]
        })
        .collect();
    text.push_str(&table(["parameter", "in", "value", "meaning"], &parameters));
    let body = forms(&operation["requestBody"]["content"]);
    if !body.is_empty() {
        let _written = write!(text, "Body: {body}.\n\n");
    }
    let responses: Vec<_> = operation["responses"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(status, response)| {
            let about = response["description"].as_str().map(sentence).unwrap_or_default();
            [code(status), about, forms(&response["content"])]
        })
        .collect();
    text.push_str(&table(["response", "meaning", "body"], &responses));
    text + &command_of(operation)
}

/// Returns the command of an operation, or why it has none.
fn command_of(operation: &Value) -> String {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let mut table = OPERATIONS.lines().filter_map(|line| line.split_once(": "));
    let command = table.find(|(name, _)| *name == id).map(|(_, command)| command);
    match command.map(|command| command.strip_prefix("- ").ok_or(command)) {
        Some(Err(command)) => {
            let link = command.replace(' ', "-");
            format!("Command: [`qualitytrace {command}`](commands.md#{link}).\n\n")
        }
        Some(Ok(reason)) => format!("Command: none; {reason}.\n\n"),
        None => String::new(),
    }
}

/// Returns the media types of a body, each with its value.
fn forms(content: &Value) -> String {
    let forms = content.as_object().into_iter().flatten().map(|(media, form)| {
        match schema::kind(&form["schema"]) {
            kind if kind.is_empty() => code(media),
            kind => format!("{} ({kind})", code(media)),
        }
    });
    forms.collect::<Vec<_>>().join(", ")
}

fn of_schema(value: &Value) -> String {
    let about = value["description"].as_str().map(sentence).unwrap_or_default();
    let mut text = if about.is_empty() { String::new() } else { format!("{about}\n\n") };
    let keys = schema::table_of(value);
    if keys.is_empty() {
        let forms: Vec<_> =
            of(value, "oneOf").chain(of(value, "anyOf")).chain(of(value, "allOf")).collect();
        for form in &forms {
            text.push_str(&of_schema(form));
        }
        if forms.is_empty() {
            let kind = schema::kind(value);
            let _written = write!(text, "{}\n\n", sentence(&kind));
        }
    }
    text + &keys
}

fn of<'a>(value: &'a Value, name: &str) -> impl Iterator<Item = &'a Value> {
    value[name].as_array().into_iter().flatten()
}

/// Each operation has its command on the page, or why it has none.
#[test]
fn every_operation_has_a_line_about_its_command() {
    let page = page();
    let about = page.lines().filter(|line| line.starts_with("Command: ")).count();
    assert_eq!(about, OPERATIONS.lines().count());
    let reasons = OPERATIONS.lines().filter_map(|line| line.split_once(": - "));
    for (operation, reason) in reasons {
        assert!(page.contains(&format!("Command: none; {reason}.")), "{operation}");
    }
}

/// The references of the page lead to its headings.
#[test]
fn every_reference_has_its_heading() {
    let api: Value = serde_json::from_str(API).expect("JSON");
    let all: Vec<_> =
        api["components"]["schemas"].as_object().into_iter().flat_map(Map::keys).collect();
    let page = page();
    let mut links = 0;
    for link in page.split("](#").skip(1).filter_map(|rest| rest.split_once(')')) {
        links += 1;
        assert!(all.iter().any(|name| name.to_lowercase() == link.0), "{}", link.0);
    }
    assert!(links > 100, "{links}");
}
