//! Tables of what a JSON Schema describes, and the page of documents.

use std::fmt::Write;

use serde_json::{Map, Value};

use super::{
    MADE,
    table::{code, sentence, table},
};

/// Keys of an export that a document may keep, and that change nothing.
const WITHOUT_MEANING: &str = "has no meaning";

/// Returns the page of documents.
pub(super) fn documents() -> String {
    let schema: Value = serde_json::from_str(&lang::schema()).unwrap_or_default();
    let mut text = format!(
        "# Documents

{MADE}
A document has `type` and `spec`; a file has any number of them, separated by `---`. [The language](../language/reference.md) has what
they mean, and `qualitytrace schema tests` prints the JSON Schema from which this is made. Keys that an export writes and that have no
meaning are left out. `text` takes numbers and booleans too.

"
    );
    let mut kinds: Vec<(String, Vec<String>)> = Vec::new();
    for branch in schema["allOf"].as_array().into_iter().flatten() {
        let name = branch["if"]["properties"]["type"]["const"].as_str().unwrap_or_default();
        let of = branch["then"]["properties"]["spec"]["$ref"].as_str().unwrap_or_default();
        let of = last(of);
        match kinds.iter_mut().find(|(kind, _)| *kind == of) {
            Some((_, names)) => names.push(code(name)),
            None => kinds.push((of, vec![code(name)])),
        }
    }
    for (kind, names) in &kinds {
        let _written = write!(text, "## {kind}\n\n`type`: {}.\n\n", names.join(" or "));
        text.push_str(&of_definition(&schema, kind));
    }
    let all = schema["$defs"].as_object().into_iter().flat_map(Map::keys);
    for name in all.filter(|name| kinds.iter().all(|(kind, _)| kind != *name)) {
        let _written = write!(text, "## {name}\n\n{}", of_definition(&schema, name));
    }
    text.trim_end().to_owned() + "\n"
}

fn of_definition(schema: &Value, name: &str) -> String {
    match table_of(&schema["$defs"][name]) {
        table if table.is_empty() => {
            let of = &schema["$defs"][name]["additionalProperties"]["description"];
            format!("{}\n\n", sentence(of.as_str().unwrap_or_default()))
        }
        table => table,
    }
}

/// Returns the table of all keys below an object.
pub(super) fn table_of(schema: &Value) -> String {
    let mut rows = Vec::new();
    below(schema, "", &mut rows);
    table(["key", "value", "meaning"], &rows)
}

/// Adds the keys below a schema, each by its path.
fn below(schema: &Value, path: &str, rows: &mut Vec<[String; 3]>) {
    let required: Vec<_> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    for (name, value) in schema["properties"].as_object().into_iter().flatten() {
        let about = value["description"].as_str().unwrap_or_default();
        if about.contains(WITHOUT_MEANING) {
            continue;
        }
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        let of_items = value["items"]["description"].as_str().unwrap_or_default();
        let mut words = sentence(if about.is_empty() { of_items } else { about });
        if required.contains(&name.as_str()) {
            words = format!("{words} Required.").trim_start().to_owned();
        }
        let examples: Vec<_> =
            value["examples"].as_array().into_iter().flatten().map(plain).collect();
        if !examples.is_empty() {
            words = format!("{words} Such as {}.", examples.join(", ")).trim_start().to_owned();
        }
        let before = rows.len();
        rows.push([code(&path), kind(value), words.clone()]);
        nested(value, &path, rows);
        // A table of which nothing is known but its keys.
        if words.is_empty() && kind(value) == "object" && rows.len() > before + 1 {
            rows.remove(before);
        }
    }
}

/// Adds what is below a value: of an object, of the items of a list, of a map.
fn nested(value: &Value, path: &str, rows: &mut Vec<[String; 3]>) {
    below(value, path, rows);
    if value["items"].is_object() {
        nested(&value["items"], &format!("{path}[]"), rows);
    }
    if value["additionalProperties"]["properties"].is_object() {
        nested(&value["additionalProperties"], &format!("{path}.*"), rows);
    }
    for form in forms(value) {
        nested(form, path, rows);
    }
}

fn forms(value: &Value) -> impl Iterator<Item = &Value> {
    let any = |name: &str| value[name].as_array().into_iter().flatten();
    any("anyOf").chain(any("oneOf"))
}

/// Returns the type of a value.
pub(super) fn kind(value: &Value) -> String {
    if let Some(name) = value["$ref"].as_str() {
        let name = last(name);
        return format!("[{name}](#{})", name.to_lowercase());
    }
    if let Some(words) = value["enum"].as_array() {
        return words.iter().filter(|it| !it.is_null()).map(plain).collect::<Vec<_>>().join(", ");
    }
    if !value["const"].is_null() {
        return plain(&value["const"]);
    }
    // A text with a reference to a variable is allowed everywhere.
    let is_reference = |form: &&Value| form["pattern"].as_str() == Some("\\$\\{");
    let mut kinds: Vec<_> = forms(value)
        .filter(|form| !is_reference(form) && form["type"] != "null")
        .map(kind)
        .filter(|it| !it.is_empty())
        .collect();
    kinds.dedup();
    if !kinds.is_empty() {
        return kinds.join(" or ");
    }
    let types: Vec<_> = match &value["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let types: Vec<_> = types.into_iter().filter(|name| *name != "null").collect();
    match types.as_slice() {
        ["string", "number", "boolean"] => "text".to_owned(),
        ["array"] if value["items"].is_object() => match kind(&value["items"]) {
            of if of.is_empty() => "list".to_owned(),
            of => format!("list of {of}"),
        },
        ["array"] => "list".to_owned(),
        ["object"] => "object".to_owned(),
        ["string"] => "text".to_owned(),
        ["integer" | "number"] => number(value),
        ["boolean"] => "`true`, `false`".to_owned(),
        several => several.join(" or "),
    }
}

fn number(value: &Value) -> String {
    match (&value["minimum"], &value["maximum"]) {
        (Value::Null, Value::Null) => "number".to_owned(),
        (least, Value::Null) => format!("number, {least} at least"),
        (Value::Null, most) => format!("number, {most} at most"),
        (least, most) => format!("{least} to {most}"),
    }
}

fn plain(value: &Value) -> String {
    code(&value.as_str().map_or_else(|| value.to_string(), str::to_owned))
}

/// Returns the last name of a reference.
pub(super) fn last(reference: &str) -> String {
    reference.rsplit('/').next().unwrap_or(reference).to_owned()
}
